"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whyrank.audit.runner import Threshold
    from whyrank.audit.sweep import SweepPoint
    from whyrank.contrasts import Finding


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, caption: str = "") -> None:
    """Print a table; the first `left` columns are text, the rest figures. Plain text when not on a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 400
    grid = Table(title=title, box=box.SIMPLE, title_justify="left", caption=caption, caption_justify="left")
    for i, name in enumerate(header):
        grid.add_column(name, justify="left" if i < left else "right", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    console.print(grid)


def findings_table(
    findings: Sequence[Finding], thresholds: Mapping[str, Threshold], alpha: float, correction: str
) -> None:
    """Print findings, with delta and the correction stated below."""
    header = ["study", "ranker", "n", "queries", "score", "95% interval", "p", "p adj.", "+", "0", "-"]
    grouped = any(f.group is not None for f in findings)
    rows = [_row(f, alpha, grouped) for f in findings]
    deltas = ", ".join(f"{name} {t.delta:.4g}{_source(t)}" for name, t in thresholds.items())
    odd = sum(f.nonfinite for f in findings if f.group is None)
    caption = (
        f"delta: {deltas}\n* p < {alpha:g} after correction ({correction}); p and intervals are clustered by query"
    )
    caption += _shared(findings)
    caption += f"\n{odd:,} contrasts without a finite score are left out" if odd else ""
    table("", [*header[:2], *(["group"] if grouped else []), *header[2:]], rows, 3 if grouped else 2, caption)


def sweep_table(points: Sequence[SweepPoint]) -> None:
    """Print the scores at some percentiles of the calibration of delta."""
    marks = (0, 10, 25, 50, 75, 90, 99)
    rows: dict[tuple[str, str], list[str]] = {}
    for point in points:
        if point.percentile in marks:
            rows.setdefault((point.study, point.ranker), []).append(figure(point.score, "+.3f"))
    header = ["study", "ranker", *(f"p{mark}" for mark in marks)]
    caption = "scores when delta is this percentile of the neighbour differences"
    table("", header, [[*key, *scores] for key, scores in rows.items()], 2, caption)


def figure(value: float | None, form: str = ".3f") -> str:
    """A number, or a dash where it is undefined."""
    return "–" if value is None else format(value, form)


def p_value(value: float | None) -> str:
    """A p-value that does not pretend to be zero."""
    return "–" if value is None else "<.001" if value < 0.001 else f"{value:.3f}"


def _row(f: Finding, alpha: float, grouped: bool) -> list[str]:
    mark = "*" if f.p_adjusted is not None and f.p_adjusted < alpha else " "
    interval = "–" if f.ci_low is None else f"[{f.ci_low:+.3f}, {f.ci_high:+.3f}]"
    names = [f.study, f.ranker, *([f.group or "all"] if grouped else [])]
    counts = [f"{n:,}" for n in (f.positive, f.neutral, f.negative)]
    score = figure(f.score, "+.3f") + mark
    return [
        *names,
        f"{f.n:,}",
        f"{f.n_queries:,}",
        score,
        interval,
        p_value(f.p_value),
        p_value(f.p_adjusted),
        *counts,
    ]


def _shared(findings: Sequence[Finding]) -> str:
    """What options added to every study: the arguments that are in the calls and not in the names."""
    from whyrank.core.callstrings import Call, parse_call

    added = [dict(parse_call(f.call).arguments) for f in findings if f.call and f.call != f.study]
    common = {k: v for k, v in added[0].items() if all(each.get(k) == v for each in added)} if added else {}
    return f"\nstudies with {str(Call('x', None, common))[2:-1]}" if common else ""


def _source(threshold: Threshold) -> str:
    return f" ({threshold.calibration.source})" if threshold.calibration else " (given)"
