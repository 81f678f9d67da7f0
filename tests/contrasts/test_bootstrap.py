"""Intervals and tests by cluster, against enumeration, plain loops and scipy."""

from __future__ import annotations

import itertools
import math
import random
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whyrank.contrasts import bootstrap
from whyrank.contrasts.bootstrap import Interval, bootstrap_interval, cluster_sums, sign_flip_p
from whyrank.contrasts.statistics import paired_t_p

CLUSTERS = st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 9)), min_size=2, max_size=30)
REAL_CLUSTERS = st.lists(st.tuples(st.floats(-1e3, 1e3), st.integers(1, 9)), min_size=2, max_size=30)
SUMS = st.lists(st.integers(-20, 20), min_size=1, max_size=30)


def interval_of(clusters, **options) -> Interval:
    sums, counts = zip(*clusters, strict=True)
    return bootstrap_interval(np.array(sums, float), np.array(counts), **options)


def all_resampled_means(clusters) -> list[float]:
    draws = itertools.product(clusters, repeat=len(clusters))
    return [sum(s for s, _ in draw) / sum(n for _, n in draw) for draw in draws]


def sign_flip_oracle(sums) -> float:
    """All signs, in whole numbers, so that ties are ties."""
    signs = list(itertools.product((-1, 1), repeat=len(sums)))
    totals = [abs(sum(e * s for e, s in zip(row, sums, strict=True))) for row in signs]
    return sum(total >= abs(sum(sums)) for total in totals) / len(signs)


# cluster_sums


@given(st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.integers(0, 6))))
def test_cluster_sums_are_those_of_a_plain_loop(rows):
    effects, codes = [e for e, _ in rows], [c for _, c in rows]
    sums, counts = cluster_sums(np.array(effects, np.int8), np.array(codes, np.int32))
    assert len(sums) == len(counts) == max(codes, default=-1) + 1
    for code in range(len(sums)):
        assert sums[code] == sum(e for e, c in rows if c == code)
        assert counts[code] == codes.count(code)


# bootstrap_interval


def test_two_clusters_by_hand():
    # the resamples (a,a), (a,b), (b,a), (b,b) have the means 1, -2/4, -2/4 and -1
    clusters = [(1, 1), (-3, 3)]
    assert interval_of(clusters, level=0.9) == (-1, 1)
    assert interval_of(clusters, level=0.4) == (-0.5, -0.5)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_the_interval_is_that_of_all_resamples(level):
    clusters = [(3.1, 4), (-1.7, 2), (0.4, 1), (2.2, 3), (-0.3, 5), (1.9, 2)]
    means = all_resampled_means(clusters)
    expected = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    assert interval_of(clusters, level=level, resamples=50_000) == pytest.approx(expected, abs=0.012)


def test_many_equal_clusters_are_resampled_one_by_one():
    clusters = [(1, 1)] * 50 + [(0, 1)] * 20 + [(-2, 2)] * 30
    drawing = random.Random(5)
    draws = [drawing.choices(clusters, k=len(clusters)) for _ in range(3000)]
    means = [sum(s for s, _ in draw) / sum(n for _, n in draw) for draw in draws]
    assert interval_of(clusters) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.015)


def test_collapsing_equal_clusters_changes_the_draw_only(monkeypatch):
    clusters = [(1, 1)] * 50 + [(0, 1)] * 20 + [(-2, 2)] * 30
    collapsed = interval_of(clusters)
    monkeypatch.setattr(bootstrap, "COLLAPSE", 10**9)
    assert interval_of(clusters) == pytest.approx(collapsed, abs=0.015)


def test_clusters_of_one_contrast_give_the_ordinary_bootstrap():
    from scipy import stats

    values = np.random.default_rng(3).exponential(size=80)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=10_000, rng=1)
    ours = bootstrap_interval(*cluster_sums(values, np.arange(80)))
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=0.02)


@pytest.mark.parametrize(
    ("sums", "counts"),
    [([], []), ([3.0], [5]), ([3.0, 0.0], [5, 0]), ([1.0, math.nan], [1, 1]), ([1.0, math.inf], [1, 1])],
)
def test_the_interval_is_undefined(sums, counts):
    low, high = bootstrap_interval(sums, counts)
    assert math.isnan(low)
    assert math.isnan(high)


def test_a_cluster_without_contrasts_does_not_count():
    clusters = [(3, 4), (-1, 2), (2, 2)]
    assert interval_of([*clusters, (0, 0)]) == interval_of(clusters)


def test_the_seed_decides():
    clusters = [(float(x), 3) for x in np.random.default_rng(0).normal(size=20)]
    assert interval_of(clusters, seed=1) == interval_of(clusters, seed=1)
    assert interval_of(clusters, seed=1) != interval_of(clusters, seed=2)


@given(REAL_CLUSTERS, st.randoms(use_true_random=False))
def test_the_interval_does_not_depend_on_order(clusters, shuffling):
    shuffled = list(clusters)
    shuffling.shuffle(shuffled)
    assert interval_of(shuffled, resamples=200) == interval_of(clusters, resamples=200)


@given(CLUSTERS | REAL_CLUSTERS)
@example([(sign * size, 1) for size in range(1, 20) for sign in (-1, 1)])
def test_negated_sums_give_the_mirrored_interval(clusters):
    low, high = interval_of(clusters, resamples=200)
    assert interval_of([(-s, n) for s, n in clusters], resamples=200) == (-high, -low)


@given(CLUSTERS)
def test_the_interval_lies_within_the_means_of_the_clusters(clusters):
    low, high = interval_of(clusters, resamples=200)
    means = [s / n for s, n in clusters]
    assert min(means) - 1e-12 <= low <= high <= max(means) + 1e-12


@given(CLUSTERS)
def test_a_higher_level_gives_a_wider_interval(clusters):
    narrow, wide = (interval_of(clusters, level=level, resamples=200) for level in (0.8, 0.99))
    assert wide.low <= narrow.low <= narrow.high <= wide.high


def test_memory_stays_small_for_thousands_of_clusters():
    sums = np.random.default_rng(0).normal(size=5000)
    tracemalloc.start()
    bootstrap_interval(sums, np.full(5000, 3), resamples=1000)
    sign_flip_p(sums, flips=1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


def test_half_a_million_contrasts_take_no_time():
    draw = np.random.default_rng(0)
    effects, codes = draw.integers(-1, 2, 515_401).astype(np.int8), draw.integers(0, 43, 515_401)
    start = time.perf_counter()
    sums, counts = cluster_sums(effects, codes)
    bootstrap_interval(sums, counts)
    sign_flip_p(sums)
    assert time.perf_counter() - start < 0.5


# sign_flip_p


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8))
def test_few_clusters_are_enumerated(sums):
    assert sign_flip_p(sums) == sign_flip_oracle(sums)


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8), st.sampled_from([0.1, 1 / 3, 1e-9, 1e9]))
def test_ties_survive_rounding(sums, unit):
    assert sign_flip_p([s * unit for s in sums]) == sign_flip_oracle(sums)


def test_enumeration_and_random_flips_meet():
    sums = [5, -3, 8, 1, 2, -7, 9, 4, 4, -6, 3, 7, -2, 10]
    assert len(sums) == bootstrap.EXACT_CLUSTERS + 1
    assert sign_flip_p(sums, flips=40_000) == pytest.approx(sign_flip_oracle(sums), abs=0.01)


def test_random_flips_of_equal_sums_are_the_sign_test():
    from scipy import stats

    expected = stats.binomtest(115, 200).pvalue
    assert sign_flip_p([1.0] * 115 + [-1.0] * 85, flips=40_000) == pytest.approx(expected, abs=0.01)


def test_collapsing_equal_sums_changes_the_draw_only(monkeypatch):
    sums = [1.0] * 60 + [-1.0] * 45 + [3.0] * 20 + [-3.0] * 15
    collapsed = sign_flip_p(sums, flips=40_000)
    monkeypatch.setattr(bootstrap, "COLLAPSE", 10**9)
    assert sign_flip_p(sums, flips=40_000) == pytest.approx(collapsed, abs=0.02)


def test_random_flips_are_all_counted_over_blocks():
    balanced = [*np.arange(1.0, 2001), *-np.arange(1.0, 2001)]
    assert sign_flip_p(balanced, flips=1000) == 1.0
    assert sign_flip_p(np.arange(1.0, 4001), flips=1000) == 1 / 1001


@pytest.mark.parametrize(("sums", "p"), [([4.0], 1.0), ([0.0, 0.0], 1.0), ([2.0, 3.0, 1.0], 0.25)])
def test_p_of_small_cases(sums, p):
    assert sign_flip_p(sums) == p


@pytest.mark.parametrize("sums", [[], [1.0, math.nan], [math.inf, 1.0]])
def test_p_is_undefined(sums):
    assert math.isnan(sign_flip_p(sums))


@given(SUMS, st.randoms(use_true_random=False), st.sampled_from([1, -1, 0.1]))
def test_p_depends_on_neither_order_nor_sign_nor_unit(sums, shuffling, unit):
    shuffled = [s * unit for s in sums]
    shuffling.shuffle(shuffled)
    assert sign_flip_p(shuffled, flips=200) == sign_flip_p(sums, flips=200)


@given(SUMS)
def test_p_is_a_probability_and_zeros_do_not_matter(sums):
    p = sign_flip_p(sums, flips=200)
    assert 0 < p <= 1
    assert sign_flip_p([*sums, 0, 0], flips=200) == p


# what clusters are for


def correlated_effects(draw, tilt, queries=40):
    """Each query leans to one side; most of its contrasts follow it."""
    lean = np.where(draw.random(queries) < 0.5 + tilt / 2, 1, -1)
    codes = np.repeat(np.arange(queries), 1 + draw.poisson(20, queries))
    follow = draw.random(len(codes)) < 0.8
    return np.where(follow, lean[codes], 0), codes


def naive_interval(effects) -> Interval:
    half = 1.96 * effects.std(ddof=1) / math.sqrt(len(effects))
    return Interval(effects.mean() - half, effects.mean() + half)


def test_the_clustered_interval_covers_and_the_naive_one_does_not():
    draw, tilt = np.random.default_rng(11), 0.2
    samples = [correlated_effects(draw, tilt) for _ in range(300)]
    clustered = [bootstrap_interval(*cluster_sums(*sample), resamples=1000) for sample in samples]
    naive = [naive_interval(effects) for effects, _ in samples]
    truth = 0.8 * tilt
    assert 0.90 <= np.mean([low <= truth <= high for low, high in clustered]) <= 0.99
    assert np.mean([low <= truth <= high for low, high in naive]) < 0.6


def test_sign_flips_keep_their_level_and_the_t_test_does_not():
    draw = np.random.default_rng(12)
    samples = [correlated_effects(draw, 0.0) for _ in range(300)]
    flipped = [sign_flip_p(cluster_sums(*sample).sums, flips=500) for sample in samples]
    naive = [paired_t_p(effects) for effects, _ in samples]
    assert np.mean(np.array(flipped) <= 0.05) < 0.09
    assert np.mean(np.array(naive) <= 0.05) > 0.4


def test_sign_flips_find_a_real_tilt():
    draw = np.random.default_rng(13)
    found = [sign_flip_p(cluster_sums(*correlated_effects(draw, 0.6)).sums, flips=500) for _ in range(50)]
    assert np.mean(np.array(found) <= 0.05) > 0.9
