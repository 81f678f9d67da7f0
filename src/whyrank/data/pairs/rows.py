"""Rows of files as text pairs: which columns are roles, and which is the id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from whyrank.core import BadInput, Record, suggestion
from whyrank.data.records import read_records


class TextPair(NamedTuple):
    """One row of a pair set: the texts by their roles, such as `fluent` and `source`, or `title`."""

    id: str
    texts: Mapping[str, str]


def read_pairs(path: Path, columns: Mapping[str, str] | None = None) -> Iterator[TextPair]:
    """Stream the pairs of a file with rows: JSON lines, TSV, CSV or Parquet.

    The string fields of the first row are the roles, and every row must have them. A field `id` (a string or
    an integer) is the id; without one the rows are numbered from 1.

    Args:
        path: the file, plain or `.gz`.
        columns: role -> column, for files whose columns have other names; the other columns keep theirs.
    """
    columns = columns or {}
    known, ids = set[str](), set[str]()
    roles: dict[str, str] = {}
    id_column: str | None = None
    for number, record in enumerate(read_records(path), 1):
        if number == 1:
            known = set(record.fields)
            if strange := [column for column in columns.values() if column not in known]:
                raise BadInput(path, f"there is no column {strange[0]!r}", suggestion(strange[0], sorted(known)))
            free = known - set(columns.values()) - set(columns)
            own = {name: name for name, value in record.fields.items() if name in free and isinstance(value, str)}
            roles = {role: column for role, column in {**own, **columns}.items() if role != "id"}
            id_column = columns.get("id", "id" if "id" in free else None)
            if not roles:
                raise record.wrong(
                    "there are no texts in this row", "name the columns by their roles, such as a and b"
                )
        for name, value in record.fields.items():
            if name not in known and isinstance(value, str):
                raise record.wrong(f"the first row has no {name!r}", "give every row the same roles")
        row_id = str(number) if id_column is None else _id(record, id_column)
        if row_id in ids:
            raise record.wrong(f"id {row_id!r} occurs twice", "give every pair an id of its own")
        ids.add(row_id)
        yield TextPair(row_id, {role: record.text(column) for role, column in roles.items()})


def _id(record: Record, column: str) -> str:
    value = record.fields.get(column)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not (found := record.text(column)):
        raise record.wrong(f"{column!r} is empty, which cannot be an id")
    return found
