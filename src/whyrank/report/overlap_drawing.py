"""Panels of the overlap split as SVG: groups from left to right, a line per run, with the intervals of its means."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from whyrank.evaluation import OverlapRow
from whyrank.report.overlaps import OverlapPanel, overlap_panels, shares_of
from whyrank.report.panels import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Slots,
    line,
    look,
    number,
    slots_of,
    words_at,
)
from whyrank.report.sheets import MARGIN, Cell, sheet
from whyrank.report.tables import one_line

_COLUMNS = 2  # all queries, and those retrieved
_DODGE = 9  # units between the lines of two runs, so that their intervals can be told apart
_ROOM = 0.5  # of the width of a group, for the intervals of all runs


def overlap_svg(rows: Sequence[OverlapRow]) -> str:
    """One row of panels per measure under a legend, for light and dark screens."""
    slots, found = slots_of(row.run for row in rows), overlap_panels(rows)
    top = {panel.measure: top_of([p for p in found if p.measure == panel.measure]) for panel in found}
    cells = [Cell(_name(p), f"{p.n:,} queries", overlap_drawing(p, slots, top[p.measure])) for p in found]
    return sheet("Effectiveness by overlap with the relevant document", list(slots), cells, _COLUMNS, _keys)


def overlap_panel(panel: OverlapPanel, slots: Slots, top: float) -> Markup:
    """One panel as a picture in a page, whose style sheet gives it its colours."""
    spoken = f"{panel.title}: {panel.measure} by overlap of {', '.join(map(one_line, panel.runs))}"
    template = Markup('<svg class="sweep" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return template.format(WIDTH, HEIGHT, spoken, overlap_drawing(panel, slots, top))


def overlap_drawing(panel: OverlapPanel, slots: Slots, top: float) -> Markup:
    """Axes, lines, points and intervals; the axis ends at `top`."""
    places = _dodged(list(panel.runs), len(panel.groups))
    drawn = [_run(rows, slots[run], places[run], top) for run, rows in panel.runs.items()]
    nothing = words_at((LEFT + WIDTH - RIGHT) / 2, _up(top / 2, top), "no queries", "told", "middle")
    return _axes(panel, top) + (Markup("").join(drawn) if panel.n else nothing)


def top_of(found: Sequence[OverlapPanel]) -> float:
    """Where the axis of some panels ends: a round number above all that they show."""
    highest = max((panel.highest for panel in found), default=0.0)
    if highest <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(highest))
    return next(round(unit * step, 12) for step in (1, 2, 4, 6, 8, 10) if unit * step >= highest * (1 - 1e-9))


def _name(panel: OverlapPanel) -> str:
    return f"{panel.title}: {panel.measure}"


def _axes(panel: OverlapPanel, top: float) -> Markup:
    levels = [(share, "origin" if share == 0 else "grid") for share in (0, 0.25, 0.5, 0.75, 1)]
    right = WIDTH - RIGHT
    parts = [line(kind, LEFT, right, _up(share * top, top), _up(share * top, top)) for share, kind in levels]
    parts += [words_at(LEFT - 6, _up(y, top) + 4, f"{y:g}", "tick", "end") for y in (0, top / 2, top)]
    for i, row in enumerate(panel.groups):
        x = _across(i, len(panel.groups))
        parts += [line("grid", x, x, _up(0, top), _up(0, top) + 4)]
        parts += [words_at(x, _up(0, top) + 18, shares_of(row), "tick", "middle")]
    parts += [words_at((LEFT + right) / 2, HEIGHT - 3, "share of query terms", "tick", "middle")]
    return Markup("").join(parts)


def _run(rows: Sequence[OverlapRow], slot: int, shift: float, top: float) -> Markup:
    xs = [_across(i, len(rows)) + shift for i in range(len(rows))]
    known = [(x, row) for x, row in zip(xs, rows, strict=True) if row.mean is not None]
    places = " ".join(f"{number(x)},{number(_up(row.mean or 0.0, top))}" for x, row in known)
    curve = Markup('<polyline class="{}" points="{}"><title>{}</title></polyline>')
    parts = [_whisker(x, row, slot, top) for x, row in known]
    parts += [curve.format(look(slot), places, one_line(rows[0].run))]
    return Markup("").join([*parts, *(_point(x, row, slot, top) for x, row in known)])


def _whisker(x: float, row: OverlapRow, slot: int, top: float) -> Markup:
    if row.ci_low is None or row.ci_high is None:
        return Markup("")
    return line(f"whisker {_colour(slot)}", x, x, _up(row.ci_low, top), _up(row.ci_high, top))


def _point(x: float, row: OverlapRow, slot: int, top: float) -> Markup:
    template = Markup('<circle class="point {}" cx="{}" cy="{}" r="3.2"/>')
    return template.format(_colour(slot), number(x), number(_up(row.mean or 0.0, top)))


def _colour(slot: int) -> str:
    return look(slot).split()[1]


def _dodged(runs: Sequence[str], groups: int) -> dict[str, float]:
    """How far the line of each run stands to the right of its group's middle."""
    step = min(_DODGE, _ROOM * (WIDTH - LEFT - RIGHT) / max(groups, 1) / max(len(runs), 1))
    return {run: (i - (len(runs) - 1) / 2) * step for i, run in enumerate(runs)}


def _keys(y: float) -> Markup:
    mark = line("whisker c0", MARGIN + 17, MARGIN + 17, y - 12, y + 2)
    point = Markup('<circle class="point c0" cx="{}" cy="{}" r="3.2"/>').format(MARGIN + 17, number(y - 5))
    return mark + point + words_at(MARGIN + 42, y, "mean and its 95% interval, by query", "told")


def _across(group: int, groups: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * (group + 0.5) / groups


def _up(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(max(value / top, 0.0), 1.0))
