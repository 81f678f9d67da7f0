"""TFC2, the axiom on three texts: the more often a query term occurs, the less another occurrence adds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from whyrank.core import Codes, Flags, Ints, WhyrankError, tolerance_of
from whyrank.studies.axioms.axiom import OfSimilarLength, QueryTerms
from whyrank.studies.axioms.view import View

BLOCK = 1 << 20  # triples at a time


@dataclass(frozen=True, kw_only=True)
class TFC2(OfSimilarLength):
    """Of three texts with ever more query terms in equal steps, the first step adds more to the score.

    Original: for a query of one term q and |D1| = |D2| = |D3|, c(q, D1) > 0, c(q, D2) - c(q, D1) = 1 and
    c(q, D3) - c(q, D2) = 1 imply S(Q, D2) - S(Q, D1) > S(Q, D3) - S(Q, D2).
    Adapted: for any query; the steps are equal for each term and of any size, and their sums grow; lengths differ by
    at most `length` tokens (10) between any two; each text has a query term.
    Formula: for all i, j | |Di| - |Dj| | <= 10, sum_q c(q, Di) >= 1, sum_q c(q, D1) < sum_q c(q, D2) <
    sum_q c(q, D3), for all q in Q c(q, D2) - c(q, D1) = c(q, D3) - c(q, D2).
    Conclusion: S(Q, D2) - S(Q, D1) > S(Q, D3) - S(Q, D2).
    Compat: the same.
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004; adapted in Câmara and
    Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.
    """

    name = "TFC2"
    favours = "first occurrences of query terms over further ones"
    conditions = (QueryTerms(1),)
    size = 3
    not_filled = ()

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Nothing can be said of two texts: always an error."""
        raise WhyrankError("TFC2 compares three texts; ask for its instances or contrasts, not for a preference")

    def instances(self, view: View) -> Iterator[Codes]:
        """Blocks of instances: rows D1, D2, D3 of document numbers, in the order of their query-term sums."""
        groups = _grouped(view)
        heads = _heads(_progressions(groups.vectors), groups)
        sizes = np.zeros(len(heads), np.int64)
        rest = (groups.offsets, groups.members, view.lengths, *tolerance_of("length", self.length))
        _extend(heads, *rest, sizes, np.empty((0, 3), np.int32))
        for block in _blocks(sizes):
            rows = np.empty((sizes[block].sum(), 3), np.int32)
            _extend(heads[block], *rest, sizes[block], rows)
            yield rows


class _Groups(NamedTuple):
    """Documents by their counts of query terms: those with `vectors[g]` are `members[offsets[g]:offsets[g + 1]]`."""

    vectors: Codes
    offsets: Ints
    members: Codes


def _grouped(view: View) -> _Groups:
    """The documents that have a query term, by their counts."""
    some = np.flatnonzero(view.total).astype(np.int32)
    if not len(some):
        return _Groups(view.counts[some], np.zeros(1, np.int64), some)
    vectors, group = np.unique(view.counts[some], axis=0, return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(group.ravel()))])
    return _Groups(vectors, offsets, some[np.argsort(group.ravel(), kind="stable")])


def _progressions(vectors: Codes) -> Codes:
    """All groups of three with equal steps and growing sums."""
    totals = vectors.sum(axis=1)
    found = np.empty((_step(vectors, totals, np.empty((0, 3), np.int32)), 3), np.int32)
    _step(vectors, totals, found)
    return found


def _heads(found: Codes, groups: _Groups) -> Codes:
    """The beginnings of triples: a document of the first group, the second group and the third group."""
    starts, sizes = groups.offsets[found[:, 0]], np.diff(groups.offsets)[found[:, 0]]
    heads, ends = np.repeat(found, sizes, axis=0), np.cumsum(sizes)
    heads[:, 0] = groups.members[np.arange(len(heads)) + np.repeat(starts - ends + sizes, sizes)]
    return heads


def _blocks(sizes: Ints) -> Iterator[slice]:
    """Heads next to each other that have about `BLOCK` triples."""
    number = np.cumsum(sizes) // BLOCK
    edges = np.flatnonzero(np.diff(number, prepend=-1, append=-1))
    yield from map(slice, edges[:-1].tolist(), edges[1:].tolist())


@njit(cache=True, nogil=True)
def _step(vectors: Codes, totals: Ints, found: Codes) -> int:
    """Fill `found` with groups (one, two, three) as far as there is room, and say how many there are."""
    n = 0
    for one in range(len(vectors)):
        for two in range(len(vectors)):
            three = _third(vectors, one, two) if totals[one] < totals[two] else -1
            if three >= 0:
                if n < len(found):
                    found[n] = one, two, three
                n += 1
    return n


@njit(cache=True, nogil=True)
def _third(vectors: Codes, one: int, two: int) -> int:
    """The number of the vector 2 * two - one among the sorted vectors, or -1."""
    low, high = 0, len(vectors)
    while low < high:
        middle, sign = (low + high) // 2, 0
        for term in range(vectors.shape[1]):
            sign = 2 * vectors[two, term] - vectors[one, term] - vectors[middle, term]
            if sign != 0:
                break
        if sign == 0:
            return middle
        low, high = (middle + 1, high) if sign > 0 else (low, middle)
    return -1


@njit(cache=True, nogil=True)
def _extend(
    heads: Codes,
    offsets: Ints,
    members: Codes,
    lengths: Ints,
    absolute: float,
    relative: float,
    sizes: Ints,
    rows: Codes,
) -> None:
    """Count the triples of each head whose lengths are similar, and fill `rows` with them as far as there is room."""
    n = 0
    for head in range(len(heads)):
        one, before = heads[head, 0], n
        for two in members[offsets[heads[head, 1]] : offsets[heads[head, 1] + 1]]:
            if not _near(lengths[one], lengths[two], absolute, relative):
                continue
            for three in members[offsets[heads[head, 2]] : offsets[heads[head, 2] + 1]]:
                if _near(lengths[one], lengths[three], absolute, relative) and _near(
                    lengths[two], lengths[three], absolute, relative
                ):
                    if n < len(rows):
                        rows[n] = one, two, three
                    n += 1
        sizes[head] = n - before


@njit(cache=True, nogil=True)
def _near(one: int, two: int, absolute: float, relative: float) -> bool:
    return abs(one - two) <= absolute + relative * max(one, two)
