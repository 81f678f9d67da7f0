"""Measures of ir-measures as something to climb: exactly along a line where ranks say all, else at sampled points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import Floats, Ints
from whyrank.data import Collection
from whyrank.evaluation.effectiveness import evaluate
from whyrank.evaluation.fusion import kernels
from whyrank.evaluation.fusion.ascent import Objective, Pieces, middles, scale_of
from whyrank.evaluation.fusion.kernels import crossings
from whyrank.evaluation.fusion.pool import Pool

# Measures that add up gains by rank (nDCG, P, R) or look at the first hit (RR, Success), exact along a line.


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
        total = kernels.measured(scores, self.offsets, self.gains, self.discounts, self.norms, self.first)
        return float(total) / max(self.n_queries, 1)

    def pieces(self, base: Floats, slope: Floats) -> Pieces:
        """The mean measure of base + t * slope for all t: every stretch between two changes."""
        start, times, changes = kernels.sweep(
            base, slope, self.offsets, self.gains, self.discounts, self.norms, self.first
        )
        order = np.argsort(times, kind="stable")
        edges, totals = times[order], start + np.concatenate([[0.0], np.cumsum(changes[order])])
        ends = np.concatenate([edges, [np.inf]])
        return Pieces(np.concatenate([[-np.inf], edges]), ends, totals / max(self.n_queries, 1))


def cut(discounts: Floats, cutoff: int | None) -> Floats:
    """Discounts that are 0 from a rank on."""
    return discounts if cutoff is None else np.where(np.arange(len(discounts)) < cutoff, discounts, 0.0)


MOST_POINTS = 64  # of a line where a measure is evaluated that is not exact along it


def objective_of(measure: Any, collection: Collection, pool: Pool) -> Objective:
    """How good a ranking of the pool is, as the mean over all judged queries."""
    if not is_exact(measure):
        return ByMeasure(measure, collection, pool)
    formula = _FORMULAS[measure.NAME](measure.params.get("rel", 1), measure.params.get("cutoff"))
    rows = [[collection.qrels.get(q, {}).get(d, 0) for d in ids] for q, ids in _by_query(pool)]
    gains = formula.gains(np.array([grade for row in rows for grade in row], dtype=np.float64))
    judged = [np.array(list(collection.qrels.get(q, {}).values()), dtype=np.float64) for q in pool.query_ids]
    norms = np.array([formula.norm(grades) or 1.0 for grades in judged])
    discounts = cut(formula.discounts(np.arange(1, 2 + max(map(len, rows)), dtype=np.float64)), formula.cutoff)
    return RankedGains(pool.offsets, gains, discounts, norms, len(collection.qrels), formula.first)


def is_exact(measure: Any) -> bool:
    """Whether a measure is known for all weights at once: nDCG, RR, P, R and Success without further options."""
    params = set(measure.params) - ({"dcg"} if measure.params.get("dcg") == "log2" else set())
    return measure.NAME in _FORMULAS and params <= {"cutoff", "rel"}


def ties_ascend(measure: Any) -> bool:
    """Whether the program behind the measure takes of equal scores the smaller id first; trec_eval does not."""
    return bool(measure.NAME == "RR" and "cutoff" in measure.params)


@dataclass(frozen=True, eq=False)
class ByMeasure:
    """Any measure, evaluated by ir-measures: along a line at up to `MOST_POINTS` of the stretches between crossings.

    Where there are more, they are taken evenly from the ascending list of all of them.
    """

    measure: Any
    collection: Collection
    pool: Pool

    def value(self, scores: Floats) -> float:
        """The mean measure."""
        return evaluate(self.collection, {"": self.pool.run_of(scores)}, [str(self.measure)])[0].mean

    def pieces(self, base: Floats, slope: Floats) -> Pieces:
        """Some of the stretches between crossings of texts with different grades."""
        edges = np.unique(crossings(base, slope, self.pool.offsets, self._labels()))
        low, high = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
        taken = np.unique(np.linspace(0, len(edges), min(MOST_POINTS, len(low))).round().astype(np.int64))
        some = Pieces(low[taken], high[taken], np.zeros(len(taken)))
        points = middles(some, scale_of(some))
        return some._replace(values=np.array([self.value(base + point * slope) for point in points]))

    def _labels(self) -> Ints:
        """A number for each row: its grade, or one below all grades where it is not judged."""
        judged = self.collection.qrels
        lowest = min((g for grades in judged.values() for g in grades.values()), default=0) - 1
        return np.array(
            [judged.get(q, {}).get(d, lowest) for q, ids in _by_query(self.pool) for d in ids], dtype=np.int64
        )


class _Formula(NamedTuple):
    """What a measure gives for grades and ranks (from 1), and what it divides by."""

    gains: Callable[[Floats], Floats]
    discounts: Callable[[Floats], Floats]
    norm: Callable[[Floats], float]
    cutoff: int | None
    first: bool = False


def _by_query(pool: Pool) -> Any:
    return zip(pool.query_ids, pool.doc_ids, strict=True)


def _ndcg(rel: int, cutoff: int | None) -> _Formula:
    def ideal(grades: Floats) -> float:
        best = -np.sort(-np.maximum(grades, 0.0))[:cutoff]
        return float((best / np.log2(np.arange(len(best)) + 2.0)).sum())

    return _Formula(lambda grades: np.maximum(grades, 0.0), lambda ranks: 1.0 / np.log2(ranks + 1.0), ideal, cutoff)


def _hits(rel: int) -> Callable[[Floats], Floats]:
    return lambda grades: (grades >= rel).astype(np.float64)


def _rr(rel: int, cutoff: int | None) -> _Formula:
    return _Formula(_hits(rel), lambda ranks: 1.0 / ranks, lambda grades: 1.0, cutoff, first=True)


def _success(rel: int, cutoff: int | None) -> _Formula:
    return _Formula(_hits(rel), np.ones_like, lambda grades: 1.0, cutoff, first=True)


def _precision(rel: int, cutoff: int | None) -> _Formula:
    return _Formula(_hits(rel), np.ones_like, lambda grades: float(cutoff or 1), cutoff)


def _recall(rel: int, cutoff: int | None) -> _Formula:
    return _Formula(_hits(rel), np.ones_like, lambda grades: float((grades >= rel).sum()), cutoff)


_FORMULAS: Mapping[str, Callable[[int, int | None], _Formula]] = {
    "nDCG": _ndcg,
    "RR": _rr,
    "P": _precision,
    "R": _recall,
    "Success": _success,
}
