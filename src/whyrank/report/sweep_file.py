"""All sweeps of a result as one SVG file that needs no other: small multiples under a legend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from markupsafe import Markup

from whyrank.audit.sweep import SweepPoint
from whyrank.report import panels
from whyrank.report.panels import HEIGHT, RIGHT, WIDTH, Slots, words_at
from whyrank.report.sweeps import StudySweep, sweeps_of
from whyrank.report.tables import one_line

_TITLE = "Scores by percentile of the calibration of δ"
_HEAD, _GAP, _MARGIN, _COLUMNS = 24, 22, 20, 3
_LETTER = 6.4  # width of a letter, about: SVG does not wrap lines
_ROOT = re.compile(r":root \{(.*?)\}", re.DOTALL)
_OWN = """svg { background: var(--paper); }
.paper { fill: var(--paper); }
.sweep .name { fill: var(--ink); }
.sweep .head { font-size: 15px; }
"""


class _Entry(NamedTuple):
    x: float
    y: float
    name: str


def sweep_svg(points: Sequence[SweepPoint]) -> str:
    """One panel per study under a legend, for light and dark screens."""
    sweeps = list(sweeps_of(points).values())
    slots = panels.slots_of(point.ranker for point in points)
    columns = min(_COLUMNS, max(2, len(sweeps)))
    width = 2 * _MARGIN + columns * WIDTH + (columns - 1) * _GAP
    legend, top = _legend(slots, width, any(sweep.settled is not None for sweep in sweeps))
    cells = [_cell(sweep, slots, *_corner(i, columns, top)) for i, sweep in enumerate(sweeps)]
    rows = -(-len(sweeps) // columns)
    return _file(width, top + rows * (_HEAD + HEIGHT + _GAP), [legend, *cells])


def _file(width: int, height: int, parts: Sequence[Markup]) -> str:
    template = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="sweep" viewBox="0 0 {w} {h}" width="{w}" height="{h}">\n'
        "<title>{title}</title>\n<style>\n{style}</style>\n"
        '<rect class="paper" width="{w}" height="{h}"/>\n{content}\n</svg>\n'
    )
    content = Markup("\n").join(parts)
    return str(template.format(w=width, h=height, title=_TITLE, style=Markup(_style()), content=content))


def _style() -> str:
    """The rules with their colours written out: many programs that read SVG know no variables."""
    rules, palette = _template("sweep.css") + _OWN, _template("palette.css")
    light, dark = (dict(re.findall(r"--([\w-]+): ([^;]+);", block)) for block in _ROOT.findall(palette)[:2])
    return f"{_resolved(rules, light)}@media (prefers-color-scheme: dark) {{\n{_resolved(rules, light | dark)}}}\n"


def _resolved(rules: str, values: Mapping[str, str]) -> str:
    return re.sub(r"var\(--([\w-]+)\)", lambda name: values[name[1]], rules)


def _template(name: str) -> str:
    return (files("whyrank.report") / "templates" / name).read_text(encoding="utf-8")


def _corner(i: int, columns: int, top: int) -> tuple[int, int]:
    row, column = divmod(i, columns)
    return _MARGIN + column * (WIDTH + _GAP), top + row * (_HEAD + HEIGHT + _GAP)


def _cell(sweep: StudySweep, slots: Slots, x: int, y: int) -> Markup:
    """A panel under the name of its study and the percentile from which on the order of rankers holds."""
    said = "never stable" if sweep.compared else ""
    said = said if sweep.settled is None else f"stable from {sweep.settled}"
    name = words_at(0, 14, _fitting(sweep.study, WIDTH - RIGHT - _LETTER * (len(said) + 2)), "name")
    told = words_at(WIDTH - RIGHT, 14, said, "told", "end") if said else ""
    opened = Markup('<g class="panel" transform="translate({} {})"><title>{}</title>').format(
        x, y, one_line(sweep.study)
    )
    plot = Markup('<g transform="translate(0 {})">{}</g></g>').format(_HEAD, panels.drawing(sweep, slots))
    return opened + name + told + plot


def _legend(slots: Slots, width: int, stable: bool) -> tuple[Markup, int]:
    """Title, rankers and marks; and the height that they take."""
    entries = list(_flow(slots, width, _MARGIN + 38))
    y = (entries[-1].y if entries else _MARGIN + 14) + 24
    parts = [words_at(_MARGIN, _MARGIN + 12, _TITLE, "name head")]
    parts += [panels.sample(entry.x, entry.y - 4, slot) for slot, entry in enumerate(entries)]
    parts += [words_at(entry.x + 42, entry.y, entry.name, "name") for entry in entries]
    parts += [panels.line("median", _MARGIN + 17, _MARGIN + 17, y - 12, y + 2)]
    parts += [words_at(_MARGIN + 42, y, "the median", "told")]
    if stable:
        told = words_at(_MARGIN + 150, y, "from here on no two rankers change places", "told")
        parts += [panels.stable_mark(_MARGIN + 135, y - 9), told]
    return Markup('<g class="legend">{}</g>').format(Markup("").join(parts)), int(y) + 28


def _flow(names: Iterable[str], width: int, y: float) -> Iterator[_Entry]:
    """Places for names from left to right, line by line."""
    x: float = _MARGIN
    for name in names:
        shown = _fitting(name, width - 2 * _MARGIN - 42)
        room = 42 + _LETTER * len(shown) + 24
        if x > _MARGIN and x + room > width:
            x, y = _MARGIN, y + 19
        yield _Entry(x, y, shown)
        x += room


def _fitting(text: str, room: float) -> str:
    """The beginning of a text that fits into this many units."""
    letters = max(int(room / _LETTER), 4)
    return text if len(text) <= letters else text[: letters - 1] + "…"
