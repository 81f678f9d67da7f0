"""Means, averages and differences of fidelity against plain computation."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from whyrank.core import adjust, mean_interval, sign_flip_p
from whyrank.evaluation.fidelity import differences, summarise
from whyrank.evaluation.fidelity.agreement import PerQuery
from whyrank.evaluation.fidelity.rows import AVERAGE, stratified_interval

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
    low, high = mean_interval([0.5, 0.7])
    assert (row.ci_low, row.ci_high) == (low, high)


def test_nothing_defined():
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


def test_a_collection_without_values_is_not_averaged():
    found = {"one": cells([NAN, NAN], [0.1, 0.2]), "two": cells([0.5, 0.7], [0.1, 0.2])}
    [average] = [row for row in summarise(found, ["pearson"]) if (row.collection, row.surrogate) == (AVERAGE, "good")]
    assert (average.mean, average.collections, average.undefined) == (pytest.approx(0.6), 1, 2)


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


def test_p_values_are_corrected_over_the_whole_table():
    found = {"one": cells(GOOD, BAD), "two": cells(GOOD[:6], BAD[:6])}
    rows = differences(found, "bad", ["pearson"], correction="bonferroni")
    assert [row.p_adjusted for row in rows] == pytest.approx(adjust([row.p_value for row in rows], "bonferroni"))
    assert len(rows) == 3


def test_the_stratified_interval_has_the_spread_of_a_mean_of_means():
    rng = np.random.default_rng(0)
    parts = [rng.normal(0, 1, 400), rng.normal(5, 2, 100)]
    low, high = stratified_interval(parts)
    error = np.sqrt(sum(part.var() / len(part) for part in parts)) / 2
    middle = np.mean([part.mean() for part in parts])
    assert (high - low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.06)
    assert (low + high) / 2 == pytest.approx(middle, abs=0.1 * error)
