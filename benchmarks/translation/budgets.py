"""Scores of a network for many pairs: batches by what they cost, half precision on a GPU, smaller batches where memory ends.

A batch has about as many pieces as any other, so that its tensors are of about one size: memory is used again
instead of being asked for anew, whatever the lengths. torch and numpy are enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch

from whyrank.networks import Network, tensors

TOKENS = 1 << 16  # pieces of a batch, padding included
CELLS = {"neural-model1": 1 << 22}  # pairs of pieces of a batch, for a network that compares them without context
FEWER_CELLS = 1 << 20  # for all others
HALF = torch.float16  # finer than bfloat16, and as fast; see precision.py
AHEAD = 16  # batches that the processor may be ahead of the GPU


class Pairs(NamedTuple):
    """Pairs (queries[query[i]], texts[doc[i]])."""

    queries: Sequence[str]
    texts: Sequence[str]
    query: np.ndarray
    doc: np.ndarray


def scored(network: Network, pairs: Pairs, device: str, half: torch.dtype | None = None) -> np.ndarray:
    """One score per pair; where a GPU's memory ends, again with batches of half the size."""
    share = 1.0
    while True:
        try:
            return _scored(network.eval(), pairs, device, half, share)
        except torch.OutOfMemoryError:
            if share < 0.1:
                raise
            torch.cuda.empty_cache()
            share /= 2


def _scored(network: Network, pairs: Pairs, device: str, half: torch.dtype | None, share: float) -> np.ndarray:
    query, doc = network.query_ids(pairs.queries), network.doc_ids(pairs.texts)
    order, found = [], []
    mixed = torch.autocast(torch.device(device).type, half) if half else nullcontext()
    with torch.inference_mode(), mixed:
        for rows in batches(network, [query[i] for i in pairs.query], [doc[i] for i in pairs.doc], share):
            arrays = network.arrays([query[pairs.query[i]] for i in rows], [doc[pairs.doc[i]] for i in rows])
            found.append(network(tensors(arrays, device)).float())
            order.append(rows)
            if device.startswith("cuda") and len(order) % AHEAD == 0:
                torch.cuda.synchronize()
    scores = np.empty(len(pairs.query), np.float32)
    scores[np.concatenate(order)] = torch.cat(found).cpu().numpy()
    return scores


def batches(network: Any, queries: Sequence[Any], docs: Sequence[Any], share: float = 1.0) -> Iterator[np.ndarray]:
    """The numbers of the pairs of each batch, from short texts to long ones."""
    tokens, cells = TOKENS * share, CELLS.get(network.architecture, FEWER_CELLS) * share
    size, most = network.max_doc, getattr(network, "chunks", 1)
    asked, told = (np.array([max(1, len(side)) for side in sides]) for sides in (queries, docs))
    chunks = np.minimum(-(-told // size), most)
    batch: list[int] = []
    rows = widest = longest = 0
    for i in np.lexsort((asked, told)).tolist():
        width = asked[i] + min(told[i], size) + 3
        grown = rows + chunks[i], max(widest, width), max(longest, asked[i])
        if batch and (grown[0] * grown[1] > tokens or (len(batch) + 1) * grown[2] * told[i] > cells):
            yield np.array(batch)
            batch, grown = [], (chunks[i], width, asked[i])
        batch.append(i)
        rows, widest, longest = grown
    if batch:
        yield np.array(batch)
