from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from report_samples import axiom, broken_axiom, empty, finding

from whyrank.core import mean_interval, sign_flip_p
from whyrank.report import headlines
from whyrank.report.views import standing
from whyrank.report.words import (
    dropped_words,
    p_value,
    share,
    share_interval,
    short_names,
    signed,
    slug,
)
from whyrank.studies.reading import obedience


@pytest.mark.parametrize(
    ("values", "shown", "write"),
    [
        ((0.314, -0.2, 0.004, -0.004, None, math.nan, 1.0), "+0.31 −0.20 0.00 0.00 – – +1.00", signed),
        ((None, 0.0, 0.0009, 0.001, 0.0496, 1.0), "– <0.001 <0.001 0.001 0.050 1.000", p_value),
        ((0.5, 0.9999, 1.0, 0.0001, 0.0, None, math.nan), "50.0% >99.9% 100.0% <0.1% 0.0% – –", share),
        ((0.5, 0.996, 0.004), "50% >99% <1%", lambda value: share(value, 0)),
        ((axiom(), axiom(satisfied_low=None)), "[85.0, 94.0] –", share_interval),
    ],
)
def test_figures(values, shown, write):
    assert " ".join(map(write, values)) == shown


def said(*rows, symmetric=()):
    return [str(headline) for headline in headlines(rows, 0.05, symmetric, {"bm25": "BM25", "ql": "QL"})]


SHUFFLED = finding(
    study="edited/shuffle-words", positive=8, neutral=20, negative=72, score=-0.64, ci_low=-0.7, ci_high=-0.58
)
BLIND = finding(
    study="edited/shuffle-words", ranker="ql", positive=0, neutral=100, negative=0, score=0.0, ci_low=-0.1, ci_high=0.1,
    p_adjusted=1.0,
)  # fmt: skip
HEADLINES = [
    (
        [SHUFFLED, BLIND],
        "Word order. With shuffled words, BM25 prefers the original in 72% of 100 pairs from 20 queries; QL never notices.",
    ),
    (
        [finding(), finding(ranker="ql", positive=20, negative=70, score=-0.5, ci_low=-0.6, ci_high=-0.4)],
        "Length. Of two texts with the same query words, QL prefers the shorter one in 70% of 100 pairs from 20 queries; "
        "BM25 prefers the longer one in 60%.",
    ),
    (
        [finding(nonfinite=20), finding(ranker="ql", p_adjusted=0.2)],
        "Length. Of two texts with the same query words, BM25 prefers the longer one in 75% of 80 pairs from 20 queries; "
        "QL has no clear preference.",
    ),
    (
        [broken_axiom(), broken_axiom(ranker="ql", neutral=100, positive=0, negative=0, score=0.0, ci_low=0.0, ci_high=0.0)],
        "Word positions. Of two texts, BM25 scores the one in which two query words stand closest lower in 4% of 100 pairs "
        "from 20 queries; QL sees no difference.",
    ),
    (
        [finding(study="mine/colour", meaning="prefers the text with more colours")],
        "Other questions. bm25 prefers the text with more colours in 60% of 100 pairs from 20 queries.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), HEADLINES)
def test_headlines_have_the_direction_and_the_number(rows, expected):
    assert said(*rows)[0].replace("BM25", "bm25") == expected.replace("BM25", "bm25")


def test_of_a_symmetric_study_the_ranker_that_differs_most_often_comes_first():
    low = {
        "study": "transferred/paraphrase",
        "positive": 2,
        "neutral": 98,
        "negative": 0,
        "score": 0.02,
        "ci_low": 0.0,
    }
    high = {
        "study": "transferred/paraphrase",
        "positive": 58,
        "neutral": 42,
        "negative": 0,
        "score": 0.58,
        "p_adjusted": 0.4,
    }
    rows = [finding(**low, ci_high=0.08), finding(ranker="ql", **high, ci_low=0.48, ci_high=0.68)]
    assert said(*rows, symmetric={"transferred/paraphrase"}) == [
        "Meaning. QL scores two wordings of one thing differently in 58% of 100 pairs from 20 queries; BM25 in 2%."
    ]


def test_headlines_are_silent_where_nothing_is_significant():
    few = finding(n_queries=7)
    assert said(finding(p_adjusted=0.2), empty(), axiom(ci_low=-0.1), few) == []


def test_what_nobody_doubts_is_said_only_where_there_is_nothing_else():
    ceiling = finding(
        study="edited/prepend-query", positive=100, neutral=0, negative=0, score=1.0, ci_low=0.8, ci_high=1.0
    )
    assert said(ceiling)[0].startswith(
        "Query words. With the query put in front, BM25 prefers the changed text in 100%"
    )
    assert [text.partition(".")[0] for text in said(ceiling, finding())] == ["Length"]


def test_one_sentence_per_theme_the_largest_difference_first():
    weak = [
        replace(f, study="edited/typos", score=f.score / 4, ci_low=f.ci_low / 4, ci_high=f.ci_high / 4)
        for f in (SHUFFLED, BLIND)
    ]
    same = [
        replace(f, study="edited/reverse-words", score=f.score / 2, ci_low=f.ci_low / 2, ci_high=f.ci_high / 2)
        for f in (SHUFFLED, BLIND)
    ]
    assert [text.partition(",")[0] for text in said(*weak, *same, SHUFFLED, BLIND)] == [
        "Word order. With shuffled words", "Noise and typos. With spelling mistakes",
    ]  # fmt: skip


def test_a_tested_difference_decides_before_intervals_do():
    rows = [SHUFFLED, BLIND]
    object.__setattr__(rows[0], "difference_p", 0.6)
    object.__setattr__(rows[0], "baseline", "ql")
    try:
        [first] = headlines(rows)
    finally:
        vars(rows[0]).pop("difference_p"), vars(rows[0]).pop("baseline")
    assert first.interest < headlines(rows)[0].interest


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["bm25", "cross:bundled(precision=fast)"], ["BM25", "the neural model"]),
        (["bm25t:bundled", "bm25t:mine.parquet"], ["thesaurus BM25", "mine.parquet"]),
        (["cross:/models/minilm/", "bi:ORG/NAME(precision=fast)"], ["minilm", "NAME"]),
        (["bm25", "run:bm25"], ["bm25", "run:bm25"]),
        (["bm25", "bm25(b=0.9)", "prod"], ["BM25", "BM25(b=0.9)", "prod"]),
        (["python:mine.py:share", "http:http://h:80/v1/score?key=1", "("], ["share", "score", "("]),
    ],
)
def test_rankers_have_short_names(given, shown):
    assert list(short_names(given).values()) == shown


class TestAxioms:
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


@pytest.mark.parametrize(
    ("dropped", "words"),
    [
        ("not applicable 2,336; unchanged 12", "2,348 questions could not be asked: "),
        ("kind 3; other", "Questions that could not be asked: kind 3; other."),
        (
            "documents without a word vector 2; not drawn 7",
            "Left out: documents without a word vector 2; not drawn 7.",
        ),
    ],
)
def test_dropped_questions_are_counted(dropped, words):
    assert words in dropped_words(dropped)


def test_slugs_are_safe_and_unique():
    names = ["matched/length|tf", "matched/length tf", "MATCHED/length|tf", "../../etc", "con", "ß𝄞", "", "x" * 500]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all(set(s) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and len(s) < 80 for s in slugs)
    assert slugs[0].startswith("matched-length-tf-")
    assert slug("a", "b") != slug("a\x1f", "b")
    assert slug("a/b", "c") != slug("a", "b/c")
    assert slug("a\x1fb") != slug("a", "b")


def test_with_a_baseline_the_paired_difference_decides():
    """Intervals that lie apart say less than the test on the same pairs, and those that overlap do not contradict it."""
    far = {"score": -0.9, "ci_low": -0.95, "ci_high": -0.8}
    rows = [
        finding(study="matched/length|tf"),
        finding(study="matched/length|tf", ranker="ql", score=0.7, ci_low=0.35, ci_high=0.9, baseline="bm25",
                difference=0.4, difference_low=0.3, difference_high=0.5, difference_adjusted=0.001),
        finding(study="edited/typos"),
        finding(study="edited/typos", ranker="ql", **far, baseline="bm25",
                difference=-1.2, difference_low=-2.0, difference_high=0.1, difference_adjusted=0.3),
    ]  # fmt: skip
    unpaired = [replace(row, baseline="") for row in rows]
    assert headlines(unpaired)[0].finding.study == "edited/typos"
    assert headlines(rows)[0].finding.study == "matched/length|tf"


def test_with_a_baseline_the_sentence_is_about_what_differs_most_from_it():
    """QL repeats what BM25 does, only more so; the neural model does the opposite, and that is what is told."""
    paired = {"baseline": "bm25", "difference_adjusted": 0.001}
    rows = [
        finding(study="edited/repeat-document", score=0.4, ci_low=0.3, ci_high=0.5),
        finding(study="edited/repeat-document", ranker="ql", positive=90, neutral=5, negative=5, score=0.85, ci_low=0.8,
                ci_high=0.9, **paired, difference=0.45, difference_low=0.4, difference_high=0.5),
        finding(study="edited/repeat-document", ranker="nn", positive=10, neutral=20, negative=70, score=-0.6, ci_low=-0.7,
                ci_high=-0.5, **paired, difference=-1.0, difference_low=-1.1, difference_high=-0.9),
    ]  # fmt: skip
    [first] = headlines(rows)
    assert {first.finding.ranker} < {"bm25", "nn"}
    assert "nn prefers the original in 70%" in first.text
    assert "bm25" in first.text


def test_three_findings_are_told_where_three_are_significant():
    same = {"score": 0.9, "ci_low": 0.8, "ci_high": 0.95}
    studies = ("matched/length|tf", "axiom/TFC1", "axiom/TP", "matched/relevance|length")
    alike = [finding(study=study, ranker=ranker, **same) for study in studies for ranker in ("bm25", "ql")]
    assert len(headlines(alike)) == 3
