"""Results laid out as people read them: rows of findings, sweeps, the overlap split, groups of rankers, biases."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from whyrank.core import mean_interval
from whyrank.evaluation import ALL, Effectiveness, OverlapRow, Spread
from whyrank.evaluation.fidelity import PerQuery
from whyrank.learners.surprises import Surprise, surprises
from whyrank.report.words import DASH, bounds, figure, share
from whyrank.studies import LAST, Finding, SweepPoint, or_none, stable_from
from whyrank.studies.bias import BiasResult, PairRow, ValueRow, spelled
from whyrank.tables import TermTable, Weighted

MARKS = (0, 10, 25, 50, 75, 90, 99)  # the percentiles of a sweep that tables show
TERMS, BEST = 300, 10  # query terms of a table that a report has, and document terms of each


@dataclass(frozen=True)
class Row:
    """The answers of all rankers to one study, or to one group of its contrasts."""

    study: str
    collection: str
    group: str | None
    meaning: str
    cells: dict[str, Finding] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of contrasts: that of the ranker with the most."""
        return max((finding.n for finding in self.cells.values()), default=0)

    @property
    def n_queries(self) -> int:
        """Number of queries that the contrasts come from."""
        return max((finding.n_queries for finding in self.cells.values()), default=0)

    @property
    def dropped(self) -> str:
        """How many questions could not be asked, by reason; empty where none were dropped."""
        return next((finding.dropped for finding in self.cells.values() if finding.dropped), "")

    @property
    def controlled(self) -> bool:
        """Whether the study has a control with a score."""
        return any(finding.control is not None for finding in self.cells.values())

    @property
    def drawn(self) -> str:
        """How many texts, templates or pairs were drawn of how many; empty where all were taken."""
        for f in self.cells.values():
            if f.drawn is not None and f.available is not None and f.drawn < f.available:
                unit = {"edited": "texts", "bias": "templates"}.get(f.study.partition("/")[0], "pairs")
                return f"{f.drawn:,} of {f.available:,} {unit}"
        return ""

    @property
    def baseline(self) -> str:
        """The ranker that the others were compared with; empty where none was."""
        return next((f.baseline for f in self.cells.values() if f.baseline), "")

    @property
    def conclusion(self) -> str:
        """`strict` or `weak` for an axiom; empty for any other study."""
        return next((finding.conclusion for finding in self.cells.values() if finding.conclusion), "")

    @property
    def judged(self) -> Finding | None:
        """A finding that says how far relevance agrees with the axiom: the same for all rankers."""
        return next((finding for finding in self.cells.values() if finding.with_relevant is not None), None)

    @property
    def tied(self) -> bool:
        """Whether no ranker that has scores prefers any text; False without contrasts."""
        known = [f for f in self.cells.values() if f.n > f.nonfinite]
        return bool(known) and all(f.neutral == f.n - f.nonfinite and not f.range for f in known)


def rows_of(findings: Iterable[Finding]) -> list[Row]:
    """All rows; those of one study stand together, the whole before its groups, else in the order of the findings."""
    found: dict[tuple[str, str, str | None], Row] = {}
    for f in findings:
        row = found.setdefault((f.study, f.collection, f.group), Row(f.study, f.collection, f.group, f.meaning))
        row.cells[f.ranker] = f
    order = list(dict.fromkeys(key[:2] for key in found))
    return [found[key] for key in sorted(found, key=lambda key: (order.index(key[:2]), key[2] is not None))]


def rankers_of(findings: Iterable[Finding]) -> list[str]:
    """Names of the rankers in the order in which they first occur."""
    return list(dict.fromkeys(finding.ranker for finding in findings))


def collections_of(findings: Iterable[Finding]) -> list[str]:
    """Names of the collections in the order in which they first occur."""
    return list(dict.fromkeys(finding.collection for finding in findings))


def delta_words(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """Each ranker and its delta in figures; several deltas where results of several runs were joined."""
    deltas = {ranker: {f.delta for f in findings if f.ranker == ranker} for ranker in rankers_of(findings)}
    return [(ranker, ", ".join(map(figure, sorted(values)))) for ranker, values in deltas.items()]


def scales_of(findings: Iterable[Finding]) -> dict[str, str]:
    """What each ranker declares its scores to be; empty where it declares nothing."""
    found: dict[str, str] = {}
    for finding in findings:
        found[finding.ranker] = found.get(finding.ranker) or finding.scale
    return found


def standing(finding: Finding, alpha: float) -> int:
    """+1 where a ranker obeys an axiom more often than chance would, -1 where less often, else 0.

    The share satisfied lies half the score above chance, and chance depends on the ties of the same instances: so it
    is the interval of the score that must lie above or below zero. The test must not contradict it: a few instances
    that all agree have an interval of no width, but no small p-value.
    """
    low, high = finding.ci_low, finding.ci_high
    if low is None or high is None or finding.chance is None:
        return 0
    doubtful = finding.p_adjusted is not None and not significant(finding, alpha)
    return 0 if doubtful else int(low > 0) - int(high < 0)


def is_clear(finding: Finding, alpha: float) -> bool:
    """Whether an answer is significant; that of an axiom, whether it lies above or below chance."""
    return standing(finding, alpha) != 0 if finding.conclusion else significant(finding, alpha)


def significant(row: Finding | BiasResult | ValueRow | PairRow, alpha: float) -> bool:
    """Whether the corrected p-value of a finding, or of a value or pair of a bias study, lies below alpha."""
    return row.p_adjusted is not None and row.p_adjusted < alpha


def differs(finding: Finding, alpha: float) -> bool:
    """Whether the difference from the baseline is significant."""
    return finding.difference_adjusted is not None and finding.difference_adjusted < alpha


@dataclass(frozen=True)
class StudySweep:
    """The scores of one study: by ranker, by percentile; `stable` is where the order of the rankers settles."""

    study: str
    scores: Mapping[str, Mapping[int, float | None]]
    stable: int | None

    @property
    def curves(self) -> dict[str, list[tuple[int, float]]]:
        """Percentile and score of the rankers that have any."""
        found = {
            ranker: [(percentile, score) for percentile, score in sorted(scores.items()) if score is not None]
            for ranker, scores in self.scores.items()
        }
        return {ranker: curve for ranker, curve in found.items() if curve}

    @property
    def compared(self) -> bool:
        """Whether there are two rankers or more whose order can change."""
        return len(self.curves) > 1

    @property
    def settled(self) -> int | None:
        """The percentile from which on the order holds; None without an order, and where it changes to the end."""
        return self.stable if self.compared and self.stable is not None and self.stable < LAST else None

    def at_marks(self, ranker: str) -> list[float | None]:
        """The scores of a ranker at the percentiles that tables show."""
        return [self.scores[ranker].get(mark) for mark in MARKS]


def sweeps_of(points: Sequence[SweepPoint]) -> dict[str, StudySweep]:
    """The sweeps by study, in the order of the points."""
    scores: dict[str, dict[str, dict[int, float | None]]] = {}
    for point in points:
        scores.setdefault(point.study, {}).setdefault(point.ranker, {})[point.percentile] = point.score
    stable = stable_from(points)
    return {study: StudySweep(study, rows, stable[study]) for study, rows in scores.items()}


@dataclass(frozen=True)
class OverlapPanel:
    """The rows of one measure and one kind of queries, by run, each in the order of the groups."""

    measure: str
    queries: str
    runs: Mapping[str, Sequence[OverlapRow]]

    @property
    def title(self) -> str:
        """Which queries are counted, in words."""
        return {ALL: "All queries", "retrieved": "Relevant document retrieved"}.get(self.queries, self.queries)

    @property
    def groups(self) -> list[OverlapRow]:
        """One row per group, for its number, its shares and its number of queries."""
        return list(next(iter(self.runs.values())))

    @property
    def n(self) -> int:
        """Number of queries."""
        return sum(row.n for row in self.groups)


def by_measure(rows: Sequence[OverlapRow]) -> dict[str, list[OverlapPanel]]:
    """The panels of each measure, in the order of the rows."""
    found: dict[str, dict[str, dict[str, list[OverlapRow]]]] = {}
    for row in rows:
        found.setdefault(row.measure, {}).setdefault(row.queries, {}).setdefault(row.run, []).append(row)
    return {name: [OverlapPanel(name, *panel) for panel in panels.items()] for name, panels in found.items()}


def shares_of(row: OverlapRow) -> str:
    """The shares of a group's queries: one, or the smallest and the largest."""
    low, high = share(row.share_low, 0), share(row.share_high, 0)
    return low if low == high else f"{low.rstrip('%')}{DASH}{high}"


def mean_of(row: OverlapRow) -> str:
    """The mean with three decimals."""
    return DASH if row.mean is None else f"{row.mean:.3f}"


def interval_of(row: OverlapRow) -> str:
    """The interval of the mean in brackets."""
    return bounds(row.ci_low, row.ci_high, "{:.3f}".format)


def by_run(rows: Sequence[Effectiveness]) -> dict[str, dict[str, Effectiveness]]:
    """The measures of each run, by name."""
    found: dict[str, dict[str, Effectiveness]] = {}
    for row in rows:
        found.setdefault(row.run, {})[row.measure] = row
    return found


def mean_with_interval(row: Effectiveness) -> tuple[float, float | None, float | None]:
    """The mean over queries and its 95% interval."""
    low, high = map(or_none, mean_interval(list(row.per_query.values()), bounds=(0, 1)))
    return row.mean, low, high


def mean_over(found: PerQuery, measure: str) -> float | None:
    """The mean of a measure of fidelity over the queries for which it is defined; None where there are none."""
    known = found.values[measure][np.isfinite(found.values[measure])]
    return float(known.mean()) if len(known) else None


def table_rows(table: TermTable, queries: Iterable[str]) -> list[tuple[str, int, list[Weighted]]]:
    """The query terms of a table that most queries have, how many have them, and their best document terms."""
    analyzer, found = str(table.facts.get("analyzer", "")), Counter[str]()
    for query in queries:
        found.update({spelled(analyzer, word, True) for word in re.findall(r"\w+", query)})
    known = sorted((-count, term) for term, count in found.items() if term in table.query_numbers)
    return [
        (table.word(term), -count, [Weighted(table.word(each), w) for each, w in table.doc_terms_for(term, BEST)])
        for count, term in known[:TERMS]
    ]


def surprises_of(table: TermTable, alpha: float) -> list[Surprise]:
    """The significant surprises of a table, at most five of each kind; those that need texts are not looked for."""
    return [each for each in surprises(table).first(5) if each.p_adjusted < alpha]


def stability_groups(
    spreads: Sequence[Spread] | None, rankers: Sequence[str]
) -> list[tuple[str, Sequence[str], Sequence[Spread]]]:
    """The pattern of each group of rankers, the rankers that it names, and how far their scores spread."""
    patterns = dict.fromkeys(spread.group for spread in spreads or ())
    return [(p, fnmatch.filter(rankers, p), [s for s in spreads or () if s.group == p]) for p in patterns]


def family_deviation(spread: Spread) -> float | None:
    """For a family, 100 times the root of the mean variance over its studies, as ABNIRML's table 4 gives it."""
    is_family = spread.mean is None
    return 100 * spread.deviation if is_family else None


# Results of bias studies.


def by_study(results: Sequence[BiasResult]) -> dict[str, list[BiasResult]]:
    """The results of each study, one per ranker."""
    found: dict[str, list[BiasResult]] = {}
    for result in results:
        found.setdefault(result.study, []).append(result)
    return found


def is_flat(result: BiasResult) -> bool:
    """Whether all values score the same, as for a ranker that does not see them; equal means alone are not enough."""
    return not any(figure for row in result.values for figure in (row.effect, row.low, row.high))


def by_effect(result: BiasResult) -> list[ValueRow]:
    """The values from the most to the least favoured."""
    return sorted(result.values, key=lambda row: -row.effect)


def significant_pairs(result: BiasResult, alpha: float) -> int:
    """How many pairs of values differ after correction."""
    return sum(significant(row, alpha) for row in result.pairs)


def largest_differences(result: BiasResult, most: int = 10) -> list[PairRow]:
    """The pairs of values that lie furthest apart, the higher one first."""
    found = []
    for row in sorted(result.pairs, key=lambda row: -abs(row.difference))[:most]:
        low, high, deltas = (None if x is None else -x for x in (row.high, row.low, row.deltas))
        turned: dict[str, Any] = {"first": row.second, "second": row.first, "difference": -row.difference}
        turned |= {"low": low, "high": high, "deltas": deltas}
        found.append(row if row.difference >= 0 else replace(row, **turned))
    return found


def dropped_of(result: BiasResult) -> str:
    """How many templates were left out, by reason, in the order of the filters; empty where none were."""
    return "; ".join(f"{reason} {count:,}" for reason, count in result.dropped.items())
