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
        groups, tolerance = _grouped(view), tolerance_of("length", self.length)
        held, size = [np.empty((0, 3), np.int32)], 0
        for group in range(len(groups.vectors)):
            for document in groups.members[groups.offsets[group] : groups.offsets[group + 1]]:
                held.append(_triples(document, group, *groups, view.lengths, *tolerance))
                size += len(held[-1])
                if size >= BLOCK:
                    yield np.concatenate(held)
                    held, size = held[:1], 0
        yield np.concatenate(held)


class _Groups(NamedTuple):
    """Documents by their counts of query terms: those with `vectors[g]` are `members[offsets[g]:offsets[g + 1]]`."""

    vectors: Codes
    totals: Ints
    offsets: Ints
    members: Codes


def _grouped(view: View) -> _Groups:
    """The documents that have a query term, by their counts."""
    some = np.flatnonzero(view.total).astype(np.int32)
    if not len(some):
        return _Groups(view.counts[some], np.zeros(0, np.int64), np.zeros(1, np.int64), some)
    vectors, group = np.unique(view.counts[some], axis=0, return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(group.ravel()))])
    return _Groups(
        vectors, vectors.sum(axis=1, dtype=np.int64), offsets, some[np.argsort(group.ravel(), kind="stable")]
    )


@njit(cache=True, nogil=True)
def _triples(
    one: int,
    first: int,
    vectors: Codes,
    totals: Ints,
    offsets: Ints,
    members: Codes,
    lengths: Ints,
    absolute: float,
    relative: float,
) -> Codes:
    """All triples that begin with the document `one` of the group `first`."""
    found, n = np.empty((16, 3), np.int32), 0
    for second in range(len(vectors)):
        third = _third(vectors, first, second) if totals[first] < totals[second] else -1
        if third < 0:
            continue
        for two in members[offsets[second] : offsets[second + 1]]:
            if not _near(lengths[one], lengths[two], absolute, relative):
                continue
            for three in members[offsets[third] : offsets[third + 1]]:
                if _near(lengths[one], lengths[three], absolute, relative) and _near(
                    lengths[two], lengths[three], absolute, relative
                ):
                    if n == len(found):
                        found = np.concatenate((found, np.empty_like(found)))
                    found[n] = one, two, three
                    n += 1
    return found[:n]


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
def _near(one: int, two: int, absolute: float, relative: float) -> bool:
    return abs(one - two) <= absolute + relative * max(one, two)
