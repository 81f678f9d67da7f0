"""Charts as hand-written SVG: they take their colours from the page's style sheet and scale with it."""

from __future__ import annotations

from markupsafe import Markup

from whyrank.contrasts.finding import Finding
from whyrank.report.words import count, interval, signed

WIDTH = 240
_BAR = 14
_MIDDLE = 10


def stacked_bar(finding: Finding) -> Markup:
    """Shares of negative, neutral, positive and non-finite answers, from left to right."""
    parts = {name: getattr(finding, name) for name in ("negative", "neutral", "positive", "nonfinite")}
    spoken = ", ".join(f"{count(n)} {name}" for name, n in parts.items())
    return _chart(f"{finding.ranker}: {spoken}", _BAR, Markup("").join(_segments(parts)))


def interval_bar(finding: Finding) -> Markup:
    """The score as a dot and its interval as a bar on a scale from -1 to +1."""
    spoken = f"{finding.ranker}: score {signed(finding.score)}, 95% interval {interval(finding)}"
    return _chart(spoken, 2 * _MIDDLE, _axis() + _band(finding) + _dot(finding))


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
    lines: list[tuple[str, float, float, float, float]] = [("axis", 0, WIDTH, _MIDDLE, _MIDDLE)]
    lines += [("tick", x, x, _MIDDLE - 3, _MIDDLE + 3) for x in (0.5, WIDTH / 4, 3 * WIDTH / 4, WIDTH - 0.5)]
    lines += [("zero", WIDTH / 2, WIDTH / 2, 1, 2 * _MIDDLE - 1)]
    shape = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>')
    return Markup("").join(shape.format(name, *map(_number, places)) for name, *places in lines)


def _band(finding: Finding) -> Markup:
    if finding.ci_low is None or finding.ci_high is None:
        return Markup("")
    left, right = _place(finding.ci_low), _place(finding.ci_high)
    shape = Markup('<rect class="band {}" x="{}" y="{}" width="{}" height="8" rx="2"/>')
    return shape.format(_side(finding), _number(left), _MIDDLE - 4, _number(max(right - left, 1.0)))


def _dot(finding: Finding) -> Markup:
    if finding.score is None:
        return Markup("")
    x = min(max(_place(finding.score), 4.5), WIDTH - 4.5)
    return Markup('<circle class="dot {}" cx="{}" cy="{}" r="4"/>').format(_side(finding), _number(x), _MIDDLE)


def _place(score: float) -> float:
    return (min(max(score, -1.0), 1.0) + 1) / 2 * WIDTH


def _side(finding: Finding) -> str:
    return "negative" if (finding.score or 0.0) < 0 else "positive"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
