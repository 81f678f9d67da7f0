"""From scores to effects: does the ranker prefer the favoured text by more than delta?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from whyrank.core.protocols import Flags, Floats

Effects = npt.NDArray[np.int8]
_ROUNDING = 8 * np.finfo(np.float64).eps  # of the largest score: steps that are equal on paper may differ by less


def differences(scores: Floats) -> Floats:
    """Difference per contrast: R(q,d1) - R(q,d2); for three texts (R2 - R1) - (R3 - R2).

    The three-text form is that of TFC2, where the first addition must count more than the second. Steps that differ
    by rounding alone are equal: 0.1, 0.2, 0.3 has the steps of 1, 2, 3.
    """
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is NaN and is counted as non-finite
        if scores.shape[1] == 3:
            steps = np.diff(scores, axis=1)
            found = np.asarray(steps[:, 0] - steps[:, 1], dtype=np.float64)
            return np.where(np.abs(found) < _ROUNDING * np.abs(scores).max(axis=1), 0.0, found)
        return np.asarray(scores[:, 0] - scores[:, 1], dtype=np.float64)


def effects(diffs: Floats, delta: float) -> Effects:
    """+1 if diff > delta, -1 if diff < -delta, else 0: the closed band [-delta, delta] is neutral."""
    return (diffs > delta).astype(np.int8) - (diffs < -delta).astype(np.int8)


def finite(scores: Floats) -> Flags:
    """Contrasts all of whose scores are finite numbers."""
    return np.asarray(np.isfinite(scores).all(axis=1))
