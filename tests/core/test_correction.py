"""Corrections for the number of tests, by hand, against scipy and as properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from whyrank.core import UnknownName, adjust
from whyrank.core.statistics import METHODS

P_VALUES = st.lists(st.floats(0, 1), max_size=30)
ALL = pytest.mark.parametrize("method", sorted(METHODS))


def test_holm_by_hand():
    # sorted: 0.005 * 4, 0.01 * 3, 0.03 * 2, and 0.04 * 1 lifted to 0.06
    assert adjust([0.01, 0.04, 0.03, 0.005], "holm") == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_benjamini_hochberg_by_hand():
    # sorted: 0.005 * 4/1, 0.01 * 4/2, 0.03 * 4/3, 0.04 * 4/4
    assert adjust([0.01, 0.04, 0.03, 0.005], "bh") == pytest.approx([0.02, 0.04, 0.04, 0.02])


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
@pytest.mark.parametrize("p_values", [[], [math.nan]])
def test_nothing_to_adjust(method, p_values):
    assert np.array_equal(adjust(p_values, method), p_values, equal_nan=True)


@ALL
@given(p_values=P_VALUES)
def test_adjusted_values_are_larger_probabilities_in_the_same_order(method, p_values):
    raw = np.array(p_values)
    adjusted = adjust(raw, method)
    assert raw.tolist() == p_values
    assert ((raw <= adjusted) & (adjusted <= 1)).all()
    assert (np.diff(adjusted[np.argsort(raw)]) >= 0).all()


@ALL
@given(p_values=P_VALUES, shuffling=st.randoms(use_true_random=False))
def test_each_value_keeps_its_place(method, p_values, shuffling):
    order = list(range(len(p_values)))
    shuffling.shuffle(order)
    shuffled = adjust([p_values[i] for i in order], method)
    assert shuffled.tolist() == adjust(p_values, method)[order].tolist()


@given(P_VALUES)
def test_methods_are_ordered_by_severity(p_values):
    none, bh, holm, bonferroni = (adjust(p_values, m) for m in ("none", "bh", "holm", "bonferroni"))
    assert (none == np.array(p_values)).all()
    assert ((bh <= holm) & (holm <= bonferroni)).all()


def test_an_unknown_method_is_named_with_the_nearest_known():
    with pytest.raises(UnknownName, match=r"unknown correction 'bonferoni'.*'bonferroni'"):
        adjust([0.1], "bonferoni")
