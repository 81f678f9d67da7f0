"""Conclusions and agreement with relevance, against plain-Python oracles."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError, mean_interval
from whyrank.data import Grades
from whyrank.data.grades import ANTIQUE, TREC_DL
from whyrank.studies import Context, Contrasts, Finding, Pair, Reading, reading_of
from whyrank.studies.reading import agreement, obedience, obeys

NONE = (None, None, None)
SCORE = st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, math.nan, math.inf])
GRADE = st.sampled_from([math.nan, -2, 0, 1, 2, 3, 4])


@dataclass(frozen=True)
class Toy:
    concludes: str = "strict"
    id: str = "axiom/TOY"
    positive: str = "prefers the first"
    symmetric: bool = False

    def contrasts(self, collection):
        raise NotImplementedError


def rows_of(texts):
    """A query, then a score and a grade for each text."""
    return st.lists(st.tuples(st.sampled_from("abc"), *[SCORE] * texts, *[GRADE] * texts), max_size=25)


def found_for(rows, texts=2, study=None, delta=0.0, by=None, **setting):
    pairs = [
        Pair(row[0], tuple(f"{i}.{k}" for k in range(texts)), {"query_id": row[0], "relevance": row[1 + texts :], "half": "xy"[i % 2]})
        for i, row in enumerate(rows)
    ]  # fmt: skip
    contrasts = Contrasts.from_pairs(pairs, size=texts)
    scores = np.array([row[1 : 1 + texts] for row in rows], dtype=float).reshape(-1, texts)
    used, study = Context("r", "c", delta, draws=50, by=by, **{"grades": TREC_DL} | setting), study or Toy()
    return reading_of(study).read(study, contrasts, Reading.of(contrasts, scores, delta, False), used).findings


def difference(values):
    first, second, *third = values
    return (second - first) - (third[0] - second) if third else first - second


def expected_share(rows, texts, conclusion, delta):
    """Share that obeys, chance, and the interval from one sum and one count per query."""
    by_query: dict[str, list[bool]] = {}
    ties = 0
    for query, *values in rows:
        if not all(math.isfinite(value) for value in values[:texts]):
            continue
        diff = difference(values[:texts])
        by_query.setdefault(query, []).append(diff > delta if conclusion == "strict" else diff >= -delta)
        ties += abs(diff) <= delta
    n = sum(map(len, by_query.values()))
    if not n:
        return None, None, None, None
    codes = np.repeat(np.arange(len(by_query)), [len(v) for v in by_query.values()])
    low, high = mean_interval([value for v in by_query.values() for value in v], codes, bounds=(0, 1))
    tied = ties / n
    chance = (1 - tied) / 2 if conclusion == "strict" else tied + (1 - tied) / 2
    undefined = len(by_query) < 2
    share = sum(map(sum, by_query.values())) / n
    return share, None if undefined else low, None if undefined else high, chance


def expected_agreement(rows, texts, grades):
    with_relevant = decided = agreed = 0
    for row in rows:
        given_grades = [grades.nonrelevant if math.isnan(grade) else grade for grade in row[1 + texts :]]
        if not any(grade >= grades.relevant for grade in given_grades):
            continue
        with_relevant += 1
        diff = difference(given_grades)
        decided += diff != 0
        agreed += diff > 0
    return with_relevant, decided, agreed / decided if decided else None


@pytest.mark.parametrize("texts", [2, 3])
@given(data=st.data(), conclusion=st.sampled_from(["strict", "weak"]), delta=st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=50, deadline=None)
def test_the_share_equals_a_plain_loop(texts, data, conclusion, delta):
    rows = data.draw(rows_of(texts))
    [found] = found_for(rows, texts, Toy(conclusion), delta)
    shown = (found.satisfied, found.satisfied_low, found.satisfied_high, found.chance)
    for value, expected in zip(shown, expected_share(rows, texts, conclusion, delta), strict=True):
        assert value == (None if expected is None else pytest.approx(expected, abs=1e-12))
    assert found.conclusion == conclusion


@pytest.mark.parametrize("texts", [2, 3])
@given(data=st.data(), grades=st.sampled_from([TREC_DL, ANTIQUE, Grades()]))
@settings(max_examples=50, deadline=None)
def test_agreement_equals_a_plain_loop(texts, data, grades):
    rows = data.draw(rows_of(texts))
    [found] = found_for(rows, texts, grades=grades)
    expected = expected_agreement(rows, texts, grades) if rows else NONE  # without rows there are no labels
    assert (found.with_relevant, found.decided, found.agreement) == expected


@given(rows=rows_of(2), conclusion=st.sampled_from(["strict", "weak"]))
@settings(max_examples=40, deadline=None)
def test_groups_are_read_out_as_if_they_were_alone(rows, conclusion):
    whole, *parts = found_for(rows, study=Toy(conclusion), by="half") if rows else found_for(rows)
    for part in parts:
        [alone] = found_for(rows["xy".index(part.group) :: 2], study=Toy(conclusion))
        names = ("satisfied", "satisfied_low", "satisfied_high", "chance", "with_relevant", "decided", "agreement")
        assert [getattr(part, name) for name in names] == [getattr(alone, name) for name in names]
    if parts:
        assert sum(part.with_relevant for part in parts) == whole.with_relevant
        assert sum(part.decided for part in parts) == whole.decided


class TestConclusions:
    def test_a_tie_satisfies_the_weak_one_only(self):
        effects = np.array([1, 0, -1], np.int8)
        assert obeys(effects, "strict").tolist() == [True, False, False]
        assert obeys(effects, "weak").tolist() == [True, True, False]

    def test_an_unknown_one_is_an_error(self):
        with pytest.raises(WhyrankError, match="'strict'"):
            found_for([("a", 1.0, 0.0, 1, 0)], study=Toy("strickt"))

    @pytest.mark.parametrize(("conclusion", "chance"), [("strict", 0.3), ("weak", 0.7)])
    def test_chance(self, conclusion, chance):
        """Of ten, four are tied: a coin wins three of the other six."""
        effects = np.array([0] * 4 + [1] * 5 + [-1], np.int8)
        assert obedience(effects, conclusion).chance == pytest.approx(chance)

    def test_the_interval_is_clustered_by_query(self):
        """A hundred instances of one query are one query: the other four may be nearer to the truth."""
        rows = [("one", 1.0, 0.0, 1, 0)] * 100 + [(f"q{i}", 0.0, 1.0, 1, 0) for i in range(4)]
        [clustered] = found_for(rows)
        [independent] = found_for([(f"q{i}", *row[1:]) for i, row in enumerate(rows)])
        assert clustered.satisfied == independent.satisfied
        assert clustered.satisfied_low < 0.2
        assert independent.satisfied_low > 0.85


class TestAgreement:
    def test_unjudged_counts_as_non_relevant(self):
        relevance = np.array([[2.0, np.nan], [np.nan, 3.0], [1.0, np.nan], [np.nan, np.nan]])
        assert agreement(relevance, TREC_DL) == (2, 2, 0.5)

    def test_two_relevant_ones_are_decided_by_their_grades(self):
        assert agreement(np.array([[3, 2], [2, 3], [2, 2]]), TREC_DL) == (3, 2, 0.5)

    def test_three_texts_are_decided_by_their_steps(self):
        """(r2 - r1) against (r3 - r2): 2 > 0 agrees, 0 < 2 does not, 1 = 1 says nothing."""
        assert agreement(np.array([[0, 2, 2], [0, 0, 2], [1, 2, 3], [0, 1, 0]]), TREC_DL) == (3, 2, 0.5)

    def test_nothing_to_decide(self):
        found = agreement(np.array([[2, 2]]), TREC_DL)
        assert found[:2] == (1, 0)
        assert math.isnan(found.share)
        assert agreement(np.empty((0, 2)), TREC_DL)[:2] == (0, 0)


class TestReadout:
    ROWS = [("a", 1.0, 0.0, 2, 0), ("b", 0.0, 1.0, 3, math.nan)]

    def test_without_judgements_there_is_no_agreement(self):
        [found] = found_for(self.ROWS, grades=None)
        assert (found.with_relevant, found.decided, found.agreement) == NONE
        assert found.satisfied == 0.5

    def test_a_study_that_does_not_say_which_texts_are_relevant(self):
        """The label of an edited probe is one word per contrast."""
        for labels in ({}, {"relevance": "2"}):
            contrasts = Contrasts.from_pairs([Pair("q", ("x", "y"), labels)])
            reading = Reading.of(contrasts, np.array([[1.0, 0.0]]), 0.0, False)
            context = Context("r", "c", 0.0, grades=TREC_DL)
            [found] = reading_of(Toy()).read(Toy(), contrasts, reading, context).findings
            assert (found.with_relevant, found.decided, found.agreement) == NONE

    def test_a_study_without_a_conclusion_has_none_of_it(self):
        [found] = found_for(self.ROWS, study=Toy(""), scale="cosine")
        own = ("satisfied", "satisfied_low", "satisfied_high", "chance", "with_relevant", "decided", "agreement")
        assert (found.conclusion, [getattr(found, name) for name in own]) == ("", [None] * 7)
        assert found.scale == "cosine"

    def test_no_contrasts(self):
        [found] = found_for([])
        assert (found.satisfied, found.chance, found.agreement) == NONE
        assert (found.conclusion, found.n, found.with_relevant) == ("strict", 0, None)


def written(findings, tmp_path):
    """The findings from each form that they are kept in."""
    import pyarrow.parquet as pq

    from whyrank.report import from_csv, to_csv, to_json
    from whyrank.report.arrow import findings_of, findings_table

    pq.write_table(findings_table(findings), tmp_path / "f.parquet")
    yield findings_of(pq.read_table(tmp_path / "f.parquet"))
    yield from_csv(to_csv(findings))
    yield [Finding.from_dict(row) for row in json.loads(to_json(findings))]


def test_findings_survive_all_forms(tmp_path):
    found = found_for(TestReadout.ROWS, by="half", scale="log probability")
    plain = found_for(TestReadout.ROWS, study=Toy(""), grades=None)
    empty = found_for([], study=Toy("weak"))
    findings = [replace(f, p_adjusted=0.5) for f in [*found, *plain, *empty]]
    for again in written(findings, tmp_path):
        assert again == findings
        assert [type(f.with_relevant) for f in again] == [type(f.with_relevant) for f in findings]
