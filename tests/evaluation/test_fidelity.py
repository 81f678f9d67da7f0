"""Fidelity per query against scipy and plain enumeration; means, averages and differences against plain computation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import WhyrankError, mean_interval, sign_flip_p
from whyrank.evaluation.fidelity import compare_runs, differences, summarise
from whyrank.evaluation.fidelity.agreement import PerQuery
from whyrank.evaluation.fidelity.summary import AVERAGE

COARSE = st.integers(0, 4).map(float)
FINE = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))


def lists(element, low=2, high=30):
    return st.lists(st.tuples(element, element), min_size=low, max_size=high)


def one_query(pairs, **options):
    target, surrogate = ({"q": {f"d{i}": pair[side] for i, pair in enumerate(pairs)}} for side in (0, 1))
    return {name: float(values[0]) for name, values in compare_runs(target, surrogate, **options).values.items()}


def constant(pairs):
    return any(len({pair[side] for pair in pairs}) < 2 for side in (0, 1))


@given(st.one_of(lists(COARSE), lists(FINE), lists(st.one_of(COARSE, FINE), 2, 200)))
def test_correlations_equal_scipy(pairs):
    found = one_query(pairs)
    x, y = zip(*pairs, strict=True)
    if constant(pairs):
        assert all(np.isnan(value) for value in found.values())
        return
    assert found["pearson"] == pytest.approx(scipy.stats.pearsonr(x, y).statistic, abs=1e-9)
    assert found["kendall"] == pytest.approx(scipy.stats.kendalltau(x, y, variant="b").statistic, abs=1e-12)


@given(st.one_of(lists(COARSE), lists(FINE)).filter(lambda pairs: not constant(pairs)))
def test_agreement_counts_pairs(pairs):
    points = 0.0
    untied = [(a, b) for a, b in itertools.combinations(pairs, 2) if a[0] != b[0]]
    for a, b in untied:
        points += 0.5 if a[1] == b[1] else float((a[0] < b[0]) == (a[1] < b[1]))
    found = one_query(pairs)["agreement"]
    assert found == pytest.approx(points / len(untied), abs=1e-12)
    x, y = zip(*pairs, strict=True)
    assert found == pytest.approx((scipy.stats.somersd(x, y).statistic + 1) / 2, abs=1e-9)


@given(lists(COARSE, 2, 4).filter(lambda pairs: not constant(pairs)), st.integers(1, 4))
def test_overlap_is_the_mean_over_all_ways_to_break_ties(pairs, k):
    found = one_query(pairs, ks=(k,))[f"top{k}"]
    if len(pairs) <= k:
        assert np.isnan(found)
        return
    tops = [
        [set(sorted(way, key=lambda i: -pairs[i][side])[:k]) for way in itertools.permutations(range(len(pairs)))]
        for side in (0, 1)
    ]
    expected = np.mean([len(a & b) / k for a in tops[0] for b in tops[1]])
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_scores_of_any_size(size):
    found = one_query([(size, 3.0), (-size, 1.0), (size / 2, 3.0)])
    expected = scipy.stats.pearsonr([2, -2, 1], [3, 1, 3]).statistic
    assert found["pearson"] == pytest.approx(expected)


TARGET = {"one": {"a": 3.0, "b": 2.0, "c": 1.0}, "two": {"a": 1.0, "b": 2.0}, "gone": {"a": 1.0, "b": 2.0}}
SURROGATE = {"two": {"b": 4.0, "a": 5.0, "c": -1.0}, "one": {"c": 1.0, "b": 2.0, "d": 9.0}}


def test_documents_of_one_side_are_dropped_or_zero():
    dropped = compare_runs(TARGET, SURROGATE, ks=(2,))
    assert (list(dropped.queries), dropped.documents.tolist()) == (["one", "two", "gone"], [2, 2, 0])
    assert dropped.one_sided.tolist() == [2, 1, 2]
    assert dropped.values["pearson"].tolist()[:2] == pytest.approx([1.0, -1.0])
    assert np.isnan(dropped.values["pearson"][2])
    zero = compare_runs(TARGET, SURROGATE, ks=(2,), missing="zero")
    assert zero.documents.tolist() == [4, 3, 2]
    x, y = [3.0, 2.0, 1.0, 0.0], [0.0, 2.0, 1.0, 9.0]
    assert zero.values["pearson"][0] == pytest.approx(scipy.stats.pearsonr(x, y).statistic)
    assert zero.values["kendall"][1] == pytest.approx(scipy.stats.kendalltau([1, 2, 0], [5, 4, -1]).statistic)
    assert np.isnan(zero.values["kendall"][2])


def test_a_k_beyond_any_list_is_undefined():
    scores = {"q": {"a": 1.0, "b": 2.0, "c": 3.0}, "r": {"a": 1.0, "b": 2.0}}
    found = compare_runs(scores, scores, ks=(1, 2, 3, 10**20)).values
    assert found["top1"].tolist() == [1.0, 1.0]
    assert found["top2"].tolist() == pytest.approx([1.0, np.nan], nan_ok=True)
    assert np.isnan([*found["top3"], *found[f"top{10**20}"]]).all()
    assert len(compare_runs({}, {}, ks=(10**20,)).queries) == 0


def test_scores_that_are_no_numbers_count_as_missing():
    odd = {"q": {"a": 1.0, "b": float("inf"), "c": 3.0, "d": float("nan"), "e": 0.0}}
    found = compare_runs(odd, {"q": dict(zip("abcde", [1.0, 2.0, 3.0, 4.0, 0.0], strict=True))})
    assert (found.documents.tolist(), found.one_sided.tolist()) == ([3], [2])
    assert found.values["kendall"][0] == pytest.approx(1.0)


@pytest.mark.parametrize(("options", "expected"), [
    ({"missing": "keep"}, "drop"), ({"ks": (0,)}, "1 or more"), ({"ks": (5, 5)}, "each k once"),
])  # fmt: skip
def test_wrong_settings(options, expected):
    with pytest.raises(WhyrankError, match=expected):
        compare_runs(TARGET, SURROGATE, **options)


NAN = float("nan")


def per_query(values, queries=None):
    values = np.array(values)
    names = [f"q{i}" for i in range(len(values))] if queries is None else queries
    counts = np.full(len(values), 9)
    return PerQuery(names, counts, counts * 0, {"pearson": values})


def cells(good, bad):
    return {("t", "bad"): per_query(bad), ("t", "good"): per_query(good)}


RNG = np.random.default_rng(3)
BAD = RNG.uniform(0.2, 0.6, 12)
GOOD = BAD + RNG.uniform(-0.02, 0.2, 12)


def test_undefined_queries_are_counted_and_left_out():
    [row] = summarise({"c": {("t", "s"): per_query([0.5, NAN, 0.7, NAN])}}, ["pearson"])
    assert (row.mean, row.n_queries, row.undefined) == (pytest.approx(0.6), 2, 2)
    assert (row.ci_low, row.ci_high) == tuple(mean_interval([0.5, 0.7]))
    [row] = summarise({"c": {("t", "s"): per_query([NAN, NAN])}}, ["pearson"])
    assert (row.mean, row.ci_low, row.n_queries, row.undefined, row.collections) == (None, None, 0, 2, 0)


def test_collections_count_alike():
    found = {"small": cells([0.1], [0.3]), "large": cells([0.5, 0.7, NAN], [0.1, 0.2, 0.3])}
    rows = {(row.collection, row.surrogate): row for row in summarise(found, ["pearson"])}
    average = rows[AVERAGE, "good"]
    assert average.mean == pytest.approx((0.1 + 0.6) / 2)
    assert (average.n_queries, average.undefined, average.collections) == (3, 1, 2)
    assert rows["small", "good"].ci_low is None
    assert average.ci_low is None  # one query says nothing about the spread


def test_differences_are_paired_and_tested():
    [row] = differences({"c": cells(GOOD, BAD)}, "bad", ["pearson"])
    diffs = GOOD - BAD
    assert (row.surrogate, row.baseline, row.n_queries) == ("good", "bad", 12)
    assert row.difference == pytest.approx(diffs.mean())
    assert row.p_t == pytest.approx(scipy.stats.ttest_rel(GOOD, BAD).pvalue)
    exact = np.mean([abs(np.sum(diffs * signs)) >= abs(diffs.sum()) - 1e-12 for signs in signs_of(12)])
    assert row.p_value == pytest.approx(exact)
    assert row.ci_low < row.difference < row.ci_high
    assert row.p_adjusted == row.p_value


def signs_of(n):
    return 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)


def test_only_queries_defined_on_both_sides_are_paired():
    one = per_query([0.9, NAN, 0.4, 0.3], ["a", "b", "c", "d"])
    other = per_query([0.1, 0.2, NAN, 0.5], ["d", "a", "c", "b"])
    [row] = differences({"c": {("t", "s"): one, ("t", "base"): other}}, "base", ["pearson"])
    assert row.n_queries == 2
    assert row.difference == pytest.approx(((0.9 - 0.2) + (0.3 - 0.1)) / 2)


def test_the_average_difference_weighs_collections_alike():
    found = {"one": cells(GOOD, BAD), "two": cells(GOOD[:3] - 0.3, BAD[:3])}
    rows = {row.collection: row for row in differences(found, "bad", ["pearson"], correction="none")}
    parts = [GOOD - BAD, GOOD[:3] - 0.3 - BAD[:3]]
    average = rows[AVERAGE]
    assert average.difference == pytest.approx((parts[0].mean() + parts[1].mean()) / 2)
    assert average.p_value == sign_flip_p(np.concatenate([part / len(part) for part in parts]), 100_000)
    assert (average.p_t, average.n_queries) == (None, 15)
