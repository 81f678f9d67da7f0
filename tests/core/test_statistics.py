"""Tests of differences and effects, corrections for their number, and seeds, against scipy and enumeration."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from whyrank.core import (
    UnknownName,
    adjust,
    generator,
    paired_t_p,
    seed_for,
    share_p,
    sign_flip_p,
    sign_p,
    wilcoxon_p,
)
from whyrank.core.statistics import METHODS

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


def test_millions_of_ties_do_not_overflow():
    positive, negative = 1_101_500, 1_098_500
    n = positive + negative
    variance = n * (n + 1) * (2 * n + 1) / 24 - (n**3 - n) / 48
    z = (abs(positive * (n + 1) / 2 - n * (n + 1) / 4) - 0.5) / math.sqrt(variance)
    effects = np.repeat(np.array([1, 0, -1], np.int8), [positive, 1000, negative])
    assert wilcoxon_p(effects) == pytest.approx(2 * statistics.NormalDist().cdf(-z), rel=1e-6)


@pytest.mark.parametrize("diffs", [[], [1.0, math.nan]])
def test_the_rank_test_is_undefined(diffs):
    assert math.isnan(wilcoxon_p(diffs))


@pytest.mark.parametrize("test", [paired_t_p, wilcoxon_p])
@given(diffs=DIFFS)
def test_the_side_does_not_matter(test, diffs):
    p = test(np.array(diffs))
    assert test(-np.array(diffs)) == p
    assert 0 <= p <= 1


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_sign_test_is_that_of_scipy(positive, negative):
    assume(positive + negative > 0)
    expected = stats.binomtest(positive, positive + negative).pvalue
    assert sign_p(positive, negative) == pytest.approx(expected, rel=1e-9)
    assert sign_p(negative, positive) == sign_p(positive, negative)


# share_p


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


# Corrections for the number of tests.

P_VALUES = st.lists(st.floats(0, 1), max_size=30)
ALL = pytest.mark.parametrize("method", sorted(METHODS))


def test_bonferroni_by_hand_and_clipped():
    assert adjust([0.01, 0.4, 0.3], "bonferroni") == pytest.approx([0.03, 1, 0.9])


@given(P_VALUES.filter(len))
def test_benjamini_hochberg_is_that_of_scipy(p_values):
    assert adjust(p_values, "bh") == pytest.approx(stats.false_discovery_control(p_values), rel=1e-12)


@given(P_VALUES)
def test_holm_rejects_as_its_procedure_does(p_values):
    alpha, rejected = 0.05, set()
    for step, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[i] * (len(p_values) - step) > alpha:
            break
        rejected.add(i)
    assert set(np.flatnonzero(adjust(p_values, "holm") <= alpha)) == rejected


@ALL
def test_nan_stays_and_is_no_test(method):
    adjusted = adjust([math.nan, 0.01, math.nan, 0.02], method)
    assert np.isnan(adjusted).tolist() == [True, False, True, False]
    assert adjusted[[1, 3]].tolist() == adjust([0.01, 0.02], method).tolist()


@ALL
@given(p_values=P_VALUES)
def test_adjusted_values_are_larger_probabilities_in_the_same_order(method, p_values):
    raw = np.array(p_values)
    adjusted = adjust(raw, method)
    assert raw.tolist() == p_values
    assert ((raw <= adjusted) & (adjusted <= 1)).all()
    assert (np.diff(adjusted[np.argsort(raw)]) >= 0).all()


def test_an_unknown_method_is_named_with_the_nearest_known():
    with pytest.raises(UnknownName, match=r"unknown correction 'bonferoni'.*'bonferroni'"):
        adjust([0.1], "bonferoni")


def test_known_values_hold_forever():
    assert seed_for(0) == 0x5FECEB66FFC86F38  # sha256sum of "0"
    assert seed_for(7, "sample", "abc") == 0x7E7F59EAA6DE61D8  # of "7", "sample", "abc", joined by unit separators
    assert generator(7, "sample", "abc").integers(1000, size=4).tolist() == [770, 87, 130, 360]
