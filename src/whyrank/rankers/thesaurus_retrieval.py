"""Retrieval by BM25T and QLT: term at a time over inverted lists, until no other document can be among the best.

The score of a document is what it has without any match, plus a gain for each query term. No gain is above its bound,
which follows from the highest frequency that any document can have. Once the k-th best score so far is above all that
a document without a match yet could reach, only documents are left that can still be among the best; they are scored
exactly from their tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from whyrank.core.protocols import Codes, Floats, Ints
from whyrank.rankers import thesaurus_kernels as kernels
from whyrank.rankers.index import LexicalIndex
from whyrank.rankers.kernels import DIRICHLET, SATURATED
from whyrank.rankers.lexical import Weights
from whyrank.rankers.thesaurus import ThesaurusRanker

POSTINGS_PER_TOKEN = 1.0  # a token of a candidate costs about as much as a posting of an inverted list
_MARGIN = 1e-9  # beyond what the order of additions does to a score


class Asked(NamedTuple):
    """A query term, the inverted lists to walk for it, and the most that it can add at each length of a document."""

    number: int
    own: int
    ids: Codes
    related: Floats
    postings: int
    bound: Floats


class ThesaurusFinder:
    """Finds the documents of an index among which the best of a query are, and scores them."""

    def __init__(self, ranker: ThesaurusRanker, index: LexicalIndex) -> None:
        self._ranker, self._index = ranker, index
        self._scorer = ranker.scorer(index.tokens)
        self._lengths, self._length_of = np.unique(index.lengths, return_inverse=True)

    def rescore(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """Exact scores of the documents `rows`, to the bit as from their texts."""
        return self._scorer.scored(terms, weights, rows)

    def find(self, terms: Codes, weights: Weights, k: int) -> Codes:
        """All documents that may be among the k best of those with a query term or a partner of one."""
        asked = self._asked(terms, weights)
        search = Search(self._index, self._lengths, self._length_of, weights, self._ranker.match)
        for place, term in enumerate(asked):
            if (found := search.settled(asked[:place], asked[place:], k)) is not None:
                return found
            search.add(term)
        return search.possible([], search.least([], k))

    def _asked(self, terms: Codes, weights: Weights) -> list[Asked]:
        """The query terms that any document can match, those first that can add most."""
        found = [self._lists(number, term, weights) for number, term in enumerate(terms.tolist())]
        return sorted((each for each in found if each.postings), key=lambda each: -float(each.bound.max()))

    def _lists(self, number: int, term: int, weights: Weights) -> Asked:
        starts = self._index.lists[0]
        ids, related = self._ranker.thesaurus.partners(term)
        inside = ids < len(starts) - 1
        ids, given = ids[inside], related[inside].astype(np.float64)
        own = term if term < len(starts) - 1 else -1
        postings = int((starts[ids + 1] - starts[ids]).sum()) + (
            int(starts[own + 1] - starts[own]) if own >= 0 else 0
        )
        return Asked(number, own, ids, given, postings, self._bound(number, own, ids, given, weights))

    def _bound(self, number: int, own: int, ids: Codes, related: Floats, weights: Weights) -> Floats:
        """The most that a query term can add to the score of a document of each length."""
        most = np.full(len(self._lengths), self._most(own, ids, related))
        if self._ranker.match != kernels.FIRST:
            most = np.minimum(most, self._lengths * max(1.0, float(related.max(initial=0.0))))
        how = weights.weights[number], weights.priors[number], weights.a, weights.b
        return np.maximum(kernels.gains(weights.kind, most, self._lengths, *how), 0.0)

    def _most(self, own: int, ids: Codes, related: Floats) -> float:
        """The highest frequency of a query term that a document can have."""
        highest = self._index.highest
        count = float(highest[own]) if own >= 0 else 0.0
        if self._ranker.match == kernels.SUM:
            return count + float((related * highest[ids]).sum())
        times = 1 if self._ranker.match == kernels.FIRST else highest[ids]
        return max(count, float((related * times).max(initial=0.0)))


class Search:
    """What one query has found so far: the scores of documents, and those among them with a match."""

    def __init__(self, index: LexicalIndex, lengths: Ints, length_of: Ints, weights: Weights, match: int) -> None:
        self._index, self._length_of, self._weights, self._match = index, length_of, weights, match
        self._start = _start(weights, lengths)
        self._scores, n = self._start[length_of], len(length_of)
        self._f, self._hit = np.zeros(n), np.zeros(n, np.bool_)
        self._touched, self._matched, self._n = np.empty(n, np.int32), np.empty(n, np.int32), 0

    def add(self, term: Asked) -> None:
        """Add the gains of a query term."""
        lists, how = self._index.lists, self._weights
        found = kernels.walk(*lists, term.own, term.ids, term.related, self._match, self._f, self._touched)
        given = how.weights[term.number], how.priors[term.number], how.a, how.b
        touched, lengths = self._touched[:found], self._index.lengths
        self._n = kernels.collect(
            how.kind, lengths, *given, touched, self._f, self._scores, self._hit, self._matched, self._n
        )

    def settled(self, done: Sequence[Asked], left: Sequence[Asked], k: int) -> Codes | None:
        """The documents that may be among the best, once no others can and they are read sooner than what is left."""
        highest = float((self._start + self._rest(left)).max())
        if self._n < k or float((self._start + self._rest(done)).max()) <= highest:
            return None
        least = self.least(left, k)
        if not least > highest + _margin(least):
            return None
        found = self.possible(left, least)
        tokens, postings = int(self._index.lengths[found].sum()), sum(term.postings for term in left)
        return found if tokens * POSTINGS_PER_TOKEN < postings else None

    def possible(self, left: Sequence[Asked], least: float) -> Codes:
        """The documents with a match so far that may have the score `least` when the terms `left` are added."""
        matched = self._matched[: self._n]
        most = self._scores[matched] + self._rest(left)[self._length_of[matched]]
        return matched[~(most < least - _margin(least))]

    def least(self, left: Sequence[Asked], k: int) -> float:
        """What the k-th best document has at least in the end; nothing is certain where there are fewer."""
        if self._n < k:
            return -np.inf
        scores = self._scores[self._matched[: self._n]]
        below = sum(min(0.0, float(self._weights.weights[term.number])) for term in left)
        return float(np.partition(scores, len(scores) - k)[len(scores) - k]) + below

    def _rest(self, left: Sequence[Asked]) -> Floats:
        """The most that the terms `left` can add at each length."""
        return np.asarray(sum((term.bound for term in left), np.zeros(len(self._start))))


def _start(weights: Weights, lengths: Ints) -> Floats:
    """The score of a document of each length that matches nothing."""
    if weights.kind == SATURATED:
        return np.zeros(len(lengths))
    with np.errstate(divide="ignore"):
        logs = np.log(weights.a * weights.priors)
    whole = float((weights.weights * logs).sum())
    shorter = weights.weights.sum() * np.log(lengths + weights.a) if weights.kind == DIRICHLET else 0.0
    return np.asarray(np.full(len(lengths), whole) - shorter)


def _margin(score: float) -> float:
    return _MARGIN * max(1.0, abs(score)) if np.isfinite(score) else 0.0
