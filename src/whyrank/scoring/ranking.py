"""Rankings: re-rank given candidates with any ranker, or retrieve from a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np

from whyrank.core import Ranker, Whole, WhyrankError, check
from whyrank.data import Collection, Run, open_collection, ranking
from whyrank.rankers import (
    CascadeRanker,
    ExpandingRanker,
    FusedRanker,
    RunRanker,
    Setting,
    as_ranker,
    open_ranker,
    stacked,
)
from whyrank.rankers.fields import DocFields
from whyrank.rankers.lexical import LexicalIndex, LexicalRanker, rows_of
from whyrank.scoring.batches import Failure, one_line
from whyrank.scoring.engine import Engine, default_engine

Retriever: TypeAlias = LexicalRanker | ExpandingRanker


def rank(
    ranker: str | Ranker, collection: str | Collection, depth: int = 1000, candidates: Run | None = None,
    engine: Engine | None = None,
) -> Run:  # fmt: skip
    """The run of a ranker: query id -> document id -> score, best first, without scores that are not finite.

    Args:
        ranker: a call string, an object with `name` and `score`, or a function of queries and texts.
        collection: a collection, or its spec.
        depth: documents per query at most.
        candidates: the documents to re-rank; by default BM25 retrieves, or the ranker itself where it can.
        engine: scores, and keeps the scores; by default in the user's cache folder, as the command line does.

    Example:
        >>> run = rank("bm25", "sample", depth=3)
        >>> max(len(scores) for scores in run.values())
        3
    """
    check("depth", depth, Whole)
    collection, engine = open_collection(collection), engine or default_engine()
    made = as_ranker(ranker, Setting(collection))
    if candidates is None:
        run, failures = retrieve(engine, made, collection, depth)
    else:
        run, failures = rerank(engine, made, collection, candidates)
    if failures and not any(run.values()):
        raise WhyrankError(f"{made.name!r} has no finite score for any document ({failures[0].reason})")
    warn_of(failures, made, engine)
    return {query_id: dict(islice(scores.items(), depth)) for query_id, scores in run.items()}


def warn_of(failures: Sequence[Failure], ranker: Ranker, engine: Engine) -> None:
    """Say how many pairs are left out, because they have no finite score, and why the first."""
    if failures:
        reason = one_line(failures[0].reason)
        engine.warn(f"pairs that {ranker.name!r} gives no finite score, left out: {len(failures):,} ({reason})")


def rerank(
    engine: Engine, ranker: Ranker, collection: Collection, candidates: Mapping[str, Mapping[str, float]]
) -> tuple[Run, list[Failure]]:
    """Score the candidates of each query; a pair without a finite score is left out and reported."""
    if isinstance(ranker, CascadeRanker):
        return _in_stages(engine, ranker, collection, candidates)
    wanted = {
        q: [d for d in docs if d in collection.docs] for q, docs in candidates.items() if q in collection.queries
    }
    doc_ids = sorted({d for docs in wanted.values() for d in docs})
    row = {d: i for i, d in enumerate(doc_ids)}
    query = np.repeat(np.arange(len(wanted), dtype=np.int32), [len(docs) for docs in wanted.values()])
    doc = np.array([row[d] for docs in wanted.values() for d in docs], dtype=np.int32)
    texts = [collection.docs[d] for d in doc_ids]
    queries, fields = [collection.queries[q] for q in wanted], DocFields(doc_ids, collection.fields)
    scores = engine.score(ranker, queries, texts, query, doc, fields)
    return _as_run(wanted, scores.values.tolist()), scores.failures


def retrieve(
    engine: Engine, ranker: Ranker, collection: Collection, depth: int, analyzer: str = "lucene",
    stats: str | None = None,
) -> tuple[Run, list[Failure]]:  # fmt: skip
    """The best documents of the whole collection: by BM25 itself, or any ranker over the BM25 candidates.

    A cascade and a fuse retrieve with their own first ranker where that is BM25, over texts as they are or expanded.
    Any other takes the candidates of BM25 with the given analyzer and statistics.
    """
    first = retriever(ranker)
    if first is not None and first is ranker:
        return _search(first, collection, depth), []
    plain = first or open_ranker("bm25", Setting(collection, analyzer, stats))
    return rerank(engine, ranker, collection, retrieve(engine, plain, collection, depth)[0])


def retriever(ranker: Ranker) -> Retriever | None:
    """The ranker that retrieves: itself, or the first one of a cascade or a fuse; None where that cannot."""
    if isinstance(ranker, CascadeRanker | FusedRanker):
        return retriever(ranker.parts[0])
    behind = ranker.ranker if isinstance(ranker, ExpandingRanker) else ranker
    able = isinstance(behind, LexicalRanker) and behind.retrieves
    return ranker if able and isinstance(ranker, Retriever) else None


def _search(first: Retriever, collection: Collection, depth: int) -> Run:
    if isinstance(first, LexicalRanker):
        return LexicalIndex.of(first, collection.docs).search(collection.queries, depth)
    assert isinstance(first.ranker, LexicalRanker)
    expanded = dict(zip(collection.docs, first.expanded(list(collection.docs.values())), strict=True))
    return LexicalIndex.of(first.ranker, expanded).search(collection.queries, depth)


def rescore(index: LexicalIndex, queries: Mapping[str, str], candidates: Mapping[str, Mapping[str, float]]) -> Run:
    """Re-rank candidates through an index: the same scores as from the texts, faster."""
    run: Run = {}
    for query_id in candidates.keys() & queries.keys():
        rows = rows_of(index, candidates[query_id])
        scores = index.rescore(queries[query_id], rows)
        run[query_id] = {index.doc_ids[row]: float(score) for row, score in zip(rows, scores, strict=True)}
    return run


def _in_stages(
    engine: Engine, ranker: CascadeRanker, collection: Collection, candidates: Mapping[str, Mapping[str, float]]
) -> tuple[Run, list[Failure]]:
    """One stage after the other for all queries, each through the engine, so that its scores are kept."""
    run, failures = rerank(engine, ranker.parts[0], collection, candidates)
    for stage, depth in zip(ranker.parts[1:], ranker.depths, strict=True):
        order = {q: ranking(scores) for q, scores in run.items()}
        top, more = rerank(engine, stage, collection, {q: {d: run[q][d] for d in order[q][:depth]} for q in order})
        run = {q: stacked(top[q], order[q][depth:]) for q in order}
        failures += more
    return run, failures


def _as_run(wanted: Mapping[str, list[str]], values: list[float]) -> Run:
    found, position = Run(), 0
    for query_id, docs in wanted.items():
        scores = dict(zip(docs, values[position : position + len(docs)], strict=True))
        finite = {d: s for d, s in scores.items() if np.isfinite(s)}
        found[query_id] = {d: finite[d] for d in ranking(finite)}
        position += len(docs)
    return found


# The documents that rankers are compared on: the best of a run or of BM25, with the scores of any ranker.


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


def score_candidates(
    engine: Engine, ranker: Ranker, collection: Collection, candidates: Run
) -> tuple[Run, list[Failure]]:
    """The candidates with the scores of a ranker; a run file is looked up by ids, and what it lacks is no failure."""
    if not isinstance(ranker, RunRanker):
        return rerank(engine, ranker, collection, candidates)
    found = {q: ranker.run.get(q, {}) for q in candidates if q in collection.queries}
    return {q: {d: docs[d] for d in candidates[q] if d in docs} for q, docs in found.items()}, []
