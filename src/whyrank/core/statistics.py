"""Tests of the differences or effects of one study.

All but `share_p` treat every contrast as independent, for comparison with published numbers; what respects
the queries is in `clustered`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from whyrank.core.clustered import sign_flip_p
from whyrank.core.errors import UnknownName
from whyrank.core.protocols import Floats, Ints

EXACT_RANKS = 50  # up to here the distribution of the signed-rank sum is counted out, as in R and scipy


def paired_t_p(diffs: npt.ArrayLike) -> float:
    """Two-sided p-value of the paired t-test: t = mean / (s / sqrt(n)) with n - 1 degrees of freedom.

    All differences zero: 1; all equal and not zero: 0; fewer than two or one that is not finite: NaN.
    Student, The probable error of a mean, Biometrika 6 (1908).
    """
    values = np.asarray(diffs, dtype=np.float64)
    peak = float(np.abs(values).max()) if len(values) > 1 else math.nan
    if not math.isfinite(peak):
        return math.nan
    if values.min() == values.max():
        return 1.0 if peak == 0 else 0.0
    return _t_p(values / peak)  # squares of very large or small differences would leave the range of a float


def _t_p(values: Floats) -> float:
    from scipy.special import stdtr

    error = values.std(ddof=1) / math.sqrt(len(values))
    return float(2 * stdtr(len(values) - 1, -abs(values.mean() / error)))


def wilcoxon_p(diffs: npt.ArrayLike) -> float:
    """Two-sided p-value of the signed-rank test: zeros are dropped, ties share their mean rank.

    With W the sum of the ranks of positive differences: exact, given the ties, up to 50 non-zero differences,
    else normal, z = (|W - n(n+1)/4| - 1/2) / sqrt(n(n+1)(2n+1)/24 - sum(t^3 - t)/48) over groups of t ties.
    All differences zero: 1; no differences, or one that is NaN: NaN. Wilcoxon, Individual comparisons by
    ranking methods, Biometrics Bulletin 1 (1945); Conover, Practical Nonparametric Statistics (1999).
    """
    values = np.asarray(diffs, dtype=np.float64)
    if not len(values) or np.isnan(values).any():
        return math.nan
    values = values[values != 0]
    if not len(values):
        return 1.0
    ranks, ties, positive = _tie_groups(values)
    distance = abs(float(ranks @ positive) - len(values) * (len(values) + 1) / 4)
    exact = len(values) <= EXACT_RANKS
    return _exact_rank_p(np.repeat(ranks, ties), distance) if exact else _normal_rank_p(ties, distance)


def _tie_groups(values: Floats) -> tuple[Floats, Ints, Ints]:
    order = np.argsort(np.abs(values))
    sizes = np.abs(values)[order]
    starts = np.concatenate([[0], np.flatnonzero(sizes[1:] != sizes[:-1]) + 1])
    ties = np.diff(starts, append=len(values))
    positive = np.add.reduceat((values > 0)[order], starts, dtype=np.int64)
    return starts + (ties + 1) / 2, ties, positive


def _exact_rank_p(ranks: Floats, distance: float) -> float:
    doubled = (2 * ranks).astype(np.int64)  # mean ranks are halves; whole numbers can index
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1
    for rank in doubled:
        ways[rank:] += ways[:-rank]
    far = np.abs(np.arange(len(ways)) - (len(ways) - 1) / 2) >= 2 * distance
    return float(ways[far].sum() / 2.0 ** len(ranks))


def _normal_rank_p(ties: Ints, distance: float) -> float:
    sizes = ties.astype(np.float64)  # cubes of ties among millions do not fit in int64
    n = float(sizes.sum())
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((sizes**3 - sizes).sum()) / 48
    return math.erfc(max(0.0, distance - 0.5) / math.sqrt(2 * variance))


def sign_p(positive: int, negative: int) -> float:
    """Exact two-sided sign test: min(1, 2 P(X <= min(positive, negative))) for a fair binomial X.

    Neutral effects are left out; without any other effect the p-value is 1. Conover, Practical Nonparametric
    Statistics (1999).
    """
    fewer, more = sorted((int(positive), int(negative)))
    if fewer == more:
        return 1.0
    from scipy.special import betainc

    return min(1.0, float(2 * betainc(more, fewer + 1, 0.5)))


def share_p(
    sums: npt.ArrayLike,
    counts: npt.ArrayLike,
    share: float,
    flips: int = 10_000,
    seed: int = 0,
    covariance: float = 0.0,
) -> float:
    """Two-sided test by query of H0: the share of non-neutral effects of a symmetric study equals `share`.

    Flips the signs of the centred sums S_q - share * N_q, where S_q counts the non-neutral effects of query q
    and N_q its contrasts (see `sign_flip_p`); `covariance` is that of effects less `share`. With delta at the median
    difference of ordinary neighbours in a ranking, half of such neighbours differ by more, so the share to test
    against is 0.5. The further the share is from 0.5, the less symmetric such sums are about zero: none of 66 says
    little against a share of 0.01, yet all centred sums are negative. So p is never below that of the exact binomial
    test over contrasts. NaN when `share` is NaN or there are no contrasts.
    """
    total, size = np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if math.isnan(share) or not size.any():
        return math.nan
    flipped = sign_flip_p(total - share * size, flips, seed, covariance)
    return max(flipped, _binomial_p(total.sum(), size.sum(), share))


def _binomial_p(hits: float, n: float, share: float) -> float:
    """Exact two-sided test of a share: min(1, 2 min(P(X <= hits), P(X >= hits)))."""
    from scipy.special import betainc

    at_least = betainc(hits, n - hits + 1, share) if hits > 0 else 1.0
    at_most = betainc(n - hits, hits + 1, 1 - share) if hits < n else 1.0
    return min(1.0, 2 * float(min(at_least, at_most)))


def median(values: npt.ArrayLike) -> float:
    """The usual median, the mean of the two middle values of an even number; NaN when there are none."""
    array = np.asarray(values, dtype=np.float64)
    return float(np.median(array)) if len(array) else math.nan


# Corrections of p-values for the number of tests in a table.


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
