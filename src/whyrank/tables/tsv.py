r"""Term tables as tab-separated text: `query term, document term, weight`, plain or gzip, with or without a header.

What is written here begins with comments: the number of entries, facts, and vocabularies where the lines alone would
lose something. In a term, a backslash, tab or line break is written as `\\ \t \n \r`; in front of a term, a `#`
(which would begin a comment) and a byte order mark (which readers skip) have a backslash too. A file without this
header is taken as it is.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from whyrank.core import MOST_BYTES, BadInput, check_size, open_bytes, read_lines
from whyrank.tables.files import COLUMNS, Stored, facts_text, table_of
from whyrank.tables.table import TermTable

_FIRST = "# whyrank term table 1"
_BOM = b"\xef\xbb\xbf"
_BATCH = 1 << 20  # entries that are written at once
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_ESCAPED = re.compile(r"\\(.?)", re.DOTALL)
_MEANT = {written[1]: meant for meant, written in _ESCAPES.items()} | {"#": "#", "\ufeff": "\ufeff"}
_ODD = re.compile(r"^[#\ufeff]|[\\\t\n\r]")


def write_tsv(table: TermTable, path: Path, packed: bool = False) -> None:
    """Write a table as tab-separated text, `packed` by gzip; the same table gives the same bytes."""
    import pyarrow as pa

    header = "".join(f"# {name}: {value}\n" for name, value in _header_fields(table))
    rows, queries, docs = table.row_numbers(), escaped_terms(table.query_terms), escaped_terms(table.doc_terms)
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) if packed else nullcontext(raw) as file:
        file.write(f"{_FIRST}\n{header}".encode())
        for start in range(0, len(table), _BATCH):
            here = slice(start, start + _BATCH)
            terms = queries.take(pa.array(rows[here])), docs.take(pa.array(table.indices[here]))
            file.write(tab_separated(*terms, pa.array(table.weights[here])))


def _header_fields(table: TermTable) -> Iterator[tuple[str, str]]:
    """The header; a vocabulary only where the order of the entries does not give it."""
    yield "entries", str(len(table))
    yield "facts", facts_text(table.facts)
    if not np.diff(table.indptr).all():
        yield "query_terms", json.dumps(list(table.query_terms), ensure_ascii=False)
    highest = np.maximum.accumulate(table.indices)
    appear_in_order = bool((np.diff(highest, prepend=-1) <= 1).all())
    all_appear = len(table.doc_terms) == (int(highest[-1]) + 1 if len(highest) else 0)
    if table.counts is not None or not (appear_in_order and all_appear):
        yield "document_terms", json.dumps(list(table.doc_terms), ensure_ascii=False)
    if table.counts is not None:
        yield "counts", json.dumps(table.counts.tolist())
    if table.words:
        yield "words", json.dumps(dict(table.words), ensure_ascii=False)


def tab_separated(*columns: Any) -> bytes:
    """Lines with a field for each of these Arrow columns; null is an empty field."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(columns[0]):
        return b""
    tab, end, nothing = (pa.scalar(text, pa.large_string()) for text in ("\t", "\n", ""))
    fields = [pc.cast(column, pa.large_string()) for column in columns]
    fields[-1] = pc.binary_join_element_wise(fields[-1], nothing, end, null_handling="replace")
    lines = pc.binary_join_element_wise(*fields, tab, null_handling="replace")
    return bytes(memoryview(lines.buffers()[2]))  # the text of a column of lines is the text of the file


def escaped_terms(terms: Iterable[str]) -> Any:
    """A column of terms as they stand in fields."""
    import pyarrow as pa

    return pa.array([_escape(term) for term in terms], pa.large_string())


def _escape(term: str) -> str:
    if not _ODD.search(term):
        return term
    text = "".join(_ESCAPES.get(each, each) for each in term)
    return "\\" + text if text.startswith(("#", "\ufeff")) else text


class _Header(NamedTuple):
    """What stands before the entries: where these begin, after how many lines, and whether there are any.

    A header of ours says how many entries there are, and more in `stored`.
    """

    start: int
    lines: int
    empty: bool
    entries: int | None = None
    stored: Stored = Stored()


class _Tailed:
    """A file for reading that remembers the last byte that it gave."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.last = file, b"\n"

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        found = self.file.read(size)
        self.last = found[-1:] or self.last
        return found


def read_tsv(path: Path) -> TermTable:
    """Read a table from tab-separated text."""
    import pyarrow as pa

    try:
        with open_bytes(path) as file:
            header = _read_header(path, file)
            file.seek(header.start)
            tailed = _Tailed(file)
            try:
                columns = _read_columns(tailed, header)
            except pa.ArrowInvalid:
                file.seek(header.start)
                columns = _read_columns(tailed, header, use_threads=False)  # one thread knows the row of an error
    except pa.ArrowInvalid as error:
        row = re.search(r"Row #(\d+): (.*)", str(error), re.DOTALL)
        raise _wrong_row(path, header, int(row[1]) if row else None, row[2] if row else str(error)) from None
    weights = columns["weight"].to_numpy()
    wrong = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(wrong):
        what = f"the weight {weights[wrong[0]]} is no finite number, zero or more"
        raise _wrong_row(path, header, int(wrong[0]) + 1, what)
    if header.entries is None:
        if not columns.num_rows:
            raise BadInput(path, "the file is empty", "put at least one line into it")
        return table_of(columns, header.stored)
    if columns.num_rows != header.entries or tailed.last != b"\n":
        what = f"is cut short: {columns.num_rows:,} of {header.entries:,} entries are whole"
        raise BadInput(path, what, "get the file again")
    return table_of(_unescape_terms(columns), header.stored)


def _wrong_row(path: Path, header: _Header, row: int | None, what: str) -> BadInput:
    """The error for an entry that cannot be used, with its line; entries count from 1, and no blank lines."""
    line = None if row is None else next(islice(read_lines(path), header.lines + row - 1, None), None)
    remedy = "each line has a query term, a document term and a weight, with tabs between"
    return BadInput(path, " ".join(what.split())[:200], remedy, line.number if line else None)


def _read_header(path: Path, file: IO[bytes]) -> _Header:
    """Read the lines before the entries: those of our own header, or comments and the names of the columns."""
    start, lines = (len(_BOM) if file.read(len(_BOM)) == _BOM else 0), 0
    file.seek(start)
    line = file.readline(MOST_BYTES + 1)
    check_size(path, len(line), "this line", 1)
    if line.rstrip(b"\r\n").decode("utf-8", "replace") == _FIRST:
        return _read_own_header(path, file)
    while line.startswith(b"#") and line.count(b"\t") != 2:
        start, lines, line = file.tell(), lines + 1, file.readline(MOST_BYTES + 1)
    if line.rstrip(b"\r\n").lower().split(b"\t") == [name.encode() for name in COLUMNS]:
        start, lines, line = file.tell(), lines + 1, file.readline(MOST_BYTES + 1)
    return _Header(start, lines, empty=not line)


def _read_own_header(path: Path, file: IO[bytes]) -> _Header:
    import pyarrow as pa

    found: dict[str, Any] = {}
    start = file.tell()
    try:
        while (line := file.readline()).startswith(b"# "):
            key, _, value = line[2:].decode().partition(": ")
            found[key], start = json.loads(value), file.tell()
        names = ("query_terms", "document_terms")
        queries, docs = (pa.array(found[name], pa.string()) if name in found else None for name in names)
        stored = Stored(queries, docs, found.get("counts"), found["facts"], found.get("words"))
        return _Header(start, 1 + len(found), not line, int(found["entries"]), stored)
    except (ValueError, KeyError):
        raise BadInput(path, "the header is damaged or cut short", "get the file again") from None


def _read_columns(file: _Tailed, header: _Header, use_threads: bool = True) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    terms = pa.dictionary(pa.int32(), pa.string())
    types = dict(zip(COLUMNS, (terms, terms, pa.float32()), strict=True))
    if header.empty:
        return pa.schema(types).empty_table()
    return csv.read_csv(
        pa.PythonFile(file, "r"),
        read_options=csv.ReadOptions(column_names=list(COLUMNS), block_size=1 << 24, use_threads=use_threads),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=csv.ConvertOptions(column_types=types, null_values=[]),
    )


def _unescape_terms(columns: Any) -> Any:
    """The columns with terms as they were before they were escaped; a `KeyError` for any other use of a backslash."""
    import pyarrow as pa

    for position, name in enumerate(COLUMNS[:2]):
        column = columns[name].unify_dictionaries()
        escaped = column.chunk(0).dictionary.to_pylist()
        plain = (_ESCAPED.sub(lambda found: _MEANT[found[1]], text) if "\\" in text else text for text in escaped)
        terms = pa.array(plain, pa.string())
        chunks = [pa.DictionaryArray.from_arrays(chunk.indices, terms) for chunk in column.chunks]
        columns = columns.set_column(position, name, pa.chunked_array(chunks))
    return columns
