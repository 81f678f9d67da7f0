"""Fidelity as tables on the terminal, and as .json and .parquet files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyrank.cli.show import figure, p_value, table

if TYPE_CHECKING:
    from whyrank.cli.fidelity import Found
    from whyrank.evaluation import Effectiveness
    from whyrank.evaluation.fidelity import FidelityDifference, FidelityRow

UNDEFINED_SHOWN = 12


def tables(found: Found, alpha: float, correction: str) -> None:
    """Print a matrix of targets and surrogates for each collection, the differences, and the effectiveness."""
    starred = {_key(row) for row in found.differences if _significant(row.p_adjusted, alpha)}
    for name in dict.fromkeys(row.collection for row in found.rows):
        rows = [row for row in found.rows if row.collection == name]
        _matrix(rows, starred, found.settings["baseline"], len(found.compared))
    if found.differences:
        _differences(found.differences, alpha, correction)
    if found.effectiveness:
        _effectiveness(found, alpha, correction)


def json_text(found: Found, per_query: bool = False) -> str:
    """All rows as JSON; with `per_query` also the value of every query, null where it is undefined."""
    whole: dict[str, Any] = {"settings": found.settings}
    whole["rankers"] = {each.collection.name: each.identities for each in found.compared}
    whole["fidelity"] = [asdict(row) for row in found.rows]
    whole["differences"] = [asdict(row) for row in found.differences]
    whole["effectiveness"] = [
        {"collection": name, **{k: v for k, v in asdict(row).items() if k != "per_query"}}
        for name, row in found.effectiveness
    ]
    if per_query:
        whole["per_query"] = list(_per_query(found))
    return json.dumps(whole, indent=1)


def write(found: Found, out: str) -> None:
    """Write the values of every query, with all rows beside them, in one step."""
    from whyrank.core import replacing, write_text

    if out.endswith(".json"):
        write_text(Path(out), json_text(found, per_query=True) + "\n")
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.Table.from_pylist(list(_per_query(found)))
    with replacing(out) as beside:
        pq.write_table(rows.replace_schema_metadata({"whyrank.fidelity": json_text(found)}), beside)


def _per_query(found: Found) -> Iterable[dict[str, Any]]:
    for each in found.compared:
        for (target, surrogate), values in each.cells.items():
            counts = zip(values.queries, values.documents.tolist(), values.one_sided.tolist(), strict=True)
            for i, (query, documents, alone) in enumerate(counts):
                row = {"collection": each.collection.name, "target": target, "surrogate": surrogate}
                row |= {"query_id": query, "documents": documents, "one_sided": alone}
                yield row | {name: _number(float(column[i])) for name, column in values.values.items()}


def _number(value: float) -> float | None:
    return None if value != value else value  # noqa: PLR0124 - only NaN differs from itself


def _matrix(rows: Sequence[FidelityRow], starred: set[tuple[str, ...]], baseline: str, collections: int) -> None:
    surrogates = list(dict.fromkeys(row.surrogate for row in rows))
    places = {(row.measure, row.target, row.surrogate): row for row in rows}
    shown = [
        [measure, target, *(_cell(places[measure, target, each], starred) for each in surrogates)]
        for measure, target in dict.fromkeys((row.measure, row.target) for row in rows)
    ]
    several = rows[0].collection == "average"
    title = f"average over {collections} collections" if several else rows[0].collection
    caption = "mean over queries, 95% interval over queries"
    caption += f"; * differs from {baseline}, after correction" if len(surrogates) > 1 else ""
    lines = [*(_fewer(rows, collections) if several else []), *_undefined(rows)]
    table(title, ["measure", "target", *surrogates], shown, 2, "\n".join([caption, *_shortened(lines)]))


def _cell(row: FidelityRow, starred: set[tuple[str, ...]]) -> str:
    mark = "*" if _key(row) in starred else " "
    interval = "" if row.ci_low is None else f" [{_plain(row.ci_low)}, {_plain(row.ci_high)}]"
    return f"{_plain(row.mean)}{mark}{interval}"


def _plain(value: float | None) -> str:
    return figure(value).replace("+", "")


def _undefined(rows: Sequence[FidelityRow]) -> list[str]:
    """A line per target and measure with queries that have no value."""
    found: dict[tuple[str, str, int], list[str]] = {}
    for row in (row for row in rows if row.undefined):
        found.setdefault((row.measure, row.target, row.undefined), []).append(row.surrogate)
    asked = rows[0].n_queries + rows[0].undefined
    return [
        f"undefined and left out: {count:,} of {asked:,} queries, {measure} of {target} with {', '.join(surrogates)}"
        for (measure, target, count), surrogates in found.items()
    ]


def _fewer(rows: Sequence[FidelityRow], collections: int) -> list[str]:
    """A line per target and measure that some collections have no value of: the average is that of the others."""
    found: dict[tuple[str, str, int], list[str]] = {}
    for row in (row for row in rows if row.collections < collections):
        found.setdefault((row.measure, row.target, row.collections), []).append(row.surrogate)
    return [
        f"average over {count} of {collections} collections alone: {measure} of {target} with {', '.join(surrogates)}"
        for (measure, target, count), surrogates in found.items()
    ]


def _shortened(lines: Sequence[str]) -> list[str]:
    more = len(lines) - UNDEFINED_SHOWN
    return [*lines[:UNDEFINED_SHOWN], f"and {more:,} more such lines"] if more > 0 else list(lines)


def _differences(rows: Sequence[FidelityDifference], alpha: float, correction: str) -> None:
    header = ["collection", "measure", "target", "surrogate", "difference", "95% interval", "p", "p adj.", "p (t)",
              "queries"]  # fmt: skip
    shown = [
        [row.collection, row.measure, row.target, row.surrogate,
         figure(row.difference, "+.3f") + ("*" if _significant(row.p_adjusted, alpha) else " "), _interval(row),
         *map(p_value, (row.p_value, row.p_adjusted, row.p_t)), f"{row.n_queries:,}"]
        for row in rows
    ]  # fmt: skip
    caption = "paired by query; p: two-sided randomisation test over queries, p (t): paired t-test\n"
    caption += f"* p < {alpha:g} after correction ({correction}) over this table"
    table(f"difference from {rows[0].baseline}", header, shown, 4, caption)


def _effectiveness(found: Found, alpha: float, correction: str) -> None:
    header = ["collection", "ranker", "", found.effectiveness[0][1].measure, "queries", "difference", "95% interval",
              "p", "p adj."]  # fmt: skip
    targets = {target for each in found.compared for target, _ in each.cells}
    shown = [
        [name, row.run, "target" if row.run in targets else "surrogate", f"{row.mean:.4f}", f"{row.n_queries:,}",
         figure(row.difference, "+.4f") + ("*" if _significant(row.p_adjusted, alpha) else " "), _interval(row),
         p_value(row.p_value), p_value(row.p_adjusted)]
        for name, row in found.effectiveness
    ]  # fmt: skip
    caption = f"of the candidates, re-ranked; difference from {found.settings['baseline']}, paired by query\n"
    caption += f"* p < {alpha:g} after correction ({correction}), for each collection"
    table("effectiveness", header, shown, 3, caption)


def _interval(row: FidelityDifference | Effectiveness) -> str:
    return "–" if row.ci_low is None else f"[{figure(row.ci_low, '+.3f')}, {figure(row.ci_high, '+.3f')}]"


def _significant(p: float | None, alpha: float) -> bool:
    return p is not None and p < alpha


def _key(row: FidelityRow | FidelityDifference) -> tuple[str, ...]:
    return row.collection, row.target, row.surrogate, row.measure
