"""Axioms on coverage: all query terms, more of them, and words beyond them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from whyrank.axioms.axiom import Axiom
from whyrank.axioms.preconditions import LongQuery, Precondition, similar_length
from whyrank.axioms.view import View
from whyrank.core.checks import tolerance_of
from whyrank.core.protocols import Codes, Flags, Ints


@dataclass(frozen=True, kw_only=True)
class _Coverage(Axiom):
    """What the three share: a precondition on length that is off unless asked for."""

    length: float | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length is not None:
            tolerance_of("length", self.length)

    def preconditions(self) -> tuple[Precondition, ...]:
        """Similar length, where asked for."""
        return similar_length(self.length)


@dataclass(frozen=True, kw_only=True)
class AND(_Coverage):
    """A text with all query terms beats a text that lacks one.

    Original: the terms of a query form aspects; a text that covers all of them is to be ranked above one that does
    not, however often the latter has the terms of a single aspect.
    Adapted: every query term is an aspect of its own; the query has at least two distinct terms; with `length`, the
    lengths differ by at most so much.
    Formula: |Q| >= 2, for all q in Q c(q, D1) > 0, there is a q in Q with c(q, D2) = 0.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Zheng and Fang, "Query aspect based term weighting regularization in information retrieval", ECIR 2010; Wu
    and Fang, "Relation based term weighting regularization", ECIR 2012; adapted in Hagen, Völske, Göring and Stein,
    "Axiomatic result re-ranking", CIKM 2016.
    """

    name: ClassVar[str] = "AND"
    favours: ClassVar[str] = "the text with all query terms"

    def preconditions(self) -> tuple[Precondition, ...]:
        """Two query terms, and similar length where asked for."""
        return LongQuery(2), *super().preconditions()

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Only `a` has all query terms."""
        full = view.distinct == len(view.terms)
        return np.asarray(full[a] & ~full[b])


@dataclass(frozen=True, kw_only=True)
class M_AND(_Coverage):  # noqa: N801
    """A text with more distinct query terms beats a text with fewer.

    Original: as AND, from which it follows by giving up that the winner has every term.
    Adapted: the number of distinct query terms is compared; the query has at least two; with `length`, the lengths
    differ by at most so much.
    Formula: |Q| >= 2, |{q in Q: c(q, D1) > 0}| > |{q in Q: c(q, D2) > 0}|.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Zheng and Fang, "Query aspect based term weighting regularization in information retrieval", ECIR 2010; Wu
    and Fang, "Relation based term weighting regularization", ECIR 2012; adapted in Hagen, Völske, Göring and Stein,
    "Axiomatic result re-ranking", CIKM 2016.
    """

    name: ClassVar[str] = "M-AND"
    favours: ClassVar[str] = "the text with more distinct query terms"

    def preconditions(self) -> tuple[Precondition, ...]:
        """Two query terms, and similar length where asked for."""
        return LongQuery(2), *super().preconditions()

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """More distinct query terms are in `a`."""
        return np.asarray(view.distinct[a] > view.distinct[b])


@dataclass(frozen=True, kw_only=True)
class DIV(_Coverage):
    """The text whose words overlap less with the query wins: it has more to say beyond it.

    Original: axioms of result diversification, on sets of documents that are to differ from each other.
    Adapted: the difference is that between one text and the query, as the Jaccard coefficient of their sets of terms,
    compared as exact fractions; with `length`, the lengths differ by at most so much.
    Formula: J(D) = |Q and D| / |Q or D| over sets of terms, J(D1) < J(D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Gollapudi and Sharma, "An axiomatic approach for result diversification", WWW 2009; adapted in Hagen,
    Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name: ClassVar[str] = "DIV"
    favours: ClassVar[str] = "the text that overlaps less with the query"

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The share of common terms is smaller in `a`."""
        shared, joined = view.distinct, len(view.terms) + _vocabularies(view) - view.distinct
        return np.asarray(shared[a] * joined[b] < shared[b] * joined[a])


def _vocabularies(view: View) -> Ints:
    """How many distinct terms each document has."""
    tokens = view.pool.pools.tokens
    size = len(view.pool.pools.analyzer.vocabulary)
    found: Ints = view.views.once("vocabularies", lambda: _count_distinct(tokens.ids, tokens.offsets, size))
    return found[view.pool.rows]


@njit(cache=True, nogil=True)
def _count_distinct(ids: Codes, offsets: Ints, size: int) -> Ints:
    found, last = np.zeros(len(offsets) - 1, np.int64), np.full(size, -1, np.int64)
    for text in range(len(found)):
        for place in range(offsets[text], offsets[text + 1]):
            found[text] += last[ids[place]] != text
            last[ids[place]] = text
    return found
