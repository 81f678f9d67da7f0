"""The first line of a tab-separated term table that is wrong, read slowly, once it is known that one is."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from whyrank.core import MOST_BYTES, BadInput, WhyrankError, check_size
from whyrank.data import every_line, opened
from whyrank.tables.difference import escaped_terms, lines_of, unescaped
from whyrank.tables.files import COLUMNS, Stored, facts_text, table_of
from whyrank.tables.table import TermTable

# Term tables as tab-separated text: `query term, document term, weight`, plain or gzip, with or without a header.
#
# What is written here begins with comments: the number of entries, facts, and vocabularies where the lines alone
# would
# lose something; terms are escaped. A file without this header is taken as it is.

_FIRST = "# whyrank term table 1"
_BOM = b"\xef\xbb\xbf"
_PIECE = 1 << 20
_REMEDY = "each line has a query term, a document term and a weight, with tabs between"


class _Header(NamedTuple):
    """What stands before the entries: where these begin, how many there are, what is said of them."""

    start: int
    own: bool = False
    entries: int | None = None
    stored: Stored = Stored()
    empty: bool = False


class _Tailed:
    """A file for reading that remembers the last byte that it gave."""

    closed = False

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self.file, self.last = file, b"\n"

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        found = self.file.read(size)
        self.last = found[-1:] or self.last
        return found


def write_tsv(table: TermTable, path: Path) -> None:
    """Write a table as tab-separated text."""
    with open(path, "wb") as file:
        _write(table, file)


def write_gzip(table: TermTable, path: Path) -> None:
    """Write a table as tab-separated text, compressed; the same table gives the same bytes."""
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        _write(table, packed)


def read_tsv(path: Path) -> TermTable:
    """Read a table from tab-separated text."""
    import pyarrow as pa

    try:
        with opened(path) as file:
            header = _header(path, file)
            file.seek(header.start)
            return _read(path, file, header)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(path, f"the gzip data is damaged ({error})", "get the file again") from None
    except (WhyrankError, pa.ArrowException) as error:
        found = None if isinstance(error, BadInput) else first_problem(path)
        if found is None:
            raise
        raise BadInput(path, found.what, _REMEDY, found.line) from None


def _write(table: TermTable, file: IO[bytes] | gzip.GzipFile) -> None:
    said = "".join(f"# {name}: {value}\n" for name, value in _said(table))
    file.write(f"{_FIRST}\n{said}".encode())
    for lines in _entry_lines(table):
        file.write(lines)


def _said(table: TermTable) -> Iterator[tuple[str, str]]:
    """The header; a vocabulary only where the order of the entries does not give it."""
    yield "entries", str(len(table))
    yield "facts", facts_text(table.facts)
    if not np.diff(table.indptr).all():
        yield "query_terms", json.dumps(list(table.query_terms), ensure_ascii=False)
    if table.counts is not None or not _appear_in_order(table):
        yield "document_terms", json.dumps(list(table.doc_terms), ensure_ascii=False)
    if table.counts is not None:
        yield "counts", json.dumps(table.counts.tolist())


def _appear_in_order(table: TermTable) -> bool:
    """Whether document terms first appear among the entries in the order of the vocabulary, and all of them."""
    seen = np.maximum.accumulate(table.indices)
    steps = np.diff(seen, prepend=-1)
    return len(table.doc_terms) == int(seen[-1:].sum()) + len(seen[-1:]) and bool((steps <= 1).all())


def _entry_lines(table: TermTable) -> Iterator[bytes]:
    """The lines of the entries, in large pieces."""
    import pyarrow as pa

    rows, queries, docs = table.row_numbers(), escaped_terms(table.query_terms), escaped_terms(table.doc_terms)
    for start in range(0, len(table), _PIECE):
        here = slice(start, start + _PIECE)
        terms = queries.take(pa.array(rows[here])), docs.take(pa.array(table.indices[here]))
        yield lines_of(*terms, pa.array(table.weights[here]))


def _header(path: Path, file: IO[bytes] | gzip.GzipFile) -> _Header:
    """Read the lines before the entries."""
    start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    file.seek(start)
    first = file.readline(MOST_BYTES + 1)
    check_size(path, len(first), "this line", 1)
    if first.rstrip(b"\r\n").decode("utf-8", "replace") == _FIRST:
        return _own_header(path, file)
    while first.startswith(b"#") and first.count(b"\t") != 2:
        start = file.tell()
        first = file.readline(MOST_BYTES + 1)
    if first.rstrip(b"\r\n").lower().split(b"\t") == [name.encode() for name in COLUMNS]:
        start = file.tell()
        first = file.readline(MOST_BYTES + 1)
    return _Header(start, empty=not first)


def _own_header(path: Path, file: IO[bytes] | gzip.GzipFile) -> _Header:
    said: dict[str, Any] = {}
    start = file.tell()
    try:
        while (line := file.readline()).startswith(b"# "):
            key, _, value = line[2:].decode().partition(": ")
            said[key], start = json.loads(value), file.tell()
        entries, facts = int(said["entries"]), said["facts"]
    except (ValueError, KeyError):
        raise BadInput(path, "the header is damaged or cut short", "get the file again") from None
    return _Header(start, True, entries, _stored(said, facts), empty=not line)


def _stored(said: dict[str, Any], facts: dict[str, Any]) -> Stored:
    import pyarrow as pa

    names = ("query_terms", "document_terms")
    queries, docs = (pa.array(said[name], pa.string()) if name in said else None for name in names)
    return Stored(queries, docs, said.get("counts"), facts)


def _read(path: Path, file: IO[bytes] | gzip.GzipFile, header: _Header) -> TermTable:
    tailed = _Tailed(file)
    columns = _columns(tailed, header)
    if not columns.num_rows and not header.own:
        raise BadInput(path, "the file is empty", "put at least one line into it")
    if header.own and (columns.num_rows != header.entries or tailed.last != b"\n"):
        what = f"is cut short: {columns.num_rows:,} of {header.entries:,} entries are whole"
        raise BadInput(path, what, "get the file again")
    return table_of(_meant(columns) if header.own else columns, header.stored)


def _columns(file: _Tailed, header: _Header) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    terms = pa.dictionary(pa.int32(), pa.string())
    types = dict(zip(COLUMNS, (terms, terms, pa.float32()), strict=True))
    if header.empty:
        return pa.schema(types).empty_table()
    return csv.read_csv(
        pa.PythonFile(file, "r"),
        read_options=csv.ReadOptions(column_names=list(COLUMNS), block_size=1 << 24),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=csv.ConvertOptions(column_types=types, null_values=[]),
    )


def _meant(columns: Any) -> Any:
    """The columns with terms as they were before they were escaped."""
    import pyarrow as pa

    for place, name in enumerate(COLUMNS[:2]):
        column = columns[name].unify_dictionaries()
        terms = pa.array([unescaped(term) for term in column.chunk(0).dictionary.to_pylist()], pa.string())
        chunks = [pa.DictionaryArray.from_arrays(chunk.indices, terms) for chunk in column.chunks]
        columns = columns.set_column(place, name, pa.chunked_array(chunks))
    return columns


class Problem(NamedTuple):
    """What is wrong, and in which line."""

    what: str
    line: int


def first_problem(path: Path) -> Problem | None:
    """The first line that is no entry, or None."""
    begun = False
    try:
        for number, text, _ in every_line(path):
            if not text or (not begun and _is_heading(text)):
                continue
            begun = True
            what = _wrong(text.split("\t"))
            if what:
                return Problem(what, number)
    except BadInput as error:
        return Problem(error.what, error.line or 1)
    return None


def _is_heading(text: str) -> bool:
    return (text.startswith("#") and text.count("\t") != 2) or tuple(text.lower().split("\t")) == COLUMNS


def _wrong(fields: list[str]) -> str | None:
    if len(fields) != 3:
        return f"the line has {len(fields)} field{'s' * (len(fields) != 1)} instead of 3"
    if not (fields[0] and fields[1]):
        return "a term is empty"
    try:
        with np.errstate(over="ignore"):
            weight = np.float32(fields[2])
    except ValueError:
        return f"the weight {fields[2][:40]!r} is no number"
    return None if 0 <= weight < np.inf else f"the weight {fields[2]} is no finite number, zero or more"
