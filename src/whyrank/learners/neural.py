"""A neural Model 1 as a term table: T(q|d) of all pairs of pieces, computed in blocks; small ones are left out.

    from whyrank.networks import load
    pass  # INNER
    table = export_table(load("network"))

A table ranks like its network (`model1:TABLE`, which finds lam = 0 and the analyzer in the table's facts) without any
neural computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core import BadInput, Call, Codes, Ints, Progress, check_number, check_whole
from whyrank.data import Collection
from whyrank.learners.em import Growing
from whyrank.networks import Ids, NeuralModel1, load, read_config
from whyrank.tables import TermTable
from whyrank.text import analyzers

ARCHITECTURE = NeuralModel1.architecture
THRESHOLD = 1e-4
_BLOCKS = {"cpu": 256, "cuda": 2048}  # pieces of a side of a block
_TEXTS = 4096  # texts that are cut into pieces at a time
_Cells = tuple[Ints, Codes, npt.NDArray[np.float32]]


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
    analyzer: str | None = None, top: int | None = None, collection: Collection | None = None,
) -> TermTable:  # fmt: skip
    """The table of all pairs of pieces.

    Args:
        network: what `open_network` gives, or one that was just trained.
        threshold: pairs with a smaller T(q|d) are left out; a piece and itself always stay where there is a p_self.
        block: so many query pieces and pieces of texts are compared at a time; by default what suits the device.
        device: cpu or cuda.
        analyzer: a call string that cuts texts into the network's pieces; by default the tokenizer in its folder.
        top: of each query piece only so many pieces of texts, those with the largest T(q|d); all by default.
        collection: only the pieces of its queries and its texts are compared; what a network never saw is noise.
    """
    check_number("threshold", threshold, 0, 1)
    size = _BLOCKS["cuda" if device.startswith("cuda") else "cpu"] if block is None else block
    check_whole("block", size, 1)
    if top is not None:
        check_whole("top", top, 1)
    terms = network.pieces.spell(range(len(network.pieces)))
    sizes, columns, weights = Growing(np.int64), Growing(np.int32), Growing(np.float32)
    asked, told = seen_pieces(network, collection)
    with Progress("scoring pairs of pieces", len(asked) * len(told)) as progress:
        for kept in _scored(network, (asked, told), float(threshold), top, size, device, progress):
            sizes.add(kept.sizes)
            columns.add(kept.columns)
            weights.add(kept.weights)
    indptr = np.concatenate([[0], np.cumsum(sizes.finish())]).astype(np.int64)
    facts = _facts(network, threshold, top, analyzer) | ({"collection": collection.name} if collection else {})
    return TermTable(terms, terms, indptr, columns.finish(), weights.finish(), facts)


def seen_pieces(network: NeuralModel1, collection: Collection | None) -> tuple[Ints, Ints]:
    """The pieces of the queries and of the texts of a collection; all of them without one."""
    every = np.arange(len(network.pieces), dtype=np.int64)
    if collection is None:
        return every, every
    sides = ((network.query_ids, collection.queries), (network.doc_ids, collection.docs))
    asked, told = (_distinct(ids, texts, len(every)) for ids, texts in sides)
    return asked, told


def _distinct(ids: Callable[[Sequence[str]], list[Ids]], texts: Mapping[str, str], size: int) -> Ints:
    found, values = np.zeros(size, np.bool_), iter(texts.values())
    while block := list(islice(values, _TEXTS)):
        for row in ids(block):
            found[row] = True
    return np.flatnonzero(found)


def _scored(
    network: NeuralModel1, pieces: tuple[Ints, Ints], threshold: float, top: int | None, size: int, device: str,
    progress: Progress,
) -> Iterator[_Kept]:  # fmt: skip
    """The entries of all query pieces, a block of these at a time; those that are not asked have p_self alone."""
    own, every = bool(network.layer.p_self), torch.arange(len(network.pieces), device=device)
    asked, told = (torch.from_numpy(side).to(device) for side in pieces)
    with torch.inference_mode():
        query, doc = network.to(device).eval().vectors(every, told)
        for rows in torch.split(every, size):
            found = [_alone(rows, asked, told, network.layer.p_self)] if own else []
            inside = torch.isin(rows, asked).nonzero().squeeze(1)
            for start in range(0, len(told) if len(inside) else 0, size):
                columns = told[start : start + size]
                cells = network.layer.every(query[rows[inside]], doc[start : start + size])
                same = rows[inside][:, None] == columns
                cells = network.layer.with_self(cells, same)
                found.append(_large(cells, (cells >= threshold) | (same & own), inside, columns))
                progress.step(cells.numel())
            yield _best(_by_row(found, len(rows)), rows.cpu().numpy(), top, own)


def _alone(rows: Tensor, asked: Tensor, told: Tensor, p_self: float | None) -> _Cells:
    """The entries of pieces with themselves where the two are not compared."""
    missing = (~(torch.isin(rows, asked) & torch.isin(rows, told))).nonzero().squeeze(1)
    weights = np.full(len(missing), p_self or 0.0, np.float32)
    return missing.cpu().numpy(), rows[missing].int().cpu().numpy(), weights


def _large(cells: Tensor, kept: Tensor, rows: Tensor, columns: Tensor) -> _Cells:
    """Rows, columns and values of what is kept of a block."""
    row, column = kept.nonzero(as_tuple=True)
    return rows[row].cpu().numpy(), columns[column].int().cpu().numpy(), cells[kept].float().cpu().numpy()


def _by_row(found: Sequence[_Cells], rows: int) -> _Kept:
    """The blocks of some query pieces as entries by query piece, ascending."""
    if not found:
        return _Kept(np.zeros(rows, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    row, column, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((column, row))
    return _Kept(np.bincount(row, minlength=rows), column[order], weight[order])


def _best(kept: _Kept, rows: Ints, top: int | None, own: bool) -> _Kept:
    """The `top` largest entries of each query piece, `rows`; with `own` that of a piece and itself whatever it is."""
    if top is None or not len(kept.sizes) or int(kept.sizes.max()) <= top:
        return kept
    row = np.repeat(np.arange(len(kept.sizes)), kept.sizes)
    first = np.where(own & (kept.columns == rows[row]), np.inf, kept.weights)
    order = np.lexsort((kept.columns, -first, row))
    starts = np.concatenate([[0], np.cumsum(kept.sizes)[:-1]])
    stays = np.sort(order[np.arange(len(row)) - np.repeat(starts, kept.sizes) < top])
    return _Kept(np.minimum(kept.sizes, top), kept.columns[stays], kept.weights[stays])


def _facts(network: NeuralModel1, threshold: float, top: int | None, analyzer: str | None) -> dict[str, Any]:
    """How the table came about; `model1` takes lam, p_self and the analyzer from here."""
    settings, pieces = network.settings, network.pieces
    own = str(Call("wordpiece", str(pieces.path), {"max_tokens": network.max_doc}))
    return {
        "learner": ARCHITECTURE, "variant": settings["variant"], "p_self": settings["p_self"] or 0.0, "lam": 0.0,
        "threshold": threshold, "top": top, **analyzers.create(analyzer or own).facts,
        "note": "weights are T(query piece | document piece), self-translation included",
    }  # fmt: skip
