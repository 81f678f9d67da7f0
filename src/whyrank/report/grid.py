"""Findings laid out as people read them: one row per study (and group), one column per ranker."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from whyrank.contrasts.finding import Finding


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

    def strongest(self) -> set[str]:
        """Rankers whose shown score is the furthest from zero, where there are others to compare with."""
        shown = {ranker: abs(round(f.score, 2)) for ranker, f in self.cells.items() if f.score is not None}
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


def significant(finding: Finding, alpha: float) -> bool:
    """Whether the corrected p-value lies below alpha."""
    return finding.p_adjusted is not None and finding.p_adjusted < alpha
