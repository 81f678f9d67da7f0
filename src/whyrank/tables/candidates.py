"""The documents that rankers are compared on: the best of a run or of BM25, with the scores of any ranker."""

from __future__ import annotations

from collections.abc import Mapping

from whyrank.core.protocols import Ranker
from whyrank.data import Collection, Run, ranking
from whyrank.rankers import Setting, open_ranker
from whyrank.rankers.index import LexicalIndex
from whyrank.rankers.lexical import LexicalRanker
from whyrank.rankers.run import RunRanker
from whyrank.scoring import Engine, Failure
from whyrank.scoring.ranking import rerank


def first_ranker(collection: Collection, analyzer: str = "lucene") -> LexicalRanker:
    """BM25 over a collection: what candidates are retrieved with."""
    made = open_ranker("bm25", Setting(collection, analyzer))
    assert isinstance(made, LexicalRanker)
    return made


def candidates_for(
    collection: Collection, queries: Mapping[str, str], depth: int = 1000, given: Run | None = None,
    analyzer: str = "lucene",
) -> Run:  # fmt: skip
    """The best `depth` documents of each query: of a given run, as far as the collection has them, else of BM25."""
    if given is None:
        return LexicalIndex.of(first_ranker(collection, analyzer), collection.docs).search(queries, depth)
    known = {q: {d: s for d, s in given[q].items() if d in collection.docs} for q in queries if q in given}
    return {q: {d: docs[d] for d in ranking(docs)[:depth]} for q, docs in known.items()}


def scored(engine: Engine, ranker: Ranker, collection: Collection, candidates: Run) -> tuple[Run, list[Failure]]:
    """The candidates with the scores of a ranker; a run file is looked up by ids, and what it lacks is no failure."""
    if not isinstance(ranker, RunRanker):
        return rerank(engine, ranker, collection, candidates)
    found = {q: ranker.run.get(q, {}) for q in candidates if q in collection.queries}
    return {q: {d: docs[d] for d in candidates[q] if d in docs} for q, docs in found.items()}, []
