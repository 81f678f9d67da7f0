"""The charts of an audit, one Altair definition each: SVG inside the report, and SVG files that need no other.

A chart has the light colours of `palette.css`. For dark screens a few rules exchange each of them for its dark
counterpart, so that one drawing serves both. This module is imported where a chart is drawn: Altair takes a moment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import vl_convert
from markupsafe import Markup, escape

from whyrank.core import replacing
from whyrank.evaluation import OverlapRow
from whyrank.report.arrow import encodable, plain
from whyrank.report.themes import THEMES, label_of, theme_of
from whyrank.report.views import (
    OverlapPanel,
    Row,
    by_effect,
    by_measure,
    by_study,
    rankers_of,
    rows_of,
    shares_of,
    significant,
    standing,
    sweeps_of,
)
from whyrank.report.words import DASH, one_line, slug
from whyrank.studies import MEDIAN, Finding, SweepPoint
from whyrank.studies.bias import BiasResult

if TYPE_CHECKING:
    from whyrank.report.audit import Audit

DOTS = 400  # in a panel of a scatter
CURVES = 8  # colours of lines; with 7 patterns of dashes, 56 lines look different
_DASHES: Any = [[1, 0], [7, 3], [2, 2.5], [9, 3, 2, 3], [14, 4], [4, 5], [9, 3, 2, 3, 2, 3]]
_ROLES = re.compile(r' (?:role|aria-roledescription)="[^"<>]*"(?=[^<>]*>)')
_HAS_INTERVAL = "isValid(datum.low) && isValid(datum.high)"
_WIDTH = 320
_UNCUT = 6  # characters that fit into any label


def forest(rows: Mapping[str, Row], alpha: float, names: Mapping[str, str] | None = None) -> Any:
    """Scores and their 95% intervals: a line per study, a point per ranker, pale where it is not significant.

    Of axioms, the share of instances that are satisfied, with a tick where chance lies. `rows` are named by what the
    axis shows, rankers by `names`.
    """
    named = names or {}
    cells = [(name, finding) for name, row in rows.items() for finding in row.cells.values()]
    axioms = any(finding.conclusion for _, finding in cells)
    data = [
        {"study": _label(name), "ranker": _label(named.get(f.ranker, f.ranker)), **_point(f, alpha)}
        for name, f in cells
    ]
    rankers = [_label(named.get(ranker, ranker)) for ranker in rankers_of(finding for _, finding in cells)]
    scale = alt.Scale(domain=[0, 1] if axioms else [-1, 1], clamp=True)
    axis: dict[str, Any] = {
        "scale": scale,
        "title": "share satisfied; the tick is chance" if axioms else "score",
        "axis": alt.Axis(format="%" if axioms else "+.1f", tickCount=5),
    }
    base = alt.Chart(alt.InlineData(values=[point for point in data if point["value"] is not None])).encode(
        y=alt.Y("study:N", sort=None, title=None, axis=alt.Axis(labelLimit=260, grid=True, tickBand="extent")),
        yOffset=alt.YOffset("ranker:N", sort=None),
        color=_colour("ranker", rankers),
        opacity=alt.condition("datum.significant", alt.value(1), alt.value(0.4)),
    )
    intervals = base.transform_filter(_HAS_INTERVAL).mark_rule(strokeWidth=2.5)
    points = base.mark_point(filled=True, size=60).encode(
        shape=alt.Shape("ranker:N", scale=alt.Scale(domain=rankers))
    )
    layers = [intervals.encode(x=alt.X("low:Q", **axis), x2="high:Q"), points.encode(x=alt.X("value:Q", **axis))]
    if axioms:
        ticks = base.transform_filter("isValid(datum.chance)").mark_tick(thickness=1.5)
        ink = alt.value(_colours()["ink"])
        layers.append(ticks.encode(x=alt.X("chance:Q", **axis), color=ink, opacity=alt.value(1)))
    size_of = {"width": 2 * _WIDTH, "height": len(rows) * (10 + 12 * len(rankers)), "padding": _padding(rows)}
    return _with_style(alt.layer(*layers).properties(**size_of))


def _point(finding: Finding, alpha: float) -> dict[str, Any]:
    figures = [finding.score, finding.ci_low, finding.ci_high, None]
    clear = significant(finding, alpha)
    if finding.conclusion:
        figures = [finding.satisfied, finding.satisfied_low, finding.satisfied_high, finding.chance]
        clear = standing(finding, alpha) != 0
    value, low, high, chance = plain(figures)
    return {"value": value, "low": low, "high": high, "chance": chance, "significant": clear}


def heat_map(audit: Audit, most: int | None = None) -> Any:
    """The scores of all studies, a row per study and a column per ranker, pale where they are not significant.

    With `most`, the studies with the largest scores. None where no study has a score.
    """
    rows = {label_of(row.study, full=True): row for row in rows_of(audit.findings) if row.group is None and row.n}
    size = {name: max((abs(f.score) for f in row.cells.values() if f.score is not None), default=-1.0)
            for name, row in rows.items() if all(f.range is None for f in row.cells.values())}  # fmt: skip
    kept = sorted((name for name in size if size[name] >= 0), key=lambda name: -size[name])[:most]
    if not kept:
        return None
    data = [
        {"study": _label(name), "ranker": _label(audit.names[f.ranker]), "score": f.score,
         "significant": significant(f, audit.alpha)}
        for name in kept for f in rows[name].cells.values() if f.score is not None
    ]  # fmt: skip
    colour = _colours()
    ends = [colour["curve-1"], colour["paper"], colour["curve-0"]]
    scale = alt.Scale(domain=[-1, 0, 1], range=ends, clamp=True, interpolate="rgb")
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X("ranker:N", sort=None, title=None, axis=alt.Axis(orient="top", labelAngle=0, labelLimit=140)),
        y=alt.Y("study:N", sort=None, title=None, axis=alt.Axis(labelLimit=360)),
        opacity=alt.condition("datum.significant", alt.value(1), alt.value(0.45)),
    )
    cells = base.mark_rect().encode(color=alt.Color("score:Q", scale=scale, legend=None))
    ink = alt.condition("abs(datum.score) > 0.5", alt.value(colour["paper"]), alt.value(colour["ink"]))
    figures = base.mark_text().encode(text=alt.Text("score:Q", format="+.2f"), color=ink)
    size_of = {"width": alt.Step(110), "height": alt.Step(18), "padding": _padding(kept)}
    return _with_style(alt.layer(cells, figures).properties(**size_of))


def stacked(charts: Sequence[Any]) -> Any:
    """Charts below one another as one chart."""
    if len(charts) == 1:
        return charts[0]
    bare = [chart.copy() for chart in charts]
    for chart in bare:
        chart.config = chart.padding = alt.Undefined  # only a whole chart has a look
    whole = alt.vconcat(*bare).resolve_scale(color="independent")
    room = [chart.padding for chart in charts if chart.padding is not alt.Undefined]
    whole.padding = max(room, key=lambda each: each["left"], default=alt.Undefined)
    return _with_style(whole)


def sweep_chart(points: Sequence[SweepPoint], names: Mapping[str, str] | None = None) -> Any:
    """A panel per study: scores by percentile of the calibration of delta, a line per ranker, called by its name.

    The dashed line is the median; a triangle marks where the order of the rankers settles.
    """
    points = [point._replace(ranker=(names or {}).get(point.ranker, point.ranker)) for point in points]
    rankers = [_label(ranker) for ranker in dict.fromkeys(point.ranker for point in points)]
    data: list[dict[str, Any]] = []
    for sweep in sweeps_of(points).values():
        note = "" if sweep.curves else " (no contrasts)"
        if sweep.compared:
            note = " (never stable)" if sweep.settled is None else f" (stable from {sweep.settled})"
        panel = {"panel": _label(label_of(sweep.study, full=True)) + note}
        data.append(panel | {"kind": "median", "percentile": MEDIAN})
        if sweep.settled is not None:
            data.append(panel | {"kind": "settled", "percentile": sweep.settled, "score": -1})
        for ranker, curve in sweep.curves.items():
            line = panel | {"kind": "curve", "ranker": _label(ranker)}
            rounded = [(percentile, round(score, 2)) for percentile, score in curve]  # half a pixel
            around = zip([None, *rounded], rounded, [*rounded[1:], None], strict=False)
            bends = [at for before, at, after in around if not (before and after and before[1] == at[1] == after[1])]
            data += [line | {"percentile": percentile, "score": score} for percentile, score in bends]
    percentiles = alt.Axis(values=[0, 25, MEDIAN, 75, 99], grid=False)
    x = alt.X("percentile:Q", title="percentile", scale=alt.Scale(domain=[0, 99], nice=False), axis=percentiles)
    scores = alt.Axis(values=[-1, -0.5, 0, 0.5, 1], format="+.1f")
    y = alt.Y("score:Q", title=None, scale=alt.Scale(domain=[-1, 1], clamp=True), axis=scores)
    base, ink = alt.Chart(), _colours()["ink"]
    median = base.transform_filter("datum.kind === 'median'").mark_rule(strokeDash=[3, 3]).encode(x=x)
    curves = base.transform_filter("datum.kind === 'curve'").mark_line(strokeWidth=1.8)
    curves = curves.encode(x=x, y=y, color=_colour("ranker", rankers), strokeDash=_dash("ranker", rankers))
    settled = base.transform_filter("datum.kind === 'settled'").encode(x=x, y=y)
    settled = settled.mark_point(shape="triangle-up", filled=True, color=ink)
    layers = alt.layer(median, curves, settled, data=alt.InlineData(values=data))
    return _with_style(_panels(layers, columns=3 if len({row["panel"] for row in data}) > 2 else 2))


def overlap_chart(rows: Sequence[OverlapRow], names: Mapping[str, str] | None = None) -> Any:
    """A row of panels per measure: means by overlap with the relevant document, a line per run, and 95% intervals."""
    rows = [replace(row, run=(names or {}).get(row.run, row.run)) for row in rows]
    runs = [_label(run) for run in dict.fromkeys(row.run for row in rows)]
    return _with_style(alt.vconcat(*(_overlap_of_measure(panels, runs) for panels in by_measure(rows).values())))


def _overlap_of_measure(panels: Sequence[OverlapPanel], runs: Sequence[str]) -> Any:
    data = [
        {"panel": f"{panel.title}: {_label(panel.measure)}, {panel.n:,} queries", "run": _label(run),
         "group": f"{row.group}: {shares_of(row)}", "mean": row.mean, "low": row.ci_low, "high": row.ci_high}
        for panel in panels for run, found in panel.runs.items() for row in found
    ]  # fmt: skip
    base = alt.Chart().encode(
        x=alt.X("group:O", sort=None, title="group: share of query terms", axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("run:N", sort=None),
        color=_colour("run", runs),
    )
    y: dict[str, Any] = {"title": None, "scale": alt.Scale(zero=True)}
    intervals = base.transform_filter(_HAS_INTERVAL).mark_rule(opacity=0.6)
    known = base.transform_filter("isValid(datum.mean)").encode(y=alt.Y("mean:Q", **y))
    layers = [
        intervals.encode(y=alt.Y("low:Q", **y), y2="high:Q"),
        known.mark_line(strokeWidth=1.8).encode(strokeDash=_dash("run", runs)),
        known.mark_point(filled=True, size=40),
    ]
    return _panels(alt.layer(*layers, data=alt.InlineData(values=data)), columns=2)


def fidelity_chart(audit: Audit) -> Any:
    """A panel for each ranker: its scores and those of the target for the same texts, less the query's mean."""
    first, data = audit.target, list[dict[str, Any]]()
    for ranker, compared in audit.fidelity.items():
        points = list[Any]()
        for query in compared.queries:
            scores, own = (audit.scores[each].get(query, {}) for each in (first, ranker))
            both = np.array([(score, own[text]) for text, score in scores.items() if text in own]).reshape(-1, 2)
            both = both[np.isfinite(both).all(axis=1)]
            points += (both - both.mean(axis=0)).tolist() if len(both) > 1 else []
        chosen = np.linspace(0, len(points) - 1, min(DOTS, len(points))).astype(int)
        panel = {"panel": _label(audit.names[ranker])}
        data += [
            panel | {"first": float(f"{points[i][0]:.4g}"), "other": float(f"{points[i][1]:.4g}")} for i in chosen
        ]
    title = f"{_label(audit.names[first])}: score less the mean of the query"
    dots = alt.Chart(alt.InlineData(values=data)).mark_point(filled=True, size=16, opacity=0.5)
    dots = dots.encode(
        x=alt.X("first:Q", title=title),
        y=alt.Y("other:Q", title=None),
        color=_colour("panel", [_label(audit.names[ranker]) for ranker in audit.scores]).legend(None),
    )
    return _with_style(_panels(dots, columns=3 if len(audit.fidelity) > 2 else 2).resolve_scale(y="independent"))


def bias_chart(results: Sequence[BiasResult], alpha: float) -> Any:
    """Effects of the values on the scores of each ranker, the highest first; hollow dots are not significant."""
    return _with_style(alt.hconcat(*(_values_of_result(result, alpha) for result in results)))


def _values_of_result(result: BiasResult, alpha: float) -> Any:
    data = [
        {"value": _label(row.value), "effect": row.effect, "low": row.low, "high": row.high,
         "significant": significant(row, alpha)}
        for row in by_effect(result)
    ]  # fmt: skip
    ink, paper = (alt.value(_colours()[name]) for name in ("ink", "paper"))
    axis: dict[str, Any] = {"title": "difference from the mean of all values", "axis": alt.Axis(tickCount=5)}
    base = alt.Chart(alt.InlineData(values=data)).encode(
        y=alt.Y("value:N", sort=None, title=None, axis=alt.Axis(labelLimit=130)),
        color=ink,
    )
    zero = alt.Chart(alt.InlineData(values=[{"effect": 0}])).mark_rule().encode(x=alt.X("effect:Q", **axis))
    intervals = base.transform_filter(_HAS_INTERVAL).mark_rule(strokeWidth=5, opacity=0.35)
    points = base.mark_point(size=40, opacity=1).encode(
        x=alt.X("effect:Q", **axis), fill=alt.condition("datum.significant", ink, paper)
    )
    title = alt.Title(_label(result.ranker), subtitle=f"{_label(result.study)}: {result.n_templates:,} templates")
    layers = alt.layer(zero, intervals.encode(x=alt.X("low:Q", **axis), x2="high:Q"), points)
    return layers.properties(width=_WIDTH, height=17 * len(data), title=title)


def charts_of(audit: Audit) -> dict[str, Any]:
    """The charts that an audit has figures for, by name: one per theme and bias study, sweep, overlap, fidelity."""
    rows = [row for row in rows_of(audit.findings) if row.group is None and row.n and not row.tied]
    named = {label_of(row.study, full=True): row for row in rows}
    found: dict[str, Any] = {}
    for theme in THEMES:
        own = {label: row for label, row in named.items() if theme_of(row.study) == theme}
        for kind, axioms in (("", False), (" rules", True)):
            part = {label: row for label, row in own.items() if bool(row.conclusion) is axioms}
            drawn = {label: row for label, row in part.items() if all(f.range is None for f in row.cells.values())}
            if drawn:
                found[f"{theme}{kind}".lower().replace(" ", "-")] = forest(drawn, audit.alpha, audit.names)
    for study, results in by_study([result for result in audit.details if result.values]).items():
        found[study] = bias_chart([replace(r, ranker=audit.names[r.ranker]) for r in results], audit.alpha)
    if any(sweep.curves for sweep in sweeps_of(audit.sweep).values()):
        found["sweep"] = sweep_chart(audit.sweep, audit.names)
    if audit.overlap:
        found["overlap"] = overlap_chart(audit.overlap, audit.names)
    if audit.fidelity:
        found["fidelity"] = fidelity_chart(audit)
    return found


def write_figures(folder: str | os.PathLike[str], audit: Audit) -> list[Path]:
    """Write every chart of an audit as SVG, PDF and PNG; gives the files."""
    written = []
    for name, chart in charts_of(audit).items():
        stem = name if re.fullmatch(r"[a-z-]+", name) else slug(name)
        drawing, made = chart.to_dict(validate=False), Path(folder)
        made.mkdir(parents=True, exist_ok=True)
        contents = {
            "svg": encodable(svg_file(chart, name)).encode(),
            "pdf": vl_convert.vegalite_to_pdf(drawing, allowed_base_urls=[]),
            "png": vl_convert.vegalite_to_png(drawing, scale=2, allowed_base_urls=[]),
        }
        for suffix, content in contents.items():
            written.append(made / f"{stem}.{suffix}")
            with replacing(written[-1]) as beside:
                beside.write_bytes(content)
    return written


# What the definitions share.


def _label(text: str) -> str:
    """A text on one line; in one that may be cut, boxes for characters of two code units, which Vega would halve."""
    label = one_line(text) or DASH
    return label if len(label) <= _UNCUT else re.sub(r"[^\u0000-\uffff]", "□", label)


def _padding(labels: Iterable[str]) -> dict[str, int]:
    """Room on the left, because the font of a browser may be wider than that which the chart was measured with."""
    return {"left": 5 + max(map(len, labels)), "right": 5, "top": 5, "bottom": 5}


def _colour(field: str, names: Sequence[str]) -> Any:
    legend = alt.Legend(orient="top", title=None, labelLimit=400, columns=4, symbolLimit=0)
    palette = [_colours()[f"curve-{i}"] for i in range(CURVES)]
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(names), range=palette), legend=legend)


def _dash(field: str, names: Sequence[str]) -> Any:
    return alt.StrokeDash(f"{field}:N", scale=alt.Scale(domain=list(names), range=_DASHES))


def _panels(layers: Any, columns: int) -> Any:
    header = alt.Header(title=None, labelLimit=_WIDTH, labelAnchor="start")
    facet = alt.Facet("panel:N", sort=None, header=header)
    panel = layers.properties(width=_WIDTH, height=_WIDTH // 2)
    return panel.facet(facet, columns=columns).resolve_axis(x="independent")


def _with_style(chart: Any) -> Any:
    """The chart in the look that all of them have."""
    colour = _colours()
    text = {"labelColor": colour["soft"], "titleColor": colour["soft"], "titleFontWeight": "normal"}
    return chart.configure(
        aria=False,
        background=colour["paper"],
        font="system-ui, sans-serif",
        view={"stroke": None},
        rule={"color": colour["soft"]},
        axis={**text, "gridColor": colour["line"], "domainColor": colour["soft"], "tickColor": colour["line"]},
        header={**text, "labelColor": colour["ink"], "labelFontSize": 12},
        legend={**text, "labelColor": colour["ink"], "labelFontSize": 12},
        title={"color": colour["ink"], "subtitleColor": colour["soft"], "anchor": "start"},
    )


@cache
def _colours(dark: bool = False) -> dict[str, str]:
    """The colours of the style sheet by name, those of dark screens on request."""
    palette = (files("whyrank.report") / "templates" / "palette.css").read_text(encoding="utf-8")
    block = re.findall(r":root \{(.*?)\}", palette, re.DOTALL)[int(dark)]
    return dict(re.findall(r"--([\w-]+): (#\w+);", block))


def dark_style() -> str:
    """Rules that give the charts of a page or a file other colours on dark screens."""
    dark = _colours(dark=True)
    rules = [
        f'svg [{part}="{colour}"] {{ {part}: {dark[name]}; }}'
        for name, colour in _colours().items()
        for part in ("fill", "stroke")
    ]
    return "@media screen and (prefers-color-scheme: dark) {\n" + "\n".join(rules) + "\n}\n"


def _svg_of(chart: Any) -> str:
    drawn = vl_convert.vegalite_to_svg(chart.to_dict(validate=False), allowed_base_urls=[])
    return _ROLES.sub("", drawn)  # roles of marks without names tell nobody anything


def picture(chart: Any, label: str) -> Markup:
    """A chart as a picture inside a page; the label is for those who do not see it."""
    said = Markup('<svg role="img" aria-label="{}" ').format(one_line(label))
    return Markup(_svg_of(chart).replace("<svg ", said, 1))


def svg_file(chart: Any, title: str) -> str:
    """A chart as the content of an SVG file."""
    start, content = _svg_of(chart).split(">", 1)
    return f"{start}>\n<title>{escape(one_line(title))}</title>\n<style>\n{dark_style()}</style>\n{content}\n"


def sweep_svg(points: Sequence[SweepPoint]) -> str:
    """All sweeps of a result as one file."""
    return svg_file(sweep_chart(points), "Scores by percentile of the calibration of δ")


def overlap_svg(rows: Sequence[OverlapRow]) -> str:
    """The overlap split as a file."""
    return svg_file(overlap_chart(rows), "Effectiveness by overlap with the relevant document")


def bias_svg(results: Sequence[BiasResult], alpha: float = 0.05) -> str:
    """One bias study as a file, a panel per ranker."""
    return svg_file(bias_chart(results, alpha), f"{results[0].study}: effect per value")
