"""Charts: what they show lies where the figures say, in files that need no other and whose names stay text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from report_samples import NASTY, SVG, axiom, broken_axiom, curve, empty, finding, marks, overlap_rows
from test_report_favours import TEAS, result

from whyrank.core import UnknownName
from whyrank.report import Audit
from whyrank.report.charts import bias_svg, forest, overlap_svg, picture, sweep_svg, write_figures
from whyrank.report.views import rows_of


def texts(chart: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(chart).iter(f"{SVG}text")]


def points(line: ElementTree.Element) -> list[tuple[float, float]]:
    """The corners of a path."""
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.e]+),([-\d.e]+)", line.get("d") or "")]


def position(mark: ElementTree.Element) -> tuple[float, float]:
    """Where a mark stands within its panel."""
    x, y = re.match(r"translate\(([-\d.e]+),([-\d.e]+)\)", mark.get("transform") or "").groups()
    return float(x), float(y)


def drawn(*findings) -> str:
    rows = {row.study: row for row in rows_of(findings)}
    return picture(forest(rows, 0.05), "scores")


class TestForest:
    def test_points_lie_where_the_scores_say_and_are_pale_unless_significant(self):
        chart = drawn(finding(score=0.5, ci_low=0, ci_high=1), finding(ranker="ql", score=-1, p_adjusted=0.5))
        dots, bars = marks(chart, "symbol"), marks(chart, "rule")
        assert [position(dot)[0] for dot in dots] == pytest.approx([480, 0], abs=0.1)
        assert [float(dot.get("opacity")) for dot in dots] == [1, 0.4]
        assert dots[0].get("fill") != dots[1].get("fill")
        assert position(bars[0])[0] == pytest.approx(320, abs=0.1)
        assert float(bars[0].get("x2")) == pytest.approx(320, abs=0.1)
        assert {"matched/length|tf", "bm25", "ql"} <= set(texts(chart))

    def test_axioms_have_shares_and_chance(self):
        chart = drawn(axiom(satisfied=0.75, chance=0.25), broken_axiom(satisfied=0.0, chance=None))
        assert [position(dot)[0] for dot in marks(chart, "symbol")] == pytest.approx([480, 0], abs=0.1)
        [tick] = marks(chart, "rect")
        x = float(re.search(r"[M ]([-\d.]+),", tick.get("d") or "")[1])
        assert x + (position(tick)[0] if tick.get("transform") else 0) == pytest.approx(160, abs=1)
        assert {"0%", "100%"} <= set(texts(chart))

    def test_undefined_figures_have_no_marks(self):
        assert not marks(drawn(empty()), "symbol")
        assert not marks(drawn(finding(ci_low=None)), "rule")
        assert len(marks(drawn(finding(ci_low=None)), "symbol")) == 1


class TestSweep:
    def test_a_panel_per_study_and_a_line_per_ranker(self):
        chart = sweep_svg([p for s in "abcd" for r in ("bm25", "ql") for p in curve(f"x/{s}", r, 0.5, -0.5)])
        assert len(marks(chart, "line")) == 4 * 2
        assert len(marks(chart, "rule")) == 4, "the median of each panel"
        panels = [name for text in texts(chart) for name, _, note in [text.partition(" (")] if "stable" in note]
        assert panels == ["a", "b", "c", "d"]
        assert "words shuffled" in texts(sweep_svg(curve("edited/shuffle-words", "bm25", 0.5)))

    def test_lines_lie_where_the_scores_say(self):
        [line] = marks(sweep_svg(curve("x/a", "bm25", 1.0, 0.0, -1.0, 9.0)), "line")
        found = points(line)
        heights = np.interp([320 * p / 99 for p in range(100)], *zip(*found, strict=True))
        assert heights == pytest.approx(np.repeat([0, 80, 160, 0], 25), abs=0.01)
        assert len(found) == 8, "only where a line bends"

    def test_the_mark_lies_where_the_order_settles(self):
        chart = sweep_svg([*curve("x/a", "a", 0.5, 0.1), *curve("x/a", "b", 0.1, 0.5)])
        [mark] = marks(chart, "symbol")
        assert position(mark) == pytest.approx((320 * 50 / 99, 160), abs=0.01)
        assert "a (stable from 50)" in texts(chart)


class TestOverlap:
    def test_lines_lie_where_the_means_say(self):
        whole, retrieved = map(points, marks(overlap_svg(overlap_rows(("bm25",))), "line"))
        assert whole[0][1] - whole[1][1] == pytest.approx(whole[1][1] - whole[2][1], abs=0.01)
        assert whole[0][1] > whole[2][1], "higher means stand higher"
        assert len(retrieved) == 2, "a group without queries has no point"


class TestBias:
    def test_dots_lie_where_effects_say(self):
        dots = marks(bias_svg([TEAS]), "symbol")
        positions = [position(dot)[0] for dot in dots]
        assert (positions[0] - positions[1]) / (positions[0] - positions[2]) == pytest.approx(0.2 / 0.7, abs=0.01)
        rose, mint, sage = (dot.get("fill") for dot in dots)
        assert rose == sage != mint, "significant values have a colour of their own"


CHARTS = [
    lambda name: sweep_svg(curve(name, name, 0.5)),
    lambda name: overlap_svg(overlap_rows((name,), (name,))),
    lambda name: bias_svg([result({name: 0.1, name + "x": -0.1}, name)]),
    lambda name: drawn(finding(study=name, ranker=name)),
]


@pytest.mark.parametrize("chart", CHARTS)
def test_names_stay_text_and_nothing_is_loaded(chart):
    text = chart(NASTY)
    tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(text).iter()}
    assert not tags & {"script", "img", "image", "a", "foreignObject"}
    assert not re.search(r"@import|url\(|href=|var\(", text)


@pytest.mark.parametrize("chart", CHARTS)
@settings(max_examples=4, deadline=None)
@given(name=st.text(max_size=30))
@example(name="x" * 15 + "𦥫" * 10)
def test_any_name_makes_a_chart(chart, name):
    text = chart(name)
    assert marks(text, "line") or marks(text, "symbol")
    text.encode("utf-8")


def test_files_have_colours_for_dark_screens():
    text = sweep_svg(curve("x/a", "bm25", 0.5))
    [line] = marks(text, "line")
    [style] = ElementTree.fromstring(text).iter(f"{SVG}style")
    exchanged = re.search(rf'svg \[stroke="{line.get("stroke")}"\] {{ stroke: (#\w+); }}', style.text or "")
    assert exchanged
    assert exchanged[1] != line.get("stroke")


class TestFigures:
    AUDIT = Audit([finding(), finding(ranker="ql"), axiom()], [TEAS])

    def test_every_chart_is_a_drawing_a_page_and_a_picture(self, tmp_path):
        files = write_figures(tmp_path / "new" / "figures", self.AUDIT)
        assert {path.name.partition("-")[0] for path in files} == {
            "length.svg",
            "length.pdf",
            "length.png",
            "query",
            "bias",
        }
        starts = {".svg": b"<svg", ".pdf": b"%PDF", ".png": b"\x89PNG"}
        assert all(path.read_bytes().startswith(starts[path.suffix]) for path in files)

    def test_a_chart_has_the_names_that_readers_see(self):
        values = str(self.AUDIT.plot("length").to_dict(validate=False))
        assert "longer, same counts of each query word" in values
        assert "BM25" in values
        with pytest.raises(UnknownName, match="lenght"):
            self.AUDIT.plot("lenght")
