"""How near each other the query terms of a document stand: distances, first places, phrases and windows.

All of it is read off the places of query terms in one pass per document, once per query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit

from whyrank.axioms.view import Hits, View
from whyrank.core.protocols import Codes, Ints

NEVER = np.iinfo(np.int32).max  # the place of what a document does not have


class Groups(NamedTuple):
    """The closest groupings of all query terms in each document; `fewest` is NEVER where a term is missing.

    `fewest` counts the other tokens inside a window, `often` the windows that have so few.
    """

    fewest: Ints
    often: Ints


@dataclass(frozen=True, eq=False)
class Spans:
    """What axioms on proximity ask of the documents of one query."""

    hits: Hits
    query: Codes
    n_terms: int

    @classmethod
    def of(cls, view: View) -> Spans:
        """The spans of a view; made once."""
        return view.once(cls, lambda: cls(view.hits, view.query, len(view.terms)))

    @cached_property
    def nearest(self) -> Codes:
        """The smallest distance between two different query terms in each document, NEVER without."""
        found = self._never()
        _nearest(*self.hits, found)
        return found

    @cached_property
    def first(self) -> Codes:
        """Where each query term first stands, [documents, terms], NEVER where it is missing."""
        found = np.full((self._n_docs, self.n_terms), NEVER, np.int32)
        _first(*self.hits, found)
        return found

    @cached_property
    def phrase(self) -> Codes:
        """Where the whole query first stands word by word, NEVER without."""
        found = self._never()
        _phrase(*self.hits, self.query, found)
        return found

    @cached_property
    def groups(self) -> Groups:
        """The closest groupings of all query terms."""
        fewest, often = np.full(self._n_docs, NEVER, np.int64), np.zeros(self._n_docs, np.int64)
        _groups(self.hits.offsets, self.hits.position, self._opens, fewest, often)
        return Groups(fewest, often)

    @cached_property
    def lengths(self) -> Ints:
        """Sum over all query-term occurrences of the shortest span with it and all query terms, in tokens.

        Only for documents with all query terms does it mean anything.
        """
        found = np.zeros(self._n_docs, np.int64)
        _lengths(self.hits.offsets, self.hits.position, self._opens, found)
        return found

    def spread(self, a: Codes, b: Codes) -> Ints:
        """Tokens between the first places in `a` of each two query terms that `b` has as well, summed."""
        found = np.zeros(len(a), np.int64)
        _spread(self.first, self._by_place, a, b, found)
        return found

    def lead(self, a: Codes, b: Codes) -> Ints:
        """How much later the query terms that both have first stand in `b` than in `a`, summed."""
        found = np.zeros(len(a), np.int64)
        _lead(self.first, a, b, found)
        return found

    def shared(self, a: Codes, b: Codes) -> Ints:
        """How many distinct query terms both have."""
        found = np.zeros(len(a), np.int64)
        _shared(self.first, a, b, found)
        return found

    @cached_property
    def _by_place(self) -> Codes:
        """The query terms in order of their first place."""
        return np.argsort(self.first, axis=1).astype(np.int32)

    @cached_property
    def _opens(self) -> Ints:
        """For each hit that closes a minimal window with all query terms, the hit that opens it; else -1."""
        found = np.full(len(self.hits.term), -1, np.int64)
        _windows(self.hits.offsets, self.hits.term, self.n_terms, found)
        return found

    @property
    def _n_docs(self) -> int:
        return len(self.hits.offsets) - 1

    def _never(self) -> Codes:
        return np.full(self._n_docs, NEVER, np.int32)


@njit(cache=True, nogil=True)
def _nearest(offsets: Ints, position: Codes, term: Codes, found: Codes) -> None:
    # Of two different terms with a hit between them, one differs from that hit and is nearer to it.
    for doc in range(len(found)):
        for k in range(offsets[doc] + 1, offsets[doc + 1]):
            if term[k] != term[k - 1]:
                found[doc] = min(found[doc], position[k] - position[k - 1])


@njit(cache=True, nogil=True)
def _first(offsets: Ints, position: Codes, term: Codes, found: Codes) -> None:
    for doc in range(len(found)):
        for k in range(offsets[doc], offsets[doc + 1]):
            found[doc, term[k]] = min(found[doc, term[k]], position[k])


@njit(cache=True, nogil=True)
def _phrase(offsets: Ints, position: Codes, term: Codes, query: Codes, found: Codes) -> None:
    for doc in range(len(found)):
        for k in range(offsets[doc], offsets[doc + 1] - len(query) + 1):
            same = 0
            while same < len(query) and term[k + same] == query[same] and position[k + same] == position[k] + same:
                same += 1
            if 0 < same == len(query):
                found[doc] = position[k]
                break


@njit(cache=True, nogil=True)
def _spread(first: Codes, by_place: Codes, a: Codes, b: Codes, found: Ints) -> None:
    for i in range(len(a)):
        seen, places = 0, 0
        for term in by_place[a[i]]:
            place = first[a[i], term]
            if place < NEVER and first[b[i], term] < NEVER:
                found[i] += seen * (place - 1) - places
                seen, places = seen + 1, places + place


@njit(cache=True, nogil=True)
def _lead(first: Codes, a: Codes, b: Codes, found: Ints) -> None:
    for i in range(len(a)):
        for term in range(first.shape[1]):
            one, two = first[a[i], term], first[b[i], term]
            if one < NEVER and two < NEVER:
                found[i] += two - one


@njit(cache=True, nogil=True)
def _shared(first: Codes, a: Codes, b: Codes, found: Ints) -> None:
    for i in range(len(a)):
        for term in range(first.shape[1]):
            found[i] += first[a[i], term] < NEVER and first[b[i], term] < NEVER


@njit(cache=True, nogil=True)
def _windows(offsets: Ints, term: Codes, n_terms: int, opens: Ints) -> None:
    for doc in range(len(offsets) - 1):
        inside, missing, left = np.zeros(n_terms, np.int64), n_terms, offsets[doc]
        for right in range(offsets[doc], offsets[doc + 1]):
            missing -= inside[term[right]] == 0
            inside[term[right]] += 1
            while not missing and inside[term[left]] > 1:
                inside[term[left]] -= 1
                left += 1
            if not missing and inside[term[right]] == 1:
                opens[right] = left


@njit(cache=True, nogil=True)
def _groups(offsets: Ints, position: Codes, opens: Ints, fewest: Ints, often: Ints) -> None:
    for doc in range(len(fewest)):
        for k in range(offsets[doc], offsets[doc + 1]):
            if opens[k] < 0:
                continue
            others = position[k] - position[opens[k]] - (k - opens[k])
            if others < fewest[doc]:
                fewest[doc], often[doc] = others, 0
            often[doc] += others == fewest[doc]


@njit(cache=True, nogil=True)
def _lengths(offsets: Ints, position: Codes, opens: Ints, found: Ints) -> None:
    # The shortest span with a hit is that of a minimal window, stretched to the hit where it lies outside. Windows
    # around one hit open with different terms, so that a hit is visited no more often than there are terms.
    shortest = np.full(len(position), NEVER, np.int64)
    for doc in range(len(found)):
        left, reached = -1, offsets[doc]
        for k in range(offsets[doc], offsets[doc + 1]):
            if opens[k] >= 0:
                left = opens[k]
                for i in range(reached, k + 1):
                    shortest[i] = min(shortest[i], position[k] - position[min(i, left)] + 1)
                reached = left + 1
            elif left >= 0:
                shortest[k] = position[k] - position[left] + 1
        found[doc] = shortest[offsets[doc] : offsets[doc + 1]].sum()
