"""Runs of BM25 and Model 1 over texts that are analysed once for each analyzer, as an index has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from whyrank.core import parse_call
from whyrank.data import Collection, ranking
from whyrank.evaluation.fusion.objectives import CandidateMatrix
from whyrank.rankers import Setting, open_ranker, query_scale
from whyrank.rankers.lexical import LexicalIndex, LexicalRanker, rows_of
from whyrank.rankers.lexical import model1 as kernels
from whyrank.rankers.lexical.model1 import LEAST_PROBABILITY, Model1Ranker

Run = Mapping[str, Mapping[str, float]]
DEPTH = 100


@dataclass(frozen=True, eq=False)
class Texts:
    """The documents of a collection with one index for each analyzer."""

    collection: Collection
    indexes: dict[str, LexicalIndex] = field(default_factory=dict)
    numbered: dict[tuple[str, str], object] = field(default_factory=dict)

    def index(self, analyzer: str) -> LexicalIndex:
        if analyzer not in self.indexes:
            ranker = open_ranker(f"bm25(analyzer={analyzer!r})", Setting(self.collection))
            self.indexes[analyzer] = LexicalIndex.of(ranker, self.collection.docs)
        return self.indexes[analyzer]

    def search(self, analyzer: str, queries: Mapping[str, str], depth: int = DEPTH) -> Run:
        """The candidates of all systems: what BM25 with its default parameters finds."""
        return self.index(analyzer).search(queries, depth)

    def scores(self, spec: str, queries: Mapping[str, str], candidates: Run) -> Run:
        """The scores of a ranker on the footing of the query: BM25 by its IDFs, Model 1 by its terms."""
        ask = self.asking(spec)
        return {q: ask(queries[q], candidates[q]) for q in candidates}

    def asking(self, spec: str):
        """A function of a query and document ids that gives scores by id."""
        ranker = open_ranker(spec, Setting(self.collection))
        return self._model1(ranker) if isinstance(ranker, Model1Ranker) else self._bm25(ranker, spec)

    def _bm25(self, ranker: LexicalRanker, spec: str):
        known = self.index(str(parse_call(spec).arguments.get("analyzer", "lucene")))
        own = LexicalRanker(ranker.formula, known.ranker.analyzer, known.ranker.background)
        index = known.using(own)

        def ask(query: str, docs: Sequence[str]) -> dict[str, float]:
            rows, scale = rows_of(index, docs), query_scale(own, query)
            return dict(
                zip([index.doc_ids[r] for r in rows], (index.rescore(query, rows) / scale).tolist(), strict=True)
            )

        return ask

    def _model1(self, ranker: Model1Ranker):
        analyzer = ranker.table.facts["analyzer"]
        index = self.index(analyzer)
        key = (analyzer, ranker.table.digest)
        if key not in self.numbered:
            self.numbered[key] = ranker.translation.to_numbers(index.ranker.analyzer, index.tokens)
        texts, dense = self.numbered[key], ranker.translation.dense()
        lengths = np.diff(texts.offsets)

        def ask(query: str, docs: Sequence[str]) -> dict[str, float]:
            rows, (terms, weights) = rows_of(index, docs), ranker.query(query)
            sums, out = ranker.translation.sums(terms, texts, rows, dense), np.zeros(len(rows))
            priors = ranker.priors(terms)
            kernels.likelihoods(sums, lengths, rows, weights, priors, ranker.lam, LEAST_PROBABILITY, out)
            return dict(zip([index.doc_ids[r] for r in rows], out.tolist(), strict=True))

        return ask


def pool_of(runs: Sequence[Run], depth: int, ascending: bool) -> CandidateMatrix:
    """The best candidates of the first run with the scores of all; of equal scores the first one is the better one."""
    best = {q: ranking(scores)[:depth] for q, scores in runs[0].items() if scores}
    ids = {q: sorted(docs, reverse=not ascending) for q, docs in best.items()}
    matrix = [[run[q][d] for run in runs] for q in ids for d in ids[q]]
    return CandidateMatrix(list(ids), list(ids.values()), np.array(matrix))


def added(runs: Sequence[Run], weights: Sequence[float]) -> Run:
    """The weighted sum."""
    return {
        q: {d: sum(w * run[q][d] for w, run in zip(weights, runs, strict=True)) for d in runs[0][q]} for q in runs[0]
    }
