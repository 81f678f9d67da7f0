"""Charts as hand-written SVG: they take their colours from the page's style sheet and scale with it."""

from __future__ import annotations

from markupsafe import Markup

from whyrank.report.grid import lean
from whyrank.report.words import count, interval, share, share_interval, signed
from whyrank.studies import Finding

WIDTH = 240
_BAR = 14
_MIDDLE = 10
_OBEDIENCE = {"negative": "violated", "neutral": "tied", "positive": "satisfied"}


def stacked_bar(finding: Finding) -> Markup:
    """Shares of negative, neutral, positive and non-finite answers, from left to right.

    For an axiom these are its instances in which the winner scores lower, the same, and higher.
    """
    parts = {name: getattr(finding, name) for name in ("negative", "neutral", "positive", "nonfinite")}
    named = _OBEDIENCE if finding.conclusion else {}
    spoken = ", ".join(f"{count(n)} {named.get(name, name)}" for name, n in parts.items())
    return _chart(f"{finding.ranker}: {spoken}", _BAR, Markup("").join(_segments(parts)))


def interval_bar(finding: Finding) -> Markup:
    """The score as a dot and its interval as a bar on a scale from -1 to +1."""
    spoken = f"{finding.ranker}: score {signed(finding.score)}, 95% interval {interval(finding)}"
    axis = _axis() + _line("zero", WIDTH / 2, WIDTH / 2, 1, 2 * _MIDDLE - 1)
    side = _side(finding.score or 0.0)
    return _chart(
        spoken, 2 * _MIDDLE, axis + _band(finding.ci_low, finding.ci_high, side) + _dot(finding.score, side)
    )


def share_bar(finding: Finding) -> Markup:
    """The share satisfied as a dot, its interval as a bar, the chance level as a line; the scale is 0 to 100%."""
    found = f"satisfied {share(finding.satisfied)}, 95% interval {share_interval(finding)}"
    spoken = f"{finding.ranker}: {found}, chance {share(finding.chance)}"
    low, high, value = (_unit(v) for v in (finding.satisfied_low, finding.satisfied_high, finding.satisfied))
    side = _side(lean(finding))
    content = _axis() + _chance(_unit(finding.chance)) + _band(low, high, side) + _dot(value, side)
    return _chart(spoken, 2 * _MIDDLE, content)


def _chart(label: str, height: int, content: Markup) -> Markup:
    template = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
    return template.format(WIDTH, height, label, content)


def _segments(parts: dict[str, int]) -> list[Markup]:
    total, left, found = sum(parts.values()), 0.0, []
    for name, n in parts.items():
        width = WIDTH * n / total if total else 0.0
        if n:
            found.append(_segment(name, left, width))
        left += width
    return found


def _segment(name: str, left: float, width: float) -> Markup:
    gap = 1.0 if width > 3 else 0.0  # a thin line of paper between segments, so that colour is not the only border
    shape = Markup('<rect class="bar {}" x="{}" y="0" width="{}" height="{}"/>')
    return shape.format(name, _number(left), _number(max(width - gap, 0.4)), _BAR)


def _axis() -> Markup:
    ticks = [_line("tick", x, x, _MIDDLE - 3, _MIDDLE + 3) for x in (0.5, WIDTH / 4, 3 * WIDTH / 4, WIDTH - 0.5)]
    return Markup("").join([_line("axis", 0, WIDTH, _MIDDLE, _MIDDLE), *ticks])


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> Markup:
    shape = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>')
    return shape.format(kind, *map(_number, (x1, x2, y1, y2)))


def _chance(place: float | None) -> Markup:
    if place is None:
        return Markup("")
    x = min(max(_place(place), 0.75), WIDTH - 0.75)
    return _line("chance", x, x, 0, 2 * _MIDDLE)


def _band(low: float | None, high: float | None, side: str) -> Markup:
    if low is None or high is None:
        return Markup("")
    left, right = _place(low), _place(high)
    shape = Markup('<rect class="band {}" x="{}" y="{}" width="{}" height="8" rx="2"/>')
    return shape.format(side, _number(left), _MIDDLE - 4, _number(max(right - left, 1.0)))


def _dot(value: float | None, side: str) -> Markup:
    if value is None:
        return Markup("")
    x = min(max(_place(value), 4.5), WIDTH - 4.5)
    return Markup('<circle class="dot {}" cx="{}" cy="{}" r="4"/>').format(side, _number(x), _MIDDLE)


def _unit(share_: float | None) -> float | None:
    """A share on the scale from -1 to +1 that the bars have."""
    return None if share_ is None else 2 * share_ - 1


def _place(score: float) -> float:
    return (min(max(score, -1.0), 1.0) + 1) / 2 * WIDTH


def _side(value: float) -> str:
    return "negative" if value < 0 else "positive"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
