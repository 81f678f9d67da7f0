"""From scores to findings: effects, conclusions, agreement with relevance and delta, against plain-Python oracles."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError, mean_interval
from whyrank.data import Grades
from whyrank.data.grades import ANTIQUE, TREC_DL
from whyrank.scoring import Engine
from whyrank.studies import Calibration, Context, Contrasts, Pair, Reading, Threshold, calibrate, reading_of
from whyrank.studies.delta import delta_of
from whyrank.studies.reading import Conclusions, obedience, obeys

OWN = ("satisfied", "satisfied_low", "satisfied_high", "chance", "with_relevant", "decided", "agreement")
SCORE = st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, math.nan, math.inf]) | st.floats(-4, 4)
GRADE = st.sampled_from([math.nan, -2, 0, 1, 2, 3, 4])
DELTAS = st.sampled_from([0.0, 0.5, 1.0])
STRICT_OR_WEAK = st.sampled_from(["strict", "weak"])


@dataclass(frozen=True)
class Toy:
    concludes: str = ""
    symmetric: bool = False
    id: str = "toy/any"
    positive: str = "prefers the first"

    @property
    def reading(self):
        return Conclusions(conclusion=self.concludes) if self.concludes else None

    def contrasts(self, collection):
        raise NotImplementedError


def rows_of(texts=2):
    """A query, then a score and a grade for each text."""
    return st.lists(st.tuples(st.sampled_from("abc"), *[SCORE] * texts, *[GRADE] * texts), max_size=25)


def found_for(rows, study=None, texts=2, delta=0.0, order=None, **setting):
    """The findings of rows: a query, the scores of the texts and, where there are any, their grades."""
    numbered = [list(enumerate(rows))[i] for i in order] if order else list(enumerate(rows))
    pairs = []
    for i, row in numbered:
        labels = {"query_id": row[0], "half": "xy"[i % 2]} | (
            {"relevance": row[1 + texts :]} if row[1 + texts :] else {}
        )
        pairs.append(Pair(row[0], tuple(f"{i}.{k}" for k in range(texts)), labels))
    contrasts, study = Contrasts.from_pairs(pairs, size=texts), study or Toy()
    scores = np.array([row[1 : 1 + texts] for _, row in numbered], dtype=float).reshape(-1, texts)
    context = Context("r", "c", delta, draws=100, **{"grades": TREC_DL} | setting)
    reading = Reading.of(contrasts, scores, delta, study.symmetric)
    return reading_of(study).read(study, contrasts, reading, context).findings


def difference(values):
    first, second, *third = values
    if not third:
        return first - second
    found = (second - first) - (third[0] - second)
    return 0.0 if abs(found) < 8 * np.finfo(float).eps * max(map(abs, values)) else found  # equal but for rounding


def finite(rows, texts=2):
    return [row for row in rows if all(map(math.isfinite, row[1 : 1 + texts]))]


@given(rows_of(), DELTAS, st.booleans())
@settings(max_examples=80, deadline=None)
def test_counts_equal_a_plain_loop(rows, delta, symmetric):
    [found] = found_for(rows, Toy(symmetric=symmetric), delta=delta)
    diffs = [abs(row[1] - row[2]) if symmetric else row[1] - row[2] for row in finite(rows)]
    assert (found.n, found.nonfinite) == (len(rows), len(rows) - len(diffs))
    assert found.positive == sum(d > delta for d in diffs)
    assert found.negative == sum(d < -delta for d in diffs)
    assert found.neutral == sum(-delta <= d <= delta for d in diffs)
    expected = (found.positive - found.negative) / len(diffs) if diffs else None
    assert found.score == (pytest.approx(expected) if diffs else None)
    assert found.mean_diff == (pytest.approx(sum(diffs) / len(diffs)) if diffs else None)


@given(rows_of(), st.randoms())
@settings(max_examples=50, deadline=None)
def test_antisymmetry_and_order(rows, random):
    """Turning every contrast round turns the finding round; the order of contrasts does not matter."""
    [one], [two] = found_for(rows, delta=0.5), found_for([(q, b, a, h, g) for q, a, b, g, h in rows], delta=0.5)
    assert (one.positive, one.neutral, one.negative) == (two.negative, two.neutral, two.positive)
    assert (one.p_value, one.p_wilcoxon, one.p_sign) == (two.p_value, two.p_wilcoxon, two.p_sign)
    assert one.p_t == (None if two.p_t is None else pytest.approx(two.p_t))
    assert one.score == (None if two.score is None else -two.score)
    if one.ci_low is not None:
        assert (one.ci_low, one.ci_high) == (-two.ci_high, -two.ci_low)
    assert found_for(rows, delta=0.5, order=random.sample(range(len(rows)), len(rows))) == [one]


def test_a_symmetric_study_is_tested_against_chance():
    """All differences above delta where half are expected is a finding; half is none; absolute differences are not."""
    loud = [(f"q{i}", 2.0, 0.0) for i in range(20)]
    half = [(f"q{i}", 2.0 * (i % 2), 0.0) for i in range(20)]
    study = Toy(symmetric=True)
    assert found_for(loud, study, delta=0.5, chance=0.5)[0].p_value < 0.01
    assert found_for(half, study, delta=0.5, chance=0.5)[0].p_value > 0.5
    assert found_for(half, study, delta=0.5)[0].p_value is None
    assert found_for(loud, study, delta=0.5)[0].p_t is None


def test_what_nobody_judged_is_one_group():
    """NaN is not equal to itself, yet all contrasts with a missing grade on the same side are one group."""
    grades = [(0.0, math.nan), (0.0, math.nan), (math.nan, math.nan), (2.0, 0.0), (math.nan, math.nan), (2.0, 0.0)]
    rows = [("q", 1.0, 0.0, *both) for both in grades]
    plain = found_for(rows, by="relevance", grades=None)
    assert {f.group: f.n for f in plain} == {None: 6, "0/unjudged": 2, "2/0": 2, "unjudged/unjudged": 2}
    named = ["0 (irrelevant)/unjudged", "2 (highly relevant)/0 (irrelevant)", "unjudged/unjudged"]
    assert [f.group for f in found_for(rows, by="relevance")[1:]] == named
    assert [(f.group, f.n) for f in found_for(rows, by="half")] == [(None, 6), ("x", 3), ("y", 3)]
    assert len(found_for([], by="relevance")) == 1


# Conclusions of axioms.


def expected_share(rows, texts, conclusion, delta):
    """Share that obeys with its interval from one sum and one count per query, and chance."""
    usable = finite(rows, texts)
    if not usable:
        return [None] * 4
    diffs = [difference(row[1 : 1 + texts]) for row in usable]
    obeyed = [diff > delta if conclusion == "strict" else diff >= -delta for diff in diffs]
    queries = [row[0] for row in usable]
    low, high = mean_interval(obeyed, np.unique(queries, return_inverse=True)[1], bounds=(0, 1))
    tied = sum(abs(diff) <= delta for diff in diffs) / len(diffs)
    chance = (1 - tied) / 2 if conclusion == "strict" else tied + (1 - tied) / 2
    several = len(set(queries)) > 1
    return [sum(obeyed) / len(obeyed), low if several else None, high if several else None, chance]


def expected_agreement(rows, texts, grades):
    if not rows:
        return None, None, None  # without rows there are no labels
    known = [[grades.nonrelevant if math.isnan(grade) else grade for grade in row[1 + texts :]] for row in rows]
    diffs = [difference(each) for each in known if any(grade >= grades.relevant for grade in each)]
    decided = sum(diff != 0 for diff in diffs)
    return len(diffs), decided, sum(diff > 0 for diff in diffs) / decided if decided else None


@pytest.mark.parametrize("texts", [2, 3])
@given(data=st.data(), conclusion=STRICT_OR_WEAK, delta=DELTAS, grades=st.sampled_from([TREC_DL, ANTIQUE, Grades()]))
@settings(max_examples=60, deadline=None)
def test_conclusions_and_agreement_equal_a_plain_loop(texts, data, conclusion, delta, grades):
    rows = data.draw(rows_of(texts))
    [found] = found_for(rows, Toy(conclusion), texts, delta, grades=grades)
    shown = [found.satisfied, found.satisfied_low, found.satisfied_high, found.chance]
    assert shown == [
        None if e is None else pytest.approx(e, abs=1e-12) for e in expected_share(rows, texts, conclusion, delta)
    ]
    assert (found.with_relevant, found.decided, found.agreement) == expected_agreement(rows, texts, grades)
    assert found.conclusion == conclusion


@given(rows=rows_of().filter(bool), conclusion=STRICT_OR_WEAK)
@settings(max_examples=30, deadline=None)
def test_groups_are_read_out_as_if_they_were_alone(rows, conclusion):
    whole, *parts = found_for(rows, Toy(conclusion), by="half")
    for part in parts:
        [alone] = found_for(rows["xy".index(part.group) :: 2], Toy(conclusion))
        assert [getattr(part, name) for name in OWN] == [getattr(alone, name) for name in OWN]
    assert sum(part.with_relevant for part in parts) == whole.with_relevant
    assert sum(part.decided for part in parts) == whole.decided


def test_a_tie_satisfies_the_weak_conclusion_only():
    signs = np.array([1, 0, -1], np.int8)
    assert obeys(signs, "strict").tolist() == [True, False, False]
    assert obeys(signs, "weak").tolist() == [True, True, False]
    ten = np.array([0] * 4 + [1] * 5 + [-1], np.int8)  # of six that are not tied, a coin wins three
    assert [obedience(ten, word).chance for word in ("strict", "weak")] == pytest.approx([0.3, 0.7])
    with pytest.raises(WhyrankError, match="'strict'"):
        found_for([("a", 1.0, 0.0, 1, 0)], Toy("strickt"))


ROWS = [("a", 1.0, 0.0, 2, 0), ("b", 0.0, 1.0, 3, math.nan)]


def test_what_a_finding_does_not_have():
    """Without judgements, without grades of texts, without a conclusion, without contrasts."""
    [unjudged], [ungraded] = (
        found_for(ROWS, Toy("strict"), grades=None),
        found_for([row[:3] for row in ROWS], Toy("strict")),
    )
    for found in (unjudged, ungraded):
        assert (found.satisfied, found.with_relevant, found.decided, found.agreement) == (0.5, None, None, None)
    [probe] = found_for(ROWS, scale="cosine")
    assert (probe.conclusion, probe.scale, [getattr(probe, name) for name in OWN]) == ("", "cosine", [None] * 7)
    [empty] = found_for([], Toy("strict"))
    assert (empty.conclusion, empty.n, [getattr(empty, name) for name in OWN]) == ("strict", 0, [None] * 7)
    assert (empty.score, empty.p_value, empty.ci_low, empty.mean_diff) == (None,) * 4


class TestDelta:
    def test_median_of_neighbours_in_the_top(self):
        class Given:
            name = "given"

            def score(self, queries, docs):
                return np.array([float(d) for d in docs])

        values = {"q": [9, 7, 6, 6, 1, 0, -5, -6, -8, -9, -100], "r": [3, 1]}
        candidates = {q: {str(i): str(v) for i, v in enumerate(vs)} for q, vs in values.items()}
        found = calibrate(Engine(), Given(), candidates)
        expected = sorted([2, 1, 0, 5, 1, 5, 1, 2, 1, 2])
        assert found.diffs.tolist() == expected
        assert found.quantile(0.5) == np.median(expected)
        assert Threshold(1.0, found).chance == 0.5
        curve = [delta for _, delta in found.curve()]
        assert curve == sorted(curve)
        assert len(curve) == 100

    @pytest.mark.parametrize(("spec", "value"), [("0.25", 0.25), (0, 0.0), ("p0", 1.0), ("p50", 2.0), ("p100", 3.0)])
    def test_specs(self, spec, value):
        assert delta_of(spec, Calibration(np.array([1.0, 2.0, 3.0]), "x")) == value

    @pytest.mark.parametrize("spec", ["p101", "-1", "inf", "nan", "median", "p"])
    def test_wrong_specs(self, spec):
        with pytest.raises(WhyrankError, match="delta"):
            delta_of(spec, Calibration(np.array([1.0]), "x"))
        with pytest.raises(WhyrankError, match="--delta-from"):
            delta_of("p50", None)
