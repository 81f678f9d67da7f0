from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import NASTY, curve

from whyrank.report import MARKS, sweeps_of
from whyrank.report.panels import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, look, panel, slots_of
from whyrank.report.sweep_file import sweep_svg

SVG = "{http://www.w3.org/2000/svg}"


def elements(text: str, tag: str, kind: str = "") -> list[ElementTree.Element]:
    """Elements of an SVG file by name and class."""
    found = ElementTree.fromstring(text).iter(f"{SVG}{tag}")
    return [e for e in found if not kind or kind in (e.get("class") or "").split()]


def places(line: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in (line.get("points") or "").split())]


class TestSweeps:
    def test_scores_by_study_ranker_and_percentile(self):
        found = sweeps_of([*curve("x/a", "bm25", 0.5, 0.1), *curve("x/b", "bm25", None), *curve("x/a", "ql", -1)])
        assert list(found) == ["x/a", "x/b"]
        assert list(found["x/a"].scores) == ["bm25", "ql"]
        assert found["x/a"].at_marks("bm25") == [0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1]
        assert found["x/b"].at_marks("bm25") == [None] * len(MARKS)
        assert (found["x/b"].curves, len(found["x/a"].curves["ql"])) == ({}, 100)

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
    def test_where_the_order_settles(self, rankers, told, sentence):
        [found] = sweeps_of([p for name, levels in rankers.items() for p in curve("x/a", name, *levels)]).values()
        assert (found.stable_words, found.sentence) == (told, sentence)

    def test_nothing_swept(self):
        assert sweeps_of([]) == {}


class TestFile:
    def test_one_line_per_ranker_and_panel(self):
        points = [p for s in ("x/a", "x/b", "x/c", "x/d") for r in ("bm25", "ql") for p in curve(s, r, 0.5, -0.5)]
        text = sweep_svg(points)
        panels = elements(text, "g", "panel")
        assert [panel.findtext(f"{SVG}title") for panel in panels] == ["x/a", "x/b", "x/c", "x/d"]
        assert [len(list(panel.iter(f"{SVG}polyline"))) for panel in panels] == [2] * 4
        assert len({panel.get("transform") for panel in panels}) == 4
        assert len(elements(text, "line", "median")) == 4 + 1, "one in each panel and one in the legend"

    def test_lines_keep_their_look_in_every_panel(self):
        points = [*curve("x/a", "bm25", 0.1), *curve("x/a", "ql", 0.2), *curve("x/b", "ql", 0.2)]
        looks = [
            (line.findtext(f"{SVG}title"), line.get("class")) for line in elements(sweep_svg(points), "polyline")
        ]
        assert looks == [("bm25", "curve c0 d0"), ("ql", "curve c1 d1"), ("ql", "curve c1 d1")]

    def test_lines_lie_where_the_scores_say(self):
        [line] = elements(sweep_svg(curve("x/a", "bm25", 1.0, 0.0, -1.0, 9.0)), "polyline")
        found, middle = places(line), TOP + (HEIGHT - TOP - BOTTOM) / 2
        assert len(found) == 100
        assert (found[0][0], found[-1][0]) == (LEFT, WIDTH - RIGHT)
        assert [found[i][1] for i in (0, 30, 60, 90)] == [TOP, middle, HEIGHT - BOTTOM, TOP]
        assert [x for x, _ in found] == sorted(x for x, _ in found)

    def test_the_mark_lies_where_the_order_settles(self):
        settled = [*curve("x/a", "a", 0.5, 0.1), *curve("x/a", "b", 0.1, 0.5)]
        [panel] = elements(sweep_svg(settled), "g", "panel")
        [mark] = panel.iter(f"{SVG}polygon")
        assert places(mark)[0] == pytest.approx((LEFT + (WIDTH - LEFT - RIGHT) * 50 / 99, HEIGHT - BOTTOM), abs=0.01)
        assert "stable from 50" in [text.text for text in panel.iter(f"{SVG}text")]

    def test_one_ranker_has_no_order(self):
        text = sweep_svg(curve("x/a", "bm25", 0.5))
        assert not elements(text, "polygon")
        assert "stable" not in " ".join(t.text or "" for t in elements(text, "text"))

    def test_a_study_without_contrasts_has_an_empty_panel(self):
        text = sweep_svg([*curve("x/a", "bm25", None), *curve("x/b", "bm25", 0.5)])
        assert [len(list(panel.iter(f"{SVG}polyline"))) for panel in elements(text, "g", "panel")] == [0, 1]
        assert "no contrasts" in text

    def test_it_needs_no_other_file_and_no_variables(self):
        text = sweep_svg(curve("x/a", "bm25", 0.5))
        assert "var(" not in text
        assert not re.search(r"@import|url\(|href", text)
        assert text.count("http") == 1, "the name of the format only"

    def test_it_has_colours_for_dark_screens(self):
        [style] = elements(sweep_svg(curve("x/a", "bm25", 0.5)), "style")
        light, dark = (style.text or "").split("@media (prefers-color-scheme: dark)")
        rule = re.compile(r"\.sweep \.c0 \{ stroke: (#\w+); \}")
        assert rule.findall(light) != rule.findall(dark)

    def test_everything_is_inside(self):
        text = sweep_svg([p for s in "abcdefg" for r in range(30) for p in curve(f"x/{s}", f"ranker {r} " * 9, 0.1)])
        _, _, width, height = map(float, (ElementTree.fromstring(text).get("viewBox") or "").split())
        for cell in elements(text, "g", "panel"):
            x, y = map(float, re.findall(r"[\d.]+", cell.get("transform") or ""))
            assert x + WIDTH <= width
            assert y + HEIGHT <= height
        legend = elements(text, "g", "legend")[0]
        first = min(float(re.findall(r"[\d.]+", p.get("transform") or "")[1]) for p in elements(text, "g", "panel"))
        assert all(
            float(t.get("y") or 0) < first and float(t.get("x") or 0) < width for t in legend.iter(f"{SVG}text")
        )

    @given(st.text(max_size=30), st.text(max_size=30))
    def test_any_name_makes_a_file(self, study, ranker):
        text = sweep_svg(curve(study, ranker, 0.5))
        assert len(elements(text, "polyline")) == 1
        text.encode("utf-8")

    def test_names_stay_text(self):
        text = sweep_svg(curve(NASTY, NASTY, 0.5))
        assert not elements(text, "script")
        assert not elements(text, "img")


class TestPanel:
    def test_it_says_what_it_shows(self):
        [sweep] = sweeps_of([*curve("x/<a>", "bm25", 0.5), *curve("x/<a>", "ql", 0.1)]).values()
        text = panel(sweep, slots_of(["bm25", "ql"]))
        assert 'aria-label="x/&lt;a&gt;: scores by percentile of δ of bm25, ql"' in text
        assert text.count("<polyline") == 2

    def test_many_rankers_look_different(self):
        assert len({look(i) for i in range(56)}) == 56
