"""A neural Model 1 as a term table: T(q|d) of all pairs of tokens, computed in blocks; small ones are left out.

    table = export_table(open_network("network"))

A table ranks like its network (`model1:TABLE`, which finds lam = 0 and the analyzer in the table's facts) without any
neural computation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core import Call, Codes, Ints, Progress, Share, Whole
from whyrank.data import Collection
from whyrank.learners.em import Growing
from whyrank.networks import Ids, NeuralModel1Network, load
from whyrank.rankers import Described
from whyrank.tables import TermTable
from whyrank.text import analyzers
from whyrank.training import find_device

ARCHITECTURE = NeuralModel1Network.architecture
THRESHOLD = 1e-4
_BLOCKS = {"cpu": 256, "cuda": 2048}  # tokens of a side of a block
_TEXTS = 4096  # texts that are tokenized at a time


@dataclass(frozen=True)
class Neural(Described):
    """A trained neural Model 1 as a table, T(query token | document token) of all tokens: `neural:FOLDER`.

    The network has learned already: a collection only says which tokens are compared, those of its queries and texts.

    Attributes:
        resource: the folder of a neural-model1 network.
        threshold: pairs with a smaller T(q|d) are left out; a token and itself always stay where there is a p_self.
        top: of each query token only so many document tokens, those with the largest T(q|d); all by default.
        block: so many query tokens and document tokens are compared at a time; by default what suits the device.
        device: cpu, cuda, or empty for cuda where there is one.
    """

    resource: str
    threshold: Share = THRESHOLD
    top: Whole | None = None
    block: Whole | None = None
    device: str = "cpu"

    registered: ClassVar[str] = "neural"

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table of the network."""
        device, network = find_device(self.device), open_network(self.resource)
        return export_table(network, self.threshold, self.block, device, top=self.top, collection=collection)


def open_network(folder: str | Path) -> NeuralModel1Network:
    """Load a network that can be a table; an error for one of another architecture."""
    network = load(folder, ARCHITECTURE)
    assert isinstance(network, NeuralModel1Network)
    return network


def export_table(
    network: NeuralModel1Network, threshold: float = THRESHOLD, block: int | None = None, device: str = "cpu",
    top: int | None = None, collection: Collection | None = None,
) -> TermTable:  # fmt: skip
    """The table of all pairs of tokens of a network that `open_network` gives, or that was just trained.

    The settings are those of `Neural`. With a collection only the tokens of its queries and its texts are compared:
    what a network never saw is noise.
    """
    Neural("", threshold, top, block, device)  # checks them
    size = block or _BLOCKS["cuda" if device.startswith("cuda") else "cpu"]
    terms = network.tokenizer.spell(range(len(network.tokenizer)))
    query_tokens = doc_tokens = np.arange(len(terms), dtype=np.int64)
    if collection is not None:
        query_tokens = _distinct(network.query_ids, collection.queries, len(terms))
        doc_tokens = _distinct(network.doc_ids, collection.docs, len(terms))
    sizes, columns, weights = Growing(np.int64), Growing(np.int32), Growing(np.float32)
    with Progress("scoring pairs of tokens", len(query_tokens) * len(doc_tokens)) as progress:
        for rows in _entries(network, query_tokens, doc_tokens, float(threshold), top, size, device, progress):
            sizes.add(rows.sizes)
            columns.add(rows.columns)
            weights.add(rows.weights)
    indptr = np.concatenate([[0], np.cumsum(sizes.finish())]).astype(np.int64)
    settings = network.settings
    own = str(Call("wordpiece", str(network.tokenizer.path), {"max_tokens": network.max_doc}))
    facts = {
        "learner": ARCHITECTURE, "variant": settings["variant"], "p_self": settings["p_self"] or 0.0, "lam": 0.0,
        "threshold": threshold, "top": top, **analyzers.create(own).facts,
        "note": "weights are T(query token | document token), self-translation included",
    }  # fmt: skip
    if collection:
        facts["collection"] = collection.name
    return TermTable(terms, terms, indptr, columns.finish(), weights.finish(), facts)


def _distinct(tokenize: Callable[[Sequence[str]], list[Ids]], texts: Mapping[str, str], size: int) -> Ints:
    """The tokens that occur in texts, by their numbers below `size`."""
    found, values = np.zeros(size, np.bool_), iter(texts.values())
    while block := list(islice(values, _TEXTS)):
        for ids in tokenize(block):
            found[ids] = True
    return np.flatnonzero(found)


class _Rows(NamedTuple):
    """The entries of some query tokens: how many each has, then document tokens and weights, ascending by token."""

    sizes: Ints
    columns: Codes
    weights: npt.NDArray[np.float32]


def _entries(
    network: NeuralModel1Network, query_tokens: Ints, doc_tokens: Ints, threshold: float, top: int | None, size: int,
    device: str, progress: Progress,
) -> Iterator[_Rows]:  # fmt: skip
    """The entries of all query tokens, a block of these at a time; those that no query has get p_self alone."""
    layer, every = network.layer, torch.arange(len(network.tokenizer), device=device)
    queries, docs = (torch.from_numpy(side).to(device) for side in (query_tokens, doc_tokens))
    with torch.inference_mode():
        query_vectors, doc_vectors = network.to(device).eval().vectors(every, docs)
        for tokens in torch.split(every, size):
            inside = torch.isin(tokens, queries)
            alone = (~(inside & torch.isin(tokens, docs))).nonzero().squeeze(1) if layer.p_self else tokens[:0]
            cells = [(alone, tokens[alone], torch.full((len(alone),), layer.p_self or 0.0, device=device))]
            compared = inside.nonzero().squeeze(1)
            for start in range(0, len(docs) if len(compared) else 0, size):
                others = docs[start : start + size]
                same = tokens[compared][:, None] == others
                found = layer.with_self(
                    layer.every(query_vectors[tokens[compared]], doc_vectors[start : start + size]), same
                )
                kept = (found >= threshold) | (same & bool(layer.p_self))
                row, column = kept.nonzero(as_tuple=True)
                cells.append((compared[row], others[column], found[kept].float()))
                progress.step(found.numel())
            yield _sort(cells, tokens, top, bool(layer.p_self))


def _sort(cells: Sequence[tuple[Tensor, ...]], tokens: Tensor, top: int | None, own: bool) -> _Rows:
    """The `top` largest entries of each query token, ascending; with `own` a token and itself always stay."""
    row, column, weight = (torch.cat(side).cpu().numpy() for side in zip(*cells, strict=True))
    if top is not None:
        first = np.where(own & (column == tokens.cpu().numpy()[row]), np.inf, weight)
        order = np.lexsort((column, -first, row))
        sizes = np.bincount(row, minlength=len(tokens))
        rank = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        best = order[rank < top]
        row, column, weight = row[best], column[best], weight[best]
    order = np.lexsort((column, row))
    return _Rows(np.bincount(row, minlength=len(tokens)), column[order].astype(np.int32), weight[order])
