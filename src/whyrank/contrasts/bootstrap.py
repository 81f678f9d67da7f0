"""Intervals and tests that respect clusters: contrasts of one query are not independent, queries are.

All work on one sum and one count per query, so their cost does not grow with the number of contrasts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core.protocols import Floats, Ints
from whyrank.core.seeds import generator

EXACT_CLUSTERS = 13  # 2**13 assignments of signs cost no more than the usual number of random ones
TIE = 1e-10  # two statistics this near, relative to the largest possible one, differ by rounding only
BLOCK = 1_000_000  # random numbers held at once: some 25 MB with all that is derived from them
COLLAPSE = 8  # a multinomial or binomial draw costs about as much as this many draws of one cluster

Content = list[tuple[tuple[float, float], int]]  # ((sum, count), number of such clusters), sorted


class Interval(NamedTuple):
    """A confidence interval, ends included; NaN where it is undefined."""

    low: float
    high: float


class ClusterSums(NamedTuple):
    """The sum and the number of the values of every cluster, at the cluster's code."""

    sums: Floats
    counts: Ints


def cluster_sums(values: npt.ArrayLike, clusters: npt.ArrayLike) -> ClusterSums:
    """Sum and count the values of each cluster; a code that does not occur has sum 0 and count 0."""
    codes = np.asarray(clusters, dtype=np.intp)
    weights = np.asarray(values, dtype=np.float64)
    sums: Floats = np.bincount(codes, weights=weights).astype(np.float64, copy=False)
    return ClusterSums(sums, np.bincount(codes))


def bootstrap_interval(
    sums: npt.ArrayLike, counts: npt.ArrayLike, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Percentile interval of the mean under resampling of whole clusters.

    With multinomial weights w over the clusters that have values, the interval holds the middle `level` of
    sum_q w_q S_q / sum_q w_q N_q. It depends on the content of the clusters alone, not on their order, and
    the interval of the negated sums is exactly its mirror image. Undefined (NaN) below two clusters or for
    sums that are not finite. Field and Welsh, Bootstrapping clustered data, JRSS B 69 (2007).
    """
    total, size = np.asarray(sums, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if np.count_nonzero(size) < 2 or not np.isfinite(total).all():
        return Interval(math.nan, math.nan)
    given, mirrored = _content(total, size), _content(-total, size)
    means = _resampled_means(max(given, mirrored), resamples, generator(seed, "bootstrap"))
    low, high = (float(end) for end in np.quantile(means, [(1 - level) / 2, (1 + level) / 2]))
    if given == mirrored:  # its own mirror image: the distribution is symmetric, so the interval is made so
        return Interval((low - high) / 2, (high - low) / 2)
    return Interval(low, high) if given > mirrored else Interval(-high, -low)


def sign_flip_p(sums: npt.ArrayLike, flips: int = 10_000, seed: int = 0) -> float:
    """Two-sided randomisation test of H0: the cluster sums are distributed symmetrically about zero.

    The p-value is the share of assignments of signs e to clusters with |sum_q e_q S_q| >= |sum_q S_q|: of
    all assignments up to 13 non-zero clusters, else (1 + hits) / (1 + flips) for random ones, hence never
    below 1 / (1 + flips). All sums zero: 1; no clusters or sums that are not finite: NaN. Canay, Romano and
    Shaikh, Randomization tests under an approximate symmetry assumption, Econometrica 85 (2017); Phipson and
    Smyth, Permutation p-values should never be zero, SAGMB 9 (2010).
    """
    values = np.asarray(sums, dtype=np.float64)
    if not len(values) or not np.isfinite(values).all():
        return math.nan
    sizes = np.sort(np.abs(values[values != 0]))
    threshold = abs(math.fsum(values)) - TIE * math.fsum(sizes)
    if len(sizes) <= EXACT_CLUSTERS:
        heads = _all_heads(len(sizes))
        return _hits(heads, sizes, np.ones(len(sizes)), threshold) / len(heads)
    return (1 + _random_hits(sizes, threshold, flips, generator(seed, "sign-flip"))) / (1 + flips)


def _content(sums: Floats, counts: Floats) -> Content:
    filled = counts > 0
    return sorted(Counter(zip(sums[filled].tolist(), counts[filled].tolist(), strict=True)).items())


def _resampled_means(content: Content, resamples: int, random: np.random.Generator) -> Floats:
    kinds = np.array([kind for kind, _ in content])
    sizes = np.array([size for _, size in content])
    if len(sizes) * COLLAPSE >= sizes.sum():
        kinds, sizes = np.repeat(kinds, sizes, axis=0), np.ones(sizes.sum(), dtype=np.int64)
    blocks = [_weights(sizes, rows, random) @ kinds for rows in _blocks(resamples, len(sizes))]
    totals = np.concatenate(blocks)
    means: Floats = totals[:, 0] / totals[:, 1]
    return means


def _weights(sizes: Ints, rows: int, random: np.random.Generator) -> Ints:
    kinds, clusters = len(sizes), int(sizes.sum())
    if kinds < clusters:
        return random.multinomial(clusters, sizes / clusters, size=rows)
    # counting drawn clusters gives the same multinomial weights in a seventh of the time
    drawn = random.integers(0, clusters, size=(rows, clusters), dtype=np.min_scalar_type(clusters - 1))
    cells = drawn + np.arange(0, rows * clusters, clusters)[:, None]
    return np.bincount(cells.ravel(), minlength=rows * clusters).reshape(rows, clusters)


def _random_hits(sizes: Floats, threshold: float, flips: int, random: np.random.Generator) -> int:
    kinds, repeats = np.unique(sizes, return_counts=True)
    if len(kinds) * COLLAPSE >= len(sizes):
        kinds, repeats = sizes, np.ones(len(sizes), dtype=np.int64)
    blocks = _blocks(flips, len(kinds))
    return sum(_hits(_heads(repeats, rows, random), kinds, repeats, threshold) for rows in blocks)


def _hits(heads: npt.NDArray[np.integer], kinds: Floats, repeats: npt.ArrayLike, threshold: float) -> int:
    signed = 2 * (heads @ kinds) - kinds @ np.asarray(repeats, dtype=np.float64)
    return int(np.count_nonzero(np.abs(signed) >= threshold))


def _heads(repeats: Ints, rows: int, random: np.random.Generator) -> npt.NDArray[np.integer]:
    if repeats.max() > 1:
        return random.binomial(repeats, 0.5, size=(rows, len(repeats)))
    return random.integers(0, 2, size=(rows, len(repeats)), dtype=np.int8)


def _all_heads(clusters: int) -> Ints:
    return (np.arange(2**clusters)[:, None] >> np.arange(clusters)) & 1


def _blocks(rows: int, columns: int) -> Iterator[int]:
    most = max(1, BLOCK // columns)
    for start in range(0, rows, most):
        yield min(most, rows - start)
