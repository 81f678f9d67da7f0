"""Rows of JSON lines, TSV and CSV files as text pairs: which columns are roles, and which is the id."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from whyrank.core import BadInput, Record, every_line, json_records, suggestion


class TextPair(NamedTuple):
    """One row of a pair set: the texts by their roles, such as `fluent` and `source`, or `title`."""

    id: str
    texts: Mapping[str, str]


def read_pairs(path: Path, columns: Mapping[str, str] | None = None) -> Iterator[TextPair]:
    """Stream the pairs of a JSON lines, TSV or CSV file.

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


def read_records(path: Path) -> Iterator[Record]:
    """Stream the rows of a file; the ending of its name, `.gz` apart, says what it is."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix in (".jsonl", ".ndjson"):
        return json_records(path)
    if suffix == ".tsv":
        return tsv_records(path)
    if suffix == ".csv":
        return _under_header(path, _csv_cells(path))
    remedy = "name it .jsonl, .ndjson, .tsv or .csv (or with .gz), or write LAYOUT:PATH"
    raise BadInput(path, "the ending of the name does not say what the file is", remedy)


def tsv_records(path: Path) -> Iterator[Record]:
    """Stream tab-separated lines under a header; no quoting, so that a quotation mark is only itself."""
    return _under_header(path, tsv_cells(path))


def tsv_cells(path: Path) -> Iterator[tuple[list[str], int]]:
    """Stream the cells of tab-separated lines and the number of each line; blank lines without a tab are skipped."""
    for line in every_line(path):
        if "\t" in line.text or not line.blank:
            yield line.text.split("\t"), line.number


def _csv_cells(path: Path) -> Iterator[tuple[list[str], int]]:
    """Stream the cells of comma-separated rows, quoted as RFC 4180 says; texts may have line breaks."""
    csv.field_size_limit(sys.maxsize)  # the default of 128 KB is less than a long article
    reader = csv.reader((line.text + line.end for line in every_line(path)), strict=True)
    begin = 1
    try:
        for cells in reader:
            if cells:
                yield cells, begin
            begin = reader.line_num + 1
    except csv.Error as error:
        raise BadInput(path, f"malformed CSV ({error})", "quote texts that have commas or quotes", begin) from None


def _under_header(path: Path, rows: Iterable[tuple[list[str], int]]) -> Iterator[Record]:
    header: list[str] | None = None
    for cells, line in rows:
        if header is None:
            header = cells
            if "" in header:
                what = f"column {header.index('') + 1} has no name"
                raise BadInput(path, what, "the first row names the columns", line)
            if twice := next((name for name in header if header.count(name) > 1), None):
                what = f"two columns are named {twice!r}"
                raise BadInput(path, what, "give every column a name of its own", line)
        elif len(cells) != len(header):
            what = f"expected {len(header)} columns as in the first row, found {len(cells)}"
            raise BadInput(path, what, "check tabs, commas and quotes in this row", line)
        else:
            yield Record(path, line, dict(zip(header, cells, strict=True)))
