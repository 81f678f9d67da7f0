"""Sweeps: how findings change with delta, from no threshold at all to the 99th percentile of the calibration.

MacAvaney et al. (ABNIRML, TACL 2022, section 4.1) find the order of systems stable from about the median on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whyrank.audit.runner import Answer, Threshold
from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Floats


class SweepPoint(NamedTuple):
    """The score of one ranker on one study at one percentile of its calibration."""

    study: str
    ranker: str
    percentile: int
    delta: float
    score: float | None


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
