"""The answers of rankers to studies as tables on the terminal: findings, axioms, bias studies, sweeps, stability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from whyrank.cli.console import Cell, figure, interval, plural, show_rows, star, table
from whyrank.cli.studies import EXPRESSION, PREFIX
from whyrank.core import Call, parse_call, printable

if TYPE_CHECKING:
    from whyrank.evaluation import Spread
    from whyrank.studies import Finding, SweepPoint, Threshold
    from whyrank.studies.bias import BiasResult, ValueRow

DROPPED_SHOWN = 12
_CONTROL = "\ncontrol: the score of the study's control, which only joins the tokens of a text by blanks"
_AXIOMS = """
share: of all instances, those that satisfy the conclusion; a tie satisfies a weak one and not a strict one
chance: that share if instances that are not tied were decided by a coin; per query: over queries with instances
with relevant: instances with a relevant document; agrees: where their grades differ, the winner has the better one"""
_UNSCORED = """
unscored: instances without a finite score; they count in instances, per query, with relevant and agrees alone"""
_BIAS = """range: mean score of the highest value less that of the lowest; in deltas of the ranker
p: any value differs, permuted within documents and within queries; W: Kendall's coefficient of concordance, 0 to 1
values, pairs: how many differ after correction ({correction}) at {alpha:g}"""
_BIAS_DIFFERENCE = """
difference: from the baseline, of the range in deltas of each ranker; its p adj.: any value is favoured differently"""
_VALUES = """effect: mean difference from all values in the same templates; clustered by document and query
* p < {alpha:g} after correction ({correction})"""
_CORRELATIONS = """over the values of a class; p permutes values, p shift shifts ordered ones in a circle
given: this figure is partialled out; count: occurrences in the collection"""


def findings(found: Sequence[Finding], thresholds: Mapping[str, Threshold], alpha: float, correction: str) -> None:
    """Print findings, those of axioms in a table of their own, with delta and the correction stated below."""
    concluded = [f for f in found if f.conclusion]
    others = [f for f in found if not f.conclusion]
    if others or not concluded:
        _findings(others, thresholds, alpha, correction)
    if concluded:
        _axioms(concluded, thresholds, alpha, correction)


def _differences(found: Sequence[Finding | BiasResult | ValueRow], alpha: float) -> dict[str, Cell]:
    """The columns of differences from the baseline, none where there is no baseline."""
    if all(row.difference is None for row in found):
        return {}
    return {
        "difference": lambda row: figure(row.difference, "+.3f") + star(row.difference_adjusted, alpha),
        "its interval": lambda row: interval(row.difference_low, row.difference_high),
        "its p adj.": ("difference_adjusted", "p"),
    }


def _findings(found: Sequence[Finding], thresholds: Mapping[str, Threshold], alpha: float, correction: str) -> None:
    grouped, controlled = any(f.group is not None for f in found), any(f.control is not None for f in found)
    deltas = ", ".join(f"{name} {t.delta:.4g} ({t.source})" for name, t in thresholds.items())
    columns: dict[str, Cell] = {
        "study": "study", "ranker": "ranker", "group": (lambda f: f.group or "all") if grouped else None,
        "n": ("n", ","), "queries": ("n_queries", ","),
        "score": lambda f: figure(f.score, "+.3f") + star(f.p_adjusted, alpha), **_differences(found, alpha),
        "95% interval": lambda f: interval(f.ci_low, f.ci_high),
        "control": ("control", "+.3f") if controlled else None, "p": ("p_value", "p"),
        "p adj.": ("p_adjusted", "p"), "+": ("positive", ","), "0": ("neutral", ","),
        "-": ("negative", ","),
    }  # fmt: skip
    caption = f"delta: {deltas}{_marks(found, alpha, correction)}{_CONTROL * controlled}"
    show_rows("", found, columns, 3 if grouped else 2, caption)
    _print_dropped(found)


def _axioms(found: Sequence[Finding], thresholds: Mapping[str, Threshold], alpha: float, correction: str) -> None:
    """How often each ranker obeys, beside chance and relevance; axioms have a delta of 0 unless one is given."""
    grouped, unscored = any(f.group is not None for f in found), any(f.nonfinite for f in found)
    deltas = "0 (axioms)"
    if any(threshold.exact for threshold in thresholds.values()):
        used = {ranker: replace(threshold, delta=threshold.exact) for ranker, threshold in thresholds.items()}
        deltas = ", ".join(f"{name} {t.delta:.4g} ({t.source if t.delta else 'axioms'})" for name, t in used.items())
    columns: dict[str, Cell] = {
        "axiom": lambda f: _axiom_name(f.study), "ranker": "ranker",
        "group": (lambda f: f.group or "all") if grouped else None, "conclusion": "conclusion",
        "instances": ("n", ","),
        "per query": lambda f: figure(f.n / f.n_queries if f.n_queries else None, ",.1f"),
        "share": lambda f: figure(f.satisfied) + star(f.p_adjusted, alpha), **_differences(found, alpha),
        "95% interval": lambda f: interval(f.satisfied_low, f.satisfied_high, ".3f"),
        "chance": ("chance", ".3f"), "p adj.": ("p_adjusted", "p"), "satisfied": ("positive", ","),
        "tied": ("neutral", ","), "violated": ("negative", ","),
        "unscored": ("nonfinite", ",") if unscored else None, "with relevant": ("with_relevant", ","),
        "agrees": lambda f: "–" if f.agreement is None else f"{figure(f.agreement)} of {f.decided:,}",
    }  # fmt: skip
    caption = f"delta: {deltas}{_marks(found, alpha, correction)}{_AXIOMS}{_UNSCORED * unscored}{_scales(found)}"
    show_rows("", found, columns, 4 if grouped else 3, caption)
    _print_dropped(found)


def _axiom_name(study: str) -> str:
    """The name without `axiom/`; an expression as it was written."""
    call = parse_call(study)
    return str(call.arguments["of"]) if call.name == EXPRESSION else study.removeprefix(PREFIX)


def _scales(found: Sequence[Finding]) -> str:
    """On which scale scores are subtracted, where TFC2 compares differences of them."""
    from whyrank.report import scales_of

    of_three = [f for f in found if f.study.partition("(")[0] == f"{PREFIX}TFC2"]
    if not of_three:
        return ""
    scales = ", ".join(f"{ranker} {scale or 'not declared'}" for ranker, scale in scales_of(of_three).items())
    return f"\nTFC2 compares differences of scores, which depend on their scale: {scales}"


def _marks(found: Sequence[Finding], alpha: float, correction: str) -> str:
    """Lines for the caption: what the star means, what options added to all studies, what was left out."""
    lines = f"\n* p < {alpha:g} after correction ({correction}); p and intervals are clustered by query and document"
    added = [dict(parse_call(f.call).arguments) for f in found if f.call and f.call != f.study]
    common = {k: v for k, v in added[0].items() if all(each.get(k) == v for each in added)} if added else {}
    lines += f"\nstudies with {str(Call('x', None, common))[2:-1]}" if common else ""
    odd = sum(f.nonfinite for f in found if f.group is None)
    baseline = next((f.baseline for f in found if f.baseline), "")
    lines += f"\ndifference: from {baseline} on the same contrasts, tested by query" if baseline else ""
    return lines + (f"\n{odd:,} contrasts without a finite score are left out" if odd else "")


def _print_dropped(found: Sequence[Finding]) -> None:
    """Print a line per study with questions that were dropped, at most twelve."""
    counts = {f.study: f"{f.study}: {f.n:,} kept; {f.dropped}" for f in found if f.group is None and f.dropped}
    lines, more = list(counts.values())[:DROPPED_SHOWN], len(counts) - DROPPED_SHOWN
    for line in [*lines, *[f"and {more:,} more"] * (more > 0)]:
        print(printable(line))


def sweep(points: Sequence[SweepPoint], names: Mapping[str, str]) -> None:
    """Print the scores at some percentiles of the calibration of delta."""
    from whyrank.report import MARKS, sweeps_of

    rows = []
    for each in sweeps_of(points).values():
        stable = "–" if not each.compared else "never" if each.settled is None else str(each.settled)
        for ranker in each.scores:
            rows.append(
                [
                    each.study,
                    names.get(ranker, ranker),
                    *(figure(score, "+.3f") for score in each.at_marks(ranker)),
                    stable,
                ]
            )
    caption = "scores when delta is this percentile of the neighbour differences\n"
    caption += "stable from: no two rankers change places at higher percentiles (up to 95)"
    table("", ["study", "ranker", *(f"p{mark}" for mark in MARKS), "stable from"], rows, 2, caption)


def stability(spreads: Sequence[Spread]) -> None:
    """Print how far the rankers of each group differ, per study and per family."""
    from whyrank.report import family_deviation

    caption = "sd: sample standard deviation of the scores; for a family, the root of the mean variance\n"
    caption += "100 sd: 100 times that, as ABNIRML (TACL 2022, table 4) gives it"
    caption += "" if spreads else "\nno study has scores of two rankers of a group"
    columns: dict[str, Cell] = {
        "group": "group", "study": "study", "rankers": ("rankers", "d"), "mean": ("mean", "+.3f"),
        "sd": ("deviation", ".3f"), "min": ("low", "+.3f"), "max": ("high", "+.3f"),
        "100 sd": lambda each: figure(family_deviation(each), ".2f"),
    }  # fmt: skip
    show_rows("", spreads, columns, 2, caption)


def bias(results: Sequence[BiasResult], top: int, alpha: float, correction: str) -> None:
    """Print a summary of bias studies, the values of the largest effects with their correlations, and notes."""
    from whyrank.report import dropped_of, is_flat, significant_pairs

    columns: dict[str, Cell] = {
        "study": "study", "ranker": "ranker",
        "range": lambda result: figure(result.range, ".4g") + star(result.p_adjusted, alpha),
        "deltas": ("range_deltas", ".2f"), "highest": "favoured", "lowest": "disfavoured",
        **_differences(results, alpha),
        "templates": ("n_templates", ","), "independent": ("n_clusters", ","),
        "W": ("kendall_w", ".3f"), "p": ("p_value", "p"), "p adj.": ("p_adjusted", "p"),
        "values": lambda result: f"{len(result.significant(alpha))} of {len(result.values)}",
        "pairs": lambda result: f"{significant_pairs(result, alpha)} of {len(result.pairs)}",
    }  # fmt: skip
    caption = _BIAS.format(correction=correction, alpha=alpha)
    caption += _BIAS_DIFFERENCE * any(result.difference is not None for result in results)
    show_rows("", results, columns, 2, caption)
    if top:
        for result in results:
            if not is_flat(result):
                _values(result, top, alpha, correction)
        _correlations(results)
    for result in results:
        name, dropped = f"{result.study}, {result.ranker}", dropped_of(result)
        lines = [f"{plural(result.n_templates, 'template')} kept; {dropped}"] if dropped else []
        if result.nonfinite:
            lines.append(f"{plural(result.nonfinite, 'template')} left out for want of a finite score")
        for line in (*lines, *result.notes):
            print(printable(f"{name}: {line}"))


def _values(result: BiasResult, top: int, alpha: float, correction: str) -> None:
    largest = sorted(result.values, key=lambda row: (-abs(row.effect), row.value))[:top]
    more = f"\nthe {top} largest effects of {len(result.values)} values" if len(result.values) > top else ""
    columns: dict[str, Cell] = {
        "value": "value", "mean": ("mean", ".4f"),
        "effect": lambda row: figure(row.effect, "+.4f") + star(row.p_adjusted, alpha),
        "95% interval": lambda row: interval(row.low, row.high, "+.4f"), "deltas": ("deltas", "+.2f"),
        **_differences(largest, alpha), "sds": ("sds", "+.2f"), "p": ("p_value", "p"), "p adj.": ("p_adjusted", "p"),
        "weight": ("weight", ".4g"), "count": ("count", ","),
    }  # fmt: skip
    caption = _VALUES.format(alpha=alpha, correction=correction) + more
    title = f"{result.study}, {result.ranker}" + (": changes of the score" if result.changes else "")
    show_rows(title, sorted(largest, key=lambda row: -row.effect), columns, 1, caption)


def _correlations(results: Sequence[BiasResult]) -> None:
    rows = [
        {"study": result.study, "ranker": result.ranker, **vars(row)}
        for result in results
        for row in result.correlations
        if row.pearson is not None
    ]
    columns: dict[str, Cell] = {
        "study": "study", "ranker": "ranker", "of": "first", "with": "second", "given": "given", "n": ("n", "d"),
        "Pearson": ("pearson", "+.3f"), "p": ("p_value", "p"), "p shift": ("p_shift", "p"),
        "95% interval": lambda row: interval(row["low"], row["high"]), "Spearman": ("spearman", "+.3f"),
    }  # fmt: skip
    if rows:
        show_rows("", rows, columns, 5, _CORRELATIONS)
