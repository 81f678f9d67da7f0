"""Tests of the differences or effects of one study, and corrections for the number of tests in a table.

All but `share_p` treat every contrast as independent, for comparison with published numbers; what respects
the queries is in `clustered`. The distributions are those of `scipy.special`: importing it with numpy takes 0.3 s,
and `scipy.stats` would add 0.4 s, to commands that start in less than half a second.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from whyrank.core.clustered import sign_flip_p
from whyrank.core.errors import UnknownName
from whyrank.core.protocols import Floats

EXACT_RANKS = 50  # up to here the distribution of the signed-rank sum is counted out, as in R and scipy


def median(values: npt.ArrayLike) -> float:
    """The usual median, the mean of the two middle values of an even number; NaN when there are none."""
    array = np.asarray(values, dtype=np.float64)
    return float(np.median(array)) if len(array) else math.nan


def paired_t_p(diffs: npt.ArrayLike) -> float:
    """Two-sided p-value of the paired t-test: t = mean / (s / sqrt(n)) with n - 1 degrees of freedom.

    All differences zero: 1; all equal and not zero: 0; fewer than two or one that is not finite: NaN.
    Student, The probable error of a mean, Biometrika 6 (1908).
    """
    from scipy.special import stdtr

    values = np.asarray(diffs, dtype=np.float64)
    peak = float(np.abs(values).max()) if len(values) > 1 else math.nan
    if not math.isfinite(peak):
        return math.nan
    if values.min() == values.max():
        return 1.0 if peak == 0 else 0.0
    values = values / peak  # squares of very large or small differences would leave the range of a float
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
    n, order = len(values), np.argsort(np.abs(values))
    sizes = np.abs(values)[order]
    starts = np.concatenate([[0], np.flatnonzero(sizes[1:] != sizes[:-1]) + 1])  # of groups of ties
    ties = np.diff(starts, append=n)
    ranks = starts + (ties + 1) / 2
    positive = np.add.reduceat((values > 0)[order], starts, dtype=np.int64)
    distance = abs(float(ranks @ positive) - n * (n + 1) / 4)
    if n <= EXACT_RANKS:
        return _exact_rank_p(np.repeat(ranks, ties), distance)
    cubes = float((ties.astype(np.float64) ** 3 - ties).sum())  # of ties among millions, these do not fit in int64
    variance = float(n) * (n + 1) * (2 * n + 1) / 24 - cubes / 48
    return math.erfc(max(0.0, distance - 0.5) / math.sqrt(2 * variance))


def _exact_rank_p(ranks: Floats, distance: float) -> float:
    """The share of all assignments of signs whose rank sum is at least so far from its mean."""
    doubled = (2 * ranks).astype(np.int64)  # mean ranks are halves; whole numbers can index
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1
    for rank in doubled:
        ways[rank:] += ways[:-rank]
    far = np.abs(np.arange(len(ways)) - (len(ways) - 1) / 2) >= 2 * distance
    return float(ways[far].sum() / 2.0 ** len(ranks))


def sign_p(positive: int, negative: int) -> float:
    """Exact two-sided sign test: min(1, 2 P(X <= min(positive, negative))) for a fair binomial X.

    Neutral effects are left out; without any other effect the p-value is 1. Conover, Practical Nonparametric
    Statistics (1999).
    """
    from scipy.special import betainc

    fewer, more = sorted((int(positive), int(negative)))
    return 1.0 if fewer == more else min(1.0, float(2 * betainc(more, fewer + 1, 0.5)))


def share_p(
    sums: npt.ArrayLike, counts: npt.ArrayLike, share: float, flips: int = 10_000, seed: int = 0,
    covariance: float = 0.0,
) -> float:  # fmt: skip
    """Two-sided test by query of H0: the share of non-neutral effects of a symmetric study equals `share`.

    Flips the signs of the centred sums S_q - share * N_q, where S_q counts the non-neutral effects of query q
    and N_q its contrasts (see `sign_flip_p`); `covariance` is that of effects less `share`. With delta at the median
    difference of ordinary neighbours in a ranking, half of such neighbours differ by more, so the share to test
    against is 0.5. The further the share is from 0.5, the less symmetric such sums are about zero: none of 66 says
    little against a share of 0.01, yet all centred sums are negative. So p is never below that of the exact binomial
    test over contrasts, min(1, 2 min(P(X <= hits), P(X >= hits))). NaN when `share` is NaN or there are no contrasts.
    """
    from scipy.special import betainc

    total, size = np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if math.isnan(share) or not size.any():
        return math.nan
    flipped = sign_flip_p(total - share * size, flips, seed, covariance)
    hits, n = total.sum(), size.sum()
    at_least = betainc(hits, n - hits + 1, share) if hits > 0 else 1.0
    at_most = betainc(n - hits, hits + 1, 1 - share) if hits < n else 1.0
    return max(flipped, min(1.0, 2 * float(min(at_least, at_most))))


METHODS = ("none", "bonferroni", "holm", "bh")


def adjust(p_values: npt.ArrayLike, method: str) -> Floats:
    """Adjusted p-values in the given order: `none`, `bonferroni`, `holm` or `bh` (Benjamini-Hochberg).

    A NaN stays NaN and is not counted as a test. Rejecting where the adjusted value is at most alpha bounds
    the chance of any false rejection (Bonferroni, Holm) or the expected share of false ones among all (BH). With p
    sorted upwards and m tests, Bonferroni is m p_(i) (Dunn, JASA 56, 1961), Holm max_{j <= i} p_(j) (m - j + 1)
    (Scand. J. Statist. 6, 1979), and BH min_{j >= i} p_(j) m / j (Benjamini and Hochberg, JRSS B 57, 1995).
    """
    if method not in METHODS:
        raise UnknownName("correction", method, METHODS)
    adjusted = np.array(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(adjusted))
    order = tested[np.argsort(adjusted[tested])]
    p, m = adjusted[order], len(order)
    if method == "bonferroni":
        p = p * m
    elif method == "holm":
        p = np.maximum.accumulate(p * np.arange(m, 0, -1))
    elif method == "bh":  # m / j first: it is never below 1, so that rounding pushes no value below the raw one
        p = np.minimum.accumulate((p * (m / np.arange(1, m + 1)))[::-1])[::-1]
    adjusted[order] = np.minimum(1.0, p)
    return adjusted
