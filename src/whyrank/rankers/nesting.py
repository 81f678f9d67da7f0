"""Rankers made of other rankers: their parts stand in the call string as call strings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from whyrank.core.callstrings import parse_call
from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Ranker
from whyrank.rankers.http import hide_values
from whyrank.rankers.opening import Setting, open_ranker

BATCH_SIZE = 32  # of a ranker that does not say what suits it


def specs(what: str, given: object) -> list[str]:
    """Two or more call strings in their canonical notation."""
    if not isinstance(given, list | tuple) or len(given) < 2 or not all(isinstance(each, str) for each in given):
        raise WhyrankError(f"{what}: of must be a list of two or more rankers, such as of=['bm25','ql']")
    return [str(parse_call(hide_values(each))) for each in given]


def opened(given: Sequence[str], setting: Setting) -> tuple[Ranker, ...]:
    """The rankers of some call strings, all in the same setting."""
    return tuple(open_ranker(spec, setting) for spec in given)


def batch_size_of(rankers: Sequence[Ranker]) -> int:
    """A batch that suits all: the smallest wish."""
    return min(getattr(ranker, "batch_size", None) or BATCH_SIZE for ranker in rankers)


def tie_tolerance(ranker: Ranker) -> float:
    """The `tie_tolerance` of a ranker: scores that differ by no more are equal; 0 where it declares none."""
    found = getattr(ranker, "tie_tolerance", 0.0)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < math.inf:
        raise WhyrankError(f"ranker {ranker.name!r}: tie_tolerance must be a number, 0 or more, not {found!r}")
    return float(found)


def all_cacheable(rankers: Sequence[Ranker]) -> bool:
    """Whether the scores of all may be reused in a later run."""
    return all(bool(getattr(ranker, "cacheable", True)) for ranker in rankers)
