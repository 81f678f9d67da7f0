"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from whyrank.core import printable

if TYPE_CHECKING:
    from rich.console import Console

    from whyrank.evaluation import Spread
    from whyrank.studies import Finding, SweepPoint, Threshold

DROPPED_SHOWN = 12
_CONTROL = "\ncontrol: the score of the study's control, which only joins the tokens of a text by blanks"


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, caption: str = "") -> None:
    """Print a table; the first `left` columns are text, the rest figures. Plain text when not on a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    head, foot = Text(printable(title), "table.title"), Text(printable(caption), "table.caption")
    grid = Table(title=head, box=box.SIMPLE, title_justify="left", caption=foot, caption_justify="left")
    for i, name in enumerate(header):
        grid.add_column(Text(printable(name)), justify="left" if i < left else "right", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(printable(cell)) for cell in row))
    _console().print(grid)


def findings_table(
    findings: Sequence[Finding], thresholds: Mapping[str, Threshold], alpha: float, correction: str
) -> None:
    """Print findings, with delta and the correction stated below, and then what could not be asked."""
    grouped, controlled = any(f.group is not None for f in findings), any(f.control is not None for f in findings)
    header = ["study", "ranker", *["group"] * grouped, "n", "queries", "score", "95% interval"]
    header += [*["control"] * controlled, "p", "p adj.", "+", "0", "-"]
    rows = [_row(f, alpha, grouped, controlled) for f in findings]
    deltas = ", ".join(f"{name} {t.delta:.4g} ({t.source})" for name, t in thresholds.items())
    caption = f"delta: {deltas}{marks(findings, alpha, correction)}"
    caption += _CONTROL if controlled else ""
    table("", header, rows, 3 if grouped else 2, caption)
    print_dropped(findings)


def marks(findings: Sequence[Finding], alpha: float, correction: str) -> str:
    """Lines for the caption: what the star means, what all studies have in common, what was left out."""
    odd = sum(f.nonfinite for f in findings if f.group is None)
    star = f"\n* p < {alpha:g} after correction ({correction}); p and intervals are clustered by query and document"
    left_out = f"\n{odd:,} contrasts without a finite score are left out" if odd else ""
    return star + _shared(findings) + left_out


def print_dropped(findings: Sequence[Finding]) -> None:
    """Print what could not be asked."""
    for line in dropped_lines(findings):
        _console().print(printable(line), markup=False, soft_wrap=True)


def sweep_table(points: Sequence[SweepPoint]) -> None:
    """Print the scores at some percentiles of the calibration of delta."""
    from whyrank.report import MARKS, sweeps_of

    rows = [
        [sweep.study, ranker, *(figure(score, "+.3f") for score in sweep.at_marks(ranker)), sweep.stable_words]
        for sweep in sweeps_of(points).values()
        for ranker in sweep.scores
    ]
    caption = "scores when delta is this percentile of the neighbour differences\n"
    caption += "stable from: no two rankers change places at higher percentiles (up to 95)"
    table("", ["study", "ranker", *(f"p{mark}" for mark in MARKS), "stable from"], rows, 2, caption)


def stability_table(spreads: Sequence[Spread]) -> None:
    """Print how far the rankers of each group differ, per study and per family."""
    from whyrank.report import published

    rows = [[*_spread_row(spread), figure(published(spread), ".2f")] for spread in spreads]
    caption = "sd: sample standard deviation of the scores; for a family, the root of the mean variance\n"
    caption += "100 sd: 100 times that, as ABNIRML (TACL 2022, table 4) gives it"
    caption += "" if spreads else "\nno study has scores of two rankers of a group"
    header = ["group", "study", "rankers", "mean", "sd", "min", "max", "100 sd"]
    table("", header, rows, 2, caption)


def dropped_lines(findings: Sequence[Finding]) -> list[str]:
    """A line per study with questions that could not be asked, at most twelve."""
    counts = {f.study: f"{f.study}: {f.n:,} kept; {f.dropped}" for f in findings if f.group is None and f.dropped}
    lines, more = list(counts.values())[:DROPPED_SHOWN], len(counts) - DROPPED_SHOWN
    return [*lines, f"and {more:,} more"] if more > 0 else lines


def figure(value: float | None, form: str = ".3f") -> str:
    """A number, or a dash where it is undefined; what is rounded to zero has no minus."""
    if value is None:
        return "–"
    shown = format(value, form)
    return shown if shown.strip("-0.%") else shown.replace("-", "+")


def p_value(value: float | None) -> str:
    """A p-value that does not pretend to be zero."""
    return "–" if value is None else "<.001" if value < 0.001 else f"{value:.3f}"


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 400
    return console


def _spread_row(spread: Spread) -> list[str]:
    scores = [figure(score, "+.3f") for score in (spread.mean, spread.low, spread.high)]
    return [spread.group, spread.study, str(spread.rankers), scores[0], figure(spread.deviation), *scores[1:]]


def _row(f: Finding, alpha: float, grouped: bool, controlled: bool) -> list[str]:
    mark = "*" if f.p_adjusted is not None and f.p_adjusted < alpha else " "
    interval = "–" if f.ci_low is None else f"[{figure(f.ci_low, '+.3f')}, {figure(f.ci_high, '+.3f')}]"
    names = [f.study, f.ranker, *([f.group or "all"] if grouped else [])]
    counts = [f"{n:,}" for n in (f.positive, f.neutral, f.negative)]
    score = figure(f.score, "+.3f") + mark
    return [
        *names,
        f"{f.n:,}",
        f"{f.n_queries:,}",
        score,
        interval,
        *([figure(f.control, "+.3f")] if controlled else []),
        p_value(f.p_value),
        p_value(f.p_adjusted),
        *counts,
    ]


def _shared(findings: Sequence[Finding]) -> str:
    """What options added to every study: the arguments that are in the calls and not in the names."""
    from whyrank.core import Call, parse_call

    added = [dict(parse_call(f.call).arguments) for f in findings if f.call and f.call != f.study]
    common = {k: v for k, v in added[0].items() if all(each.get(k) == v for each in added)} if added else {}
    return f"\nstudies with {str(Call('x', None, common))[2:-1]}" if common else ""
