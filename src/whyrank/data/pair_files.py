"""Rows of JSON lines, TSV and CSV files, plain or `.gz`, checked and named with their lines."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core.errors import BadInput
from whyrank.data.lines import read_lines
from whyrank.data.raw import every_line

_JSON = 'write one object a line, such as {"a": "...", "b": "..."}'


class Record(NamedTuple):
    """One row of a file: its path, the line where it begins, and its fields by name."""

    path: Path
    line: int
    fields: Mapping[str, Any]

    def text(self, name: str) -> str:
        """The field of this name, which must be a string."""
        value = self._field(name)
        if not isinstance(value, str):
            raise self.wrong(f"{name!r} is {_shown(value)}, not a string")
        return value

    def texts(self, name: str) -> list[str]:
        """The field of this name, which must be a list of one string or more."""
        value = self._field(name)
        if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
            raise self.wrong(f"{name!r} is {_shown(value)}, not a list of strings")
        return value

    def wrong(self, what: str, remedy: str = "") -> BadInput:
        """The error for something wrong with this row."""
        return BadInput(self.path, what, remedy, self.line)

    def _field(self, name: str) -> Any:
        if name not in self.fields:
            raise self.wrong(f"{name!r} is missing", f"there are: {', '.join(self.fields)}")
        return self.fields[name]


def read_records(path: Path) -> Iterator[Record]:
    """Stream the rows of a file; the ending of its name, `.gz` apart, says what it is."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in _READERS:
        remedy = f"name it {', '.join(_READERS)} (or with .gz), or write LAYOUT:PATH"
        raise BadInput(path, "the ending of the name does not say what the file is", remedy)
    return _READERS[suffix](path)


def json_records(path: Path) -> Iterator[Record]:
    """Stream JSON lines, one object each; blank lines are skipped."""
    for line in read_lines(path):
        yield Record(path, line.number, _json_object(path, line.number, line.text))


def tsv_records(path: Path) -> Iterator[Record]:
    """Stream tab-separated lines under a header; no quoting, so that a quotation mark is only itself."""
    return _table(path, tsv_cells(path))


def tsv_cells(path: Path) -> Iterator[tuple[list[str], int]]:
    """Stream the cells of tab-separated lines and the number of each line; blank lines without a tab are skipped."""
    for line in every_line(path):
        if "\t" in line.text or not (line.text == "" or line.text.isspace()):
            yield line.text.split("\t"), line.number


def csv_records(path: Path) -> Iterator[Record]:
    """Stream comma-separated rows under a header, quoted as RFC 4180 says; texts may have line breaks."""
    return _table(path, _csv_cells(path))


_READERS: Mapping[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": json_records,
    ".ndjson": json_records,
    ".tsv": tsv_records,
    ".csv": csv_records,
}


def _json_object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(path, f"malformed JSON ({error.msg}, column {error.colno})", _JSON, line) from None
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"malformed JSON ({error})", _JSON, line) from None
    if not isinstance(fields, dict):
        raise BadInput(path, f"expected a JSON object, found {_shown(fields)}", _JSON, line)
    return fields


def _csv_cells(path: Path) -> Iterator[tuple[list[str], int]]:
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


def _table(path: Path, rows: Iterable[tuple[list[str], int]]) -> Iterator[Record]:
    header: list[str] | None = None
    for cells, line in rows:
        if header is None:
            header = _header(path, line, cells)
        else:
            yield Record(path, line, _named(path, line, header, cells))


def _header(path: Path, line: int, names: list[str]) -> list[str]:
    if "" in names:
        raise BadInput(path, f"column {names.index('') + 1} has no name", "the first row names the columns", line)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(path, f"two columns are named {twice!r}", "give every column a name of its own", line)
    return names


def _named(path: Path, line: int, header: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    if len(cells) != len(header):
        what = f"expected {len(header)} columns as in the first row, found {len(cells)}"
        raise BadInput(path, what, "check tabs, commas and quotes in this row", line)
    return dict(zip(header, cells, strict=True))


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "…"
