"""Bias studies in the report: figures, drawing, verdict; and results that survive being written and read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import NASTY, finding, report_of
from test_report_html import Page, spaced

from whyrank.core import BadInput
from whyrank.report import Audit, headlines, read_bias_results, to_latex, to_markdown, views
from whyrank.report.folder import record_of
from whyrank.studies import Finding
from whyrank.studies.bias import BiasResult, Correlation, PairRow, ValueRow

STUDY = "bias/tea"


def value(name: str, effect: float, p: float | None = 0.5) -> ValueRow:
    return ValueRow(name, 1 + effect, effect, 2 + effect, effect, effect - 0.1, effect + 0.1, p, p, effect / 0.2, 1.0,
                    None, 3)  # fmt: skip


def result(effects: dict[str, float], ranker: str = "bm25", study: str = STUDY, **changes) -> BiasResult:
    """A result made by hand: values below -0.25 or above 0.25 are significant, as are pairs with one of them."""
    rows = [value(name, effect, 0.01 if abs(effect) > 0.25 else 0.5) for name, effect in effects.items()]
    names = list(effects)
    pairs = [
        PairRow(a, b, effects[a] - effects[b], effects[a] - effects[b] - 0.1, effects[a] - effects[b] + 0.1,
                0.001, 0.01 if abs(effects[a] - effects[b]) > 0.5 else 0.6, (effects[a] - effects[b]) / 0.2)
        for i, a in enumerate(names) for b in names[i + 1 :]
    ]  # fmt: skip
    correlations = [
        Correlation("mean score", "count", "", 3, 0.746, 0.5, 0.9, 0.012, None, 0.8),
        Correlation("mean score", "log count", "", 3),
    ]
    made = BiasResult(
        study=study, call=study, ranker=ranker, collection="toy", n_templates=9, n_clusters=7, nonfinite=2,
        dropped={"by one-value": 4, "not drawn": 1500}, delta=0.2, sd=0.5, seed=0, correction="holm", changes=False,
        values=rows, pairs=pairs, correlations=correlations, notes=["7 independent templates: few"], p_value=0.0004,
        p_adjusted=0.0008, friedman=9.0, p_friedman=0.01, kendall_w=0.6,
    )  # fmt: skip
    return replace(made, **changes)


TEAS = result({"mint": 0.1, "rose": 0.3, "sage": -0.4})
EQUAL = result({"mint": 0.0, "rose": 0.0, "sage": 0.0}, "ql", p_value=1.0, p_adjusted=1.0)
FLAT = replace(EQUAL, values=[replace(row, low=0.0, high=0.0) for row in EQUAL.values])
NONE = replace(TEAS, values=[], pairs=[], correlations=[], n_templates=0, p_value=None, p_adjusted=None)


def row(r: BiasResult, **changes) -> Finding:
    """The finding of a result."""
    figures = {"range": r.range, "range_deltas": r.range_deltas, "p_omnibus": r.p_value, "p_adjusted": r.p_adjusted}
    named = {"favoured": r.favoured, "disfavoured": r.disfavoured}
    return finding(study=r.study, ranker=r.ranker, **figures | named | changes)


def page_of(*results: BiasResult, more=()) -> Page:
    rows = [row(r, meaning="differs") for r in results]
    studies = [{"name": r.study, "symmetric": True} for r in results]
    return Page(report_of([*rows, *more], {"studies": studies}, details=list(results)))


class TestFigures:
    @pytest.mark.parametrize(
        ("effects", "named"),
        [
            ({"a": 0.1, "b": 0.3, "c": -0.4}, ("b", "c")),
            ({"a": 0.3, "b": 0.3 - 1e-12, "c": -0.2, "d": -0.4}, ("a, b", "d")),
            ({"a": 0.4, "b": -0.2, "c": -0.2}, ("a", "all others")),
            ({"a": 0.1, "b": -0.1}, ("a", "b")),
            (dict.fromkeys("abcde", 0.2) | {"y": -0.4, "z": -0.6}, ("a, b, c and 2 more", "z")),
        ],
    )
    def test_which_values_are_named(self, effects, named):
        made = result(effects)
        assert (made.favoured, made.disfavoured) == named
        letters = replace(result({"q": 0.3, "r": 0.3, "s": 0.0, "t": -0.6}), changes=True)
        assert (letters.favoured, letters.disfavoured) == ("endings q, r", "ending t")

    @given(st.lists(st.floats(-9, 9), min_size=2, max_size=12))
    def test_largest_differences_read_upwards(self, effects):
        made = result({f"v{i}": effect for i, effect in enumerate(effects)})
        shown, gaps = views.largest_differences(made, 5), np.subtract.outer(effects, effects)
        largest = np.sort(np.abs(gaps[np.triu_indices(len(effects), 1)]))[::-1][:5]
        assert [row.difference for row in shown] == pytest.approx(largest.tolist())
        for row in shown:
            first, second = (effects[int(name[1:])] for name in (row.first, row.second))
            assert row.difference == first - second >= 0
            assert row.low <= row.difference <= row.high
            assert row.deltas == pytest.approx(row.difference / 0.2)


class TestReport:
    def test_a_section_with_plot_tests_differences_correlation_and_filters(self):
        page = page_of(TEAS, more=[finding()])
        text = spaced(page)
        assert "Brands and names" in [data for tag, data in page.texts if tag == "h3"]
        assert page.all("span", **{"class": "favours"})
        for words in (
            "BM25 0.7 † 3.5 rose sage 0.6 <0.001 <0.001 2 of 3 1 of 3 9 7", "rose 1.3 [0.3, 2.3] 0.3 † [0.2, 0.4] 1.5 1 0.010 0.010 – 3",
            "rose sage 0.7 † [0.6, 0.8] 3.5 0.001 0.010", "mean score count – 3 +0.75 [0.5, 0.9] 0.012 – +0.80",
            "9 templates kept; left out by one-value 4; not drawn 1,500; 2 without a finite score for some value.",
            "7 independent templates: few.", "100 pairs from 20 independent templates", "omnibus", "BM25: all 3 values",
        ):  # fmt: skip
            assert words.replace(" †", "†") in text.replace(" †", "†")
        assert "log count" not in text, "a correlation that is undefined is not shown"
        assert page.all("svg", role="img", **{"aria-label": "bias/tea: effect of each value on the scores of BM25"})
        assert all("scope" in head for head in page.all("th"))
        assert "carries no meaning here" not in text

    def test_values_that_are_all_equal_have_no_plot(self):
        page = page_of(TEAS, FLAT)
        assert "QL: all 3 values score the same, to the last digit." in page.text()
        assert len(page.all("svg", role="img")) == 1

    def test_names_stay_text(self):
        hostile = result({NASTY: 0.3, "x": -0.3}, NASTY, f"bias/{NASTY}", notes=[NASTY], dropped={NASTY: 1})
        page = page_of(hostile)
        assert len(page.all("script")) == 2
        assert not page.all("img")
        assert NASTY in page.text()


def test_the_headline_has_the_favoured_and_the_disfavoured_value():
    rows = [row(TEAS), row(FLAT)]
    said = "Brands and names. With only the name changed, bm25 favours rose over sage, by 3.5 rank steps; ql makes no difference."
    assert [str(headline) for headline in headlines(rows, 0.05, {STUDY})] == [said]
    assert headlines([row(FLAT)], 0.05, {STUDY}) == []


def test_tables_say_what_the_mark_means():
    words = "Bias studies: highest mean score of a value less the lowest, in δ or, without one, in scores; †"
    text = to_markdown([row(TEAS), row(FLAT), finding()], 0.05)
    assert words in text
    assert text.splitlines()[2].endswith("| 3.5 δ† | 0.0 δ |")
    assert words not in to_markdown([finding()], 0.05)
    assert r"$3.5\,\delta^{\dagger}$ & $0.0\,\delta$" in to_latex([row(TEAS), row(FLAT)])


class TestFolder:
    @settings(max_examples=5)
    @given(effects=st.dictionaries(st.text(max_size=9), st.floats(-1e9, 1e9), min_size=1, max_size=5),
           p=st.none() | st.floats(0, 1))  # fmt: skip
    def test_what_is_written_is_read(self, tmp_path_factory, effects, p):
        folder = tmp_path_factory.mktemp("bias") / "out"
        written = [result(effects, p_value=p), FLAT, NONE]
        Audit([], written, record=record_of({}, {}, {}, [], [])).save(folder)
        assert read_bias_results(folder) == written

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"results": [{"study": "x"}]}', '{"results": 3}'])
    def test_what_is_not_ours_is_refused(self, tmp_path, text):
        Audit([], [TEAS], record=record_of({}, {}, {}, [], [])).save(tmp_path / "out")
        (tmp_path / "out" / "bias" / "bias.json").write_text(text)
        with pytest.raises(BadInput, match="does not hold results"):
            read_bias_results(tmp_path / "out")
