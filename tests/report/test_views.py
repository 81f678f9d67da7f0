"""Sweeps and the overlap split as people read them: figures by study, ranker and group, and what is said of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_samples import curve, overlap_rows

from whyrank.report import MARKS, interval_of, mean_of, overlap_panels, shares_of, sweeps_of
from whyrank.report.views import by_measure


def test_scores_by_study_ranker_and_percentile():
    found = sweeps_of([*curve("x/a", "bm25", 0.5, 0.1), *curve("x/b", "bm25", None), *curve("x/a", "ql", -1)])
    assert list(found) == ["x/a", "x/b"]
    assert list(found["x/a"].scores) == ["bm25", "ql"]
    assert found["x/a"].at_marks("bm25") == [0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1]
    assert found["x/b"].at_marks("bm25") == [None] * len(MARKS)
    assert (found["x/b"].curves, len(found["x/a"].curves["ql"])) == ({}, 100)
    assert sweeps_of([]) == {}


@pytest.mark.parametrize(
    ("rankers", "told", "sentence"),
    [
        ({"a": (0.5, 0.5)}, "–", ""),
        ({"a": (0.5, 0.5), "b": (None,)}, "–", ""),
        ({"a": (0.5, 0.5), "b": (0.1,)}, "0", "The order of rankers is stable from percentile 0 on."),
        ({"a": (0.5, 0.1), "b": (0.1, 0.5)}, "50", "The order of rankers is stable from percentile 50 on."),
        (
            {"a": (0.5, 0.1) * 50, "b": (0.1, 0.5) * 50},
            "never",
            "The order of rankers is never stable: it changes up to percentile 95.",
        ),
    ],
)
def test_where_the_order_settles(rankers, told, sentence):
    [found] = sweeps_of([p for name, levels in rankers.items() for p in curve("x/a", name, *levels)]).values()
    assert (found.stable_words, found.sentence) == (told, sentence)


def test_a_panel_per_measure_and_kind_of_queries():
    found = overlap_panels(overlap_rows(measures=("nDCG@10", "RR@10")))
    kinds = [("nDCG@10", "all"), ("nDCG@10", "retrieved"), ("RR@10", "all"), ("RR@10", "retrieved")]
    assert [(p.measure, p.queries) for p in found] == kinds
    assert [list(p.runs) for p in found] == [["bm25", "ql"]] * 4
    assert [p.n for p in found] == [10, 3, 10, 3]
    assert list(by_measure(overlap_rows())) == ["nDCG@10"]


def test_figures_of_the_overlap_split():
    first, *_, last = overlap_rows()
    assert (shares_of(first), mean_of(first), interval_of(first)) == ("0–33%", "0.200", "[0.100, 0.400]")
    assert (mean_of(last), interval_of(last)) == ("–", "–")
    assert shares_of(replace(first, share_low=0.5, share_high=0.5)) == "50%"
