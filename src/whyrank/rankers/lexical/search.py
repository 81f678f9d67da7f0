"""Retrieval: term at a time over inverted lists, until no other document can be among the best.

The score of a document is what it has without any match, plus a gain for each query term. No gain is above its upper
bound, which follows from the highest frequency that any document can have. Once the k-th best score so far is above
all that a document without a match yet could reach, only the documents that were matched can be among the best; they
are then scored exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whyrank.core import Codes, Floats
from whyrank.rankers.lexical import kernels
from whyrank.rankers.lexical.base import Weights

if TYPE_CHECKING:
    from whyrank.rankers.lexical.index import LexicalIndex

POSTINGS_PER_TOKEN = 1.0  # a token of a candidate costs about as much as a posting of an inverted list
_MARGIN = 1e-9  # beyond what the order of additions does to a score


class QueryTerm(NamedTuple):
    """A query term, the inverted lists to walk for it, and the upper bound of its gain at each document length."""

    number: int
    own: int
    ids: Codes
    related: Floats
    postings: int
    bound: Floats


class Search:
    """What one query has found so far: the scores of documents, and those among them with a match."""

    def __init__(self, index: LexicalIndex, terms: Codes, weights: Weights) -> None:
        self._index, self._weights, self._match = index, weights, index.ranker.match
        self._lengths, self._length_of = index.distinct_lengths
        self._start = self._without_match()
        self._scores, n = self._start[self._length_of], len(self._length_of)
        self._f, self._hit = np.zeros(n), np.zeros(n, np.bool_)
        self._touched, self._matched, self._n = np.empty(n, np.int32), np.empty(n, np.int32), 0
        found = [self._query_term(number, term) for number, term in enumerate(terms.tolist())]
        self._terms = sorted((each for each in found if each.postings), key=lambda each: -float(each.bound.max()))

    def find(self, k: int) -> Codes:
        """All documents that may be among the k best of those with a query term or a partner of one."""
        for position, term in enumerate(self._terms):
            if (rows := self._settled(self._terms[:position], self._terms[position:], k)) is not None:
                return rows
            self._add(term)
        return self._possible([], self._least([], k))

    def _without_match(self) -> Floats:
        """The score of a document of each length that matches nothing."""
        how, lengths = self._weights, self._lengths
        if how.kind == kernels.SATURATED:
            return np.zeros(len(lengths))
        with np.errstate(divide="ignore"):
            logs = np.log(how.a * how.priors)
        whole = float((how.weights * logs).sum())
        shorter = how.weights.sum() * np.log(lengths + how.a) if how.kind == kernels.DIRICHLET else 0.0
        return np.asarray(np.full(len(lengths), whole) - shorter)

    def _query_term(self, number: int, term: int) -> QueryTerm:
        starts, highest, how = self._index.lists[0], self._index.highest, self._weights
        ids, related = self._index.ranker.partners(term)
        inside = ids < len(starts) - 1
        ids, given = ids[inside], related[inside].astype(np.float64)
        own = term if term < len(starts) - 1 else -1
        postings = int((starts[ids + 1] - starts[ids]).sum())
        count = 0.0  # the highest count of the term itself in a document
        if own >= 0:
            postings += int(starts[own + 1] - starts[own])
            count = float(highest[own])
        # the highest frequency that a document can have
        if self._match == kernels.SUM:
            most = count + float((given * highest[ids]).sum())
        else:
            times = 1 if self._match == kernels.FIRST else highest[ids]
            most = max(count, float((given * times).max(initial=0.0)))
        frequency = np.full(len(self._lengths), most)
        if self._match != kernels.FIRST:
            frequency = np.minimum(frequency, self._lengths * max(1.0, float(given.max(initial=0.0))))
        numbers = how.weights[number], how.priors[number], how.a, how.b
        bound = np.maximum(kernels.gains(how.kind, frequency, self._lengths, *numbers), 0.0)
        return QueryTerm(number, own, ids, given, postings, bound)

    def _add(self, term: QueryTerm) -> None:
        """Add the gains of a query term."""
        lists, how = self._index.lists, self._weights
        found = kernels.walk(*lists, term.own, term.ids, term.related, self._match, self._f, self._touched)
        numbers = how.weights[term.number], how.priors[term.number], how.a, how.b
        touched, lengths = self._touched[:found], self._index.lengths
        self._n = kernels.collect(
            how.kind, lengths, *numbers, touched, self._f, self._scores, self._hit, self._matched, self._n
        )

    def _settled(self, done: Sequence[QueryTerm], left: Sequence[QueryTerm], k: int) -> Codes | None:
        """The documents that may be among the best, once no others can and they are read sooner than what is left."""
        highest = float((self._start + self._rest(left)).max())
        if self._n < k or float((self._start + self._rest(done)).max()) <= highest:
            return None
        least = self._least(left, k)
        if not least > highest + _margin(least):
            return None
        found = self._possible(left, least)
        tokens, postings = int(self._index.lengths[found].sum()), sum(term.postings for term in left)
        return found if tokens * POSTINGS_PER_TOKEN < postings else None

    def _possible(self, left: Sequence[QueryTerm], least: float) -> Codes:
        """The documents with a match so far that may have the score `least` when the terms `left` are added."""
        matched = self._matched[: self._n]
        most = self._scores[matched] + self._rest(left)[self._length_of[matched]]
        return matched[~(most < least - _margin(least))]

    def _least(self, left: Sequence[QueryTerm], k: int) -> float:
        """What the k-th best document has at least in the end; nothing is certain where there are fewer."""
        if self._n < k:
            return -np.inf
        scores = self._scores[self._matched[: self._n]]
        below = sum(min(0.0, float(self._weights.weights[term.number])) for term in left)
        return float(np.partition(scores, len(scores) - k)[len(scores) - k]) + below

    def _rest(self, left: Sequence[QueryTerm]) -> Floats:
        """The most that the terms `left` can add at each length."""
        return np.asarray(sum((term.bound for term in left), np.zeros(len(self._start))))


def _margin(score: float) -> float:
    return _MARGIN * max(1.0, abs(score)) if np.isfinite(score) else 0.0
