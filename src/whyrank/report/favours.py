"""What a bias study says, as people read it: how far values lie apart, which ones, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from whyrank.studies.bias import BiasResult, PairRow, ValueRow

PAIRS_SHOWN = 10


def by_study(results: Sequence[BiasResult]) -> dict[str, list[BiasResult]]:
    """The results of each study, one per ranker."""
    found: dict[str, list[BiasResult]] = {}
    for result in results:
        found.setdefault(result.study, []).append(result)
    return found


def is_flat(result: BiasResult) -> bool:
    """Whether all values score the same, as for a ranker that does not see them; equal means alone are not enough."""
    return not any(figure for row in result.values for figure in (row.effect, row.low, row.high))


def ranked(result: BiasResult) -> list[ValueRow]:
    """The values from the most to the least favoured."""
    return sorted(result.values, key=lambda row: -row.effect)


def is_sure(row: BiasResult | ValueRow | PairRow, alpha: float) -> bool:
    """Whether the corrected p-value of a result, a value or a pair lies below alpha."""
    return row.p_adjusted is not None and row.p_adjusted < alpha


def sure_pairs(result: BiasResult, alpha: float) -> int:
    """How many pairs of values differ after correction."""
    return sum(is_sure(row, alpha) for row in result.pairs)


def largest_differences(result: BiasResult, most: int = PAIRS_SHOWN) -> list[PairRow]:
    """The pairs of values that lie furthest apart, the higher one first."""
    return [_upwards(row) for row in sorted(result.pairs, key=lambda row: -abs(row.difference))[:most]]


def _upwards(row: PairRow) -> PairRow:
    if row.difference >= 0:
        return row
    low, high, deltas = (None if x is None else -x for x in (row.high, row.low, row.deltas))
    return replace(
        row, first=row.second, second=row.first, difference=-row.difference, low=low, high=high, deltas=deltas
    )


def dropped_of(result: BiasResult) -> str:
    """How many templates were left out, by reason, in the order of the filters; empty where none were."""
    return "; ".join(f"{reason} {count:,}" for reason, count in result.dropped.items())
