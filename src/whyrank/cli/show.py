"""The answers of rankers to studies as tables on the terminal: findings, axioms, bias studies, sweeps, stability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from whyrank.cli.console import figure, interval, p_value, plural, star, table
from whyrank.cli.studies import EXPRESSION, PREFIX
from whyrank.core import Call, parse_call, printable

if TYPE_CHECKING:
    from whyrank.evaluation import Spread
    from whyrank.studies import Finding, SweepPoint, Threshold
    from whyrank.studies.bias import BiasResult

DROPPED_SHOWN = 12
_CONTROL = "\ncontrol: the score of the study's control, which only joins the tokens of a text by blanks"
_AXIOM_FIGURES = ("conclusion", "instances", "per query", "share", "95% interval", "chance", "p adj.", "satisfied",
                  "tied", "violated")  # fmt: skip
_AXIOMS = """
share: of all instances, those that satisfy the conclusion; a tie satisfies a weak one and not a strict one
chance: that share if instances that are not tied were decided by a coin; per query: over queries with instances
with relevant: instances with a relevant document; agrees: where their grades differ, the winner has the better one"""
_UNSCORED = """
unscored: instances without a finite score; they count in instances, per query, with relevant and agrees alone"""
_BIAS = """range: mean score of the highest value less that of the lowest; in deltas of the ranker
p: any value differs, permuted within documents and within queries; W: Kendall's coefficient of concordance, 0 to 1
values, pairs: how many differ after correction ({correction}) at {alpha:g}"""
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


def _findings(found: Sequence[Finding], thresholds: Mapping[str, Threshold], alpha: float, correction: str) -> None:
    grouped, controlled = any(f.group is not None for f in found), any(f.control is not None for f in found)
    header = ["study", "ranker", *["group"] * grouped, "n", "queries", "score", "95% interval"]
    header += [*["control"] * controlled, "p", "p adj.", "+", "0", "-"]
    rows = [
        [
            f.study,
            f.ranker,
            *[f.group or "all"] * grouped,
            f"{f.n:,}",
            f"{f.n_queries:,}",
            figure(f.score, "+.3f") + star(f.p_adjusted, alpha),
            interval(f.ci_low, f.ci_high),
            *[figure(f.control, "+.3f")] * controlled,
            p_value(f.p_value),
            p_value(f.p_adjusted),
            *(f"{n:,}" for n in (f.positive, f.neutral, f.negative)),
        ]
        for f in found
    ]
    deltas = ", ".join(f"{name} {t.delta:.4g} ({t.source})" for name, t in thresholds.items())
    caption = f"delta: {deltas}{_marks(found, alpha, correction)}{_CONTROL * controlled}"
    table("", header, rows, 3 if grouped else 2, caption)
    _print_dropped(found)


def _axioms(found: Sequence[Finding], thresholds: Mapping[str, Threshold], alpha: float, correction: str) -> None:
    """How often each ranker obeys, beside chance and relevance; axioms have a delta of 0 unless one is asked for."""
    grouped, unscored = any(f.group is not None for f in found), any(f.nonfinite for f in found)
    header = ["axiom", "ranker", *["group"] * grouped, *_AXIOM_FIGURES, *["unscored"] * unscored]
    rows = [
        [
            _axiom_name(f.study),
            f.ranker,
            *[f.group or "all"] * grouped,
            f.conclusion,
            f"{f.n:,}",
            figure(f.n / f.n_queries if f.n_queries else None, ",.1f"),
            figure(f.satisfied) + star(f.p_adjusted, alpha),
            interval(f.satisfied_low, f.satisfied_high, ".3f"),
            figure(f.chance),
            p_value(f.p_adjusted),
            *(f"{count:,}" for count in (f.positive, f.neutral, f.negative, *[f.nonfinite] * unscored)),
            "–" if f.with_relevant is None else f"{f.with_relevant:,}",
            "–" if f.agreement is None else f"{figure(f.agreement)} of {f.decided:,}",
        ]
        for f in found
    ]
    deltas = "0 (axioms)"
    if any(threshold.exact for threshold in thresholds.values()):
        used = {ranker: replace(threshold, delta=threshold.exact) for ranker, threshold in thresholds.items()}
        deltas = ", ".join(f"{name} {t.delta:.4g} ({t.source if t.delta else 'axioms'})" for name, t in used.items())
    caption = f"delta: {deltas}{_marks(found, alpha, correction)}{_AXIOMS}{_UNSCORED * unscored}{_scales(found)}"
    table("", [*header, "with relevant", "agrees"], rows, 4 if grouped else 3, caption)
    _print_dropped(found)


def _axiom_name(study: str) -> str:
    """The name without `axiom/`; an expression as it was written."""
    call = parse_call(study)
    return str(call.arguments["of"]) if call.name == EXPRESSION else study.removeprefix(PREFIX)


def _scales(found: Sequence[Finding]) -> str:
    """On which scale scores are subtracted, where TFC2 compares differences of them."""
    from whyrank.report import scales_of

    asked = [f for f in found if f.study.partition("(")[0] == f"{PREFIX}TFC2"]
    if not asked:
        return ""
    told = ", ".join(f"{ranker} {scale or 'not declared'}" for ranker, scale in scales_of(asked).items())
    return f"\nTFC2 compares differences of scores, which depend on their scale: {told}"


def _marks(found: Sequence[Finding], alpha: float, correction: str) -> str:
    """Lines for the caption: what the star means, what options added to all studies, what was left out."""
    lines = f"\n* p < {alpha:g} after correction ({correction}); p and intervals are clustered by query and document"
    added = [dict(parse_call(f.call).arguments) for f in found if f.call and f.call != f.study]
    common = {k: v for k, v in added[0].items() if all(each.get(k) == v for each in added)} if added else {}
    lines += f"\nstudies with {str(Call('x', None, common))[2:-1]}" if common else ""
    odd = sum(f.nonfinite for f in found if f.group is None)
    return lines + (f"\n{odd:,} contrasts without a finite score are left out" if odd else "")


def _print_dropped(found: Sequence[Finding]) -> None:
    """Print a line per study with questions that could not be asked, at most twelve."""
    counts = {f.study: f"{f.study}: {f.n:,} kept; {f.dropped}" for f in found if f.group is None and f.dropped}
    lines, more = list(counts.values())[:DROPPED_SHOWN], len(counts) - DROPPED_SHOWN
    for line in [*lines, *[f"and {more:,} more"] * (more > 0)]:
        print(printable(line))


def sweep(points: Sequence[SweepPoint]) -> None:
    """Print the scores at some percentiles of the calibration of delta."""
    from whyrank.report import MARKS, sweeps_of

    rows = [
        [each.study, ranker, *(figure(score, "+.3f") for score in each.at_marks(ranker)), each.stable_words]
        for each in sweeps_of(points).values()
        for ranker in each.scores
    ]
    caption = "scores when delta is this percentile of the neighbour differences\n"
    caption += "stable from: no two rankers change places at higher percentiles (up to 95)"
    table("", ["study", "ranker", *(f"p{mark}" for mark in MARKS), "stable from"], rows, 2, caption)


def stability(spreads: Sequence[Spread]) -> None:
    """Print how far the rankers of each group differ, per study and per family."""
    from whyrank.report import published

    rows = [
        [each.group, each.study, str(each.rankers), figure(each.mean, "+.3f"), figure(each.deviation),
         figure(each.low, "+.3f"), figure(each.high, "+.3f"), figure(published(each), ".2f")]
        for each in spreads
    ]  # fmt: skip
    caption = "sd: sample standard deviation of the scores; for a family, the root of the mean variance\n"
    caption += "100 sd: 100 times that, as ABNIRML (TACL 2022, table 4) gives it"
    caption += "" if spreads else "\nno study has scores of two rankers of a group"
    table("", ["group", "study", "rankers", "mean", "sd", "min", "max", "100 sd"], rows, 2, caption)


def bias(results: Sequence[BiasResult], top: int, alpha: float, correction: str) -> None:
    """Print a summary of bias studies, the values of the largest effects with their correlations, and notes."""
    from whyrank.report import dropped_of, is_flat, is_sure, sure_pairs

    header = ["study", "ranker", "templates", "independent", "range", "deltas", "W", "p", "p adj.", "values", "pairs",
              "highest", "lowest"]  # fmt: skip
    rows = [
        [
            result.study,
            result.ranker,
            f"{result.n_templates:,}",
            f"{result.n_clusters:,}",
            figure(result.range, ".4g") + ("*" if is_sure(result, alpha) else " "),
            figure(result.range_deltas, ".2f"),
            figure(result.kendall_w),
            p_value(result.p_value),
            p_value(result.p_adjusted),
            f"{len(result.significant(alpha))} of {len(result.values)}",
            f"{sure_pairs(result, alpha)} of {len(result.pairs)}",
            result.favoured or "–",
            result.disfavoured or "–",
        ]
        for result in results
    ]
    table("", header, rows, 2, _BIAS.format(correction=correction, alpha=alpha))
    if top:
        for result in (result for result in results if not is_flat(result)):
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
    from whyrank.report import is_sure

    largest = sorted(result.values, key=lambda row: (-abs(row.effect), row.value))[:top]
    rows = [
        [
            row.value,
            figure(row.mean, ".4f"),
            figure(row.effect, "+.4f") + ("*" if is_sure(row, alpha) else " "),
            interval(row.low, row.high, "+.4f"),
            figure(row.deltas, "+.2f"),
            figure(row.sds, "+.2f"),
            p_value(row.p_value),
            p_value(row.p_adjusted),
            figure(row.weight, ".4g"),
            "–" if row.count is None else f"{row.count:,}",
        ]
        for row in sorted(largest, key=lambda row: -row.effect)
    ]
    title = f"{result.study}, {result.ranker}" + (": changes of the score" if result.changes else "")
    header = ["value", "mean", "effect", "95% interval", "deltas", "sds", "p", "p adj.", "weight", "count"]
    more = f"\nthe {top} largest effects of {len(result.values)} values" if len(result.values) > top else ""
    table(title, header, rows, 1, _VALUES.format(alpha=alpha, correction=correction) + more)


def _correlations(results: Sequence[BiasResult]) -> None:
    header = ["study", "ranker", "of", "with", "given", "n", "Pearson", "95% interval", "p", "p shift", "Spearman"]
    rows = [
        [result.study, result.ranker, row.first, row.second, row.given or "–", str(row.n),
         figure(row.pearson, "+.3f"), interval(row.low, row.high), *map(p_value, (row.p_value, row.p_shift)),
         figure(row.spearman, "+.3f")]
        for result in results
        for row in result.correlations
        if row.pearson is not None
    ]  # fmt: skip
    if rows:
        table("", header, rows, 5, _CORRELATIONS)
