"""Small multiples as one SVG file that needs no other: panels in rows under a title and a legend of lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from markupsafe import Markup

from whyrank.report import panels
from whyrank.report.panels import HEIGHT, RIGHT, WIDTH, words_at
from whyrank.report.tables import one_line

MARGIN = 20
_HEAD, _GAP = 24, 22
_LETTER = 6.4  # width of a letter, about: SVG does not wrap lines
_ROOT = re.compile(r":root \{(.*?)\}", re.DOTALL)
_OWN = """svg {{ background: var(--paper); }}
.paper {{ fill: var(--paper); }}
.{kind} .name {{ fill: var(--ink); }}
.{kind} .head {{ font-size: 15px; }}
"""


class Cell(NamedTuple):
    """One panel: its name on the left, a few words on the right, and below them the drawing."""

    name: str
    told: str
    drawing: Markup


class _Entry(NamedTuple):
    x: float
    y: float
    name: str


def sheet(
    title: str, lines: Sequence[str], cells: Sequence[Cell], columns: int, keys: Callable[[float], Markup]
) -> str:
    """All cells, `columns` in a row, for light and dark screens; `lines` are named in the legend.

    `keys` draws the last line of the legend, which explains marks, at the height that it is given.
    """
    width = 2 * MARGIN + columns * WIDTH + (columns - 1) * _GAP
    legend, top = _legend(title, lines, width, keys)
    placed = [_cell(cell, *_corner(i, columns, top)) for i, cell in enumerate(cells)]
    rows = -(-len(cells) // columns)
    return svg_file("sweep", title, width, top + rows * (_HEAD + HEIGHT + _GAP), [legend, *placed])


def svg_file(kind: str, title: str, width: int, height: int, parts: Sequence[Markup]) -> str:
    """A drawing with a title as a file; `kind` names its class and its style sheet."""
    template = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" viewBox="0 0 {w} {h}" width="{w}" height="{h}">\n'
        "<title>{title}</title>\n<style>\n{style}</style>\n"
        '<rect class="paper" width="{w}" height="{h}"/>\n{content}\n</svg>\n'
    )
    content = Markup("\n").join(parts)
    style = Markup(_style(kind))
    return str(template.format(kind=kind, w=width, h=height, title=one_line(title), style=style, content=content))


def _style(kind: str) -> str:
    """The rules with their colours written out: many programs that read SVG know no variables."""
    rules, palette = _template(f"{kind}.css") + _OWN.format(kind=kind), _template("palette.css")
    light, dark = (dict(re.findall(r"--([\w-]+): ([^;]+);", block)) for block in _ROOT.findall(palette)[:2])
    return f"{_resolved(rules, light)}@media (prefers-color-scheme: dark) {{\n{_resolved(rules, light | dark)}}}\n"


def _resolved(rules: str, values: Mapping[str, str]) -> str:
    return re.sub(r"var\(--([\w-]+)\)", lambda name: values[name[1]], rules)


def _template(name: str) -> str:
    return (files("whyrank.report") / "templates" / name).read_text(encoding="utf-8")


def _corner(i: int, columns: int, top: int) -> tuple[int, int]:
    row, column = divmod(i, columns)
    return MARGIN + column * (WIDTH + _GAP), top + row * (_HEAD + HEIGHT + _GAP)


def _cell(cell: Cell, x: int, y: int) -> Markup:
    name = words_at(0, 14, _fitting(cell.name, WIDTH - RIGHT - _LETTER * (len(cell.told) + 2)), "name")
    told = words_at(WIDTH - RIGHT, 14, cell.told, "told", "end") if cell.told else ""
    opened = Markup('<g class="panel" transform="translate({} {})"><title>{}</title>').format(
        x, y, one_line(cell.name)
    )
    plot = Markup('<g transform="translate(0 {})">{}</g></g>').format(_HEAD, cell.drawing)
    return opened + name + told + plot


def _legend(title: str, lines: Sequence[str], width: int, keys: Callable[[float], Markup]) -> tuple[Markup, int]:
    """Title, lines and marks; and the height that they take."""
    entries = list(_flow(lines, width, MARGIN + 38))
    y = (entries[-1].y if entries else MARGIN + 14) + 24
    parts = [words_at(MARGIN, MARGIN + 12, _fitting(title, 0.8 * width), "name head")]
    parts += [panels.sample(entry.x, entry.y - 4, slot) for slot, entry in enumerate(entries)]
    parts += [words_at(entry.x + 42, entry.y, entry.name, "name") for entry in entries]
    return Markup('<g class="legend">{}</g>').format(Markup("").join([*parts, keys(y)])), int(y) + 28


def _flow(names: Iterable[str], width: int, y: float) -> Iterator[_Entry]:
    """Places for names from left to right, line by line."""
    x: float = MARGIN
    for name in names:
        shown = _fitting(name, width - 2 * MARGIN - 42)
        room = 42 + _LETTER * len(shown) + 24
        if x > MARGIN and x + room > width:
            x, y = MARGIN, y + 19
        yield _Entry(x, y, shown)
        x += room


def _fitting(text: str, room: float) -> str:
    """The beginning of a text that fits into this many units."""
    letters = max(int(room / _LETTER), 4)
    return text if len(text) <= letters else text[: letters - 1] + "…"
