"""Paired differences of two rankers: plain-Python oracles, planted differences, and the level of the test."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whyrank
from toy_bias import BRANDS, Toy, toy_collection
from whyrank.studies import (
    Context,
    Contrasts,
    Pair,
    Reading,
    Side,
    common_rows,
    difference_of,
    paired_interval,
    reading_of,
    value_differences,
)
from whyrank.studies.reading import Conclusions

CARS = f"bias/substitution(values={'+'.join(BRANDS[:4])},head=car)"
SCORES = st.tuples(*[st.sampled_from([0.0, 1.0, 2.0, math.nan])] * 4)  # of two texts by two rankers


class Probe:
    id, positive, symmetric = "toy/probe", "prefers the first", False


class Axiom(Probe):
    reading = Conclusions()


def contrasts_of(rows):
    """Contrasts from the numbers of a query and two texts."""
    return Contrasts.from_pairs(Pair(f"query {q}", (f"text {a}", f"text {b}")) for q, a, b in rows)


def side(contrasts, scores, study=Probe, delta=0.5):
    reading = Reading.of(contrasts, np.asarray(scores, dtype=np.float64).reshape(-1, 2), delta, study.symmetric)
    context = Context("r", "toys", delta, draws=99)
    [finding], _ = reading_of(study).read(study, contrasts, reading, context)
    return Side(finding, contrasts, reading)


@settings(max_examples=60, deadline=None)
@given(st.lists(SCORES, min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_the_mean_over_contrasts_that_both_scored_in_whatever_order(rows, random):
    order = random.sample(range(len(rows)), len(rows))
    first = side(contrasts_of([(i % 3, 2 * i, 2 * i + 1) for i in range(len(rows))]), [row[:2] for row in rows])
    second = side(
        contrasts_of([(i % 3, 2 * i, 2 * i + 1) for i in order]), [rows[i][2:] for i in order]
    )  # fmt: skip
    found = difference_of(first, second, draws=99)
    both = [row for row in rows if not any(map(math.isnan, row))]
    assert found.n == len(both)
    if not both:
        assert found.difference is None
        return
    sign = [[(a > b + 0.5) - (a < b - 0.5) for a, b in (row[:2], row[2:])] for row in both]
    assert found.difference == pytest.approx(sum(mine - base for mine, base in sign) / len(both))
    assert found.positive[0] == pytest.approx(sum(mine > 0 for mine, _ in sign) / len(both))
    back = difference_of(second, first, draws=99)
    assert back.difference == pytest.approx(-found.difference)
    assert back.difference_p == pytest.approx(found.difference_p)
    if found.difference_low is not None:
        assert (back.difference_low, back.difference_high) == pytest.approx(
            (-found.difference_high, -found.difference_low)
        )


def test_an_axiom_differs_in_the_share_that_obeys():
    contrasts = contrasts_of([(i, 2 * i, 2 * i + 1) for i in range(8)])
    always = side(contrasts, [[2, 0]] * 8, Axiom)
    never = side(contrasts, [[2, 0]] * 2 + [[0, 0]] * 3 + [[0, 2]] * 3, Axiom)
    found = difference_of(always, never)
    assert (found.figure, found.baseline, found.difference, found.n_queries) == (1.0, 0.25, 0.75, 8)
    assert found.difference_p == 2 * 2**-6, "six queries differ, all to one side"


def test_contrasts_of_other_sets_are_matched_by_their_texts():
    first = contrasts_of([(0, 0, 1), (0, 2, 3), (1, 4, 5)])
    second = contrasts_of([(1, 4, 5), (0, 1, 0), (0, 0, 1), (2, 0, 1)])
    rows = common_rows(first, second)
    assert sorted(zip(*(each.tolist() for each in rows), strict=True)) == [(0, 2), (2, 0)]
    found = difference_of(side(first, [[2, 0]] * 3), side(second, [[0, 2], [9, 9], [0, 0], [9, 9]]))
    assert (found.n, found.figure, found.baseline, found.difference) == (2, 1.0, -0.5, 1.5)
    assert difference_of(side(first, [[2, 0]] * 3), side(contrasts_of([(7, 8, 9)]), [[1, 0]])).difference is None


def test_one_query_has_no_interval():
    contrasts = contrasts_of([(0, 0, 1), (0, 2, 3)])
    found = difference_of(side(contrasts, [[2, 0]] * 2), side(contrasts, [[0, 0]] * 2))
    assert (found.difference, found.difference_low, found.difference_high) == (1.0, None, None)


@pytest.mark.parametrize("queries", [15, 40])
def test_the_interval_covers_where_rankers_mostly_agree(queries):
    """One contrast in five is decided anew, for 60% against 50%: an interval for scores covers 81% of 15 queries."""
    draw, covered = np.random.default_rng(3), 0
    for _ in range(300):
        first, second = (np.where(draw.random(queries) < p, 1.0, -1.0) for p in (0.6, 0.5))
        paired = first - np.where(draw.random(queries) < 0.8, first, second)
        low, high = paired_interval(paired, np.arange(queries), 2)
        covered += low <= 0.2 * 0.2 <= high
    assert covered >= 0.93 * 300


def test_the_interval_covers_where_gains_are_skewed():
    """Gains are many in few queries of 60, whose sizes differ: an interval for scores covers 90.5% of these."""
    draw, covered = np.random.default_rng(16), 0
    for _ in range(400):
        clusters = np.repeat(np.arange(60), draw.geometric(0.05, 60))
        changed, gained = (draw.beta(a, b, 60)[clusters] for a, b in ((0.23, 2.1), (2.7, 0.3)))
        values = np.where(draw.random(len(clusters)) < gained, 1.0, -1.0)
        low, high = paired_interval(np.where(draw.random(len(clusters)) < changed, values, 0.0), clusters, 1)
        covered += low <= 0.23 / 2.33 * 0.8 <= high
    assert covered >= 0.93 * 400


def simulate(draw, agree):
    """Scores of two rankers that prefer alike on average, of 20 queries with tastes of their own."""
    query = np.repeat(np.arange(20), draw.integers(1, 12, 20))
    leaning = draw.beta(2, 2, (2, 20))[:, query]
    wins = draw.random(leaning.shape) < leaning
    wins[1] = np.where(draw.random(len(query)) < agree, wins[0], wins[1])
    contrasts = contrasts_of([(q, 2 * i, 2 * i + 1) for i, q in enumerate(query.tolist())])
    base = Reading.of(contrasts, np.zeros((len(query), 2)), 0.5, False)
    finding = whyrank.Finding.from_dict({**dict.fromkeys(whyrank.Finding.__annotations__), "share": 1.0})
    return [
        Side(finding, contrasts, replace(base, effects=np.where(won, 1, -1).astype(np.int8))) for won in wins
    ]  # fmt: skip


@pytest.mark.parametrize("agree", [0.0, 0.5])
def test_the_test_keeps_its_level_and_the_interval_covers(agree):
    draw = np.random.default_rng(1)
    found = [difference_of(*simulate(draw, agree), seed=i, draws=199) for i in range(400)]
    assert 0.02 <= np.mean([each.difference_p < 0.05 for each in found]) <= 0.08
    assert np.mean([each.difference_low <= 0 <= each.difference_high for each in found]) >= 0.93


def gaps_of(kind, draw):
    """Queries, texts and differences between scores, drawn alike for two rankers."""
    queries, size = {"heavy": 15, "skewed": 25, "unequal": 60, "shared": 25, "sized": 25}[kind], 5
    leaning = draw.standard_t(2, (2, queries)) if kind == "heavy" else draw.normal(0, 1, (2, queries))
    if kind == "skewed":
        leaning = draw.lognormal(0, 1, (2, queries)) - 1.2
    if kind == "unequal":
        size = np.minimum(1 + draw.pareto(1.1, queries), 60).astype(int)
    if kind == "sized":
        size = 1 + draw.poisson(1 + 6 * (leaning.sum(axis=0) > 1))
    query = np.repeat(np.arange(queries), size)
    noise = draw.standard_cauchy((2, len(query))) if kind == "heavy" else draw.normal(0, 0.7, (2, len(query)))
    docs = np.arange(2 * len(query)).reshape(-1, 2)
    if kind == "shared":  # 30 documents, which each ranker likes or does not
        docs = np.array([draw.choice(30, 2, replace=False) for _ in query])
        worth = draw.normal(0, 1, (2, 30))
        noise += worth[:, docs[:, 0]] - worth[:, docs[:, 1]]
    return np.column_stack([query, docs]).tolist(), leaning[:, query] + noise


@pytest.mark.parametrize("kind", ["heavy", "skewed", "unequal", "shared", "sized"])
def test_level_and_coverage_hold_beyond_what_they_were_made_on(kind):
    draw, found = np.random.default_rng(77), []
    finding = whyrank.Finding.from_dict({**dict.fromkeys(whyrank.Finding.__annotations__), "share": 1.0})
    for i in range(400):
        rows, gaps = gaps_of(kind, draw)
        contrasts = contrasts_of(rows)
        base = Reading.of(contrasts, np.zeros((len(rows), 2)), 0.5, False)
        effects = (np.sign(gaps) * (np.abs(gaps) > 0.5)).astype(np.int8)
        sides = [Side(finding, contrasts, replace(base, effects=each)) for each in effects]
        found.append(difference_of(*sides, seed=i, draws=199))
    rejected = np.mean([each.difference_p < 0.05 for each in found])
    assert 0.02 <= rejected <= 0.08
    assert np.mean([each.difference_low <= 0 <= each.difference_high for each in found]) >= 0.93


def test_values_of_a_bias_study_are_compared_in_deltas():
    """Honda has 0.3 more in one ranker and 0.9 more in the other, without noise: 1.0 and 3.0 deltas of range."""
    rankers = [Toy(seed, words=(("honda", gain),), scale=0.0) for seed, gain in ((1, 0.3), (2, 0.9))]
    audit = whyrank.audit(rankers, toy_collection(), CARS, delta=0.3)
    old, new = (Side(f, *audit._read(CARS, f.ranker)) for f in audit[CARS].findings)
    whole = difference_of(new, old)
    assert (whole.figure, whole.baseline, whole.difference) == pytest.approx((3.0, 1.0, 2.0))
    assert whole.difference_p < 0.01
    assert {each.value: each.difference for each in value_differences(new, old)} == pytest.approx(
        {"honda": 1.5, "ford": -0.5, "toyota": -0.5, "volvo": -0.5}
    )
    assert (
        value_differences(*(each._replace(finding=replace(each.finding, range_deltas=None)) for each in (new, old)))
        == []
    )


@pytest.fixture(scope="module")
def audit():
    rankers = [Toy(1, words=(("honda", 0.9),)), Toy(2, words=(("honda", 0.3),))]
    studies = ("edited/shuffle-words", "axiom/TFC1", CARS)
    return whyrank.audit(rankers, toy_collection(), studies, delta=0.1, baseline=Toy(3), by="query_id")


class TestBaseline:
    def test_it_comes_first_and_all_others_are_compared_with_it(self, audit):
        assert audit["edited/shuffle-words"].rankers == ["toy3", "toy1", "toy2"]
        for study in ("edited/shuffle-words", CARS):
            base, *others = (f for f in audit[study].findings if f.group is None)
            assert (base.baseline, base.difference) == ("", None)
            for each in others:
                figures = [f.score if f.range is None else f.range_deltas for f in (each, base)]
                assert each.baseline == "toy3"
                assert each.difference == pytest.approx(figures[0] - figures[1])
                assert each.difference_adjusted >= each.difference_p
        assert {f.ranker for f in audit[CARS].findings if (f.difference_adjusted or 1) < 0.05} == {"toy1", "toy2"}

    def test_groups_are_compared_too(self, audit):
        found = [f for f in audit["edited/shuffle-words"].findings if f.group == "q3"]
        assert [f.difference for f in found] == [None, *(f.score - found[0].score for f in found[1:])]

    def test_values_of_bias_studies_have_differences(self, audit):
        details = next(result for result in audit.details if result.ranker == "toy1")
        honda = details.value("honda")
        assert honda.difference == pytest.approx(honda.deltas - audit.details[0].value("honda").deltas)
        assert honda.difference_adjusted < 0.05
        assert details.difference_adjusted == audit[CARS].findings[1].difference_adjusted

    def test_a_folder_keeps_them(self, audit, tmp_path):
        audit.save(tmp_path / "out")
        assert whyrank.open_audit(tmp_path / "out") == audit

    def test_a_ranker_that_is_the_baseline_already_is_not_studied_twice(self):
        found = whyrank.audit(["ql", "bm25"], "sample", "axiom/TFC1", baseline="bm25", limit=20)
        assert [(f.ranker, f.baseline) for f in found] == [("bm25", ""), ("ql", "bm25")]
