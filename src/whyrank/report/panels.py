"""Panels of a sweep as hand-written SVG: one per study, one line per ranker, told apart by colour and by dashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from whyrank.report.sweeps import StudySweep
from whyrank.report.tables import one_line
from whyrank.studies import MEDIAN

WIDTH, HEIGHT = 340, 200
LEFT, RIGHT, TOP, BOTTOM = 30, 10, 8, 34
_COLOURS, _DASHES = 8, 7  # no common divisor, so that 56 rankers look different
_TICKS = (0, 25, MEDIAN, 75, 99)

Slots = Mapping[str, int]


def slots_of(rankers: Iterable[str]) -> dict[str, int]:
    """A number per ranker, which decides the look of its line in every panel."""
    return {ranker: i for i, ranker in enumerate(dict.fromkeys(rankers))}


def look(slot: int) -> str:
    """The classes of a line: a colour and a pattern of dashes."""
    return f"curve c{slot % _COLOURS} d{slot % _DASHES}"


def panel(sweep: StudySweep, slots: Slots) -> Markup:
    """One study as a picture in a page, whose style sheet gives it its colours."""
    spoken = f"{sweep.study}: scores by percentile of δ of {', '.join(sweep.curves) or 'no ranker'}"
    template = Markup('<svg class="sweep" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return template.format(WIDTH, HEIGHT, spoken, drawing(sweep, slots))


def swatch(slot: int) -> Markup:
    """A piece of a ranker's line, for a legend."""
    template = Markup('<svg class="sweep swatch" viewBox="0 0 34 8" aria-hidden="true">{}</svg>')
    return template.format(sample(0, 4, slot))


def drawing(sweep: StudySweep, slots: Slots) -> Markup:
    """Axes, lines and marks of one study."""
    lines = Markup("").join(_curve(ranker, curve, slots[ranker]) for ranker, curve in sweep.curves.items())
    mark = stable_mark(_across(sweep.settled), _up(-1)) if sweep.settled is not None else Markup("")
    nothing = words_at((LEFT + WIDTH - RIGHT) / 2, _up(0) - 8, "no contrasts", "told", "middle")
    middle = line("median", _across(MEDIAN), _across(MEDIAN), _up(1), _up(-1))
    return _axes() + (middle + lines if lines else nothing) + mark


def _axes() -> Markup:
    levels = [("grid", 1.0), ("grid", 0.5), ("origin", 0.0), ("grid", -0.5), ("grid", -1.0)]
    rules = [line(kind, _across(0), _across(99), _up(y), _up(y)) for kind, y in levels]
    rules += [line("grid", _across(x), _across(x), _up(-1), _up(-1) + 4) for x in _TICKS]
    names = [words_at(LEFT - 6, _up(y) + 4, name, "tick", "end") for y, name in ((1, "+1"), (0, "0"), (-1, "−1"))]
    names += [words_at(_across(x), _up(-1) + 18, str(x), "tick", "middle") for x in _TICKS]
    names += [words_at(_across(49.5), HEIGHT - 3, "percentile", "tick", "middle")]
    return Markup("").join(rules + names)


def _curve(ranker: str, curve: Sequence[tuple[int, float]], slot: int) -> Markup:
    points = " ".join(f"{number(_across(x))},{number(_up(y))}" for x, y in curve)
    template = Markup('<polyline class="{}" points="{}"><title>{}</title></polyline>')
    return template.format(look(slot), points, one_line(ranker))


def sample(x: float, y: float, slot: int) -> Markup:
    """A short piece of a line."""
    return line(look(slot), x, x + 34, y, y)


def stable_mark(x: float, y: float) -> Markup:
    """A small triangle that points at a place on the axis."""
    corners = f"{number(x)},{number(y)} {number(x - 4.5)},{number(y + 8)} {number(x + 4.5)},{number(y + 8)}"
    return Markup('<polygon class="stable" points="{}"/>').format(corners)


def line(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    """A straight line of some class."""
    template = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>')
    return template.format(kind, *map(number, (x1, x2, y1, y2)))


def words_at(x: float, y: float, words: str, kind: str, anchor: str = "start") -> Markup:
    """A text of some class at a place."""
    template = Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>')
    return template.format(kind, number(x), number(y), anchor, one_line(words))


def _across(percentile: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * percentile / 99


def _up(score: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(max(score, -1.0), 1.0)) / 2


def number(value: float) -> str:
    """A coordinate with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
