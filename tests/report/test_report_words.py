from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import axiom, broken_axiom, empty, finding

from whyrank.core import mean_interval, sign_flip_p
from whyrank.report import verdicts
from whyrank.report.views import lean, standing
from whyrank.report.words import (
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
    ("values", "shown", "write"),
    [
        ((0.314, -0.2, 0.004, -0.004, None, math.nan, 1.0), "+0.31 −0.20 0.00 0.00 – – +1.00", signed),
        ((None, 0.0, 0.0009, 0.001, 0.0496, 1.0), "– <0.001 <0.001 0.001 0.050 1.000", p_value),
        ((0.5, 0.9999, 1.0, 0.0001, 0.0, None, math.nan), "50.0% >99.9% 100.0% <0.1% 0.0% – –", share),
        ((0.5, 0.996, 0.004), "50% >99% <1%", lambda value: share(value, 0)),
        (((3, 2), (120, 10), (50000, 10), (1, 0)), "1.5 12 5,000 0.0", lambda pair: per(*pair)),
        ((axiom(), axiom(satisfied_low=None)), "[85.0, 94.0] –", share_interval),
    ],
)
def test_figures(values, shown, write):
    assert " ".join(map(write, values)) == shown


OBEYS = "obeys TFC1 in 90% of 100 pairs (chance 47%)."
VERDICTS = [
    (
        [
            finding(study="a", score=0.2, meaning=MORE + "a"),
            finding(study="b", score=0.9, p_adjusted=0.5, meaning="prefers nonsense"),
            finding(study="c", score=-0.31, meaning="prefers the text with typos, at equal length"),
        ],
        "disfavours the text with typos, at equal length (−0.31); prefers the text with more words, at equal a (+0.20).",
    ),
    ([finding(p_adjusted=0.2)], "shows no significant preference (α = 0.05)."),
    ([empty()], "could not be tested."),
    ([empty(conclusion="strict")], "could not be tested."),
    (
        [axiom(), broken_axiom(), broken_axiom(study="axiom/LNC2", conclusion="weak", satisfied=0.02, chance=0.5)],
        f"{OBEYS} It breaks LNC2 (obeyed in 2% of 100 pairs, chance 50%); TP (obeyed in 22% of 100 pairs, chance 47%).",
    ),
    ([axiom(), finding(score=0.3, meaning="prefers long texts")], f"prefers long texts (+0.30). It {OBEYS}"),
    ([axiom(), finding(p_adjusted=0.7)], f"shows no significant preference (α = 0.05). It {OBEYS}"),
    ([axiom(ci_low=-0.1)], "obeys no axiom more often than by chance, and none less often."),
    ([axiom(study="axiom/TFC2(length=5)")], "obeys TFC2(length=5) in 90% of 100 triples (chance 47%)."),
]


@pytest.mark.parametrize(("rows", "said"), VERDICTS)
def test_verdicts(rows, said):
    assert [str(verdict) for verdict in verdicts(rows)] == [f"bm25 {said}"]


def test_one_claim_for_each_thing_preferred_and_one_of_the_other_sign():
    rows = [finding(study=s, score=x, meaning=MORE + s) for s, x in (("a", 0.5), ("b", 0.7), ("c", 0.6))]
    assert [claim.finding.study for claim in verdicts(rows)[0].claims] == ["b"]
    scores = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6, "e": -0.2, "f": -0.1}
    rows = [finding(study=s, score=x, meaning=f"prefers {s}") for s, x in scores.items()]
    assert [claim.finding.study for claim in verdicts(rows)[0].claims] == ["a", "b", "e"]


class TestAxioms:
    def test_the_clearest_three_and_all_that_are_broken(self):
        """Of equally clear ones, that with more instances comes first."""
        obeyed = [axiom(study=f"axiom/A{i}", satisfied=0.9 + i / 100) for i in range(5)]
        broken = [broken_axiom(study=f"axiom/B{i}") for i in range(5)]
        [verdict] = verdicts([*obeyed, *broken, axiom(study="axiom/A0", group="g", satisfied=1.0)])
        assert [claim.finding.study for claim in verdict.obeyed] == ["axiom/A4", "axiom/A3", "axiom/A2"]
        assert len(verdict.broken) == 5
        rows = [axiom(study="axiom/A", n=10, nonfinite=0), axiom(study="axiom/B", satisfied=0.899)]
        assert [claim.finding.study for claim in verdicts(rows)[0].obeyed] == ["axiom/B", "axiom/A"]

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
    ("dropped", "said"),
    [
        ("not applicable 2,336; unchanged 12", "2,348 questions could not be asked: "),
        ("kind 3; other", "Questions that could not be asked: kind 3; other."),
        (
            "documents without a word vector 2; not drawn 7",
            "not drawn 7. Left out: documents without a word vector 2.",
        ),
    ],
)
def test_dropped_questions_are_counted(dropped, said):
    assert said in dropped_words(dropped)


def test_slugs_are_safe_and_unique():
    names = ["matched/length|tf", "matched/length tf", "MATCHED/length|tf", "../../etc", "con", "ß𝄞", "", "x" * 500]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all(set(s) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and len(s) < 80 for s in slugs)
    assert slugs[0].startswith("matched-length-tf-")
    assert slug("a", "b") != slug("a\x1f", "b")
    assert slug("a/b", "c") != slug("a", "b/c")
    assert slug("a\x1fb") != slug("a", "b")
