"""Findings laid out as people read them: one row per study (and group), one column per ranker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from whyrank.studies import Finding


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
        """Number of contrasts: that of the ranker that was asked the most."""
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
    place = {key: i for i, key in reversed(list(enumerate(row[:2] for row in found)))}
    return [found[key] for key in sorted(found, key=lambda key: (place[key[:2]], key[2] is not None))]


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


def deltas_of(findings: Sequence[Finding]) -> dict[str, list[float]]:
    """The deltas used for each ranker: one, unless results of several runs were joined."""
    return {
        ranker: sorted({finding.delta for finding in findings if finding.ranker == ranker})
        for ranker in rankers_of(findings)
    }


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


def significant(finding: Finding, alpha: float) -> bool:
    """Whether the corrected p-value lies below alpha."""
    return finding.p_adjusted is not None and finding.p_adjusted < alpha
