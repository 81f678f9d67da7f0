"""Stability over seeds as people read it: the spread of scores within groups of rankers."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass

from whyrank.evaluation import Spread


@dataclass(frozen=True)
class StabilityGroup:
    """The rankers that a pattern names, and how far their scores spread per study and per family."""

    pattern: str
    rankers: Sequence[str]
    spreads: Sequence[Spread]


def stability_groups(spreads: Sequence[Spread] | None, rankers: Sequence[str]) -> list[StabilityGroup]:
    """The groups in their order; none where none were asked for."""
    patterns = dict.fromkeys(spread.group for spread in spreads or ())
    return [
        StabilityGroup(pattern, fnmatch.filter(rankers, pattern), [s for s in spreads or () if s.group == pattern])
        for pattern in patterns
    ]


def is_family(spread: Spread) -> bool:
    """Whether a row stands for all studies of a family."""
    return spread.mean is None


def published(spread: Spread) -> float | None:
    """For a family, 100 times the root of the mean variance over its studies, as ABNIRML's table 4 gives it."""
    return 100 * spread.deviation if is_family(spread) else None
