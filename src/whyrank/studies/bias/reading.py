"""Readout of a bias study: from the scores of a grid to its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from whyrank.core import EXACT_CLUSTERS, Flags, Floats, adjust
from whyrank.studies.bias.correlation import PERMUTATIONS, Correlation, correlate
from whyrank.studies.bias.grid import Grid, finite_columns, finite_rows
from whyrank.studies.bias.result import BiasResult, PairRow, ValueRow
from whyrank.studies.bias.statistics import Clustered, cluster_scores, mean_bounds, omnibus, pair_differences, value_p
from whyrank.studies.bias.weights import table_weights
from whyrank.studies.findings import or_none
from whyrank.tables import TermTable

_SURE = 0.05


@dataclass(frozen=True, eq=False)
class BiasSetting:
    """What the readout needs to know besides the scores."""

    study: str
    call: str
    ranker: str
    collection: str
    table: TermTable | None = None
    delta: float | None = None
    correction: str = "holm"
    seed: int = 0
    permutations: int = 10_000


class _Units(NamedTuple):
    delta: float | None
    sd: float | None


def read_bias(grid: Grid, scores: Floats, setting: BiasSetting) -> BiasResult:
    """Means, tests, differences and correlations of the templates that have all scores.

    A value without a score in any template is left out, so that it does not take all templates with it.
    """
    columns, unscored = finite_columns(scores), _unscored(grid, scores)
    grid, scores = grid.of_values(columns), scores[:, columns]
    usable = finite_rows(scores)
    kept, clusters = scores[usable], [way[usable] for way in grid.clusters]
    sums = cluster_scores(kept, *clusters)
    units = _Units(setting.delta or None, _deviation(kept))
    test = omnibus(sums, setting.permutations, setting.seed)
    rows = _values(grid, sums, setting, units) if len(kept) else []
    return BiasResult(
        study=setting.study,
        call=setting.call,
        ranker=setting.ranker,
        collection=setting.collection,
        n_templates=len(kept),
        n_clusters=sums.size,
        nonfinite=int(np.count_nonzero(~usable)),
        dropped=dict(grid.dropped),
        delta=units.delta,
        sd=units.sd,
        seed=setting.seed,
        correction=setting.correction,
        changes=grid.appended,
        values=rows,
        pairs=_pairs(grid, sums, setting, units) if len(kept) else [],
        correlations=_correlations(grid, rows, setting),
        notes=[
            *_left_out(unscored, grid),
            *_notes(sums.size, int(np.count_nonzero(~usable)), rows, setting),
            *_unweighted(grid, rows, setting.table),
            *_one_query(grid, usable),
        ],
        unscored=unscored,
        n_values=len(columns),
        p_value=or_none(test.p_value),
        friedman=or_none(test.friedman),
        p_friedman=or_none(test.p_friedman),
        kendall_w=or_none(test.kendall_w),
    )


def _values(grid: Grid, sums: Clustered, setting: BiasSetting, units: _Units) -> list[ValueRow]:
    n, p = sums.cells.sizes.sum(), value_p(sums, setting.permutations, setting.seed)
    effects = sums.cells.effects.sum(axis=0) / n
    columns = [
        sums.cells.scores.sum(axis=0) / n, *mean_bounds(sums, lambda way: way.scores),
        effects, *mean_bounds(sums, lambda way: way.effects),
        p, adjust(p, setting.correction), *_in_units(effects, units), _weights(grid, setting),
    ]  # fmt: skip
    known = np.full(len(grid.values), np.nan) if grid.counts is None else grid.counts
    counts = [None if np.isnan(count) else int(count) for count in known]
    table = np.stack(columns, axis=1).tolist()
    return [_value(value, row, count) for value, row, count in zip(grid.values, table, counts, strict=True)]


def _value(value: str, figures: list[float], count: int | None) -> ValueRow:
    mean, mean_low, mean_high, effect, *rest = figures
    low, high, p, adjusted, deltas, sds, weight = map(or_none, rest)
    bounds = or_none(mean_low), or_none(mean_high)
    return ValueRow(value, mean, *bounds, effect, low, high, p, adjusted, deltas, sds, weight, count)


def _pairs(grid: Grid, sums: Clustered, setting: BiasSetting, units: _Units) -> list[PairRow]:
    found = pair_differences(sums)
    adjusted = adjust(found.p_values, setting.correction)
    deltas, _ = _in_units(found.mean, units)
    figures = np.stack([found.mean, *found.bounds, found.p_values, adjusted, deltas], axis=1).tolist()
    names = zip(found.first.tolist(), found.second.tolist(), figures, strict=True)
    return [PairRow(grid.values[i], grid.values[j], row[0], *map(or_none, row[1:])) for i, j, row in names]


def _in_units(effects: Floats, units: _Units) -> tuple[Floats, Floats]:
    found = [effects / unit if unit else np.full(len(effects), np.nan) for unit in units]
    return found[0], found[1]


def _deviation(scores: Floats) -> float | None:
    """The standard deviation of the mean scores of the templates; None where there is none."""
    if len(scores) < 2:
        return None
    return float(scores.mean(axis=1).std(ddof=1)) or None


def _weights(grid: Grid, setting: BiasSetting) -> Floats:
    if setting.table is None:
        return np.full(len(grid.values), np.nan)
    return table_weights(setting.table, grid)


def _correlations(grid: Grid, rows: Sequence[ValueRow], setting: BiasSetting) -> list[Correlation]:
    """Of mean scores with weights and counts, of weights with counts, and of the first two given counts."""
    if not rows:
        return []
    figures = {
        "mean score": _column(rows, "mean"),
        "weight": _column(rows, "weight"),
        "count": _column(rows, "count"),
    }
    return correlations_of(figures, grid.ordered, setting.seed, 10 * setting.permutations)


def correlations_of(
    figures: dict[str, Floats], ordered: bool, seed: int = 0, permutations: int = PERMUTATIONS
) -> list[Correlation]:
    """All correlations that a study reports, of the figures `mean score`, `weight` and `count` that are known."""
    figures = {name: column for name, column in figures.items() if np.isfinite(column).any()}
    if "count" in figures:
        figures["log count"] = np.log1p(figures["count"])
    asked = [("mean score", "weight", ""), ("mean score", "count", ""), ("mean score", "log count", "")]
    asked += [("weight", "count", ""), ("weight", "log count", "")]
    asked += [("mean score", "weight", "count"), ("mean score", "weight", "log count")]
    return [
        correlate(
            figures[a],
            figures[b],
            figures[c] if c else None,
            names=(a, b, c),
            ordered=ordered,
            permutations=permutations,
            seed=seed,
        )
        for a, b, c in asked
        if {a, b, *([c] if c else [])} <= figures.keys()
    ]


def _column(rows: Sequence[ValueRow], name: str) -> Floats:
    values = [getattr(row, name) for row in rows]
    return np.array([np.nan if value is None else float(value) for value in values])


def _notes(clusters: int, nonfinite: int, rows: Sequence[ValueRow], setting: BiasSetting) -> list[str]:
    notes = []
    if clusters == 0 and nonfinite:
        notes.append("no template has a finite score for every value, so nothing can be said")
    elif clusters == 0:
        notes.append("no templates: the collection has no such texts and queries, or filters left none")
    elif clusters == 1:
        notes.append("1 independent template: figures of these texts alone, without tests")
    else:
        notes += _too_few(clusters, len(rows), setting)
    return notes


def _unweighted(grid: Grid, rows: Sequence[ValueRow], table: TermTable | None) -> list[str]:
    """A note that tells how many values have no weight in the table, or that nobody said for which query term."""
    lacking = sum(row.weight is None for row in rows)
    if table is None or not lacking:
        return []
    if not grid.term and not grid.appended:
        return ["no weights of the table: give head=WORD, the query term that they are of"]
    limit = table.facts.get("threshold")
    below = f", whose entries begin at {limit:g}" if isinstance(limit, float | int) else ""
    return [f"{lacking} of {len(rows)} values have no weight in the table{below}"]


def _unscored(grid: Grid, scores: Floats) -> dict[str, int]:
    """In how many templates a value has no finite score, for those that lack any."""
    lacking = np.count_nonzero(~np.isfinite(scores), axis=0).tolist()
    return {value: count for value, count in zip(grid.values, lacking, strict=True) if count}


def _left_out(unscored: Mapping[str, int], grid: Grid) -> list[str]:
    """A note that names the values that are not compared."""
    without = [value for value in unscored if value not in grid.values]
    return [f"left out, without a finite score in any template: {', '.join(without)}"] if without else []


def _one_query(grid: Grid, usable: Flags) -> list[str]:
    """A note where the tests speak of one query alone, or take many templates of one query for independent."""
    asked = Counter(template.query for template, used in zip(grid.templates, usable, strict=True) if used)
    [(query, most)] = asked.most_common(1) or [("", 0)]
    if len(asked) == 1 < most and grid.cluster != "query":
        return [f"all {most} templates are of the query {query!r}: the tests say nothing of other queries"]
    if grid.cluster in ("both", "query") or most <= asked.total() / 2 or len(asked) < 2:
        return []
    return [f"{most} of {asked.total()} templates are of the query {query!r}; cluster=query takes them as one"]


def _too_few(clusters: int, values: int, setting: BiasSetting) -> list[str]:
    """A note where not even equal signs of all templates make a value significant at 5%."""
    exact = clusters <= EXACT_CLUSTERS
    least = 2.0 ** (1 - clusters) if exact else 1 / (1 + setting.permutations)
    bound = float(adjust(np.full(max(values, 1), least), setting.correction)[0])
    if bound < _SURE:
        return []
    more = f", nor {bound:.2g} after correction over {values} values" if bound > least else ""
    few = f"{clusters} independent templates" if exact else f"{setting.permutations:,} draws of signs"
    return [f"{few}: the p-value of a value cannot be below {least:g}{more}"]
