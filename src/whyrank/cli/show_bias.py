"""Bias studies on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from whyrank.cli.setup import plural
from whyrank.cli.show import figure, p_value, table
from whyrank.core import printable

if TYPE_CHECKING:
    from whyrank.studies.bias import BiasResult, Correlation, ValueRow

_SUMMARY = """range: mean score of the highest value less that of the lowest; in deltas of the ranker
p: any value differs, permuted within documents and within queries; W: Kendall's coefficient of concordance, 0 to 1
values, pairs: how many differ after correction ({correction}) at {alpha:g}"""
_VALUES = """effect: mean difference from all values in the same templates; clustered by document and query
* p < {alpha:g} after correction ({correction})"""
_CORRELATIONS = """over the values of a class; p permutes values, p shift shifts ordered ones in a circle
given: this figure is partialled out; count: occurrences in the collection"""


def show(results: Sequence[BiasResult], top: int, alpha: float, correction: str) -> None:
    """Print a summary, the values of the largest effects, correlations and notes."""
    from whyrank.report import is_flat

    _summarise(results, alpha, correction)
    for result in results:
        if not is_flat(result):
            _values(result, top, alpha, correction)
    _correlations(results)
    _print_lines(results)


def show_briefly(results: Sequence[BiasResult], alpha: float, correction: str) -> None:
    """Print a summary, what was left out, and notes."""
    _summarise(results, alpha, correction)
    _print_lines(results)


def _print_lines(results: Sequence[BiasResult]) -> None:
    for result in results:
        for line in _lines(result):
            print(printable(line))


def _summarise(results: Sequence[BiasResult], alpha: float, correction: str) -> None:
    """Print a line per study and ranker."""
    header = ["study", "ranker", "templates", "independent", "range", "deltas", "W", "p", "p adj.", "values", "pairs",
              "highest", "lowest"]  # fmt: skip
    rows = [_summary(result, alpha) for result in results]
    table("", header, rows, 2, _SUMMARY.format(correction=correction, alpha=alpha))


def _summary(result: BiasResult, alpha: float) -> list[str]:
    from whyrank.report import is_sure, sure_pairs

    return [
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


def _values(result: BiasResult, top: int, alpha: float, correction: str) -> None:
    rows = sorted(result.values, key=lambda row: (-abs(row.effect), row.value))
    title = f"{result.study}, {result.ranker}" + (": changes of the score" if result.changes else "")
    shown = sorted(rows[:top], key=lambda row: -row.effect)
    header = ["value", "mean", "effect", "95% interval", "deltas", "sds", "p", "p adj.", "weight", "count"]
    more = f"\nthe {top} largest effects of {len(rows)} values" if len(rows) > top else ""
    caption = _VALUES.format(alpha=alpha, correction=correction) + more
    table(title, header, [_value(row, alpha) for row in shown], 1, caption)


def _value(row: ValueRow, alpha: float) -> list[str]:
    from whyrank.report import is_sure

    mark = "*" if is_sure(row, alpha) else " "
    interval = "–" if row.low is None else f"[{figure(row.low, '+.4f')}, {figure(row.high, '+.4f')}]"
    return [
        row.value,
        figure(row.mean, ".4f"),
        figure(row.effect, "+.4f") + mark,
        interval,
        figure(row.deltas, "+.2f"),
        figure(row.sds, "+.2f"),
        p_value(row.p_value),
        p_value(row.p_adjusted),
        figure(row.weight, ".4g"),
        "–" if row.count is None else f"{row.count:,}",
    ]


def _correlations(results: Sequence[BiasResult]) -> None:
    found = [(r, c) for r in results for c in r.correlations if c.pearson is not None]
    if not found:
        return
    header = ["study", "ranker", "of", "with", "given", "n", "Pearson", "95% interval", "p", "p shift", "Spearman"]
    table("", header, [[r.study, r.ranker, *_correlation(c)] for r, c in found], 5, _CORRELATIONS)


def _correlation(row: Correlation) -> list[str]:
    interval = "–" if row.low is None else f"[{figure(row.low, '+.3f')}, {figure(row.high, '+.3f')}]"
    names = [row.first, row.second, row.given or "–", str(row.n)]
    return [*names, figure(row.pearson, "+.3f"), interval, *map(p_value, (row.p_value, row.p_shift)),
            figure(row.spearman, "+.3f")]  # fmt: skip


def _lines(result: BiasResult) -> list[str]:
    from whyrank.report import dropped_of

    name, dropped = f"{result.study}, {result.ranker}", dropped_of(result)
    left_out = [f"{name}: {plural(result.n_templates, 'template')} kept; {dropped}"] if dropped else []
    without = plural(result.nonfinite, "template")
    odd = [f"{name}: {without} left out for want of a finite score"] if result.nonfinite else []
    return [*left_out, *odd, *(f"{name}: {note}" for note in result.notes)]
