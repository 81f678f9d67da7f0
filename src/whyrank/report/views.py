"""Results laid out as people read them: rows of findings, sweeps, panels of the overlap split, groups of rankers."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from whyrank.evaluation import ALL, OverlapRow, Spread
from whyrank.report.words import DASH, figure, share
from whyrank.studies import LAST, Finding, SweepPoint, stable_from
from whyrank.studies.bias import BiasResult, PairRow, ValueRow

MARKS = (0, 10, 25, 50, 75, 90, 99)  # the percentiles of a sweep that tables show


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
    def family(self) -> str:
        """The part of the study's id before the slash."""
        head, slash, _ = self.study.partition("(")[0].partition("/")
        return head if slash else "other"

    @property
    def dropped(self) -> str:
        """How many questions could not be asked, by reason; empty where none were dropped."""
        return next((finding.dropped for finding in self.cells.values() if finding.dropped), "")

    @property
    def controlled(self) -> bool:
        """Whether the study has a control with a score."""
        return any(finding.control is not None for finding in self.cells.values())

    @property
    def conclusion(self) -> str:
        """`strict` or `weak` for an axiom; empty for any other study."""
        return next((finding.conclusion for finding in self.cells.values() if finding.conclusion), "")

    @property
    def judged(self) -> Finding | None:
        """A finding that says how far relevance agrees with the axiom: the same for all rankers."""
        return next((finding for finding in self.cells.values() if finding.with_relevant is not None), None)

    @property
    def charted(self) -> bool:
        """Whether a chart of scores shows it: bias studies have charts of their own."""
        return any(f.score is not None and f.n and f.range is None for f in self.cells.values())

    def strongest(self) -> set[str]:
        """Rankers whose shown score is the furthest from zero, where there are others to compare with.

        For an axiom, those that satisfy it most often; for a bias study, those with the largest range in deltas.
        """
        values = {
            ranker: f.satisfied if f.conclusion else f.score if f.range is None else f.range_deltas
            for ranker, f in self.cells.items()
        }
        shown = {ranker: abs(round(v, 3 if self.conclusion else 2)) for ranker, v in values.items() if v is not None}
        top = max(shown.values(), default=0.0)
        return {ranker for ranker, value in shown.items() if value == top > 0} if len(shown) > 1 else set()


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


def shared_names(findings: Iterable[Finding]) -> bool:
    """Whether some study stands for several collections, so that its name does not say all."""
    pairs = {(finding.study, finding.collection) for finding in findings}
    return len(pairs) > len({study for study, _ in pairs})


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


def lean(finding: Finding) -> float:
    """How far the share satisfied lies above chance, from -1 (never) over 0 (chance) to +1 (always)."""
    if finding.satisfied is None or finding.chance is None:
        return 0.0
    above = finding.satisfied - finding.chance
    room = 1 - finding.chance if above > 0 else finding.chance
    return max(-1.0, min(1.0, above / room)) if room > 0 else 0.0


def shade(finding: Finding) -> float:
    """How dark the cell of a significant bias is, from 0 to 1: one half where the range is one delta, or unknown."""
    deltas = 1.0 if finding.range_deltas is None else finding.range_deltas
    return deltas / (1 + deltas)


def significant(row: Finding | BiasResult | ValueRow | PairRow, alpha: float) -> bool:
    """Whether the corrected p-value of a finding, or of a value or pair of a bias study, lies below alpha."""
    return row.p_adjusted is not None and row.p_adjusted < alpha


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

    @property
    def stable_words(self) -> str:
        """The percentile, `never`, or a dash where there is nothing to compare."""
        if not self.compared:
            return DASH
        return "never" if self.settled is None else str(self.settled)

    @property
    def sentence(self) -> str:
        """What the sweep says about the order of the rankers; nothing where there is none."""
        if not self.compared:
            return ""
        if self.settled is None:
            return f"The order of rankers is never stable: it changes up to percentile {LAST}."
        return f"The order of rankers is stable from percentile {self.settled} on."

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


def overlap_panels(rows: Sequence[OverlapRow]) -> list[OverlapPanel]:
    """The panels in the order of the rows."""
    found: dict[tuple[str, str], dict[str, list[OverlapRow]]] = {}
    for measure in dict.fromkeys(row.measure for row in rows):
        for row in (each for each in rows if each.measure == measure):
            found.setdefault((measure, row.queries), {}).setdefault(row.run, []).append(row)
    return [OverlapPanel(*key, runs) for key, runs in found.items()]


def by_measure(rows: Sequence[OverlapRow]) -> dict[str, list[OverlapPanel]]:
    """The panels of each measure."""
    found: dict[str, list[OverlapPanel]] = {}
    for panel in overlap_panels(rows):
        found.setdefault(panel.measure, []).append(panel)
    return found


def shares_of(row: OverlapRow) -> str:
    """The shares of a group's queries: one, or the smallest and the largest."""
    low, high = share(row.share_low, 0), share(row.share_high, 0)
    return low if low == high else f"{low.rstrip('%')}{DASH}{high}"


def mean_of(row: OverlapRow) -> str:
    """The mean with three decimals."""
    return DASH if row.mean is None else f"{row.mean:.3f}"


def interval_of(row: OverlapRow) -> str:
    """The interval of the mean in brackets."""
    return DASH if row.ci_low is None or row.ci_high is None else f"[{row.ci_low:.3f}, {row.ci_high:.3f}]"


@dataclass(frozen=True)
class StabilityGroup:
    """The rankers that a pattern names, and how far their scores spread per study and per family."""

    pattern: str
    rankers: Sequence[str]
    spreads: Sequence[Spread]


def stability_groups(spreads: Sequence[Spread] | None, rankers: Sequence[str]) -> list[StabilityGroup]:
    """The groups in their order; none where none were given."""
    patterns = dict.fromkeys(spread.group for spread in spreads or ())
    return [
        StabilityGroup(pattern, fnmatch.filter(rankers, pattern), [s for s in spreads or () if s.group == pattern])
        for pattern in patterns
    ]


def published(spread: Spread) -> float | None:
    """For a family, 100 times the root of the mean variance over its studies, as ABNIRML's table 4 gives it."""
    is_family = spread.mean is None
    return 100 * spread.deviation if is_family else None
