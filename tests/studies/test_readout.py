"""Effects, delta and findings, against plain-Python oracles."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data.grades import TREC_DL
from whyrank.scoring import Engine
from whyrank.studies import Calibration, Context, Contrasts, Pair, Reading, calibrate, reading_of
from whyrank.studies.delta import delta_of
from whyrank.studies.findings import differences, effects

SCORES = st.lists(
    st.tuples(st.sampled_from("abc"), *[st.floats(-4, 4) | st.just(math.nan) | st.just(math.inf)] * 2), max_size=30
)


@dataclass(frozen=True)
class Any_:
    id: str = "toy/any"
    positive: str = "prefers the first"
    symmetric: bool = False

    def contrasts(self, collection):
        raise NotImplementedError


def contrasts_of(rows):
    return Contrasts.from_pairs([Pair(q, (f"{i}a", f"{i}b"), {"query_id": q}) for i, (q, *_) in enumerate(rows)])


def read(contrasts, reading, study=None, delta=0.0, **context):
    study = study or Any_()
    return reading_of(study).read(study, contrasts, reading, Context("r", "c", delta, **context)).findings


def finding_of(rows, delta=0.5, symmetric=False, chance=math.nan):
    made = contrasts_of(rows)
    scores = np.array([row[1:] for row in rows], dtype=float).reshape(-1, 2)
    reading = Reading.of(made, scores, delta, symmetric)
    return read(made, reading, Any_(symmetric=symmetric), delta=delta, chance=chance, draws=500)[0]


@given(SCORES, st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
@settings(max_examples=100, deadline=None)
def test_counts_equal_a_plain_loop(rows, delta, symmetric):
    found = finding_of(rows, delta, symmetric)
    diffs = [abs(a - b) if symmetric else a - b for _, a, b in rows if math.isfinite(a) and math.isfinite(b)]
    assert found.n == len(rows)
    assert found.nonfinite == len(rows) - len(diffs)
    assert found.positive == sum(d > delta for d in diffs)
    assert found.negative == sum(d < -delta for d in diffs)
    assert found.neutral == sum(-delta <= d <= delta for d in diffs)
    assert found.positive + found.neutral + found.negative + found.nonfinite == found.n
    expected = (found.positive - found.negative) / len(diffs) if diffs else None
    assert found.score == (pytest.approx(expected) if diffs else None)
    assert found.mean_diff == (pytest.approx(sum(diffs) / len(diffs)) if diffs else None)


@given(SCORES)
@settings(max_examples=60, deadline=None)
def test_antisymmetry(rows):
    """Turning every contrast round turns the finding round."""
    one, two = finding_of(rows), finding_of([(q, b, a) for q, a, b in rows])
    turned = (two.negative, two.neutral, two.positive)
    assert (one.positive, one.neutral, one.negative) == turned
    assert (one.p_value, one.p_wilcoxon, one.p_sign) == (two.p_value, two.p_wilcoxon, two.p_sign)
    assert one.p_t == (None if two.p_t is None else pytest.approx(two.p_t))
    assert one.score == (None if two.score is None else -two.score)
    if one.ci_low is not None:
        assert (one.ci_low, one.ci_high) == (-two.ci_high, -two.ci_low)


@given(SCORES, st.randoms())
@settings(max_examples=60, deadline=None)
def test_order_does_not_matter(rows, random):
    mixed = list(enumerate(rows))
    random.shuffle(mixed)
    made = Contrasts.from_pairs([Pair(q, (f"{i}a", f"{i}b"), {"query_id": q}) for i, (q, *_) in mixed])
    scores = np.array([row[1:] for _, row in mixed], dtype=float).reshape(-1, 2)
    found = read(made, Reading.of(made, scores, 0.5, False), delta=0.5, draws=500)[0]
    assert found == finding_of(rows)


def test_band_is_closed():
    assert effects(np.array([0.5, 0.5000001, -0.5, -0.5000001, 0.0]), 0.5).tolist() == [0, 1, 0, -1, 0]


def test_three_texts_compare_steps():
    assert differences(np.array([[1.0, 3.0, 4.0], [1.0, 2.0, 4.0]])).tolist() == [1.0, -1.0]


def test_infinite_scores_on_both_sides_are_counted():
    assert finding_of([("a", math.inf, math.inf), ("a", 1.0, 0.0)]).nonfinite == 1


def test_symmetric_study_is_tested_against_chance():
    """All differences above delta where half are expected is a finding; half is none; absolute differences alone are not."""
    loud = [(f"q{i}", 2.0, 0.0) for i in range(20)]
    half = [(f"q{i}", 2.0 * (i % 2), 0.0) for i in range(20)]
    assert finding_of(loud, symmetric=True, chance=0.5).p_value < 0.01
    assert finding_of(half, symmetric=True, chance=0.5).p_value > 0.5
    assert finding_of(half, symmetric=True).p_value is None
    assert finding_of(loud, symmetric=True).p_t is None


def test_groups_split_by_label():
    pairs = [Pair("q", (f"{i}a", f"{i}b"), {"kind": "xy"[i % 2], "grades": (i % 2, 0)}) for i in range(5)]
    made = Contrasts.from_pairs(pairs)
    reading = Reading.of(made, np.array([[1.0, 0.0]] * 5), 0.0, False)
    for by, names in (("kind", ["x", "y"]), ("grades", ["0/0", "1/0"])):
        found = read(made, reading, by=by)
        assert [f.group for f in found] == [None, *names]
        assert [f.n for f in found] == [5, 3, 2]


def test_what_nobody_judged_is_one_group():
    """NaN is not equal to itself, yet all contrasts with a missing grade on the same side are one group."""
    grades = [(0.0, math.nan), (0.0, math.nan), (math.nan, math.nan), (2.0, 0.0), (math.nan, math.nan), (2.0, 0.0)]
    made = Contrasts.from_pairs([Pair("q", (f"{i}a", f"{i}b"), {"relevance": g}) for i, g in enumerate(grades)])
    reading = Reading.of(made, np.array([[1.0, 0.0]] * 6), 0.0, False)
    found = read(made, reading, by="relevance")
    assert {f.group: f.n for f in found} == {None: 6, "0/unjudged": 2, "2/0": 2, "unjudged/unjudged": 2}
    assert len(found) == 4
    named = read(made, reading, by="relevance", grades=TREC_DL)
    assert [f.group for f in named[1:]] == [
        "0 (irrelevant)/unjudged",
        "2 (highly relevant)/0 (irrelevant)",
        "unjudged/unjudged",
    ]
    nothing = made.take(np.zeros(6, bool))
    assert len(read(nothing, Reading.of(nothing, np.zeros((0, 2)), 0.0, False), by="relevance")) == 1


class TestDelta:
    def test_median_of_neighbours_in_the_top(self):
        @dataclass(frozen=True)
        class Given:
            name: str = "given"

            def score(self, queries, docs):
                return np.array([float(d) for d in docs])

        values = {"q": [9, 7, 6, 6, 1, 0, -5, -6, -8, -9, -100], "r": [3, 1]}
        candidates = {q: {str(i): str(v) for i, v in enumerate(vs)} for q, vs in values.items()}
        found = calibrate(Engine(), Given(), candidates)
        expected = sorted([2, 1, 0, 5, 1, 5, 1, 2, 1, 2])
        assert found.diffs.tolist() == expected
        assert found.quantile(0.5) == np.median(expected)
        assert found.exceeding(1.0) == 0.5

    def test_curve_rises(self):
        curve = [d for _, d in Calibration(np.sort(np.random.default_rng(0).random(50)), "x").curve()]
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
