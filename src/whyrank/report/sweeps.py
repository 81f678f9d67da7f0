"""Sweeps as people read them: per study the scores of all rankers by percentile of the calibration of delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from whyrank.report.words import DASH
from whyrank.studies import LAST, SweepPoint, stable_from

MARKS = (0, 10, 25, 50, 75, 90, 99)


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
