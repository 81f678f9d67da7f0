"""An index over a collection: retrieval, and fast re-scoring of given candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from whyrank.core import Codes, Floats, Ints, Progress, WhyrankError
from whyrank.data import ranking
from whyrank.rankers.grouping import chunks
from whyrank.rankers.lexical import kernels
from whyrank.rankers.lexical.base import LexicalRanker, TextScorer, Weights
from whyrank.rankers.lexical.search import Search
from whyrank.text import Tokens

_SHARED = (
    "lists",
    "highest",
    "rows",
    "lengths",
    "distinct_lengths",
    "_dense",
    "_doc_slots",
)  # what does not depend on the formula
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
        with Progress("indexing", len(docs)) as progress:
            for texts in chunks(docs):
                tokens = ranker.analyzer.docs(texts)
                ids.append(tokens.ids)
                lengths.append(np.diff(tokens.offsets))
                progress.step(len(texts))
        return cls(ranker, list(docs), Tokens(np.concatenate(ids), np.cumsum(np.concatenate(lengths))))

    def using(self, ranker: LexicalRanker) -> LexicalIndex:
        """The same documents under another formula with the same analyzer; nothing is analysed again."""
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
        """The same for an analysed query, by whichever way of counting reads least postings and tokens."""
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
