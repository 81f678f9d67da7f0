from __future__ import annotations

import math

import pytest
from report_samples import empty, finding

from whyrank.report.slugs import slug
from whyrank.report.words import dropped_words, in_words, p_value, signed, verdicts

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
