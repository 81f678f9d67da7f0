"""Sweeps: how findings change with delta, from no threshold at all to the 99th percentile of the calibration.

MacAvaney et al. (ABNIRML, TACL 2022, section 4.1) find the order of systems stable from about the median on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from whyrank.core import Floats, WhyrankError
from whyrank.studies.delta import Threshold
from whyrank.studies.runner import Answer


class SweepPoint(NamedTuple):
    """The score of one ranker on one study at one percentile of its calibration."""

    study: str
    ranker: str
    percentile: int
    delta: float
    score: float | None


MEDIAN: int = 50
LAST: int = 95  # beyond the 95th percentile nearly all is neutral and orders are noise


def stable_from(points: Sequence[SweepPoint]) -> dict[str, int | None]:
    """By study, the lowest percentile from which on no two rankers change places (up to the 95th), or None.

    A tie agrees with any order. With a single ranker there is nothing to change.
    """
    studies = dict.fromkeys(point.study for point in points)
    return {study: _stable([point for point in points if point.study == study]) for study in studies}


def _stable(points: Sequence[SweepPoint]) -> int | None:
    curves = _curves(points)
    if len(curves) < 2:
        return None
    signs = np.array([np.sign(np.subtract(a, b)) for a, b in combinations(curves, 2)])
    for start in range(LAST):
        rest = signs[:, start : LAST + 1]
        if not ((rest.max(axis=1) > 0) & (rest.min(axis=1) < 0)).any():
            return start
    return None


def _curves(points: Sequence[SweepPoint]) -> list[list[float]]:
    """Scores by percentile, one list per ranker that has any."""
    found: dict[str, list[float]] = {}
    for point in points:
        if point.score is not None:
            found.setdefault(point.ranker, []).append(point.score)
    return list(found.values())


def sweep(answer: Answer, threshold: Threshold) -> list[SweepPoint]:
    """Scores at every percentile from 0 to 99; no score where there are no contrasts."""
    if threshold.calibration is None:
        raise WhyrankError(f"the sweep needs a calibration of {answer.ranker}; give --candidates RUN or --delta-from")
    diffs = np.sort(answer.reading.diffs[answer.reading.finite])
    curve = threshold.calibration.curve()
    return [SweepPoint(answer.name, answer.ranker, p, delta, _score(diffs, delta)) for p, delta in curve]


def _score(diffs: Floats, delta: float) -> float | None:
    """(positive - negative) / n for sorted differences."""
    if not len(diffs):
        return None
    positive = len(diffs) - int(np.searchsorted(diffs, delta, side="right"))
    negative = int(np.searchsorted(diffs, -delta, side="left"))
    return (positive - negative) / len(diffs)
