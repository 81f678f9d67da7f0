from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import axiom, broken_axiom, empty, finding

from whyrank.core import mean_interval, sign_flip_p
from whyrank.report import verdicts
from whyrank.report.sentences import in_words
from whyrank.report.views import lean, standing
from whyrank.report.words import (
    agreement_words,
    conclusion_words,
    dropped_words,
    p_value,
    per,
    share,
    share_interval,
    signed,
    slug,
)
from whyrank.studies.reading import obedience

MORE = "prefers the text with more words, at equal "


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.314, "+0.31"),
        (-0.2, "−0.20"),
        (0.004, "0.00"),
        (-0.004, "0.00"),
        (None, "–"),
        (math.nan, "–"),
        (1.0, "+1.00"),
    ],
)
def test_scores_have_a_sign_and_two_decimals(value, shown):
    assert signed(value) == shown


def test_p_values():
    assert [p_value(p) for p in (None, 0.0, 0.0009, 0.001, 0.0496, 1.0)] == [
        "–", "<0.001", "<0.001", "0.001", "0.050", "1.000",
    ]  # fmt: skip


def test_a_verdict_names_the_strongest_significant_findings():
    rows = [
        finding(study="a", score=0.2, meaning=MORE + "a"),
        finding(study="b", score=0.9, p_adjusted=0.5, meaning="prefers nonsense"),
        finding(study="c", score=-0.31, meaning="prefers the text with typos, at equal length"),
    ]
    assert [str(v) for v in verdicts(rows)] == [
        "bm25 disfavours the text with typos, at equal length (−0.31);"
        " prefers the text with more words, at equal a (+0.20)."
    ]


def test_one_claim_for_each_thing_preferred():
    rows = [finding(study=s, score=x, meaning=MORE + s) for s, x in (("a", 0.5), ("b", 0.7), ("c", 0.6))]
    assert [claim.finding.study for claim in verdicts(rows)[0].claims] == ["b"]


def test_the_other_sign_has_a_place():
    scores = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6, "e": -0.2, "f": -0.1}
    rows = [finding(study=s, score=x, meaning=f"prefers {s}") for s, x in scores.items()]
    assert [claim.finding.study for claim in verdicts(rows)[0].claims] == ["a", "b", "e"]


def test_groups_and_symmetric_studies_make_no_verdict():
    rows = [finding(study="a", score=0.1), finding(study="a", group="g", score=1.0), finding(study="s", score=1.0)]
    [verdict] = verdicts(rows, symmetric=["s"])
    assert [claim.finding.score for claim in verdict.claims] == [0.1]


def test_a_ranker_without_preferences_is_said_to_have_none():
    rows = [finding(p_adjusted=0.2), empty(ranker="ql")]
    assert [str(v) for v in verdicts(rows)] == [
        "bm25 shows no significant preference (α = 0.05).",
        "ql could not be tested.",
    ]


class TestAxioms:
    def test_what_a_ranker_obeys_and_breaks(self):
        rows = [
            axiom(),
            broken_axiom(),
            broken_axiom(study="axiom/LNC2", conclusion="weak", satisfied=0.02, chance=0.5),
        ]
        assert [str(v) for v in verdicts(rows)] == [
            "bm25 obeys TFC1 in 90% of 100 pairs (chance 47%)."
            " It breaks LNC2 (obeyed in 2% of 100 pairs, chance 50%); TP (obeyed in 22% of 100 pairs, chance 47%)."
        ]

    def test_preferences_come_first(self):
        rows = [axiom(), finding(score=0.3, meaning="prefers long texts")]
        assert str(verdicts(rows)[0]) == (
            "bm25 prefers long texts (+0.30). It obeys TFC1 in 90% of 100 pairs (chance 47%)."
        )
        rows = [axiom(), finding(p_adjusted=0.7)]
        assert str(verdicts(rows)[0]) == (
            "bm25 shows no significant preference (α = 0.05). It obeys TFC1 in 90% of 100 pairs (chance 47%)."
        )

    def test_neither_obeyed_nor_broken(self):
        told = "bm25 obeys no axiom more often than by chance, and none less often."
        assert str(verdicts([axiom(ci_low=-0.1)])[0]) == told
        assert str(verdicts([empty(conclusion="strict")])[0]) == "bm25 could not be tested."

    def test_the_clearest_three_and_all_that_are_broken(self):
        obeyed = [axiom(study=f"axiom/A{i}", satisfied=0.9 + i / 100) for i in range(5)]
        broken = [broken_axiom(study=f"axiom/B{i}") for i in range(5)]
        [verdict] = verdicts([*obeyed, *broken, axiom(study="axiom/A0", group="g", satisfied=1.0)])
        assert [claim.finding.study for claim in verdict.obeyed] == ["axiom/A4", "axiom/A3", "axiom/A2"]
        assert len(verdict.broken) == 5

    def test_of_equally_clear_ones_that_with_more_instances(self):
        rows = [axiom(study="axiom/A", n=10, nonfinite=0), axiom(study="axiom/B", satisfied=0.899)]
        assert [claim.finding.study for claim in verdicts(rows)[0].obeyed] == ["axiom/B", "axiom/A"]

    def test_three_texts(self):
        assert "in 90% of 100 triples" in str(verdicts([axiom(study="axiom/TFC2(length=5)")])[0])

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, 1),
            ({"ci_low": 0.0}, 0),
            ({"ci_high": -0.01, "ci_low": -0.1}, -1),
            ({"ci_high": 0.0, "ci_low": -0.1}, 0),
            ({"p_adjusted": 0.05}, 0),
            ({"p_adjusted": None}, 1),
            ({"ci_low": None}, 0),
            ({"chance": None}, 0),
        ],
    )
    def test_above_or_below_chance(self, changes, expected):
        assert standing(axiom(**changes), 0.05) == expected

    @pytest.mark.parametrize("sign", [1, -1])
    @pytest.mark.parametrize("conclusion", ["strict", "weak"])
    def test_ties_do_not_hide_where_a_ranker_stands(self, sign, conclusion):
        """Ten of forty queries are decided, all in one way: p = 2 / 2**10, whatever a tie means."""
        effects = np.repeat([sign, 0], [10, 30]).astype(np.int8)
        found = obedience(effects, conclusion)
        low, high = mean_interval(effects, np.arange(40), bounds=(-1, 1))
        figures = {"satisfied": found.share}
        figures |= {"chance": found.chance, "ci_low": low, "ci_high": high, "p_adjusted": sign_flip_p(effects)}
        assert standing(axiom(conclusion=conclusion, **figures), 0.05) == sign

    @given(st.floats(0, 1), st.floats(0, 1))
    def test_lean_runs_from_never_over_chance_to_always(self, satisfied, chance):
        value = lean(axiom(satisfied=satisfied, chance=chance))
        assert -1 <= value <= 1
        assert (value > 0) <= (satisfied > chance)
        assert (value < 0) <= (satisfied < chance)
        if 0 < chance < 1:
            assert lean(axiom(satisfied=1.0, chance=chance)) == 1
            assert lean(axiom(satisfied=0.0, chance=chance)) == -1

    @pytest.mark.parametrize(
        ("value", "decimals", "shown"),
        [
            (0.5, 0, "50%"),
            (0.9999, 1, ">99.9%"),
            (1.0, 1, "100.0%"),
            (0.0001, 1, "<0.1%"),
            (0.0, 1, "0.0%"),
            (0.996, 0, ">99%"),
            (0.004, 0, "<1%"),
            (None, 1, "–"),
            (math.nan, 1, "–"),
        ],
    )
    def test_shares(self, value, decimals, shown):
        assert share(value, decimals) == shown

    def test_intervals_of_shares(self):
        assert share_interval(axiom()) == "[85.0, 94.0]"
        assert share_interval(axiom(satisfied_low=None)) == "–"

    @pytest.mark.parametrize(
        ("have", "decided", "said"),
        [
            (0, 0, "No instance has a relevant document."),
            (3, 0, "3 instances have a relevant document; in none of them is one text more relevant than the other."),
            (1, 1, "1 instance has a relevant document; relevance decides it, and sides with the axiom in 84%."),
            (1416, 1200, "1,416 instances have a relevant document; relevance decides 1,200 of them, and sides with the axiom in 84%."),
        ],
    )  # fmt: skip
    def test_agreement_with_relevance(self, have, decided, said):
        assert agreement_words(axiom(with_relevant=have, decided=decided)) == said

    def test_three_texts_have_steps_and_no_winner(self):
        undecided = agreement_words(axiom(study="axiom/TFC2(length=5)", with_relevant=3, decided=0))
        assert undecided.endswith("in none of them do the steps between their grades differ.")
        assert "first step between the scores must be larger" in conclusion_words("strict", "axiom/TFC2(length=5)")
        assert "first step between the scores must not be smaller" in conclusion_words("weak", "axiom/TFC2")
        assert "the winner must score higher" in conclusion_words("strict", "axiom/TFC1")

    def test_instances_per_query(self):
        assert [per(3, 2), per(120, 10), per(50000, 10), per(1, 0)] == ["1.5", "12", "5,000", "0.0"]


def test_the_opposite_of_other_words_is_quoted():
    assert (
        in_words(finding(score=-1.0, meaning="keeps its promise")) == "does the opposite of this: keeps its promise"
    )
    assert in_words(finding(score=1.0, meaning="")) == "agrees with matched/length|tf"


@pytest.mark.parametrize(
    ("dropped", "said"),
    [
        ("", ""),
        ("unchanged 1", "1 question could not be asked: unchanged 1."),
        (
            "not applicable 2,336; unchanged 12",
            "2,348 questions could not be asked: not applicable 2,336; unchanged 12.",
        ),
        ("of some kind", "Questions that could not be asked: of some kind."),
        ("kind 3; other", "Questions that could not be asked: kind 3; other."),
        ("words without a vector 2,365", "Left out: words without a vector 2,365."),
        (
            "STMC1(vectors=a): documents without a word vector outside the query 2; not drawn 7; queries x 1",
            "7 questions could not be asked: not drawn 7. "
            "Left out: STMC1(vectors=a): documents without a word vector outside the query 2; queries x 1.",
        ),
    ],
)
def test_dropped_questions_are_counted(dropped, said):
    assert dropped_words(dropped) == said


def test_slugs_are_safe_and_unique():
    names = ["matched/length|tf", "matched/length tf", "MATCHED/length|tf", "../../etc", "con", "ß𝄞", "", "x" * 500]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all(set(s) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and len(s) < 80 for s in slugs)
    assert slugs[0].startswith("matched-length-tf-")
    assert slug("a", "b") != slug("a\x1f", "b")
    assert slug("a/b", "c") != slug("a", "b/c")
    assert slug("a\x1fb") != slug("a", "b")
