"""The picture of the overlap split: what it shows lies where the figures say."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import NASTY, overlap_rows

from whyrank.report import interval_of, mean_of, overlap_panels, overlap_svg, shares_of
from whyrank.report.overlap_drawing import top_of
from whyrank.report.overlaps import by_measure
from whyrank.report.panels import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH

SVG = "{http://www.w3.org/2000/svg}"


def panels_of(text: str) -> list[ElementTree.Element]:
    return [g for g in ElementTree.fromstring(text).iter(f"{SVG}g") if g.get("class") == "panel"]


def lines_of(panel: ElementTree.Element) -> list[list[tuple[float, float]]]:
    found = [line.get("points") or "" for line in panel.iter(f"{SVG}polyline")]
    return [[(float(x), float(y)) for x, y in (point.split(",") for point in points.split())] for points in found]


def up(share_of_axis: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share_of_axis)


class TestPanels:
    def test_a_panel_per_measure_and_kind_of_queries(self):
        found = overlap_panels(overlap_rows(measures=("nDCG@10", "RR@10")))
        assert [(p.measure, p.queries) for p in found] == [
            ("nDCG@10", "all"), ("nDCG@10", "retrieved"), ("RR@10", "all"), ("RR@10", "retrieved"),
        ]  # fmt: skip
        assert [list(p.runs) for p in found] == [["bm25", "ql"]] * 4
        assert [p.n for p in found] == [10, 3, 10, 3]
        assert list(by_measure(overlap_rows())) == ["nDCG@10"]

    def test_figures_in_words(self):
        first, *_, last = overlap_rows()
        assert (shares_of(first), mean_of(first), interval_of(first)) == ("0–33%", "0.200", "[0.100, 0.400]")
        assert (mean_of(last), interval_of(last)) == ("–", "–")
        assert shares_of(replace(first, share_low=0.5, share_high=0.5)) == "50%"

    @pytest.mark.parametrize(
        ("highest", "top"),
        [(0.05, 0.06), (0.31, 0.4), (0.79, 0.8), (0.81, 1.0), (1.0, 1.0), (0.0, 1.0), (37.0, 40.0)],
    )
    def test_axes_end_at_a_round_number(self, highest, top):
        rows = [replace(row, mean=highest, ci_low=0.0, ci_high=highest) for row in overlap_rows()]
        assert top_of(overlap_panels(rows)) == top

    @given(st.floats(1e-6, 1e6))
    def test_axes_hold_all_that_is_shown(self, highest):
        rows = [replace(row, mean=highest, ci_low=None, ci_high=None) for row in overlap_rows()]
        assert highest * (1 - 1e-9) <= top_of(overlap_panels(rows)) <= 2 * highest * (1 + 1e-9)


class TestFile:
    def test_lines_lie_where_the_means_say(self):
        whole, retrieved = panels_of(overlap_svg(overlap_rows(("bm25",))))
        [line] = lines_of(whole)
        width = WIDTH - LEFT - RIGHT
        assert [x for x, _ in line] == pytest.approx(
            [LEFT + width * part for part in (1 / 6, 1 / 2, 5 / 6)], abs=0.01
        )
        assert [y for _, y in line] == pytest.approx([up(mean / 0.8) for mean in (0.2, 0.4, 0.6)], abs=0.01)
        assert [len(points) for points in lines_of(retrieved)] == [2], "a group without queries has no point"

    def test_intervals_are_lines_beside_each_other(self):
        whole = panels_of(overlap_svg(overlap_rows()))[0]
        whiskers = [e for e in whole.iter(f"{SVG}line") if "whisker" in (e.get("class") or "")]
        assert len(whiskers) == 6
        assert len({e.get("x1") for e in whiskers}) == 6
        assert float(whiskers[0].get("y1") or 0) == pytest.approx(up(0.1 / 0.8), abs=0.01)
        assert float(whiskers[0].get("y2") or 0) == pytest.approx(up(0.4 / 0.8), abs=0.01)

    def test_names_sizes_and_shares_are_told(self):
        text = overlap_svg(overlap_rows())
        told = [e.text for e in ElementTree.fromstring(text).iter(f"{SVG}text")]
        for words in ("All queries: nDCG@10", "10 queries", "Relevant document retrieved: nDCG@10", "3 queries", "bm25",
                      "ql", "0–33%", "50%", "75–100%", "share of query terms", "mean and its 95% interval, by query"):  # fmt: skip
            assert words in told

    def test_a_panel_without_queries(self):
        rows = [
            replace(r, n=0, mean=None, ci_low=None, ci_high=None) if r.queries != "all" else r for r in overlap_rows()
        ]
        whole, retrieved = panels_of(overlap_svg(rows))
        assert (len(lines_of(whole)), len(lines_of(retrieved))) == (2, 0)
        assert "no queries" in [e.text for e in retrieved.iter(f"{SVG}text")]

    def test_it_needs_no_other_file_and_no_variables(self):
        text = overlap_svg(overlap_rows())
        assert "var(" not in text
        assert not re.search(r"@import|url\(|href", text)
        light, dark = text.split("@media (prefers-color-scheme: dark)")
        rule = re.compile(r"\.sweep \.point \{ fill: (#\w+);")
        assert rule.findall(light) != rule.findall(dark)

    def test_everything_is_inside(self):
        text = overlap_svg(overlap_rows(tuple(f"run {i} " * 9 for i in range(30)), ("nDCG@10", "RR@10")))
        _, _, width, height = map(float, (ElementTree.fromstring(text).get("viewBox") or "").split())
        for panel in panels_of(text):
            x, y = map(float, re.findall(r"[\d.]+", panel.get("transform") or ""))
            assert x + WIDTH <= width
            assert y + HEIGHT <= height
            for line in lines_of(panel):
                assert all(LEFT <= px <= WIDTH - RIGHT and TOP <= py <= HEIGHT - BOTTOM for px, py in line)

    @given(st.text(max_size=30), st.text(max_size=30))
    def test_any_name_makes_a_file(self, run, measure):
        text = overlap_svg(overlap_rows((run,), (measure,)))
        assert len(panels_of(text)) == 2
        text.encode("utf-8")

    def test_names_stay_text(self):
        assert "<script" not in overlap_svg(overlap_rows((NASTY,), (NASTY,)))
