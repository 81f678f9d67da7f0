"""Intervals and tests of clustered effects: contrasts of one query, or with one document, are not independent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core.protocols import Codes, Floats, Ints
from whyrank.core.seeds import generator

EXACT_CLUSTERS = 13  # 2**13 assignments of signs cost no more than the usual number of random ones
TIE = 1e-10  # two statistics this near, relative to the largest possible one, differ by rounding only
ALPHA = 0.05  # intervals miss the true value with this probability
BLOCK = 1_000_000  # random numbers held at once: some 25 MB with all that is derived from them
COLLAPSE = 8  # a multinomial or binomial draw costs about as much as this many draws of one cluster


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


class _Overlap(NamedTuple):
    """Contrasts that have some documents in common: their rows, and group codes over all queries and within them."""

    rows: Ints
    group: Ints
    within: Ints
    sign: int


class SharedDocuments:
    """Which contrasts of different queries share a document, and how much their effects vary together.

    Where the same documents are judged for several queries, a ranker that likes a document likes it each time, and
    clusters of queries are not independent. The variance of a sum of effects e is then sum_q S_q^2 plus
    sum e_i e_j over contrasts i, j of different queries that have a document in common: two-way clustering, with
    each contrast in the clusters of all its documents. Cameron, Gelbach and Miller, Robust inference with multiway
    clustering, JBES 29 (2011); Aronow, Samii and Assenova, Cluster-robust variance estimation for dyadic data,
    Political Analysis 23 (2015).
    """

    def __init__(self, clusters: Codes, docs: Codes) -> None:
        """`docs` has a row of document codes per contrast."""
        self._clusters, self._docs = clusters, docs

    @cached_property
    def _overlaps(self) -> list[_Overlap]:
        clusters, docs, found = self._clusters, self._docs, list[_Overlap]()
        last = np.zeros(int(docs.max(initial=-1)) + 1, dtype=clusters.dtype)
        last[docs.T] = clusters
        recurs = np.zeros(len(last), np.bool_)
        recurs[docs[last[docs] != clusters[:, None]]] = True
        number = np.where(recurs, np.cumsum(recurs), 0)  # 0 for documents of one query
        numbered = np.sort(number[docs], axis=1)  # two documents are the same pair in either order
        # contrasts with two documents in common count twice among those with one: inclusion and exclusion
        for size in range(1, docs.shape[1] + 1) if recurs.any() else ():
            rows, keys = [], []
            for columns in combinations(numbered.T, size):
                shared = np.flatnonzero(np.logical_and.reduce(columns))
                keys.append(reduce(lambda key, column: key * len(number) + column, [c[shared] for c in columns]))
                rows.append(shared)
            row, (_, group) = np.concatenate(rows), np.unique(np.concatenate(keys), return_inverse=True)
            _, within = np.unique(group * (int(clusters.max()) + 1) + clusters[row], return_inverse=True)
            found.append(_Overlap(row, group, within, 1 if size % 2 else -1))
        return found

    def covariance(self, values: npt.ArrayLike) -> float:
        """Sum of products of the values of two contrasts of different queries with a document in common."""
        array, total = np.asarray(values, dtype=np.float64), 0.0
        for rows, group, within, sign in self._overlaps:
            together, apart = (np.bincount(codes, weights=array[rows]) for codes in (group, within))
            total += sign * float(together @ together - apart @ apart)
        return total


class _Estimate(NamedTuple):
    """A mean, its variance with the degrees of freedom, the number of clusters, and the correlation within them.

    `others` counts clusters with other values than most, by their share of all values where that is larger.
    """

    mean: float
    variance: float
    freedom: float
    clusters: int
    others: float
    correlation: float


def _estimate(values: Floats, codes: npt.NDArray[Any], covariance: float = 0.0) -> _Estimate:
    """The mean of clustered values and its variance, as `mean_interval` describes them; NaN where undefined."""
    n = len(values)
    counts = np.bincount(codes) if n else np.zeros(0)
    filled, queries = counts > 0, int(np.count_nonzero(counts))
    if queries < 2 or not np.isfinite(values).all():
        return _Estimate(math.nan, math.nan, math.nan, queries, 0, math.nan)
    sums, sizes = np.bincount(codes, weights=values)[filled], counts[filled]
    mean = math.fsum(sums) / n
    steps = (sums - mean * sizes) / (n - sizes)
    clustered = (queries - 1) / queries * math.fsum(steps**2)  # exact, so that the order of clusters does not matter
    variance = clustered + max(0.0, covariance) / n**2
    independent = max(0.0, (float(values @ values) / n - mean**2) / n)
    size = math.fsum(sizes.astype(np.float64) ** 2) / n  # of the query of a contrast, on average
    unlike, correlation = sums != round(mean) * sizes, 0.0
    if size > 1:
        excess = (queries - 1) / queries * clustered - independent
        estimated = excess / independent / (size - 1) if excess > 0 < independent else 0.0
        correlation = max(min(1.0, estimated), (1 + int(np.count_nonzero(unlike))) ** -2.0)
    others = max(float(np.count_nonzero(unlike)), queries * float(sizes[unlike].sum()) / n)
    return _Estimate(mean, max(variance, independent), max(1.0, n / size - 1), queries, others, correlation)


def _t_quantile(freedom: float, alpha: float = ALPHA) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - alpha / 2))


def mean_interval(
    values: npt.ArrayLike, clusters: npt.ArrayLike | None = None, covariance: float = 0.0,
    bounds: tuple[float, float] | None = None, alpha: float = ALPHA,
) -> Interval:  # fmt: skip
    """Confidence interval of the mean of clustered values; without `clusters` each value is one of its own.

    With m the mean and, for query q of Q, r_q the sum and n_q the number of its residuals v - m, of n in all, the
    variance of m is the jackknife's, (Q - 1)/Q sum_q (r_q / (n - n_q))^2, plus `covariance` / n^2 (what contrasts of
    different queries have in common, see `SharedDocuments`), and never below that of n independent values. Student's
    t has n^2 / sum n_q^2 - 1 degrees of freedom, which counts queries by their size. With one value per query this is
    the usual interval of Student, with Q - 1 degrees of freedom.

    For values within `bounds` the interval is Wilson's with an effective sample size: all means that differ from m
    by at most t standard errors, where the variance shrinks towards the bounds. Where no value is positive, or
    none negative, it does not reach beyond 0. A few queries that agree are not all queries: the
    variance includes one more query at the farther bound, times the correlation of contrasts within queries, which is
    taken to be 1/(1 + k)^2 at least where k queries have other values than most. And the interval reaches no further
    than it would if those k queries, or the larger share of n that is theirs, had nothing else, with the bound of
    Clopper and Pearson; where all values are equal, that is 1 - (alpha/2)^(1/Q). Undefined (NaN) below two clusters
    or for values that are not finite. Wilson, JASA 22 (1927); Clopper and Pearson, Biometrika 26 (1934); Korn and
    Graubard, Survey Methodology 24 (1998); Hansen, Jackknife standard errors for clustered regression (2022).
    """
    from scipy.special import betaincinv

    array = np.asarray(values, dtype=np.float64)
    codes = np.arange(len(array)) if clusters is None else np.asarray(clusters)
    mean, variance, freedom, queries, others, correlation = _estimate(array, codes, covariance)
    if math.isnan(variance):
        return Interval(math.nan, math.nan)
    if bounds is None:
        half = _t_quantile(freedom, alpha) * math.sqrt(variance)
        return Interval(mean - half, mean + half)
    low, high = bounds
    usual, most = round(mean), 1.0
    if others < queries:  # the largest share of queries of a kind that is likely with so many seen
        most = float(betaincinv(others + 1, queries - others, 1 - alpha / 2))
    widest = Interval(usual - most * (usual - low), usual + most * (high - usual))
    if array.min() == array.max():
        return widest
    # Wilson's formula on the scale from -1 to 1, where the variance of a mean x is proportional to 1 - x^2
    centre, width = (low + high) / 2, (high - low) / 2
    x = (mean - centre) / width
    variance += correlation * (width * (1 + abs(x)) / queries) ** 2
    ratio = _t_quantile(freedom, alpha) ** 2 * variance / width**2 / (1 - x**2)
    half = math.sqrt(ratio * (1 - x**2 + ratio))
    ends = [centre + width * (x + end) / (1 + ratio) for end in (-half, half)]
    lowest, highest = (max(low, 0) if array.min() >= 0 else low), (min(high, 0) if array.max() <= 0 else high)
    return Interval(max(ends[0], widest.low, lowest), min(ends[1], widest.high, highest))


def stratified_interval(parts: Sequence[Floats]) -> Interval:
    """95% confidence interval of the mean of the means of several samples of independent values.

    Variances add up, and so do degrees of freedom (Satterthwaite, Biometrics Bulletin 2, 1946). NaN where a sample
    has fewer than two values.
    """
    found = [_estimate(part, np.arange(len(part))) for part in parts]
    variances = np.array([each.variance for each in found])
    if not found or np.isnan(variances).any():
        return Interval(math.nan, math.nan)
    mean, total = float(np.mean([each.mean for each in found])), float(variances.sum())
    if total == 0:
        return Interval(mean, mean)
    freedom = total**2 / float(sum(each.variance**2 / each.freedom for each in found))
    half = _t_quantile(freedom) * math.sqrt(total) / len(found)
    return Interval(mean - half, mean + half)


def sign_flip_p(sums: npt.ArrayLike, flips: int = 10_000, seed: int = 0, covariance: float = 0.0) -> float:
    """Two-sided randomisation test of H0: the cluster sums are distributed symmetrically about zero.

    The p-value is the share of assignments of signs e to clusters with |sum_q e_q S_q| >= |sum_q S_q|: of
    all assignments up to 13 non-zero clusters, else (1 + hits) / (1 + flips) for random ones, hence never
    below 1 / (1 + flips). A positive `covariance` of contrasts of different clusters (see `SharedDocuments`) adds to
    the variance sum_q S_q^2 of the total, which is divided by the root of the ratio of the two before it is compared.
    All sums zero: 1; no clusters or sums that are not finite: NaN. Canay, Romano and Shaikh, Randomization tests
    under an approximate symmetry assumption, Econometrica 85 (2017); Phipson and Smyth, Permutation p-values should
    never be zero, SAGMB 9 (2010).
    """
    values = np.asarray(sums, dtype=np.float64)
    if not len(values) or not np.isfinite(values).all():
        return math.nan
    sizes = np.sort(np.abs(values[values != 0]))
    total = abs(math.fsum(values)) / math.sqrt(1 + max(0.0, covariance) / max(float(sizes @ sizes), TIE))
    threshold = total - TIE * math.fsum(sizes)
    if len(sizes) <= EXACT_CLUSTERS:
        heads = (np.arange(2 ** len(sizes))[:, None] >> np.arange(len(sizes))) & 1
        return _hits(heads, sizes, np.ones(len(sizes)), threshold) / len(heads)
    return (1 + _random_hits(sizes, threshold, flips, generator(seed, "sign-flip"))) / (1 + flips)


def _random_hits(sizes: Floats, threshold: float, flips: int, random: np.random.Generator) -> int:
    """How many of so many random assignments of signs reach the threshold; clusters of one size are drawn at once."""
    kinds, repeats = np.unique(sizes, return_counts=True)
    if len(kinds) * COLLAPSE >= len(sizes):
        kinds, repeats = sizes, np.ones(len(sizes), dtype=np.int64)
    most, hits = max(1, BLOCK // len(kinds)), 0
    for start in range(0, flips, most):
        shape = (min(most, flips - start), len(kinds))
        heads: npt.NDArray[np.integer]
        if repeats.max() > 1:
            heads = random.binomial(repeats, 0.5, size=shape)
        else:
            heads = random.integers(0, 2, size=shape, dtype=np.int8)
        hits += _hits(heads, kinds, repeats, threshold)
    return hits


def _hits(heads: npt.NDArray[np.integer], kinds: Floats, repeats: npt.ArrayLike, threshold: float) -> int:
    signed = 2 * (heads @ kinds) - kinds @ np.asarray(repeats, dtype=np.float64)
    return int(np.count_nonzero(np.abs(signed) >= threshold))
