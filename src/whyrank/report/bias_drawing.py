"""The values of a bias study as SVG: a line per value, its effect as a dot and the interval as a bar."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from whyrank.audit.bias_result import BiasResult, ValueRow
from whyrank.report.panels import line, number, words_at
from whyrank.report.tables import one_line

_NAMES, _PLOT, _LINE, _HEAD, _FOOT, _GAP = 130, 300, 17, 52, 40, 24
_STYLE = """
.bias { background: #fdfcfa; } .bias .paper { fill: #fdfcfa; }
.bias text { fill: #5d6066; font: 11px system-ui, sans-serif; } .bias .name { fill: #1d1e20; }
.bias .head { font-size: 14px; } .bias .grid { stroke: #dcd9d2; } .bias .origin { stroke: #5d6066; }
.bias .band { stroke: #1f5fa8; stroke-width: 5; opacity: 0.35; } .bias .dot { fill: #1f5fa8; }
.bias .sure .band { stroke: #c25a00; } .bias .sure .dot { fill: #c25a00; }
@media (prefers-color-scheme: dark) {
.bias { background: #15171a; } .bias .paper { fill: #15171a; } .bias text { fill: #a3a6ab; }
.bias .name { fill: #e9e7e2; } .bias .grid { stroke: #34373c; } .bias .band { stroke: #6aacf2; }
.bias .dot { fill: #6aacf2; } .bias .sure .band { stroke: #f3a04f; } .bias .sure .dot { fill: #f3a04f; }
}
"""


def bias_svg(results: Sequence[BiasResult], alpha: float = 0.05) -> str:
    """One study: a panel per ranker, values in the order of their effects, significant ones in another colour."""
    width = sum(_NAMES + _PLOT for _ in results) + _GAP * (len(results) + 1)
    height = _HEAD + _LINE * max(len(result.values) for result in results) + _FOOT
    panels = [_panel(r, _GAP + i * (_NAMES + _PLOT + _GAP), alpha) for i, r in enumerate(results)]
    template = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="bias" viewBox="0 0 {w} {h}" width="{w}" height="{h}" '
        'role="img" aria-label="{title}">\n<title>{title}</title>\n<style>{style}</style>\n'
        '<rect class="paper" width="{w}" height="{h}"/>\n{content}\n</svg>\n'
    )
    title, content = one_line(f"{results[0].study}: effect per value"), Markup("\n").join(panels)
    return str(template.format(w=width, h=height, title=title, style=Markup(_STYLE), content=content))


def _panel(result: BiasResult, left: float, alpha: float) -> Markup:
    rows = sorted(result.values, key=lambda row: -row.effect)
    reach = _reach(rows)
    bottom = _HEAD + _LINE * len(rows)
    parts = [words_at(0, 18, f"{result.study}: {result.ranker}"[:64], "name head")]
    parts += [words_at(0, 34, f"{result.n_templates:,} templates, difference from the mean of all values", "told")]
    for x in (-reach, 0.0, reach):
        parts += [line("grid" if x else "origin", _x(x, reach), _x(x, reach), _HEAD - 6, bottom)]
        parts += [words_at(_x(x, reach), bottom + 16, f"{x:+.3g}" if x else "0", "tick", "middle")]
    parts += [_row(row, _HEAD + _LINE * i + 8, reach, alpha) for i, row in enumerate(rows)]
    return Markup('<g transform="translate({} 0)">{}</g>').format(number(left), Markup("").join(parts))


def _row(row: ValueRow, y: float, reach: float, alpha: float) -> Markup:
    sure = row.p_adjusted is not None and row.p_adjusted < alpha
    name = words_at(_NAMES - 10, y + 4, row.value[:20], "name", "end")
    dot = Markup('<circle class="dot" cx="{}" cy="{}" r="3.4"/>').format(number(_x(row.effect, reach)), number(y))
    band = Markup("")
    if row.low is not None and row.high is not None:
        band = line("band", _x(row.low, reach), _x(row.high, reach), y, y)
    told = f"{row.value}: {row.effect:+.4g}"
    template = Markup('<g class="{}"><title>{}</title>{}{}{}</g>')
    return template.format("value sure" if sure else "value", one_line(told), name, band, dot)


def _reach(rows: Sequence[ValueRow]) -> float:
    """A round number that no end of an interval passes."""
    largest = max((abs(x) for row in rows for x in (row.effect, row.low, row.high) if x is not None), default=0.0)
    if largest <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(largest))
    return next(unit * step for step in (1, 2, 3, 4, 5, 6, 8, 10) if unit * step >= largest * (1 - 1e-9))


def _x(value: float, reach: float) -> float:
    return _NAMES + _PLOT * (min(max(value / reach, -1.0), 1.0) + 1) / 2
