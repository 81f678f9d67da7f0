"""An index over a collection: retrieval by inverted lists, and fast re-scoring of given candidates.

Retrieval goes term at a time, until no other document can be among the best. The score of a document is what it has
without any match, plus a gain for each query term. No gain is above its upper bound, which follows from the highest
frequency that any document can have. Once the k-th best score so far is above all that a document without a match
yet could reach, only the documents that were matched can be among the best; they are then scored exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import Codes, Floats, Ints, Progress, WhyrankError
from whyrank.data import ranking
from whyrank.rankers.base import analyse
from whyrank.rankers.lexical import kernels
from whyrank.rankers.lexical.ranker import LexicalRanker, TextScorer, Weights
from whyrank.text import Tokens

# what does not depend on the formula
_SHARED = ("lists", "highest", "rows", "lengths", "distinct_lengths", "_dense", "_doc_slots")
POSTINGS_PER_TOKEN = 1.0  # a token of a candidate costs about as much as a posting of an inverted list
_MARGIN = 1e-9  # beyond what the order of additions does to a score
_FREQUENT = 16  # postings per candidate from which a term's counts are spread out over all documents


@dataclass(frozen=True, eq=False)
class LexicalIndex:
    """Analysed documents (token ids in order) and the inverted lists made from them."""

    ranker: LexicalRanker
    doc_ids: Sequence[str]
    tokens: Tokens

    @classmethod
    def of(cls, ranker: LexicalRanker, docs: Mapping[str, str]) -> LexicalIndex:
        """Analyse all documents, a chunk at a time."""
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        for tokens in analyse(docs, ranker.analyzer, "indexing"):
            ids.append(tokens.ids)
            lengths.append(np.diff(tokens.offsets))
        return cls(ranker, list(docs), Tokens(np.concatenate(ids), np.cumsum(np.concatenate(lengths))))

    def using(self, ranker: LexicalRanker) -> LexicalIndex:
        """An index of these documents for another ranker with the same analyzer; nothing is analysed again."""
        if ranker.analyzer != self.ranker.analyzer:
            raise WhyrankError(f"this index was made with {self.ranker.analyzer.id}, not {ranker.analyzer.id}")
        other = replace(self, ranker=ranker)
        other.__dict__.update({k: self.__dict__[k] for k in _SHARED if k in self.__dict__})
        return other

    @cached_property
    def rows(self) -> dict[str, int]:
        """Row number of each document id."""
        return {doc_id: row for row, doc_id in enumerate(self.doc_ids)}

    @cached_property
    def lengths(self) -> Ints:
        """Tokens per document."""
        return np.diff(self.tokens.offsets)

    @cached_property
    def distinct_lengths(self) -> tuple[Ints, Ints]:
        """The distinct lengths of documents, ascending, and the number of each document's length among them."""
        return np.unique(self.lengths, return_inverse=True)

    def rescore(self, query: str, rows: Codes) -> Floats:
        """Exact scores of the documents `rows`, to the bit as from their texts."""
        return self.rescore_terms(*self.ranker.query(query), rows)

    def rescore_terms(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """Exact scores of documents for an analysed query, by the way of counting that reads the fewest postings."""
        if weights.kind == kernels.SATURATED and not self.ranker.expands:
            return self._add_up(terms, weights, rows)
        return self._scorer.score_terms(terms, weights, rows)

    def _add_up(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """Add up term by term in query order: rare terms by their inverted lists, frequent ones spread out."""
        lists, norms, values, out = self.lists, self._norms(weights), weights.weights, np.zeros(len(rows))
        inside = terms < len(lists[0]) - 1  # no other term can add to a saturated score
        if not inside.all():
            terms, values = terms[inside], values[inside]
        many = max(_FREQUENT * len(rows), len(self.doc_ids) // 20)
        frequent = lists[0][terms + 1] - lists[0][terms] > many
        if not frequent.any():
            kernels.add_lists(*lists, rows, terms, norms, values, self._doc_slots, out)
            return out
        for j, spread in enumerate(frequent):
            if spread:
                kernels.add_dense(self._spread(int(terms[j])), rows, norms, values[j], out)
            else:
                kernels.add_lists(*lists, rows, terms[j : j + 1], norms, values[j : j + 1], self._doc_slots, out)
        return out

    def _norms(self, weights: Weights) -> Floats:
        """What the count of each document is compared with: a + b * length, kept for the last formula."""
        if self._norms_of.get("formula") != (weights.a, weights.b):
            self._norms_of.update(formula=(weights.a, weights.b), values=weights.a + weights.b * self.lengths)
        values: Floats = self._norms_of["values"]
        return values

    def _spread(self, term: int) -> Codes:
        """Counts of a frequent term in all documents; few terms are frequent, so they are kept."""
        if term not in self._dense:
            starts, docs, counts = self.lists
            part = slice(starts[term], starts[term + 1])
            self._dense[term] = np.zeros(len(self.doc_ids), np.int32)
            self._dense[term][docs[part]] = counts[part]
        return self._dense[term]

    def search(self, queries: Mapping[str, str], k: int) -> dict[str, dict[str, float]]:
        """The k best documents of each query that match it, with their exact scores."""
        if not self.ranker.retrieves:
            raise WhyrankError(f"{self.ranker.name} does not retrieve by itself; re-rank a run of bm25 with it")
        found: dict[str, dict[str, float]] = {}
        with Progress("retrieving", len(queries)) as progress:
            for query_id, text in queries.items():
                terms, weights = self.ranker.query(text)
                rows = Search(self, terms, weights).find(k)
                exact = self.rescore_terms(terms, weights, rows).tolist()
                scores = {self.doc_ids[row]: score for row, score in zip(rows, exact, strict=True)}
                found[query_id] = {doc_id: scores[doc_id] for doc_id in ranking(scores)[:k]}
                progress.step()
        return found

    @cached_property
    def lists(self) -> tuple[Ints, Codes, Codes]:
        """Inverted lists: where that of each term starts, documents in ascending order, and their counts."""
        size = int(self.tokens.ids.max(initial=-1)) + 1
        return kernels.postings(self.tokens.ids, self.tokens.offsets, size)

    @cached_property
    def highest(self) -> Codes:
        """The highest count of each term in a document."""
        starts, _, counts = self.lists
        found = np.zeros(len(starts) - 1, np.int32)
        used = np.flatnonzero(np.diff(starts))
        if len(used):
            found[used] = np.maximum.reduceat(counts, starts[used])
        return found

    @cached_property
    def _scorer(self) -> TextScorer:
        return self.ranker.scorer(self.tokens)

    @cached_property
    def _norms_of(self) -> dict[str, Any]:
        return {}

    @cached_property
    def _dense(self) -> dict[int, Codes]:
        return {}

    @cached_property
    def _doc_slots(self) -> Codes:
        return np.full(len(self.doc_ids), -1, np.int32)


def rows_of(index: LexicalIndex, doc_ids: Iterable[str]) -> Codes:
    """Row numbers of documents that are in the index."""
    return np.array([index.rows[d] for d in doc_ids if d in index.rows], dtype=np.int32)


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
            if (rows := self._final(self._terms[:position], self._terms[position:], k)) is not None:
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

    def _final(self, done: Sequence[QueryTerm], left: Sequence[QueryTerm], k: int) -> Codes | None:
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
