"""Fidelity over queries and collections: means with intervals, and paired differences between surrogates.

Intervals are over queries; collections are taken as given. The average over collections is the mean of their means,
so that each counts alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whyrank.core import Floats, paired_t_p, sign_flip_p, stratified_interval
from whyrank.evaluation.effectiveness import with_adjusted_p
from whyrank.evaluation.fidelity.agreement import Cell, PerQuery
from whyrank.studies import or_none

AVERAGE = "average"
FLIPS = 100_000  # a p-value is never below one over it, and a large table multiplies it by hundreds
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
    parts = {name: [cells] for name, cells in found.items()}
    if len(found) > 1:
        parts[AVERAGE] = list(found.values())
    return [
        _row(name, cell, measure, [cells[cell].values[measure] for cells in some])
        for name, some in parts.items()
        for cell in some[0]
        for measure in measures
    ]


def _row(name: str, cell: Cell, measure: str, parts: Sequence[Floats]) -> FidelityRow:
    kept = _defined(parts)
    queries, all_queries = sum(map(len, kept)), sum(map(len, parts))
    low, high = map(or_none, stratified_interval(kept))
    return FidelityRow(name, *cell, measure, _mean(kept), low, high, queries, all_queries - queries, len(kept))


def differences(
    found: Mapping[str, Cells], baseline: str, measures: Sequence[str], correction: str = "holm", seed: int = 0,
    common: Mapping[str, Mapping[Cell, Pair]] | None = None,
) -> list[FidelityDifference]:  # fmt: skip
    """Every surrogate against the baseline for the same target; p-values are corrected over all of them.

    `common` has, by collection, what takes the place of cells over different documents (see `common_pairs`).
    """
    parts: dict[str, list[dict[Cell, Pair]]] = {}
    for name, cells in found.items():
        own = (common or {}).get(name, {})
        others = (cell for cell in cells if cell[1] != baseline)
        parts[name] = [{cell: own.get(cell) or (cells[cell], cells[cell[0], baseline]) for cell in others}]
    if len(found) > 1:
        parts[AVERAGE] = [pairs for [pairs] in parts.values()]
    rows = [
        _difference(name, cell, baseline, measure, [pairs[cell] for pairs in some], seed)
        for name, some in parts.items()
        for cell in some[0]
        for measure in measures
    ]
    return with_adjusted_p(rows, correction)


def _difference(
    name: str, cell: Cell, baseline: str, measure: str, parts: Sequence[Pair], seed: int
) -> FidelityDifference:
    kept = _defined([_paired(*pair, measure) for pair in parts])
    shares = np.concatenate([np.zeros(0), *(part / len(part) for part in kept)])
    p_value = or_none(sign_flip_p(shares, FLIPS, seed))
    p_t = or_none(paired_t_p(kept[0])) if len(parts) == 1 and kept else None
    low, high = map(or_none, stratified_interval(kept))
    queries = sum(map(len, kept))
    return FidelityDifference(name, *cell, baseline, measure, _mean(kept), low, high, p_value, p_t, queries)


def _paired(one: PerQuery, other: PerQuery, measure: str) -> Floats:
    """Differences by query; both have the queries of the target, but perhaps not in one order."""
    row = {q: i for i, q in enumerate(other.queries)}
    rows = np.array([(i, row[q]) for i, q in enumerate(one.queries) if q in row], np.int64).reshape(-1, 2)
    found: Floats = one.values[measure][rows[:, 0]] - other.values[measure][rows[:, 1]]
    return found


def _defined(parts: Sequence[Floats]) -> list[Floats]:
    """The values that are defined, without collections that have none."""
    return [kept for part in parts if len(kept := part[~np.isnan(part)])]


def _mean(parts: Sequence[Floats]) -> float | None:
    return float(np.mean([part.mean() for part in parts])) if parts else None
