"""Fidelity over queries and collections: means with intervals, and paired differences between surrogates.

Intervals are over queries; collections are taken as given. The average over
collections is the mean of their means, so that each counts alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from whyrank.core import Floats, Interval, adjust, paired_t_p, sign_flip_p, stratified_interval
from whyrank.evaluation.fidelity.agreement import PerQuery
from whyrank.studies import or_none

AVERAGE = "average"
FLIPS = 100_000  # a p-value is never below one over it, and a large table multiplies it by hundreds
Cell = tuple[str, str]  # target, surrogate
Cells = Mapping[Cell, PerQuery]
Pair = tuple[PerQuery, PerQuery]  # of a surrogate and of the baseline


@dataclass(frozen=True)
class FidelityRow:
    """The mean of a measure over the queries of a collection, or over collections (`average`).

    `n_queries` counts the queries of the mean, `undefined` those that have no value and are left out; `collections`
    those that have a mean. The interval is that of a mean over queries.
    """

    collection: str
    target: str
    surrogate: str
    measure: str
    mean: float | None
    ci_low: float | None
    ci_high: float | None
    n_queries: int
    undefined: int
    collections: int = 1


@dataclass(frozen=True)
class FidelityDifference:
    """How much better one surrogate stands in for a target than the baseline does, paired by query.

    Over the queries for which both are defined, and the documents that both have scored. `p_value` is a two-sided
    randomisation test (signs of the per-query differences), `p_t` the paired t-test, None for an average;
    `p_adjusted` corrects `p_value` over the whole table.
    """

    collection: str
    target: str
    surrogate: str
    baseline: str
    measure: str
    difference: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    p_t: float | None
    n_queries: int
    p_adjusted: float | None = None


def summarise(found: Mapping[str, Cells], measures: Sequence[str]) -> list[FidelityRow]:
    """A row for each collection, target, surrogate and measure; then, for several collections, their averages."""
    rows = [
        _row(name, cell, measure, [per_query.values[measure]])
        for name, cells in found.items()
        for cell, per_query in cells.items()
        for measure in measures
    ]
    if len(found) < 2:
        return rows
    parts = list(found.values())
    return rows + [
        _row(AVERAGE, cell, measure, [cells[cell].values[measure] for cells in parts])
        for cell in parts[0]
        for measure in measures
    ]


def differences(
    found: Mapping[str, Cells], baseline: str, measures: Sequence[str], correction: str = "holm", seed: int = 0,
    common: Mapping[str, Mapping[Cell, Pair]] | None = None,
) -> list[FidelityDifference]:  # fmt: skip
    """Every surrogate against the baseline for the same target; p-values are corrected over all of them.

    `common` has, by collection, what takes the place of cells over different documents (see `compare_common`).
    """
    pairs = {name: _pairs(cells, baseline, (common or {}).get(name, {})) for name, cells in found.items()}
    whole = {AVERAGE: list(pairs.values())} if len(found) > 1 else {}
    rows = [
        _difference(name, cell, baseline, measure, [part[cell] for part in parts], seed)
        for name, parts in {**{name: [each] for name, each in pairs.items()}, **whole}.items()
        for cell in parts[0]
        for measure in measures
    ]
    raw = np.array([np.nan if row.p_value is None else row.p_value for row in rows])
    return [replace(row, p_adjusted=or_none(p)) for row, p in zip(rows, adjust(raw, correction), strict=True)]


def _pairs(cells: Cells, baseline: str, common: Mapping[Cell, Pair]) -> dict[Cell, Pair]:
    """Every surrogate beside the baseline of the same target."""
    others = (cell for cell in cells if cell[1] != baseline)
    return {cell: common.get(cell) or (cells[cell], cells[cell[0], baseline]) for cell in others}


def _row(name: str, cell: Cell, measure: str, parts: Sequence[Floats]) -> FidelityRow:
    kept = _defined(parts)
    queries, asked = sum(map(len, kept)), sum(map(len, parts))
    ends = _ends(stratified_interval(kept))
    return FidelityRow(name, *cell, measure, or_none(_mean(kept)), *ends, queries, asked - queries, len(kept))


def _difference(
    name: str, cell: Cell, baseline: str, measure: str, parts: Sequence[Pair], seed: int
) -> FidelityDifference:
    target, surrogate = cell
    kept = _defined([_paired(*pair, measure) for pair in parts])
    shares = np.concatenate([np.zeros(0), *(part / len(part) for part in kept)])
    return FidelityDifference(
        name,
        target,
        surrogate,
        baseline,
        measure,
        or_none(_mean(kept)),
        *_ends(stratified_interval(kept)),
        or_none(sign_flip_p(shares, FLIPS, seed)),
        or_none(paired_t_p(kept[0])) if len(parts) == 1 and kept else None,
        sum(map(len, kept)),
    )


def _paired(one: PerQuery, other: PerQuery, measure: str) -> Floats:
    """Differences by query; both have the queries of the target, but perhaps not in one order."""
    place = {q: i for i, q in enumerate(other.queries)}
    rows = [(i, place[q]) for i, q in enumerate(one.queries) if q in place]
    mine, theirs = (np.array([row[side] for row in rows], np.int64) for side in (0, 1))
    found: Floats = one.values[measure][mine] - other.values[measure][theirs]
    return found


def _defined(parts: Sequence[Floats]) -> list[Floats]:
    """The values that are defined, without collections that have none."""
    return [kept for part in parts if len(kept := part[~np.isnan(part)])]


def _mean(parts: Sequence[Floats]) -> float:
    return float(np.mean([part.mean() for part in parts])) if parts else np.nan


def _ends(interval: Interval) -> tuple[float | None, float | None]:
    return or_none(interval.low), or_none(interval.high)
