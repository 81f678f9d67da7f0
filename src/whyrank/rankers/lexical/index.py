"""An index over a collection: retrieval, for BM25 through bm25s, and fast re-scoring of given candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes, Floats, Ints, Progress, WhyrankError
from whyrank.data import ranking
from whyrank.rankers.grouping import chunks
from whyrank.rankers.lexical import kernels
from whyrank.rankers.lexical.base import LexicalRanker, TextScorer, Weights
from whyrank.text import Tokens

if TYPE_CHECKING:
    from whyrank.rankers.lexical.thesaurus.search import ThesaurusFinder

_SHARED = ("lists", "highest", "rows", "lengths", "_dense", "_doc_slots")  # what does not depend on the formula
_FREQUENT = 16  # postings per candidate from which a term's counts are spread out over all documents
_LARGE = 200_000  # documents from which compiled retrieval pays for its compilation


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

    def rescore(self, query: str, rows: Codes) -> Floats:
        """Exact scores of the documents `rows`, to the bit as from their texts."""
        return self.rescore_terms(*self.ranker.query(query), rows)

    def rescore_terms(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """The same for an analysed query, by whichever way of counting reads least postings and tokens."""
        if self._finder is not None:
            return self._finder.rescore(terms, weights, rows)
        if weights.kind == kernels.SATURATED:
            return self._add_up(terms, weights, rows)
        return self._scorer.score_terms(terms, weights, rows)

    def _add_up(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """Add up term by term in query order: rare terms by their inverted lists, frequent ones spread out."""
        lists, norms, out = self.lists, self._norms(weights), np.zeros(len(rows))
        terms, values = self._known(terms, weights.weights)
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

    def _known(self, terms: Codes, weights: Floats) -> tuple[Codes, Floats]:
        """The terms that occur in some document; no other can add to a saturated score."""
        inside = terms < len(self.lists[0]) - 1
        return (terms, weights) if inside.all() else (terms[inside], weights[inside])

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
        """The k best documents of each query that match it: found by bm25s, or by the ranker, then scored exactly."""
        engine = self._bm25s() if self._finder is None else None
        found: dict[str, dict[str, float]] = {}
        with Progress("retrieving", len(queries)) as progress:
            for query_id, text in queries.items():
                terms, weights = self.ranker.query(text)
                if self._finder is not None:
                    rows = self._finder.find(terms, weights, k)
                else:
                    known, values = self._known(terms, weights.weights)
                    rows = self._matching(known)
                    rows = rows[_top(self._approximate(engine, known, values)[rows], k)]
                exact = self.rescore_terms(terms, weights, rows).tolist()
                scores = {self.doc_ids[row]: score for row, score in zip(rows, exact, strict=True)}
                found[query_id] = {doc_id: scores[doc_id] for doc_id in ranking(scores)[:k]}
                progress.step()
        return found

    def _matching(self, terms: Codes) -> Codes:
        """Documents with at least one of the terms."""
        starts, docs, _ = self.lists
        hit = np.zeros(len(self.doc_ids), np.bool_)
        for term in terms:
            hit[docs[starts[term] : starts[term + 1]]] = True
        return np.flatnonzero(hit).astype(np.int32)

    def _approximate(self, engine: Any, terms: Codes, weights: Floats) -> npt.NDArray[np.float32]:
        """Scores of all documents in single precision; terms that the query repeats count more."""
        total = np.zeros(len(self.doc_ids), np.float32)
        factors = weights / self._unit[terms]
        for factor in np.unique(factors):
            total += np.float32(factor) * engine.get_scores_from_ids(terms[factors == factor].tolist())
        return total

    def _bm25s(self) -> Any:
        """A bm25s retriever over our own weights, so that it ranks by exactly our formula."""
        starts, docs, counts = self.lists
        one = self.ranker.formula.weights(self.ranker.background, [], np.zeros(0, np.int64))
        if not self.ranker.retrieves:
            raise WhyrankError(f"{self.ranker.name} does not retrieve by itself; re-rank a run of bm25 with it")
        engine = _retriever(compiled=len(self.doc_ids) >= _LARGE)
        data = kernels.impacts(starts, docs, counts, self._norms(one), self._unit)
        engine.scores = {"data": data, "indices": docs, "indptr": starts, "num_docs": len(self.doc_ids)}
        return engine

    @cached_property
    def _unit(self) -> Floats:
        """Weight of each term of the index in a query that has it once; never zero, so that ratios exist."""
        names = self.ranker.analyzer.vocabulary.terms[: len(self.lists[0]) - 1]
        weights = self.ranker.formula.weights(self.ranker.background, names, np.ones(len(names), np.int64)).weights
        return np.where(weights == 0, 1e-30, weights)

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
    def _finder(self) -> ThesaurusFinder | None:
        return self.ranker.finder(self)

    @cached_property
    def _norms_of(self) -> dict[str, Any]:
        return {}

    @cached_property
    def _dense(self) -> dict[int, Codes]:
        return {}

    @cached_property
    def _doc_slots(self) -> Codes:
        return np.full(len(self.doc_ids), -1, np.int32)


@cache
def _retriever(compiled: bool) -> Any:
    """A bm25s retriever without documents; compiling its loop takes a second, so it is made once."""
    import bm25s

    engine = bm25s.BM25()
    engine.nonoccurrence_array = None
    if compiled:
        engine.activate_numba_scorer()
    return engine


def _top(scores: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.intp]:
    """Where the k best are, with all that single precision cannot tell from the last of them."""
    if k >= len(scores):
        return np.arange(len(scores))
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= last - 1e-5 * max(1.0, abs(float(last))))


def rows_of(index: LexicalIndex, doc_ids: Iterable[str]) -> Codes:
    """Row numbers of documents that are in the index."""
    return np.array([index.rows[d] for d in doc_ids if d in index.rows], dtype=np.int32)
