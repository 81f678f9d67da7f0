"""Fidelity over queries and collections: means with intervals, paired differences between surrogates, and files.

Intervals are over queries; collections are taken as given. The average over collections is the mean of their means,
so that each counts alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from whyrank.core import (
    Floats,
    Ranker,
    UnknownName,
    WhyrankError,
    paired_t_p,
    replacing,
    sign_flip_p,
    stratified_interval,
    write_text,
)
from whyrank.data import Collection, Run, open_collection
from whyrank.evaluation.effectiveness import Effectiveness, evaluate, with_adjusted_p
from whyrank.evaluation.fidelity.agreement import (
    KS,
    Cell,
    Comparison,
    PerQuery,
    common_pairs,
    compare_rankers,
    measures_of,
)
from whyrank.rankers import Setting, as_rankers
from whyrank.scoring import Engine, candidates_for, default_engine
from whyrank.studies import or_none

AVERAGE, MEASURE = "average", "nDCG@10"
SUFFIXES = (".parquet", ".json")
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
    kept = _without_nan(parts)
    queries, all_queries = sum(map(len, kept)), sum(map(len, parts))
    low, high = map(or_none, stratified_interval(kept))
    return FidelityRow(name, *cell, measure, _mean(kept), low, high, queries, all_queries - queries, len(kept))


def differences(
    found: Mapping[str, Cells], baseline: str, measures: Sequence[str], correction: str = "holm", seed: int = 0,
    common: Mapping[str, Mapping[Cell, Pair]] | None = None,
) -> list[FidelityDifference]:  # fmt: skip
    """Every surrogate against the baseline for the same target; p-values are corrected over all of them.

    `common` has, by collection, what replaces cells over different documents (see `common_pairs`).
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
    kept = _without_nan([_differences(*pair, measure) for pair in parts])
    shares = np.concatenate([np.zeros(0), *(part / len(part) for part in kept)])
    p_value = or_none(sign_flip_p(shares, FLIPS, seed))
    p_t = or_none(paired_t_p(kept[0])) if len(parts) == 1 and kept else None
    low, high = map(or_none, stratified_interval(kept))
    queries = sum(map(len, kept))
    return FidelityDifference(name, *cell, baseline, measure, _mean(kept), low, high, p_value, p_t, queries)


def _differences(one: PerQuery, other: PerQuery, measure: str) -> Floats:
    """Differences by query; both have the queries of the target, but perhaps not in one order."""
    row = {q: i for i, q in enumerate(other.queries)}
    rows = np.array([(i, row[q]) for i, q in enumerate(one.queries) if q in row], np.int64).reshape(-1, 2)
    found: Floats = one.values[measure][rows[:, 0]] - other.values[measure][rows[:, 1]]
    return found


def _without_nan(parts: Sequence[Floats]) -> list[Floats]:
    """The values that are defined, without collections that have none."""
    return [kept for part in parts if len(kept := part[~np.isnan(part)])]


def _mean(parts: Sequence[Floats]) -> float | None:
    return float(np.mean([part.mean() for part in parts])) if parts else None


@dataclass(frozen=True, eq=False)
class Fidelity:
    """How well surrogates stand in for targets on some collections: the values of every query, and all tests.

    `effectiveness` has a row for each collection with judgements and each ranker.
    """

    settings: Mapping[str, Any]
    compared: Sequence[Comparison] = field(repr=False)
    rows: Sequence[FidelityRow]
    differences: Sequence[FidelityDifference]
    effectiveness: Sequence[tuple[str, Effectiveness]]

    def as_json(self, per_query: bool = False) -> str:
        """All rows as JSON; with `per_query` also the value of every query, null where it is undefined."""
        whole = {
            "settings": self.settings,
            "rankers": {each.collection.name: each.identities for each in self.compared},
            "fidelity": [asdict(row) for row in self.rows],
            "differences": [asdict(row) for row in self.differences],
            "effectiveness": [
                {"collection": name, **{key: value for key, value in asdict(row).items() if key != "per_query"}}
                for name, row in self.effectiveness
            ],
        }
        return json.dumps(whole | ({"per_query": list(self.per_query())} if per_query else {}), indent=1)

    def per_query(self) -> Iterator[dict[str, Any]]:
        """A row for each collection, target, surrogate and query."""
        for each in self.compared:
            for (target, surrogate), found in each.cells.items():
                for i, query in enumerate(found.queries):
                    values = {name: float(column[i]) for name, column in found.values.items()}
                    yield {
                        "collection": each.collection.name, "target": target, "surrogate": surrogate,
                        "query_id": query, "documents": int(found.documents[i]), "one_sided": int(found.one_sided[i]),
                        **{name: value if isfinite(value) else None for name, value in values.items()},
                    }  # fmt: skip

    def save(self, path: str) -> None:
        """Write the values of every query, with all rows beside them, as .json or .parquet."""
        if path.endswith(".json"):
            write_text(path, self.as_json(per_query=True) + "\n")
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = pa.Table.from_pylist(list(self.per_query()))
        with replacing(path) as beside:
            pq.write_table(rows.replace_schema_metadata({"whyrank.fidelity": self.as_json()}), beside)


def measure_fidelity(
    compared: Sequence[Comparison], baseline: str, ks: Sequence[int] = KS, missing: str = "drop",
    measures: Sequence[str] = (), correction: str = "holm", seed: int = 0, settings: Mapping[str, Any] | None = None,
) -> Fidelity:  # fmt: skip
    """Summarise and test what was found on some collections; without `measures` all of them.

    Over the documents that a surrogate and the baseline both have scored, unless what is missing counts as zero.
    """
    cells = {each.collection.name: each.cells for each in compared}
    if len(cells) < len(compared):
        names = [each.collection.name for each in compared]
        twice = next(name for name in names if names.count(name) > 1)
        raise WhyrankError(f"two collections are called {twice!r}; give one of them another name in collection.yaml")
    chosen = list(dict.fromkeys(measures or measures_of(ks)))
    drop = missing == "drop"
    common = {each.collection.name: common_pairs(each, baseline, ks) for each in compared if drop}
    measured = [
        (each.collection.name, row)
        for each in compared
        if each.collection.qrels
        for row in evaluate(each.runs, each.collection, [MEASURE], baseline, correction, seed)
    ]
    tested = differences(cells, baseline, chosen, correction, seed, common)
    return Fidelity(settings or {}, compared, summarise(cells, chosen), tested, measured)


def fidelity(
    target: str | Ranker, surrogates: str | Ranker | Sequence[str | Ranker], collection: str | Collection,
    depth: int = 1000, candidates: Run | None = None, measures: Sequence[str] = (), engine: Engine | None = None,
) -> Fidelity:  # fmt: skip
    """How well surrogates stand in for a target on the candidates of a collection's queries.

    Args:
        target: the ranker to be explained: a call string, an object with `name` and `score`, or a function.
        surrogates: rankers that are to stand in for it; the first is the baseline that others are compared with.
        collection: a collection, or its spec.
        depth: candidates per query.
        candidates: a run with the documents to score; by default what BM25 retrieves.
        measures: such as `pearson` or `top10`; all by default.
        engine: scores, and keeps the scores; by default in the user's cache folder, as the command line does.

    Example:
        >>> found = fidelity("bm25", ["bm25(b=0.5)", "ql"], "sample", measures=["kendall"])
        >>> [(row.surrogate, row.mean > 0) for row in found.rows]
        [('bm25(b=0.5)', True), ('ql', True)]
    """
    for name in measures:
        if name not in measures_of():
            raise UnknownName("measure of fidelity", name, measures_of())
    opened = open_collection(collection)
    [goal], others = as_rankers(target, Setting(opened)), as_rankers(surrogates, Setting(opened))
    if goal.name in [ranker.name for ranker in others]:
        raise WhyrankError(f"the target {goal.name} is also a surrogate; give each ranker a name of its own")
    chosen = candidates_for(opened, opened.queries, depth, candidates)
    compared = compare_rankers(opened, [goal], others, chosen, engine or default_engine())
    return measure_fidelity([compared], others[0].name, measures=measures)
