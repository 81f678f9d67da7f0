"""The overlap split as people read it: a panel per measure and kind of queries, a line per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from whyrank.evaluation import ALL, OverlapRow
from whyrank.report.words import DASH, share

TITLES = {ALL: "All queries", "retrieved": "Relevant document retrieved"}


@dataclass(frozen=True)
class OverlapPanel:
    """The rows of one measure and one kind of queries, by run, each in the order of the groups."""

    measure: str
    queries: str
    runs: Mapping[str, Sequence[OverlapRow]]

    @property
    def title(self) -> str:
        """Which queries are counted, in words."""
        return TITLES.get(self.queries, self.queries)

    @property
    def groups(self) -> list[OverlapRow]:
        """One row per group, for its number, its shares and its number of queries."""
        return list(next(iter(self.runs.values())))

    @property
    def n(self) -> int:
        """Number of queries."""
        return sum(row.n for row in self.groups)

    @property
    def highest(self) -> float:
        """The largest mean or end of an interval."""
        ends = [end for rows in self.runs.values() for row in rows for end in (row.mean, row.ci_high)]
        return max((end for end in ends if end is not None), default=0.0)


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
