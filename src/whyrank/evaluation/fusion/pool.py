"""The candidates of a training run with the normalised scores of every part of a `fuse`, as one matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whyrank.core import Floats, Ints, WhyrankError
from whyrank.data import Collection, ranking
from whyrank.evaluation.fusion.ascent import combined
from whyrank.rankers import FusedRanker
from whyrank.scoring import Engine, rerank

Run = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates by query; a row of `matrix` is a candidate, a column what one part says of it."""

    query_ids: Sequence[str]
    doc_ids: Sequence[Sequence[str]]
    matrix: Floats

    @property
    def offsets(self) -> Ints:
        """Where the rows of each query start, and the number of rows."""
        return np.concatenate([[0], np.cumsum([len(ids) for ids in self.doc_ids], dtype=np.int64)])

    def run(self, weights: Sequence[float]) -> Run:
        """The run that the weighted sum gives."""
        return self.run_of(combined(np.ascontiguousarray(self.matrix.T), np.array(weights, dtype=np.float64)))

    def run_of(self, scores: Floats) -> Run:
        """The run with one score for each row."""
        parts = np.split(scores, self.offsets[1:-1])
        rows = zip(self.query_ids, self.doc_ids, parts, strict=True)
        return {q: dict(zip(ids, part.tolist(), strict=True)) for q, ids, part in rows}


def pool_of(
    fused: FusedRanker, collection: Collection, candidates: Run, engine: Engine, depth: int, ascending: bool = False
) -> Pool:
    """Ask every part about the `depth` best candidates of each query.

    A candidate that some part has no finite score for is left out, as in the run of the sum. The candidates of a
    query are in descending order of their ids, or ascending: of equal scores, the first one is the better one.
    """
    best = {q: {d: run[d] for d in ranking(run)[:depth]} for q, run in candidates.items() if q in collection.queries}
    runs = [rerank(engine, part, collection, best)[0] for part in fused.parts]
    ids, rows, matrix = list[str](), list[list[str]](), list[Floats]()
    for query_id in sorted(best):
        common = sorted(set.intersection(*(set(run[query_id]) for run in runs)), reverse=not ascending)
        scores = _normalised(
            fused, collection.queries[query_id], [[run[query_id][d] for d in common] for run in runs]
        )
        finite = np.flatnonzero(np.isfinite(scores).all(axis=1))
        if len(finite):
            ids.append(query_id)
            rows.append([common[i] for i in finite.tolist()])
            matrix.append(scores[finite])
    if not ids:
        raise WhyrankError(f"{fused.name}: no candidate of {collection.name} has a score of every part")
    return Pool(ids, rows, np.concatenate(matrix))


def _normalised(fused: FusedRanker, query: str, scores: Sequence[Sequence[float]]) -> Floats:
    """One row per candidate, one column per part; without a row where the query cannot be normalised."""
    curves = fused.footing.curves(fused.parts, query)
    if isinstance(curves, str):
        return np.zeros((0, len(scores)))
    return np.stack([curve(np.array(each)) for curve, each in zip(curves, scores, strict=True)], axis=1)
