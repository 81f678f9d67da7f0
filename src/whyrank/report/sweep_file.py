"""All sweeps of a result as one SVG file: a panel per study."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from whyrank.report import panels
from whyrank.report.panels import words_at
from whyrank.report.sheets import MARGIN, Cell, sheet
from whyrank.report.sweeps import StudySweep, sweeps_of
from whyrank.studies import SweepPoint

_TITLE = "Scores by percentile of the calibration of δ"
_COLUMNS = 3


def sweep_svg(points: Sequence[SweepPoint]) -> str:
    """One panel per study under a legend, for light and dark screens."""
    sweeps = list(sweeps_of(points).values())
    slots = panels.slots_of(point.ranker for point in points)
    cells = [Cell(sweep.study, _told(sweep), panels.drawing(sweep, slots)) for sweep in sweeps]
    stable = any(sweep.settled is not None for sweep in sweeps)
    columns = min(_COLUMNS, max(2, len(sweeps)))
    return sheet(_TITLE, list(slots), cells, columns, lambda y: _keys(y, stable))


def _told(sweep: StudySweep) -> str:
    """The percentile from which on the order of rankers holds."""
    said = "never stable" if sweep.compared else ""
    return said if sweep.settled is None else f"stable from {sweep.settled}"


def _keys(y: float, stable: bool) -> Markup:
    parts = [panels.line("median", MARGIN + 17, MARGIN + 17, y - 12, y + 2)]
    parts += [words_at(MARGIN + 42, y, "the median", "told")]
    if stable:
        told = words_at(MARGIN + 150, y, "from here on no two rankers change places", "told")
        parts += [panels.stable_mark(MARGIN + 135, y - 9), told]
    return Markup("").join(parts)
