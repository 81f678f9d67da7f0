"""The reading of bias studies: mean scores of values, tests of their differences, and what a table says of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from whyrank.core import EXACT_CLUSTERS, Flags, Floats, Study, WhyrankError, adjust
from whyrank.studies.bias.correlation import Correlation, correlations_of, table_weights
from whyrank.studies.bias.statistics import Clustered, cluster_scores, mean_bounds, omnibus, pair_differences, value_p
from whyrank.studies.bias.templates import Grid, ValueContrasts, finite_columns, finite_rows
from whyrank.studies.contrasts import Contrasts
from whyrank.studies.findings import or_none
from whyrank.studies.reading import Context, Preferences, Read, Reading

DRAWS = 10_000  # permutations of values, and flips of signs
NAMED = 3  # values that share the highest or the lowest mean and are named
_SIGNIFICANT = 0.05


@dataclass(frozen=True)
class ValueRow:
    """One value: its mean score, and its effect, the mean difference from all values in the same templates.

    `deltas` and `sds` are the effect in units of the ranker's delta, and of the standard deviation of its mean scores
    over templates. `weight` is what the table says, `count` how often the collection has the value.
    `difference` is `deltas` less that of the baseline, where the audit has one.
    """

    value: str
    mean: float
    mean_low: float | None
    mean_high: float | None
    effect: float
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    deltas: float | None
    sds: float | None
    weight: float | None = None
    count: int | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    difference_p: float | None = None
    difference_adjusted: float | None = None


@dataclass(frozen=True)
class PairRow:
    """Two values: how much higher the first scores in the same templates."""

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    p_adjusted: float | None
    deltas: float | None


@dataclass(frozen=True)
class BiasResult:
    """What one ranker answered to one bias study.

    `p_value` is that of the omnibus test (any value differs), `p_adjusted` corrected over all studies and rankers
    of one audit. `nonfinite` templates have no finite score for some value and are left out; `unscored` says in how
    many templates a value has none, and one that has none in any is not in `values`; the class has `n_values`.
    With `changes`, scores are changes from the text without a value. `difference` is that of the finding.
    """

    study: str
    call: str
    ranker: str
    collection: str
    n_templates: int
    n_clusters: int
    nonfinite: int
    dropped: Mapping[str, int]
    delta: float | None
    sd: float | None
    seed: int
    correction: str
    changes: bool
    values: Sequence[ValueRow]
    pairs: Sequence[PairRow]
    correlations: Sequence[Correlation]
    notes: Sequence[str] = ()
    p_value: float | None = None
    p_adjusted: float | None = None
    friedman: float | None = None
    p_friedman: float | None = None
    kendall_w: float | None = None
    seconds: float = 0.0
    unscored: Mapping[str, int] = field(default_factory=dict)
    n_values: int = 0
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    difference_p: float | None = None
    difference_adjusted: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values by field name, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> BiasResult:
        """The result of a row that `as_dict` made."""
        kinds = {"values": ValueRow, "pairs": PairRow, "correlations": Correlation}
        rows = {name: [kind(**each) for each in row[name]] for name, kind in kinds.items()}
        return cls(**{**row, **rows})

    @property
    def range(self) -> float | None:
        """How far the highest mean score of a value lies above the lowest; None without values."""
        effects = [row.effect for row in self.values]
        return max(effects) - min(effects) if effects else None

    @property
    def range_deltas(self) -> float | None:
        """The range in units of the ranker's delta; None where there is none."""
        return None if self.range is None or not self.delta else self.range / self.delta

    @property
    def favoured(self) -> str:
        """The value with the highest mean, or the values that share it; empty where all are equal."""
        return self._at(max((row.effect for row in self.values), default=0.0))

    @property
    def disfavoured(self) -> str:
        """The value with the lowest mean, or the values that share it; empty where all are equal."""
        return self._at(min((row.effect for row in self.values), default=0.0))

    def _at(self, effect: float) -> str:
        """The names of the values with this effect, but for rounding, in the order of the values."""
        names = [row.value for row in self.values if abs(row.effect - effect) <= 1e-9 * (self.range or 0.0)]
        if not self.range:
            return ""
        if 1 < len(names) == len(self.values) - 1:
            return "all others"
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        kind = ("ending " if len(names) == 1 else "endings ") if self.changes else ""
        return f"{kind}{', '.join(names[:NAMED])}{more}"

    def value(self, name: str) -> ValueRow:
        """The row of one value, in whatever case of letters."""
        return next(row for row in self.values if row.value.lower() == name.lower())

    def significant(self, alpha: float = 0.05) -> list[ValueRow]:
        """The values that differ from the others after correction, the largest effects first."""
        found = [row for row in self.values if row.p_adjusted is not None and row.p_adjusted < alpha]
        return sorted(found, key=lambda row: -abs(row.effect))


@dataclass(frozen=True)
class ValueComparison(Preferences):
    """The reading of bias studies: how far values lie apart, and how many pairs of them by more than delta.

    The p-value of a finding is that of the omnibus test. The limit of a study is one of templates, which it draws
    itself.
    """

    family: ClassVar[str] = "omnibus"
    has_groups: ClassVar[bool] = False
    has_table: ClassVar[bool] = True
    needs_delta: ClassVar[bool] = False

    def sample(self, contrasts: Contrasts, limit: int, seed: int) -> Contrasts:
        """All contrasts: the study has drawn its templates."""
        return contrasts

    def needs_chance(self, study: Study) -> bool:
        """The omnibus test needs none."""
        return False

    def read(self, study: Study, contrasts: Contrasts, reading: Reading, context: Context) -> Read:
        """One finding, and the figures of every value and pair of values as details."""
        if not isinstance(contrasts, ValueContrasts):
            raise WhyrankError(
                f"{study.id}: contrasts of values must come from a Grid, whose `contrasts()` makes them"
            )
        grid = contrasts.grid
        result = compare_values(grid, np.asarray(grid.by_value(reading.scores)), context, study.id)
        plain = replace(context, chance=math.nan, by=None)
        [finding], _ = super().read(study, contrasts, reading, plain)
        finding = replace(
            finding,
            p_value=result.p_value,
            p_omnibus=result.p_value,
            range=result.range,
            range_deltas=result.range_deltas,
            favoured=result.favoured,
            disfavoured=result.disfavoured,
            n_queries=result.n_clusters,
        )
        return Read([finding], result)


def compare_values(grid: Grid, scores: Floats, context: Context, call: str = "") -> BiasResult:
    """Means, tests, differences and correlations of the templates that have all scores.

    A value without a score in any template is left out, so that it does not take all templates with it.
    """
    lacking = np.count_nonzero(~np.isfinite(scores), axis=0).tolist()
    unscored = {value: count for value, count in zip(grid.values, lacking, strict=True) if count}
    n_values, columns, draws = len(grid.values), finite_columns(scores), context.draws or DRAWS
    grid, scores = grid.of_values(columns), scores[:, columns]
    usable = finite_rows(scores)
    kept = scores[usable]
    sums = cluster_scores(kept, *(way[usable] for way in grid.clusters))
    deviation = float(kept.mean(axis=1).std(ddof=1)) if len(kept) > 1 else 0.0
    test = omnibus(sums, draws, context.seed)
    rows = _value_rows(grid, sums, context, deviation, draws) if len(kept) else []
    figures = {  # a missing one is NaN
        name: np.array([getattr(row, field) for row in rows], dtype=np.float64)
        for name, field in (("mean score", "mean"), ("weight", "weight"), ("count", "count"))
    }
    return BiasResult(
        study=context.study or call,
        call=call,
        ranker=context.ranker,
        collection=context.collection,
        n_templates=len(kept),
        n_clusters=sums.size,
        nonfinite=int(np.count_nonzero(~usable)),
        dropped=dict(grid.dropped),
        delta=context.unit,
        sd=deviation or None,
        seed=context.seed,
        correction=context.correction,
        changes=grid.appended,
        values=rows,
        pairs=_pair_rows(grid, sums, context) if len(kept) else [],
        correlations=correlations_of(figures, grid.ordered, context.seed, 10 * draws) if rows else [],
        notes=_notes(grid, usable, sums.size, rows, unscored, context),
        unscored=unscored,
        n_values=n_values,
        p_value=or_none(float(context.p_value(test.p_value))),
        friedman=or_none(test.friedman),
        p_friedman=or_none(float(context.p_value(test.p_friedman))),
        kendall_w=or_none(test.kendall_w),
    )


def _value_rows(grid: Grid, sums: Clustered, context: Context, deviation: float, draws: int) -> list[ValueRow]:
    n, p = sums.cells.sizes.sum(), context.p_value(value_p(sums, draws, context.seed))
    effects, unknown = sums.cells.effects.sum(axis=0) / n, np.full(len(grid.values), np.nan)
    counts = unknown if grid.counts is None else grid.counts
    columns = {
        "mean": sums.cells.scores.sum(axis=0) / n,
        **dict(zip(("mean_low", "mean_high"), mean_bounds(sums, lambda way: way.scores, context.alpha), strict=True)),
        "effect": effects,
        **dict(zip(("low", "high"), mean_bounds(sums, lambda way: way.effects, context.alpha), strict=True)),
        "p_value": p,
        "p_adjusted": adjust(p, context.correction),
        "deltas": effects / context.unit if context.unit else unknown,
        "sds": effects / deviation if deviation else unknown,
        "weight": unknown if context.table is None else table_weights(context.table, grid),
    }
    table = np.stack(list(columns.values()), axis=1).tolist()
    rows = []
    for value, row, count in zip(grid.values, table, counts.tolist(), strict=True):
        figures: dict[str, Any] = dict(zip(columns, map(or_none, row), strict=True))
        rows.append(ValueRow(value=value, count=None if math.isnan(count) else int(count), **figures))
    return rows


def _pair_rows(grid: Grid, sums: Clustered, context: Context) -> list[PairRow]:
    found = pair_differences(sums, context.alpha)
    p = context.p_value(found.p_values)
    adjusted = adjust(p, context.correction)
    deltas = found.mean / context.unit if context.unit else np.full(len(found.mean), np.nan)
    figures = np.stack([found.mean, *found.bounds, p, adjusted, deltas], axis=1).tolist()
    names = zip(found.first.tolist(), found.second.tolist(), figures, strict=True)
    return [PairRow(grid.values[i], grid.values[j], row[0], *map(or_none, row[1:])) for i, j, row in names]


def _notes(
    grid: Grid, usable: Flags, clusters: int, rows: Sequence[ValueRow], unscored: Mapping[str, int], context: Context
) -> list[str]:
    """What keeps the tests from saying what a reader may expect of them."""
    without = [value for value in unscored if value not in grid.values]
    notes = [f"left out, without a finite score in any template: {', '.join(without)}"] if without else []
    if clusters == 0 and not usable.all():
        notes.append("no template has a finite score for every value, so nothing can be said")
    elif clusters == 0:
        notes.append("no templates: the collection has no such texts and queries, or filters left none")
    elif clusters == 1:
        notes.append("1 independent template: figures of these texts alone, without tests")
    else:  # can equal signs of all templates make a value significant at all?
        exact, draws = clusters <= EXACT_CLUSTERS, context.draws or DRAWS
        least = 2.0 ** (1 - clusters) if exact else 1 / (1 + draws)
        bound = float(adjust(np.full(max(len(rows), 1), least), context.correction)[0])
        if bound >= _SIGNIFICANT:
            few = f"{clusters} independent templates" if exact else f"{draws:,} draws of signs"
            more = f", nor {bound:.2g} after correction over {len(rows)} values" if bound > least else ""
            notes.append(f"{few}: the p-value of a value cannot be below {least:g}{more}")
    lacking = sum(row.weight is None for row in rows)
    if context.table is not None and lacking and not grid.term and not grid.appended:
        notes.append("no weights of the table: give head=WORD, the query term that they are of")
    elif context.table is not None and lacking:
        limit = context.table.facts.get("threshold")
        below = f", whose entries begin at {limit:g}" if isinstance(limit, float | int) else ""
        notes.append(f"{lacking} of {len(rows)} values have no weight in the table{below}")
    queries = Counter(template.query for template, used in zip(grid.templates, usable, strict=True) if used)
    [(query, most)] = queries.most_common(1) or [("", 0)]
    if len(queries) == 1 < most and grid.cluster != "query":
        notes.append(f"all {most} templates are of the query {query!r}: the tests say nothing of other queries")
    elif grid.cluster not in ("both", "query") and most > queries.total() / 2 and len(queries) > 1:
        of = f"{most} of {queries.total()} templates are of the query {query!r}"
        notes.append(f"{of}; cluster=query takes them as one")
    return notes
