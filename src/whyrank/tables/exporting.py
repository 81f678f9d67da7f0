"""From the last state of EM to a term table: pruned, NULL left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core.protocols import Codes, Floats, Ints
from whyrank.data.term_table import TermTable
from whyrank.tables.bitext import Bitext
from whyrank.tables.growing import Growing
from whyrank.tables.shelf import Shelf


class Kept(NamedTuple):
    """What stays in a table: probabilities from `threshold` up, between the `top` most frequent terms of a side."""

    threshold: float
    top: int | None


def export(bitext: Bitext, shelf: Shelf, scale: Floats, kept: Kept, facts: Mapping[str, Any]) -> TermTable:
    """The table of all that is kept; its rows are not scaled up to what was left out."""
    asked = _places(bitext.target_counts, kept.top)
    answering = np.append(_places(bitext.source_counts, kept.top), np.int32(-1))  # the last is NULL
    sizes, indices, weights = Growing(np.int64), Growing(np.int32), Growing(np.float32)
    for number in range(len(shelf)):
        shard = shelf.get(number)
        rows = np.flatnonzero(asked[shard.first : shard.first + len(shard.indptr) - 1] >= 0)
        found = _survivors(rows, shard.indptr, shard.indices, shard.values, scale, answering, kept.threshold)
        order = _by_row(found[0], found[1])
        sizes.add(found[0])
        indices.add(found[1][order])
        weights.add(found[2][order])
    indptr = np.concatenate([[0], np.cumsum(sizes.finish())]).astype(np.int64)
    query_terms = [term for term, place in zip(bitext.target_terms, asked, strict=True) if place >= 0]
    doc_terms = [term for term, place in zip(bitext.source_terms, answering, strict=False) if place >= 0]
    counts = bitext.source_counts[answering[:-1] >= 0]
    return TermTable(query_terms, doc_terms, indptr, indices.finish(), weights.finish(), dict(facts), counts)


def _by_row(sizes: Ints, found: Codes) -> Ints:
    """The order in which the entries of each row ascend."""
    row = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    return np.argsort((row << 32) | found, kind="stable")


def _places(counts: Ints, top: int | None) -> Codes:
    """The number of each term among those that stay, -1 for the others; ties at the edge go by the old number."""
    found = np.full(len(counts), -1, np.int32)
    stay = np.sort(np.argsort(-counts, kind="stable")[:top])
    found[stay] = np.arange(len(stay), dtype=np.int32)
    return found


@njit(cache=True, nogil=True)
def _survivors(
    rows: Ints,
    indptr: Ints,
    indices: Codes,
    values: npt.NDArray[Any],
    scale: Floats,
    places: Codes,
    threshold: float,
) -> tuple[Ints, Codes, npt.NDArray[np.float32]]:
    """How many entries of each row stay, which and with what weight, in the order of the row."""
    sizes, at = np.zeros(len(rows), np.int64), 0
    for i in range(len(rows)):
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if places[indices[entry]] >= 0 and 0.0 < values[entry] * scale[indices[entry]] >= threshold:
                sizes[i] += 1
    found, weights = np.empty(sizes.sum(), np.int32), np.empty(sizes.sum(), np.float32)
    for i in range(len(rows)):
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
            weight = values[entry] * scale[indices[entry]]
            if places[indices[entry]] >= 0 and 0.0 < weight >= threshold:
                found[at], weights[at] = places[indices[entry]], weight
                at += 1
    return sizes, found, weights
