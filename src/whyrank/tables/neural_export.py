"""A neural Model 1 as a term table: T(q|d) of all pairs of pieces, computed in blocks; small ones are left out.

    from whyrank.networks.network import load
    from whyrank.tables.neural_export import export_table
    table = export_table(load("network"))

A table ranks like its network (`model1:TABLE`, which finds lam = 0 and the analyzer in the table's facts) without any
neural computation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core.callstrings import Call
from whyrank.core.checks import check_number, check_whole
from whyrank.core.errors import BadInput
from whyrank.core.progress import Progress
from whyrank.core.protocols import Codes, Ints
from whyrank.data.term_table import TermTable
from whyrank.networks.network import load, read_config
from whyrank.networks.neural_model1 import NeuralModel1
from whyrank.tables.growing import Growing

ARCHITECTURE = NeuralModel1.architecture
THRESHOLD = 1e-4
_BLOCKS = {"cpu": 256, "cuda": 2048}  # pieces of a side of a block


class _Kept(NamedTuple):
    """Entries of some query pieces, by query piece."""

    sizes: Ints
    columns: Codes
    weights: npt.NDArray[np.float32]


def open_network(folder: str | Path) -> NeuralModel1:
    """Load a network that can be a table; an error for one of another architecture."""
    own = read_config(Path(folder)).get("architecture")
    if own != ARCHITECTURE:
        raise BadInput(folder, f"is a network of architecture {own}, not {ARCHITECTURE}", "only that one is a table")
    network = load(folder)
    assert isinstance(network, NeuralModel1)
    return network


def export_table(
    network: NeuralModel1, threshold: float = THRESHOLD, block: int | None = None, device: str = "cpu",
    analyzer: str | None = None,
) -> TermTable:  # fmt: skip
    """The table of all pairs of pieces.

    Args:
        network: what `open_network` gives, or one that was just trained.
        threshold: pairs with a smaller T(q|d) are left out; a piece and itself always stay where there is a p_self.
        block: so many query pieces and pieces of texts are compared at a time; by default what suits the device.
        device: cpu or cuda.
        analyzer: a call string that cuts texts into the network's pieces; by default the tokenizer in its folder.
    """
    check_number("threshold", threshold, 0, 1)
    size = _BLOCKS["cuda" if device.startswith("cuda") else "cpu"] if block is None else block
    check_whole("block", size, 1)
    terms = network.pieces.spell(range(len(network.pieces)))
    sizes, columns, weights = Growing(np.int64), Growing(np.int32), Growing(np.float32)
    with Progress("scoring pairs of pieces", len(terms) ** 2) as progress:
        for kept in _scored(network, float(threshold), size, device, progress):
            sizes.add(kept.sizes)
            columns.add(kept.columns)
            weights.add(kept.weights)
    indptr = np.concatenate([[0], np.cumsum(sizes.finish())]).astype(np.int64)
    facts = _facts(network, threshold, analyzer)
    return TermTable(terms, terms, indptr, columns.finish(), weights.finish(), facts)


def _scored(network: NeuralModel1, threshold: float, size: int, device: str, progress: Progress) -> Iterator[_Kept]:
    ids = torch.arange(len(network.pieces), device=device)
    with torch.inference_mode():
        asked, told = network.to(device).eval().vectors(ids, ids)
        for rows in torch.split(ids, size):
            found = []
            for columns in torch.split(ids, size):
                cells = network.layer.every(asked[rows], told[columns])
                same = rows[:, None] == columns
                cells = network.layer.with_self(cells, same)
                always = same & bool(network.layer.p_self)
                found.append(_large(cells, (cells >= threshold) | always, columns))
                progress.step(cells.numel())
            yield _by_row(found, len(rows))


def _large(cells: Tensor, kept: Tensor, columns: Tensor) -> tuple[Ints, Codes, npt.NDArray[np.float32]]:
    """Rows, columns and values of what is kept of a block."""
    row, column = kept.nonzero(as_tuple=True)
    return row.cpu().numpy(), columns[column].int().cpu().numpy(), cells[kept].float().cpu().numpy()


def _by_row(found: Sequence[tuple[Ints, Codes, npt.NDArray[np.float32]]], rows: int) -> _Kept:
    """The blocks of some query pieces as entries by query piece."""
    row, column, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(row, kind="stable")
    return _Kept(np.bincount(row, minlength=rows), column[order], weight[order])


def _facts(network: NeuralModel1, threshold: float, analyzer: str | None) -> dict[str, Any]:
    """How the table came about; `model1` takes lam, p_self and the analyzer from here."""
    settings, pieces = network.settings, network.pieces
    own = str(Call("wordpiece", str(pieces.path), {"max_tokens": network.max_doc}))
    return {
        "learner": ARCHITECTURE, "variant": settings["variant"], "p_self": settings["p_self"] or 0.0, "lam": 0.0,
        "threshold": threshold, "analyzer": analyzer or own,
        "note": "weights are T(query piece | document piece), self-translation included",
    }  # fmt: skip
