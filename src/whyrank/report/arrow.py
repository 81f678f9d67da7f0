"""Findings, texts and scores as Arrow tables: whole columns at a time, never an object per contrast."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from whyrank.core import Codes
from whyrank.evaluation import Effectiveness
from whyrank.studies import Categories, Contrasts, Finding, Labels, Reading, arrow

_TYPES = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}


def rows_table(rows: Sequence[Any], kind: type) -> Any:
    """A table of records of one kind, a column per field; an undefined figure is null."""
    values = [row._asdict() if hasattr(row, "_asdict") else vars(row) for row in rows]
    stored = [{name: _storable(value) for name, value in row.items()} for row in values]
    return pa.Table.from_pylist(stored, schema=_schema(kind))


def findings_table(findings: Sequence[Finding]) -> Any:
    """One row per finding."""
    return rows_table(findings, Finding)


def findings_of(table: Any) -> list[Finding]:
    """The findings of a table that `findings_table` made."""
    return [Finding.from_dict(row) for row in table.to_pylist()]


def values_table(rows: Sequence[Effectiveness]) -> Any:
    """One row per run, measure and query."""
    values = [(encodable(r.run), r.measure, query, value) for r in rows for query, value in r.per_query.items()]
    kinds = {"run": pa.string(), "measure": pa.string(), "query_id": pa.string(), "value": pa.float64()}
    columns = zip(*values, strict=True) if values else [()] * len(kinds)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)]
    return pa.table(dict(zip(kinds, arrays, strict=True)))


def csv_of(table: Any) -> str:
    """A table as CSV: strings quoted, null an empty cell.

    A string that a spreadsheet would take for a formula (`=`, `+`, `-`, `@`, tab or line break first) gets an
    apostrophe in front, and so does one that has it already.
    """
    sink = io.BytesIO()
    csv.write_csv(_with_strings(table, r"^('*[=+\-@\t\r\n])", r"'\1"), sink)
    return sink.getvalue().decode()


def table_of_csv(text: str, kind: type) -> Any:
    """The table of records that `csv_of` wrote: an empty cell is null, a quoted empty one an empty string."""
    convert = csv.ConvertOptions(
        column_types=_schema(kind),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = csv.ParseOptions(newlines_in_values=True)
    table = csv.read_csv(io.BytesIO(text.encode()), parse_options=parse, convert_options=convert)
    return _with_strings(table, r"^'('*[=+\-@\t\r\n])", r"\1")


def scores_table(contrasts: Contrasts, reading: Reading, query: Codes, docs: Codes) -> Any:
    """One row per contrast; `query` and `docs` are indices into the texts of the whole result."""
    labels = dict(contrasts.labels)
    first = {name: _column(labels.pop(name)) for name in ("query_id", "doc_ids") if name in labels}
    own = {
        "query": arrow(query[contrasts.query]),
        "docs": arrow(docs[contrasts.doc]),
        "scores": arrow(reading.scores),
        "diff": arrow(reading.diffs),
        "effect": arrow(reading.effects),
        "finite": arrow(reading.finite),
    }
    rest = {f"label_{name}" if name in own else name: _column(column) for name, column in labels.items()}
    return pa.table(first | own | rest)


def strings(texts: Sequence[str]) -> Any:
    """A column of strings; half characters, which UTF-8 cannot hold, become question marks."""
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return pa.array([encodable(text) for text in texts], pa.string())


def encodable(text: str) -> str:
    """The text with half characters (lone surrogates) replaced by question marks."""
    return text.encode("utf-8", "replace").decode()


def plain(value: Any) -> Any:
    """The value in terms of JSON: mappings, lists, strings, numbers; what is undefined or infinite is None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return plain(value.item()) if hasattr(value, "item") else str(value)


def _with_strings(table: Any, pattern: str, replacement: str) -> Any:
    """The table with something replaced in all columns of strings."""
    for i, column in enumerate(table.columns):
        if pa.types.is_string(column.type):
            replaced = pc.replace_substring_regex(column, pattern, replacement)
            table = table.set_column(i, table.schema.field(i), replaced)
    return table


def _schema(kind: type) -> Any:
    hints = {name: getattr(hint, "__forward_arg__", str(hint)) for name, hint in kind.__annotations__.items()}
    return pa.schema([(name, _TYPES[hint.removesuffix(" | None")]) for name, hint in hints.items()])


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _column(values: Labels) -> Any:
    try:
        return arrow(values)
    except UnicodeEncodeError:
        codes, names = values
        return arrow(Categories(codes, [encodable(name) for name in names]))
