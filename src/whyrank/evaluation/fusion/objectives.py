"""Measures of ir-measures as something to climb: exactly along a line where ranks say all, else at sampled points.

A measure is a function of the scores of a pool: the candidates of all training queries, with the normalised scores of
every part of a `fuse` as one matrix. Along one weight t the score of a text is base + t * slope. Two texts of a query
swap ranks where their lines cross. A measure that looks at ranks changes only there, so it is known for every t once
all crossings are. Rows are texts, those of one query side by side; of equal scores the earlier row ranks higher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from whyrank.core import Floats, Ints, WhyrankError
from whyrank.data import Collection, ranking
from whyrank.evaluation.effectiveness import AnyRun, evaluate
from whyrank.evaluation.fusion.ascent import Objective, Segments, middles, scale_of, weighted_sum
from whyrank.rankers import FusedRanker
from whyrank.scoring import Engine, rerank

EXACT = ("nDCG", "RR", "P", "R", "Success")
MOST_POINTS = 64  # of a line where a measure is evaluated that is not exact along it


@dataclass(frozen=True, eq=False)
class CandidateMatrix:
    """Candidates by query; a row of `matrix` is a candidate, a column what one part says of it."""

    query_ids: Sequence[str]
    doc_ids: Sequence[Sequence[str]]
    matrix: Floats

    @property
    def offsets(self) -> Ints:
        """Where the rows of each query start, and the number of rows."""
        return np.concatenate([[0], np.cumsum([len(ids) for ids in self.doc_ids], dtype=np.int64)])

    def grades(self, collection: Collection, unjudged: int) -> Ints:
        """The grade of each row; `unjudged` where it is not judged."""
        rows = zip(self.query_ids, self.doc_ids, strict=True)
        return np.array([collection.qrels.get(q, {}).get(d, unjudged) for q, ids in rows for d in ids], np.int64)

    def run(self, weights: Sequence[float]) -> AnyRun:
        """The run that the weighted sum gives."""
        return self.run_of(weighted_sum(np.ascontiguousarray(self.matrix.T), np.array(weights, dtype=np.float64)))

    def run_of(self, scores: Floats) -> AnyRun:
        """The run with one score for each row."""
        parts = np.split(scores, self.offsets[1:-1])
        rows = zip(self.query_ids, self.doc_ids, parts, strict=True)
        return {q: dict(zip(ids, part.tolist(), strict=True)) for q, ids, part in rows}


def pool_of(
    fused: FusedRanker,
    collection: Collection,
    candidates: AnyRun,
    engine: Engine,
    depth: int,
    ascending: bool = False,
) -> CandidateMatrix:
    """Ask every part about the `depth` best candidates of each query.

    A candidate that some part has no finite score for is left out, as in the run of the sum. The candidates of a
    query are in descending order of their ids, or ascending: of equal scores, the first one is the better one.
    """
    best = {q: {d: run[d] for d in ranking(run)[:depth]} for q, run in candidates.items() if q in collection.queries}
    runs = [rerank(engine, part, collection, best)[0] for part in fused.parts]
    ids, rows, matrix = list[str](), list[list[str]](), list[Floats]()
    for query_id in sorted(best):
        curves = fused.normalisation.curves(fused.parts, collection.queries[query_id])
        if isinstance(curves, str):  # why the query cannot be normalised
            continue
        common = sorted(set.intersection(*(set(run[query_id]) for run in runs)), reverse=not ascending)
        columns = [
            curve(np.array([run[query_id][d] for d in common])) for curve, run in zip(curves, runs, strict=True)
        ]
        scores = np.stack(columns, axis=1)
        finite = np.flatnonzero(np.isfinite(scores).all(axis=1))
        if len(finite):
            ids.append(query_id)
            rows.append([common[i] for i in finite.tolist()])
            matrix.append(scores[finite])
    if not ids:
        raise WhyrankError(f"{fused.name}: no candidate of {collection.name} has a score of every part")
    return CandidateMatrix(ids, rows, np.concatenate(matrix))


def objective_of(measure: Any, collection: Collection, pool: CandidateMatrix) -> Objective:
    """How good a ranking of the pool is, as the mean over all judged queries."""
    if not is_exact(measure):
        return ByMeasure(measure, collection, pool)
    cutoff = measure.params.get("cutoff")
    formula = _formula(measure.NAME, measure.params.get("rel", 1), cutoff)
    gains = formula.gains(pool.grades(collection, 0).astype(np.float64))
    judged = [np.array(list(collection.qrels.get(q, {}).values()), dtype=np.float64) for q in pool.query_ids]
    norms = np.array([formula.norm(grades) or 1.0 for grades in judged])
    ranks = np.arange(1, 2 + max(map(len, pool.doc_ids)), dtype=np.float64)
    discounts = cut(formula.discounts(ranks), cutoff)
    return RankedGains(pool.offsets, gains, discounts, norms, len(collection.qrels), formula.first)


def is_exact(measure: Any) -> bool:
    """Whether a measure is known for all weights at once: nDCG, RR, P, R and Success without further options."""
    params = set(measure.params) - ({"dcg"} if measure.params.get("dcg") == "log2" else set())
    return measure.NAME in EXACT and params <= {"cutoff", "rel"}


def ties_ascend(measure: Any) -> bool:
    """Whether the program behind the measure takes of equal scores the smaller id first; trec_eval does not."""
    return bool(measure.NAME == "RR" and "cutoff" in measure.params)


@dataclass(frozen=True, eq=False)
class RankedGains:
    """The mean over queries of sum(gain * discount[rank]) / norm, or with `first` of the best discount of a hit.

    Attributes:
        offsets: where the rows of each query start, and the number of rows; of equal scores the earlier row is first.
        gains: of each row; what gains nothing has 0.
        discounts: by rank from 0, one more than a query has rows.
        norms: of each query.
        n_queries: what the sum is divided by; queries without rows count too.
        first: whether only the first row that gains counts.
    """

    offsets: Ints
    gains: Floats
    discounts: Floats
    norms: Floats
    n_queries: int
    first: bool = False

    def value(self, scores: Floats) -> float:
        """The mean measure."""
        total, _, _ = self._sweep(scores, np.zeros(len(scores)))
        return total / max(self.n_queries, 1)

    def segments(self, base: Floats, slope: Floats) -> Segments:
        """The mean measure of base + t * slope for all t: every stretch between two changes."""
        start, times, changes = self._sweep(base, slope)
        order = np.argsort(times, kind="stable")
        edges, totals = times[order], start + np.concatenate([[0.0], np.cumsum(changes[order])])
        ends = np.concatenate([edges, [np.inf]])
        return Segments(np.concatenate([[-np.inf], edges]), ends, totals / max(self.n_queries, 1))

    def _sweep(self, base: Floats, slope: Floats) -> tuple[float, Floats, Floats]:
        return _sweep(base, slope, self.offsets, self.gains, self.discounts, self.norms, self.first)


def cut(discounts: Floats, cutoff: int | None) -> Floats:
    """Discounts that are 0 from a rank on."""
    return discounts if cutoff is None else np.where(np.arange(len(discounts)) < cutoff, discounts, 0.0)


@dataclass(frozen=True, eq=False)
class ByMeasure:
    """Any measure, evaluated by ir-measures: along a line at up to `MOST_POINTS` of the stretches between crossings.

    Where there are more, they are taken evenly from the ascending list of all of them.
    """

    measure: Any
    collection: Collection
    pool: CandidateMatrix

    def value(self, scores: Floats) -> float:
        """The mean measure."""
        return evaluate({"": self.pool.run_of(scores)}, self.collection, [str(self.measure)])[0].mean

    def segments(self, base: Floats, slope: Floats) -> Segments:
        """Some of the stretches between crossings of texts with different grades."""
        lowest = min((g for grades in self.collection.qrels.values() for g in grades.values()), default=0)
        labels = self.pool.grades(self.collection, lowest - 1)
        edges = np.unique(crossings(base, slope, self.pool.offsets, labels))
        low, high = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
        taken = np.unique(np.linspace(0, len(edges), min(MOST_POINTS, len(low))).round().astype(np.int64))
        some = Segments(low[taken], high[taken], np.zeros(len(taken)))
        points = middles(some, scale_of(some))
        return some._replace(values=np.array([self.value(base + point * slope) for point in points]))


class _Formula(NamedTuple):
    """What a measure gives for grades and for ranks (from 1), and what it divides by."""

    gains: Callable[[Floats], Floats]
    discounts: Callable[[Floats], Floats]
    norm: Callable[[Floats], float]
    first: bool = False


def _formula(name: str, rel: int, cutoff: int | None) -> _Formula:
    """The formula of a measure that adds up gains by rank (nDCG, P, R) or looks at the first hit (RR, Success)."""

    def hits(grades: Floats) -> Floats:
        return (grades >= rel).astype(np.float64)

    def ideal(grades: Floats) -> float:
        best = -np.sort(-np.maximum(grades, 0.0))[:cutoff]
        return float((best / np.log2(np.arange(len(best)) + 2.0)).sum())

    return {
        "nDCG": _Formula(lambda grades: np.maximum(grades, 0.0), lambda ranks: 1.0 / np.log2(ranks + 1.0), ideal),
        "RR": _Formula(hits, lambda ranks: 1.0 / ranks, lambda grades: 1.0, first=True),
        "P": _Formula(hits, np.ones_like, lambda grades: float(cutoff or 1)),
        "R": _Formula(hits, np.ones_like, lambda grades: float(hits(grades).sum())),
        "Success": _Formula(hits, np.ones_like, lambda grades: 1.0, first=True),
    }[name]


@njit(cache=True, nogil=True)
def _far_left(base: Floats, slope: Floats, low: int, high: int, i: int) -> int:
    """How many texts stand before text i when t is below all crossings."""
    rank = 0
    for j in range(low, high):
        higher = base[j] > base[i] or (base[j] == base[i] and j < i)
        rank += slope[j] < slope[i] or (slope[j] == slope[i] and higher)
    return rank


@njit(cache=True, nogil=True)
def _events(base: Floats, slope: Floats, low: int, high: int, gaining: Ints) -> tuple[Floats, Ints, Ints]:
    """Where a gaining text meets another one, which gaining text it is, and by how much its rank changes."""
    size = len(gaining) * (high - low)
    times, who, step, n = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64), 0
    for g in range(len(gaining)):
        i = gaining[g]
        for j in range(low, high):
            if slope[j] != slope[i]:
                times[n], who[n] = (base[j] - base[i]) / (slope[i] - slope[j]), g
                step[n] = -1 if slope[j] < slope[i] else 1
                n += 1
    order = np.argsort(times[:n], kind="mergesort")
    return times[:n][order], who[:n][order], step[:n][order]


@njit(cache=True, nogil=True)
def _worth(ranks: Ints, gaining: Ints, gains: Floats, discounts: Floats, norm: float, first: bool) -> float:
    """What one query adds to the sum when its gaining texts have these ranks."""
    total = 0.0
    for g in range(len(ranks)):
        if first:
            total = max(total, discounts[ranks[g]])
        else:
            total += gains[gaining[g]] * discounts[ranks[g]] / norm
    return total


@njit(cache=True, nogil=True)
def _sweep(
    base: Floats, slope: Floats, offsets: Ints, gains: Floats, discounts: Floats, norms: Floats, first: bool
) -> tuple[float, Floats, Floats]:
    """The sum for a t below all crossings, all t where it changes (in no order), and by how much."""
    start, n, room = 0.0, 0, 1024
    times, changes = np.empty(room), np.empty(room)
    for q in range(len(offsets) - 1):
        low, high = offsets[q], offsets[q + 1]
        gaining = low + np.flatnonzero(gains[low:high] > 0)
        ranks = np.array([_far_left(base, slope, low, high, i) for i in gaining], dtype=np.int64)
        known = _worth(ranks, gaining, gains, discounts, norms[q], first)
        start += known
        when, who, step = _events(base, slope, low, high, gaining)
        for e in range(len(when)):
            before = discounts[ranks[who[e]]]
            ranks[who[e]] += step[e]
            if discounts[ranks[who[e]]] == before:
                continue
            now = _worth(ranks, gaining, gains, discounts, norms[q], first)
            if now != known:
                if n == room:
                    times, changes = np.append(times, np.empty(room)), np.append(changes, np.empty(room))
                    room *= 2
                times[n], changes[n], known, n = when[e], now - known, now, n + 1
    return start, times[:n], changes[:n]


def crossings(base: Floats, slope: Floats, offsets: Ints, labels: Ints) -> Floats:
    """All t where two texts of one query with different labels swap ranks, in no order."""
    found = [np.zeros(0)]
    for low, high in pairwise(offsets.tolist()):
        i, j = low + np.array(np.triu_indices(high - low, 1))
        swap = (labels[i] != labels[j]) & (slope[i] != slope[j])
        i, j = i[swap], j[swap]
        found.append((base[j] - base[i]) / (slope[i] - slope[j]))
    return np.concatenate(found)
