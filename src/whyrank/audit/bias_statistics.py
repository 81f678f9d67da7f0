"""Statistics of a bias study: means per value, an omnibus test, and differences, all clustered by template.

The data are scores by template and value. A value's effect is its mean score less the mean over all values of the
same template. Everything is computed from one sum per cluster and value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from whyrank.contrasts.clustered import EXACT_CLUSTERS, TIE
from whyrank.core.protocols import Codes, Floats, Ints
from whyrank.core.seeds import generator

ROUNDING = 1e-10  # smaller differences, relative to the largest score, are rounding
BLOCK = 2_000_000  # numbers held at once


class Sums(NamedTuple):
    """Scores, and scores less the mean of their template, summed by cluster (rows) and value; and cluster sizes."""

    scores: Floats
    effects: Floats
    sizes: Ints


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
    """All pairs of values: numbers of the first and the second, mean difference, p-value."""

    first: Ints
    second: Ints
    mean: Floats
    p_values: Floats


def cluster_scores(scores: Floats, clusters: Codes) -> Sums:
    """Sum the scores of each cluster; differences within a template that are rounding count as zero."""
    effects = centred(scores)
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


def resampled_means(sums: Sums, resamples: int, seed: int) -> Floats:
    """The mean score of every value (columns) in draws of whole clusters with replacement (rows)."""
    clusters, random = len(sums.sizes), generator(seed, "bias", "bootstrap")
    found = []
    for rows in _blocks(resamples, max(clusters, sums.scores.shape[1])):
        weights = random.multinomial(clusters, np.full(clusters, 1 / clusters), size=rows).astype(np.float64)
        found.append((weights @ sums.scores) / (weights @ sums.sizes)[:, None])
    return np.concatenate(found)


def bounds_of(draws: Floats, clusters: int, level: float = 0.95) -> Bounds:
    """The middle `level` of the draws of each column; undefined with one cluster."""
    if clusters < 2:
        nothing = np.full(draws.shape[1], np.nan)
        return Bounds(nothing, nothing)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Bounds(low, high)


def value_p(sums: Sums, flips: int, seed: int) -> Floats:
    """For each value, the sign-flip test over clusters of H0: its effects are symmetric about zero.

    As `sign_flip_p`, with the same signs for all values: exact up to 13 clusters, else (1 + hits) / (1 + flips).
    """
    clusters, values = sums.effects.shape
    if clusters < 2:
        return np.full(values, np.nan)
    least = np.abs(sums.effects.sum(axis=0)) - TIE * np.abs(sums.effects).sum(axis=0)
    random, exact = generator(seed, "bias", "flips"), clusters <= EXACT_CLUSTERS
    hits: Floats = np.zeros(values)
    for rows in [2**clusters] if exact else _blocks(flips, max(clusters, values)):
        signs = _every_sign(clusters) if exact else random.choice([-1.0, 1.0], size=(rows, clusters))
        hits += np.count_nonzero(np.abs(signs @ sums.effects) >= least, axis=0)
    return hits / 2**clusters if exact else (1 + hits) / (1 + flips)


def omnibus(sums: Sums, permutations: int, seed: int) -> Omnibus:
    """Test H0: within a cluster the values are exchangeable. Undefined (NaN) with one cluster.

    The permutation test shuffles the values of every cluster and compares the sum over values of the squared total
    effect. Friedman, The use of ranks to avoid the assumption of normality, JASA 32 (1937), with mean ranks for ties.
    """
    effects = sums.effects
    if len(effects) < 2:
        return Omnibus(math.nan, math.nan, math.nan, math.nan)
    observed = float((effects.sum(axis=0) ** 2).sum())
    random = generator(seed, "bias", "omnibus")
    hits = sum(
        int(np.count_nonzero(_shuffled(effects, rows, random) >= observed * (1 - ROUNDING)))
        for rows in _blocks(permutations, effects.size)
    )
    return Omnibus((1 + hits) / (1 + permutations), *_friedman(effects))


def pair_differences(sums: Sums) -> Differences:
    """Every two values: mean difference, and the paired t-test over clusters of their summed differences."""
    first, second = np.triu_indices(sums.effects.shape[1], 1)
    clusters, total = len(sums.sizes), sums.effects.sum(axis=0)
    mean = (total[first] - total[second]) / sums.sizes.sum()
    if clusters < 2:
        return Differences(first, second, mean, np.full(len(first), np.nan))
    covariance = np.atleast_2d(np.cov(sums.effects, rowvar=False))
    own = np.diag(covariance)
    variance = own[first] + own[second] - 2 * covariance[first, second]
    return Differences(first, second, mean, _t_p((total[first] - total[second]) / clusters, variance, clusters))


def _t_p(mean: Floats, variance: Floats, clusters: int) -> Floats:
    from scipy.special import stdtr

    peak = np.abs(mean).max(initial=0.0)
    error = np.sqrt(np.maximum(variance, 0.0) / clusters)
    with np.errstate(divide="ignore", invalid="ignore"):
        p: Floats = 2 * stdtr(clusters - 1, -np.abs(mean) / error)
    p[(error <= ROUNDING * peak) | (error == 0)] = 0.0  # all clusters say the same
    p[np.abs(mean) <= ROUNDING * peak] = 1.0
    return p if peak > 0 else np.ones_like(p)


def _every_sign(clusters: int) -> Floats:
    heads = (np.arange(2**clusters)[:, None] >> np.arange(clusters)) & 1
    return np.where(heads == 1, np.float64(1), np.float64(-1))


def _shuffled(effects: Floats, rows: int, random: np.random.Generator) -> Floats:
    """The statistic of the omnibus test under so many shuffles."""
    shuffled = random.permuted(np.broadcast_to(effects, (rows, *effects.shape)), axis=2)
    found: Floats = (shuffled.sum(axis=1) ** 2).sum(axis=1)
    return found


def _friedman(effects: Floats) -> tuple[float, float, float]:
    from scipy.special import chdtrc
    from scipy.stats import rankdata

    clusters, values = effects.shape
    ranks = rankdata(effects, axis=1) - (values + 1) / 2
    spread = float((ranks**2).sum())
    if spread == 0:
        return 0.0, 1.0, 0.0
    statistic = (values - 1) * float((ranks.sum(axis=0) ** 2).sum()) / spread
    return statistic, float(chdtrc(values - 1, statistic)), statistic / (clusters * (values - 1))


def _blocks(rows: int, columns: int) -> list[int]:
    most = max(1, BLOCK // max(columns, 1))
    return [min(most, rows - start) for start in range(0, rows, most)]
