"""Tests of differences and effects, against scipy and enumeration."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from whyrank.core import cluster_sums, median, paired_t_p, share_p, sign_flip_p, sign_p, wilcoxon_p

EIGHTHS = st.integers(-80, 80).map(lambda k: k / 8)
DIFFS = st.lists(EIGHTHS, min_size=2, max_size=80)


def wilcoxon_oracle(diffs) -> float:
    """All signs of the ranks, with mean ranks for ties."""
    sizes = [abs(d) for d in diffs if d]
    ranks = [sum(t < s for t in sizes) + (sizes.count(s) + 1) / 2 for s in sizes]
    centre = sum(ranks) / 2
    observed = abs(sum(r for d, r in zip(filter(None, diffs), ranks, strict=True) if d > 0) - centre)
    signs = list(itertools.product((0, 1), repeat=len(ranks)))
    totals = [sum(s * r for s, r in zip(row, ranks, strict=True)) for row in signs]
    return sum(abs(total - centre) >= observed for total in totals) / len(signs)


# paired_t_p


@given(st.lists(st.tuples(EIGHTHS, EIGHTHS), min_size=2, max_size=60))
def test_the_t_test_is_that_of_scipy(pairs):
    first, second = np.array(pairs).T
    assume(np.ptp(first - second) > 0)
    assert paired_t_p(first - second) == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=1e-9)


def test_the_t_test_takes_single_precision_and_many_differences():
    diffs = np.random.default_rng(0).normal(0.003, 1, 200_000).astype(np.float32)
    assert paired_t_p(diffs) == pytest.approx(stats.ttest_1samp(diffs.astype(float), 0).pvalue, rel=1e-9)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_the_t_test_has_no_unit(unit):
    diffs = np.array([0.5, -0.25, 1.0, 0.75])
    assert paired_t_p(diffs * unit) == pytest.approx(paired_t_p(diffs), rel=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("diffs", "p"), [([0.0, 0.0], 1.0), ([0.1] * 7, 0.0), ([1.0, -1.0], 1.0)])
def test_the_t_test_of_degenerate_differences(diffs, p):
    assert paired_t_p(diffs) == p


@pytest.mark.parametrize("diffs", [[], [3.0], [0.0], [1.0, math.nan], [1.0, math.inf]])
def test_the_t_test_is_undefined(diffs):
    assert math.isnan(paired_t_p(diffs))


# wilcoxon_p


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9).filter(any))
def test_few_differences_are_ranked_exactly_with_ties(diffs):
    assert wilcoxon_p(diffs) == wilcoxon_oracle(diffs)


@given(st.sets(st.integers(1, 400), min_size=1, max_size=50), st.randoms(use_true_random=False))
def test_few_untied_differences_are_those_of_scipy(sizes, signs):
    diffs = [signs.choice((-1, 1)) * size for size in sizes]
    assert wilcoxon_p(diffs) == pytest.approx(stats.wilcoxon(diffs, method="exact").pvalue, rel=1e-9)


@pytest.mark.parametrize("spread", [1, 5, 10**6])
@pytest.mark.parametrize("n", [51, 400, 20_000])
def test_many_differences_are_those_of_scipy(n, spread):
    draw = np.random.default_rng(n)
    diffs = np.concatenate([draw.integers(-spread, spread + 1, n), draw.integers(1, spread + 1, 60)]) / 4
    theirs = stats.wilcoxon(diffs, zero_method="wilcox", correction=True, method="asymptotic").pvalue
    assert wilcoxon_p(diffs) == pytest.approx(theirs, rel=1e-9)


def test_the_exact_and_the_normal_p_meet():
    diffs = np.random.default_rng(4).normal(0.2, 1, 51)
    exact = stats.wilcoxon(diffs, method="exact").pvalue
    assert wilcoxon_p(diffs) == pytest.approx(exact, abs=0.005)


def test_millions_of_ties_do_not_overflow():
    positive, negative = 1_101_500, 1_098_500
    n = positive + negative
    variance = n * (n + 1) * (2 * n + 1) / 24 - (n**3 - n) / 48
    z = (abs(positive * (n + 1) / 2 - n * (n + 1) / 4) - 0.5) / math.sqrt(variance)
    effects = np.repeat(np.array([1, 0, -1], np.int8), [positive, 1000, negative])
    assert wilcoxon_p(effects) == pytest.approx(2 * statistics.NormalDist().cdf(-z), rel=1e-6)


@pytest.mark.parametrize(("diffs", "p"), [([0.0], 1.0), ([0.0] * 90, 1.0), ([2.0], 1.0), ([1, 2, 3], 0.25)])
def test_the_rank_test_of_small_cases(diffs, p):
    assert wilcoxon_p(diffs) == p


@pytest.mark.parametrize("diffs", [[], [1.0, math.nan]])
def test_the_rank_test_is_undefined(diffs):
    assert math.isnan(wilcoxon_p(diffs))


# both


@pytest.mark.parametrize("test", [paired_t_p, wilcoxon_p])
@given(diffs=DIFFS)
def test_the_side_does_not_matter(test, diffs):
    p = test(np.array(diffs))
    assert test(-np.array(diffs)) == p
    assert 0 <= p <= 1


@pytest.mark.parametrize("test", [paired_t_p, wilcoxon_p])
@given(diffs=DIFFS, shuffling=st.randoms(use_true_random=False))
def test_the_order_does_not_matter(test, diffs, shuffling):
    shuffled = list(diffs)
    shuffling.shuffle(shuffled)
    assert test(shuffled) == pytest.approx(test(diffs), rel=1e-9)


# sign_p


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_sign_test_is_that_of_scipy(positive, negative):
    assume(positive + negative > 0)
    expected = stats.binomtest(positive, positive + negative).pvalue
    assert sign_p(positive, negative) == pytest.approx(expected, rel=1e-9)
    assert sign_p(negative, positive) == sign_p(positive, negative)


@pytest.mark.parametrize("positive", [1_499_000, 1_500_000, 1_503_000])
def test_the_sign_test_of_millions(positive):
    expected = stats.binomtest(positive, 3_000_000).pvalue
    assert sign_p(positive, 3_000_000 - positive) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("positive", "negative", "p"), [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 1 / 16), (2, 1, 1.0)])
def test_the_sign_test_by_hand(positive, negative, p):
    assert sign_p(positive, negative) == pytest.approx(p)


# share_p


def test_the_share_is_tested_by_query():
    # 4, 3 and 5 more than a half: 2 of the 8 assignments of signs are as extreme
    assert share_p([9, 8, 10], [10, 10, 10], 0.5) == 0.25
    assert share_p([5, 2], [10, 4], 0.5) == 1.0


def test_the_share_is_that_of_centred_effects():
    draw = np.random.default_rng(2)
    effects, codes = draw.random(900) < 0.56, np.sort(draw.integers(0, 30, 900))
    sums, counts = cluster_sums(effects, codes)
    assert share_p(sums, counts, 0.5, 800, 3) == sign_flip_p(cluster_sums(effects - 0.5, codes).sums, 800, 3)
    assert share_p(sums, counts, 0.5) < 0.05 < share_p(sums, counts, 0.56)


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.sampled_from([0.0, 0.01, 0.1, 0.25, 0.5, 0.9, 1.0]))
def test_the_share_is_never_surer_than_a_binomial_test(hits, share):
    n, k = len(hits), sum(hits)
    exact = min(1.0, 2 * min(stats.binom.cdf(k, n, share), stats.binom.sf(k - 1, n, share)))
    flipped = sign_flip_p(np.array(hits, float) - share, 500)
    assert share_p(np.array(hits, float), np.ones(n), share, 500) == pytest.approx(max(exact, flipped), abs=1e-9)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.99])
def test_the_share_keeps_its_level_under_the_null(share):
    """Far from a half the centred sums are skewed; a share as expected must not be significant for that."""
    draw = np.random.default_rng(7)
    p = [share_p(draw.random(66) < share, np.ones(66), share, 400, seed) for seed in range(200)]
    assert np.mean(np.array(p) <= 0.05) <= 0.09  # three standard errors above the level
    assert share_p(np.zeros(66), np.ones(66), 0.01) > 0.5


@pytest.mark.parametrize(("sums", "counts", "share"), [([3, 4], [5, 6], math.nan), ([], [], 0.5), ([0], [0], 0.5)])
def test_the_share_is_undefined(sums, counts, share):
    assert math.isnan(share_p(sums, counts, share))


# medians


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_medians_are_those_of_sorted_values(values):
    assert median(values) == pytest.approx(statistics.median(values))


@pytest.mark.parametrize("which", [median])
@pytest.mark.parametrize("values", [[], [1.0, math.nan, 2.0]])
def test_medians_are_undefined(which, values):
    assert math.isnan(which(values))
