"""The table of axioms on the terminal: how often each ranker obeys, beside chance and relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from whyrank.cli.axioms import EXPRESSION, PREFIX
from whyrank.cli.show import figure, findings_table, marks, p_value, print_dropped, table

if TYPE_CHECKING:
    from whyrank.studies import Finding, Threshold

_FIGURES = ("conclusion", "instances", "per query", "share", "95% interval", "chance", "p adj.", "satisfied", "tied",
            "violated", "with relevant", "agrees")  # fmt: skip
_MEANING = """
share: of all instances, those that satisfy the conclusion; a tie satisfies a weak one and not a strict one
chance: that share if instances that are not tied were decided by a coin; per query: over queries with instances
with relevant: instances with a relevant document; agrees: where their grades differ, the winner has the better one"""
_UNSCORED = """
unscored: instances without a finite score; they count in instances, per query, with relevant and agrees alone"""


def axioms_table(
    findings: Sequence[Finding], thresholds: Mapping[str, Threshold], alpha: float, correction: str
) -> None:
    """Print the findings of axioms, with delta and the correction stated below."""
    grouped, unscored = any(f.group is not None for f in findings), any(f.nonfinite for f in findings)
    header = ["axiom", "ranker", *["group"] * grouped, *_figures(unscored)]
    rows = [_row(f, alpha, grouped, unscored) for f in findings]
    caption = f"delta: {_deltas(thresholds)}{marks(findings, alpha, correction)}{_MEANING}"
    table("", header, rows, 4 if grouped else 3, caption + _UNSCORED * unscored + _scales(findings))
    print_dropped(findings)


def both_tables(
    findings: Sequence[Finding], thresholds: Mapping[str, Threshold], alpha: float, correction: str
) -> None:
    """Print the findings of other studies and those of axioms, each in their own table."""
    concluded = [f for f in findings if f.conclusion]
    others = [f for f in findings if not f.conclusion]
    if others:
        findings_table(others, thresholds, alpha, correction)
    if concluded:
        axioms_table(concluded, thresholds, alpha, correction)


def _scales(findings: Sequence[Finding]) -> str:
    """On which scale scores are subtracted, where TFC2 compares differences of them."""
    from whyrank.report import scales_of

    asked = [f for f in findings if f.study.partition("(")[0] == f"{PREFIX}TFC2"]
    if not asked:
        return ""
    told = ", ".join(f"{ranker} {scale or 'not declared'}" for ranker, scale in scales_of(asked).items())
    return f"\nTFC2 compares differences of scores, which depend on their scale: {told}"


def _figures(unscored: bool) -> list[str]:
    """The columns of figures; that of instances without a score stands beside those that have one."""
    place = _FIGURES.index("with relevant")
    return [*_FIGURES[:place], *["unscored"] * unscored, *_FIGURES[place:]]


def _row(f: Finding, alpha: float, grouped: bool, unscored: bool) -> list[str]:
    mark = "*" if f.p_adjusted is not None and f.p_adjusted < alpha else " "
    interval = "–" if f.satisfied_low is None else f"[{figure(f.satisfied_low)}, {figure(f.satisfied_high)}]"
    agrees = "–" if f.agreement is None else f"{figure(f.agreement)} of {f.decided:,}"
    return [
        _name(f.study),
        f.ranker,
        *([f.group or "all"] if grouped else []),
        f.conclusion,
        f"{f.n:,}",
        figure(f.n / f.n_queries if f.n_queries else None, ",.1f"),
        figure(f.satisfied) + mark,
        interval,
        figure(f.chance),
        p_value(f.p_adjusted),
        *(f"{count:,}" for count in (f.positive, f.neutral, f.negative, *[f.nonfinite] * unscored)),
        "–" if f.with_relevant is None else f"{f.with_relevant:,}",
        agrees,
    ]


def _name(study: str) -> str:
    """The name without `axiom/`; an expression as it was written."""
    from whyrank.core import parse_call

    call = parse_call(study)
    return str(call.arguments["of"]) if call.name == EXPRESSION else study.removeprefix(PREFIX)


def _deltas(thresholds: Mapping[str, Threshold]) -> str:
    """The delta of axioms: zero or the ranker's tie tolerance, unless one was asked for."""
    if not any(threshold.exact for threshold in thresholds.values()):
        return "0 (axioms)"
    used = {ranker: replace(threshold, delta=threshold.exact) for ranker, threshold in thresholds.items()}
    return ", ".join(f"{ranker} {t.delta:.4g} ({t.source if t.delta else 'axioms'})" for ranker, t in used.items())
