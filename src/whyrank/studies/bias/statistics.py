"""Statistics of a bias study: means per value, an omnibus test, and differences, clustered by document and query.

The data are scores by template and value. A value's effect is its mean score less the mean over all values of the
same template. Everything is computed from one sum per cluster and value. Where templates are clustered two ways,
variances are those of Cameron, Gelbach and Miller, Robust inference with multiway clustering, JBES 29 (2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from whyrank.core import ALPHA, EXACT_CLUSTERS, TIE, Codes, Floats, Ints, generator

ROUNDING = 1e-10  # smaller differences, relative to the largest score, are rounding
BLOCK = 2_000_000  # numbers held at once


class Sums(NamedTuple):
    """Scores, and scores less the mean of their template, summed by cluster (rows) and value; and cluster sizes."""

    scores: Floats
    effects: Floats
    sizes: Ints


class Clustered(NamedTuple):
    """Sums for each way of clustering the templates, and for templates that are one cluster in every way."""

    ways: list[Sums]
    cells: Sums

    @property
    def size(self) -> int:
        """Number of independent clusters: of the way that has the fewest."""
        return min(len(way.sizes) for way in self.ways)

    def map_effects(self, function: Callable[[Floats], Floats]) -> Clustered:
        """The clusters with a function of the effects in place of the effects."""
        *ways, cells = (way._replace(effects=function(way.effects)) for way in (*self.ways, self.cells))
        return Clustered(ways, cells)


class Bounds(NamedTuple):
    """The ends of an interval for each of several figures; NaN where undefined."""

    low: Floats
    high: Floats


class Omnibus(NamedTuple):
    """Whether any value differs: permutation test, Friedman's test, and Kendall's W, 0 to 1."""

    p_value: float
    friedman: float
    p_friedman: float
    kendall_w: float


class Differences(NamedTuple):
    """All pairs of values: numbers of the first and the second, mean difference, its interval, p-value."""

    first: Ints
    second: Ints
    mean: Floats
    bounds: Bounds
    p_values: Floats


def cluster_scores(scores: Floats, *ways: Codes) -> Clustered:
    """Sum the scores of each cluster.

    Each of `ways` has the cluster of every template. A way that puts all templates into one cluster is left out where
    another does not: what is found then holds for that one query, or that one text.
    """
    several = [way for way in ways if len(np.unique(way)) > 1] or [ways[0]]
    cells = np.unique(np.stack(several), axis=1, return_inverse=True)[1].ravel().astype(np.int32)
    effects = centred(scores)
    return Clustered([_sums(scores, effects, way) for way in several], _sums(scores, effects, cells))


def _sums(scores: Floats, effects: Floats, clusters: Codes) -> Sums:
    numbers, codes = np.unique(clusters, return_inverse=True)
    by_cluster = np.zeros((2, len(numbers), scores.shape[1]))
    np.add.at(by_cluster[0], codes, scores)
    np.add.at(by_cluster[1], codes, effects)
    return Sums(by_cluster[0], by_cluster[1], np.bincount(codes, minlength=len(numbers)))


def centred(scores: Floats) -> Floats:
    """Scores less the mean of their row."""
    effects: Floats = scores - scores.mean(axis=1, keepdims=True)
    effects[np.abs(effects) <= ROUNDING * np.abs(scores).max(initial=0.0)] = 0.0
    return effects


def mean_bounds(sums: Clustered, totals: Callable[[Sums], Floats], alpha: float = ALPHA) -> Bounds:
    """Intervals of the means of columns, whose sums by cluster `totals` gives: mean -+ t * error."""
    mean = totals(sums.cells).sum(axis=0) / sums.cells.sizes.sum()
    return _bounds(mean, _error(sums, totals), sums.size, alpha)


def value_p(sums: Clustered, flips: int, seed: int) -> Floats:
    """For each value, the sign-flip test over clusters of H0: its effects are symmetric about zero.

    As `sign_flip_p`, with the same signs for all values: exact up to 13 clusters, else (1 + hits) / (1 + flips). Of
    two ways of clustering, the larger p-value; see `_scale`.
    """
    largest: Floats = np.full(sums.cells.effects.shape[1], np.nan)
    if sums.size < 2:
        return largest
    scale = _scale(sums, _squares)
    for way in sums.ways:
        clusters, values = way.effects.shape
        effects = way.effects * scale
        least = np.abs(way.effects.sum(axis=0)) - TIE * np.abs(effects).sum(axis=0)
        random, exact = generator(seed, "bias", "flips"), clusters <= EXACT_CLUSTERS
        hits: Floats = np.zeros(values)
        for rows in [2**clusters] if exact else _blocks(flips, max(clusters, values)):
            if exact:  # every assignment of signs once
                signs = 2.0 * ((np.arange(rows)[:, None] >> np.arange(clusters)) & 1) - 1
            else:
                signs = random.choice([-1.0, 1.0], size=(rows, clusters))
            hits += np.count_nonzero(np.abs(signs @ effects) >= least, axis=0)
        largest = np.fmax(largest, hits / 2**clusters if exact else (1 + hits) / (1 + flips))
    return largest


def omnibus(sums: Clustered, permutations: int, seed: int) -> Omnibus:
    """Test H0: within a cluster the values are exchangeable. Undefined (NaN) with one cluster.

    The permutation test shuffles the values of every cluster and compares the sum over values of the squared total
    effect. Friedman, The use of ranks to avoid the assumption of normality, JASA 32 (1937), with mean ranks for ties.
    Of two ways of clustering, the larger p-values; see `_scale`.
    """
    if sums.size < 2:
        return Omnibus(math.nan, math.nan, math.nan, math.nan)
    observed = float((sums.cells.effects.sum(axis=0) ** 2).sum())
    scale, found = _scale(sums, lambda way: _squares(way).sum(keepdims=True)), []
    for way in sums.ways:
        effects, random = way.effects * scale, generator(seed, "bias", "omnibus")
        hits = 0
        for rows in _blocks(permutations, effects.size):
            shuffled = random.permuted(np.broadcast_to(effects, (rows, *effects.shape)), axis=2)
            totals = (shuffled.sum(axis=1) ** 2).sum(axis=1)
            hits += int(np.count_nonzero(totals >= observed * (1 - ROUNDING)))
        found.append(Omnibus((1 + hits) / (1 + permutations), *_friedman(way.effects)))
    ranks = max(found, key=lambda test: test.p_friedman)
    return ranks._replace(p_value=max(test.p_value for test in found))


def pair_differences(sums: Clustered, alpha: float = ALPHA) -> Differences:
    """Every two values: mean difference, its interval, and the t-test of it: difference / error.

    Where all clusters have the same difference to the last digit, t is infinite. The p-value is then that of all
    assignments of signs to clusters, 2 / 2^clusters, as the scores are not normal and the test is not defined.
    """
    from scipy.special import stdtr

    first, second = np.triu_indices(sums.cells.effects.shape[1], 1)
    total, clusters = sums.cells.effects.sum(axis=0), sums.size
    mean = (total[first] - total[second]) / sums.cells.sizes.sum()
    error = np.empty(len(mean))
    for i in range(len(total) - 1):  # all pairs at once would be too many numbers
        error[first == i] = _error(sums, lambda way, i=i: way.effects[:, [i]] - way.effects[:, i + 1 :])  # type: ignore[misc]
    rounding = ROUNDING * np.abs(mean).max(initial=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p: Floats = 2 * stdtr(clusters - 1, -np.abs(mean) / error)
    p[error <= rounding] = 2.0 ** -min(clusters - 1, 1000)
    p[(np.abs(mean) <= rounding) & ~np.isnan(error)] = 1.0
    return Differences(first, second, mean, _bounds(mean, error, clusters, alpha), p)


def _bounds(mean: Floats, error: Floats, clusters: int, alpha: float) -> Bounds:
    from scipy.special import stdtrit

    reach = stdtrit(max(clusters - 1, 1), 1 - alpha / 2) * error
    return Bounds(mean - reach, mean + reach)


def _error(sums: Clustered, totals: Callable[[Sums], Floats]) -> Floats:
    """Standard errors of means: the jackknife over clusters of any sizes. Undefined (NaN) with one cluster.

    MacKinnon, Nielsen and Webb, Fast and reliable jackknife and bootstrap methods for cluster-robust inference,
    Journal of Applied Econometrics 38 (2023).
    """

    def jackknife(way: Sums) -> Floats:
        summed, sizes, n = totals(way), way.sizes[:, None], way.sizes.sum()
        moved = (summed - sizes * (summed.sum(axis=0) / n)) / (n - sizes)  # by how much the mean moves without each
        found: Floats = (1 - 1 / len(sizes)) * (moved**2).sum(axis=0)
        return found

    if sums.size < 2:
        return np.full(totals(sums.cells).shape[1], np.nan)
    return np.sqrt(_variance(sums, jackknife))


def _variance(sums: Clustered, of: Callable[[Sums], Floats]) -> Floats:
    """A variance clustered in every way: two ways added less what is in both, and no less than either."""
    found = [of(way) for way in sums.ways]
    if len(found) == 1:
        return found[0]
    return np.maximum(np.maximum(*found), found[0] + found[1] - of(sums.cells))


def _squares(way: Sums) -> Floats:
    found: Floats = (way.effects**2).sum(axis=0)
    return found


def _scale(sums: Clustered, of: Callable[[Sums], Floats]) -> Floats:
    """What flipped or shuffled sums are multiplied by: 1, or more where effects depend on both document and query.

    Sums of either way then vary less than the total does. The factor makes up for it: the root of the variance
    clustered both ways over the larger of the two.
    """
    variance, largest = _variance(sums, of), np.max([of(way) for way in sums.ways], axis=0)
    found: Floats = np.sqrt(np.divide(variance, largest, out=np.ones_like(variance), where=largest > 0))
    return found


def _friedman(effects: Floats) -> tuple[float, float, float]:
    """The statistic, its p-value, and Kendall's W."""
    from scipy.special import chdtrc
    from scipy.stats import rankdata

    clusters, values = effects.shape
    unit = ROUNDING * np.abs(effects).max(initial=0.0) or 1.0
    ranks = rankdata(np.round(effects / unit), axis=1) - (values + 1) / 2  # sums that differ by rounding are ties
    spread = float((ranks**2).sum())
    if spread == 0:
        return 0.0, 1.0, 0.0
    statistic = (values - 1) * float((ranks.sum(axis=0) ** 2).sum()) / spread
    return statistic, float(chdtrc(values - 1, statistic)), statistic / (clusters * (values - 1))


def _blocks(rows: int, columns: int) -> list[int]:
    most = max(1, BLOCK // max(columns, 1))
    return [min(most, rows - start) for start in range(0, rows, most)]
