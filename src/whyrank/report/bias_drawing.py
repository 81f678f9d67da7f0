"""The values of a bias study as SVG: a line per value, its effect as a dot and the interval as a bar."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from whyrank.report.favours import is_sure, ranked
from whyrank.report.panels import line, number, words_at
from whyrank.report.sheets import svg_file
from whyrank.report.tables import one_line
from whyrank.studies.bias import BiasResult, ValueRow

_NAMES, _PLOT, _LINE, _HEAD, _FOOT, _GAP = 130, 300, 17, 52, 40, 24


def bias_svg(results: Sequence[BiasResult], alpha: float = 0.05) -> str:
    """One study as a file: a panel per ranker, values by their effects, significant ones in another colour."""
    width = len(results) * (_NAMES + _PLOT + _GAP) + _GAP
    height = max(_height(result) for result in results)
    placed = [
        Markup('<g transform="translate({} 0)">{}</g>').format(_GAP + i * (_NAMES + _PLOT + _GAP), _panel(r, alpha))
        for i, r in enumerate(results)
    ]
    return svg_file("bias", f"{results[0].study}: effect per value", width, height, placed)


def bias_panel(result: BiasResult, alpha: float = 0.05) -> Markup:
    """The same for one ranker as a picture in a page, whose style sheet gives it its colours."""
    spoken = one_line(f"{result.study}: effect of each value on the scores of {result.ranker}")
    template = Markup('<svg class="bias" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return template.format(_NAMES + _PLOT + _GAP, _height(result), spoken, _panel(result, alpha))


def _height(result: BiasResult) -> int:
    return _HEAD + _LINE * len(result.values) + _FOOT


def _panel(result: BiasResult, alpha: float) -> Markup:
    rows = ranked(result)
    reach = _reach(rows)
    bottom = _HEAD + _LINE * len(rows)
    parts = [words_at(0, 18, f"{result.study}: {result.ranker}"[:64], "name head")]
    parts += [words_at(0, 34, f"{result.n_templates:,} templates, difference from the mean of all values", "told")]
    for x in (-reach, 0.0, reach):
        parts += [line("grid" if x else "origin", _x(x, reach), _x(x, reach), _HEAD - 6, bottom)]
        parts += [words_at(_x(x, reach), bottom + 16, f"{x:+.3g}" if x else "0", "tick", "middle")]
    parts += [_row(row, _HEAD + _LINE * i + 8, reach, alpha) for i, row in enumerate(rows)]
    return Markup("").join(parts)


def _row(row: ValueRow, y: float, reach: float, alpha: float) -> Markup:
    name = words_at(_NAMES - 10, y + 4, row.value[:20], "name", "end")
    dot = Markup('<circle class="dot" cx="{}" cy="{}" r="3.4"/>').format(number(_x(row.effect, reach)), number(y))
    band = Markup("")
    if row.low is not None and row.high is not None:
        band = line("band", _x(row.low, reach), _x(row.high, reach), y, y)
    told = f"{row.value}: {row.effect:+.4g}"
    template = Markup('<g class="{}"><title>{}</title>{}{}{}</g>')
    return template.format("value sure" if is_sure(row, alpha) else "value", one_line(told), name, band, dot)


def _reach(rows: Sequence[ValueRow]) -> float:
    """A round number that no end of an interval passes."""
    largest = max((abs(x) for row in rows for x in (row.effect, row.low, row.high) if x is not None), default=0.0)
    if largest <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(largest))
    return next(unit * step for step in (1, 2, 3, 4, 5, 6, 8, 10) if unit * step >= largest * (1 - 1e-9))


def _x(value: float, reach: float) -> float:
    return _NAMES + _PLOT * (min(max(value / reach, -1.0), 1.0) + 1) / 2
