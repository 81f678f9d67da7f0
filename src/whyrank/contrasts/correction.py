"""Corrections of p-values for the number of tests in a table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import UnknownName
from whyrank.core.protocols import Floats


def adjust(p_values: npt.ArrayLike, method: str) -> Floats:
    """Adjusted p-values in the given order: `none`, `bonferroni`, `holm` or `bh` (Benjamini-Hochberg).

    A NaN stays NaN and is not counted as a test. Rejecting where the adjusted value is at most alpha bounds
    the chance of any false rejection (Bonferroni, Holm) or the expected share of false ones among all (BH).
    """
    if method not in METHODS:
        raise UnknownName("correction", method, METHODS)
    adjusted = np.array(p_values, dtype=np.float64)
    tested = ~np.isnan(adjusted)
    adjusted[tested] = np.minimum(1.0, METHODS[method](adjusted[tested]))
    return adjusted


def _none(p: Floats) -> Floats:
    return p


def _bonferroni(p: Floats) -> Floats:
    """Multiply by the number of tests (Dunn, Multiple comparisons among means, JASA 56, 1961)."""
    return p * len(p)


def _holm(p: Floats) -> Floats:
    """Take max_{j <= i} p_(j) (m - j + 1), p sorted upwards (Holm, Scand. J. Statist. 6, 1979)."""
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return _back(steps, order)


def _benjamini_hochberg(p: Floats) -> Floats:
    """Take min_{j >= i} p_(j) m / j, p sorted upwards (Benjamini and Hochberg, JRSS B 57, 1995)."""
    order = np.argsort(p)
    # m / j first: it is never below 1, so rounding cannot push an adjusted value below the raw one
    steps = p[order] * (len(p) / np.arange(1, len(p) + 1))
    return _back(np.minimum.accumulate(steps[::-1])[::-1], order)


def _back(steps: Floats, order: npt.NDArray[np.intp]) -> Floats:
    values = np.empty_like(steps)
    values[order] = steps
    return values


METHODS: dict[str, Callable[[Floats], Floats]] = {
    "none": _none,
    "bonferroni": _bonferroni,
    "holm": _holm,
    "bh": _benjamini_hochberg,
}
