"""Weights of a sum of scores by coordinate ascent, with an exact search along each weight.

Metzler and Croft, "Linear feature-based models for information retrieval", Information Retrieval 10 (2007), move one
weight at a time. How good a ranking is does not change smoothly with a weight: it is constant between the points
where two texts swap ranks. Och, "Minimum error rate training in statistical machine translation", ACL 2003, finds
these points, and so the best value along the whole line, without trying steps of some size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from whyrank.core import Floats, Ints, NonNegative, Whole, WhyrankError, check, generator, track

RESTARTS, TOLERANCE = 10, 1e-5
_MOST_PASSES = 100
_GAIN = 1e-12  # less is rounding
_NARROWEST = 1e-9  # of the half circle that stands for the line; within less, rounding decides who wins
_TRIES = 8  # promising stretches that are tried, for the case that rounding made one look better than it is


class Segments(NamedTuple):
    """Stretches of a line, ascending, and the value of the measure within each; the line need not be covered."""

    low: Floats
    high: Floats
    values: Floats


class Objective(Protocol):
    """A measure of a ranking, by the scores of all rows."""

    def value(self, scores: Floats) -> float:
        """The mean measure."""
        ...

    def segments(self, base: Floats, slope: Floats) -> Segments:
        """The mean measure of base + t * slope for all t."""
        ...


class Ascent(NamedTuple):
    """Where one start led to: the weights before and after, the measure after, and the passes it took."""

    start: tuple[float, ...]
    weights: tuple[float, ...]
    value: float
    passes: int


@dataclass(frozen=True)
class Fitted:
    """The best weights (absolute values add up to 1), their value, and all ascents."""

    weights: tuple[float, ...]
    value: float
    ascents: Sequence[Ascent]


def fit(
    matrix: Floats, objective: Objective, restarts: int = RESTARTS, seed: int = 0, tolerance: float = TOLERANCE
) -> Fitted:
    """The weights of the columns of `matrix` with the best value; never worse than equal weights.

    The first ascent starts from equal weights and takes the columns in order. The others start from random positive
    weights, each divided by the standard deviation of its column, and take the columns in random order. An ascent
    ends with the first pass that gains less than `tolerance`. Of equally good ascents the first one counts.
    """
    check("restarts", restarts, Whole)
    check("tolerance", tolerance, NonNegative)
    if not matrix.size or not np.isfinite(matrix).all():
        raise WhyrankError("weights are fitted to finite scores of at least one pair; there are none")
    columns = np.ascontiguousarray(matrix.T)
    found = [
        _ascent(columns, objective, *_start(columns, i, seed), tolerance) for i in track(range(restarts), "fitting")
    ]
    best = max(found, key=lambda ascent: ascent.value)
    return Fitted(best.weights, best.value, found)


def weighted_sum(columns: Floats, weights: Floats) -> Floats:
    """The weighted sum, added up column by column, so that equal rows have equal scores to the bit."""
    total = np.zeros(columns.shape[1])
    for column, weight in zip(columns, weights, strict=True):
        total += weight * column
    return total


def _start(columns: Floats, number: int, seed: int) -> tuple[Floats, Ints]:
    """Weights to start from, and the order of the columns."""
    size = len(columns)
    if number == 0:
        return _normalise(np.ones(size)), np.arange(size)
    drawn = generator(seed, "coordinate ascent", str(number))
    spread = columns.std(axis=1)
    return _normalise(drawn.exponential(size=size) / np.where(spread > 0, spread, 1.0)), drawn.permutation(size)


def _ascent(columns: Floats, objective: Objective, start: Floats, order: Ints, tolerance: float) -> Ascent:
    weights, value, passes, gained = start, objective.value(weighted_sum(columns, start)), 0, np.inf
    while passes < _MOST_PASSES and gained >= max(tolerance, _GAIN):
        before = value
        for j in order.tolist():
            weights, value = _along(columns, objective, weights, value, j)
        passes, gained = passes + 1, value - before
    return Ascent(tuple(start.tolist()), tuple(weights.tolist()), value, passes)


def _along(columns: Floats, objective: Objective, weights: Floats, value: float, j: int) -> tuple[Floats, float]:
    """The best weights that differ in one column only, and their value; the given ones where none are better."""
    others = np.where(np.arange(len(weights)) == j, 0.0, weights)
    segments = objective.segments(weighted_sum(columns, others), columns[j])
    for point in [*_points(segments, weights[j], value), 0.0]:
        moved = np.where(np.arange(len(weights)) == j, point, weights)
        if not moved.any():
            continue
        moved = _normalise(moved)
        found = objective.value(weighted_sum(columns, moved))
        if found > value + _GAIN:
            return moved, found
    return weights, value


def _points(segments: Segments, now: float, value: float) -> list[float]:
    """Where to move: into the best stretches, of equally good ones the widest first; nowhere where none is better."""
    unit = scale_of(segments)
    width = (np.arctan(segments.high / unit) - np.arctan(segments.low / unit)) / np.pi
    usable = np.flatnonzero((width > _NARROWEST) & (segments.values > value + _GAIN))
    order = usable[np.lexsort((-width[usable], -np.round(segments.values[usable], 12)))][:_TRIES]
    return [float(point) for point in middles(Segments(*(part[order] for part in segments)), unit)]


def scale_of(segments: Segments) -> float:
    """A length that is typical for the line: the median distance of its crossings from 0."""
    finite = np.abs(segments.high[np.isfinite(segments.high)])
    return float(np.median(finite[finite > 0])) if (finite > 0).any() else 1.0


def middles(segments: Segments, unit: float) -> Floats:
    """A point within each stretch: in the middle, where the line is bent to a half circle, so that it has ends."""
    inner = unit * np.tan((np.arctan(segments.low / unit) + np.arctan(segments.high / unit)) / 2)
    return np.asarray(np.clip(inner, segments.low, segments.high))


def _normalise(weights: Floats) -> Floats:
    return np.asarray(weights / np.abs(weights).sum())
