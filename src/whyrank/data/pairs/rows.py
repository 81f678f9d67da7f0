"""From the rows of any file to pairs: which columns are roles, which is the id, and what the kinds need."""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np

from whyrank.core import BadInput, Ints, WhyrankError, suggestion
from whyrank.data.lines import Tally, every_line, read_lines, without_surrogates

# Rows of a pair set, packed: all texts in one block of UTF-8, made into strings when they are asked for.


class TextPair(NamedTuple):
    """One row of a pair set: the texts by their roles, such as `fluent` and `source`, or `title`."""

    id: str
    texts: Mapping[str, str]


class PackedPairs(Sequence[TextPair]):
    """Pairs that take the bytes of their texts and eight more for each text.

    A row is its id and then its texts in the order of the roles' names; `ends` says where each of them ends.
    """

    def __init__(self, roles: Sequence[str], data: bytes | bytearray, ends: Ints) -> None:
        """Take the block and the ends, len(roles) + 1 of them for each row."""
        self.roles, self._data, self._ends = tuple(roles), data, ends

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self._ends) // self._width

    def __iter__(self) -> Iterator[TextPair]:
        """The pairs in the order of the file."""
        return map(self._row, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> TextPair: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TextPair]: ...
    def __getitem__(self, index: int | slice) -> TextPair | Sequence[TextPair]:
        """One pair, or a list of them."""
        wanted = range(len(self))[index]
        return [self._row(i) for i in wanted] if isinstance(wanted, range) else self._row(wanted)

    def __eq__(self, other: object) -> bool:
        """Whether roles, ids and texts are the same."""
        return isinstance(other, PackedPairs) and self._parts() == other._parts()

    def __hash__(self) -> int:
        """Hash of the digest."""
        return hash(self.digest())

    def __repr__(self) -> str:
        """The roles and the number of pairs."""
        return f"PackedPairs({', '.join(self.roles)}; {len(self):,} pairs)"

    def ids(self) -> Iterator[str]:
        """The ids alone, without making the texts."""
        return (self._text(i) for i in range(0, len(self._ends), self._width))

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 of roles, ids and texts, in their order."""
        found = hashlib.sha256()
        for part in self._parts():
            found.update(part)
        return found.hexdigest()[:16]

    @property
    def _width(self) -> int:
        return len(self.roles) + 1

    def _parts(self) -> tuple[bytes, bytes, bytes | bytearray]:
        return "\0".join(self.roles).encode(), self._ends.astype("<i8").tobytes(), self._data

    def _row(self, i: int) -> TextPair:
        row_id, *texts = (self._text(j) for j in range(i * self._width, (i + 1) * self._width))
        return TextPair(row_id, dict(zip(self.roles, texts, strict=True)))

    def _text(self, j: int) -> str:
        return self._data[int(self._ends[j - 1]) if j else 0 : int(self._ends[j])].decode()


class Packed(NamedTuple):
    """Packed pairs, and notes on what had to be mended in them."""

    rows: PackedPairs
    notes: list[str]


def pack(pairs: Iterable[TextPair], source: str) -> Packed:
    """Pack pairs as they stream by; the first one says which roles there are, and all must have them."""
    data, ends, roles = bytearray(), array("q"), None
    mended = Tally("pairs with lone surrogates (each replaced by U+FFFD)")
    for pair in pairs:
        roles = sorted(pair.texts) if roles is None else roles
        _check(source, pair, roles)
        texts = [pair.id, *(pair.texts[role] for role in roles)]
        clean = [without_surrogates(text) for text in texts]
        if clean != texts:
            mended.add(clean[0])
        for text in clean:
            data += text.encode()
            ends.append(len(data))
    if roles is None:
        raise WhyrankError(f"{source}: there are no pairs in it; a pair set needs one at least")
    return Packed(PackedPairs(roles, data, np.frombuffer(ends, np.int64)), mended.notes(source))


def _check(source: str, pair: TextPair, roles: Sequence[str]) -> None:
    if not roles:
        raise WhyrankError(f"{source}: pair {pair.id!r} has no texts")
    if pair.texts.keys() != set(roles):
        found = ", ".join(sorted(pair.texts))
        raise WhyrankError(f"{source}: pair {pair.id!r} has the roles {found}, the first one {', '.join(roles)}")


# Rows of JSON lines, TSV and CSV files, plain or `.gz`, checked and named with their lines.

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


KINDS: Mapping[str, tuple[str, ...]] = {
    "paraphrase": ("a", "b"),
    "fluency": ("fluent", "source"),
    "formality": ("formal", "informal"),
    "simplicity": ("simple", "source"),
    "neutrality": ("neutral", "biased"),
    "succinctness": ("summary", "body"),
    "factuality": ("question", "answer", "passage"),
}
"""The roles that every set of a kind has; a query strategy may need more, such as `title` or `question`."""


def read_pairs(path: Path, columns: Mapping[str, str] | None = None) -> Iterator[TextPair]:
    """Stream the pairs of a JSON lines, TSV or CSV file.

    The string fields of the first row are the roles, and every row must have them. A field `id` (a string or
    an integer) is the id; without one the rows are numbered from 1.

    Args:
        path: the file, plain or `.gz`.
        columns: role -> column, for files whose columns have other names; the other columns keep theirs.
    """
    shape: _Shape | None = None
    for number, record in enumerate(read_records(path), 1):
        shape = _Shape(record, columns or {}) if shape is None else shape
        yield shape.pair(record, number)


def check_ids(path: Path, rows: PackedPairs, columns: Mapping[str, str] | None = None) -> None:
    """Raise an error that names both lines when an id of a file occurs twice."""
    hashes = np.fromiter(map(hash, rows.ids()), np.int64, len(rows))
    if len(np.unique(hashes)) == len(rows):
        return
    lines: dict[str, int] = {}
    for pair, record in zip(read_pairs(path, columns), read_records(path), strict=True):
        if pair.id in lines:
            what = f"id {pair.id!r} was already used in line {lines[pair.id]}"
            raise record.wrong(what, "give every pair an id of its own")
        lines[pair.id] = record.line


class _Shape:
    """What the first row of a file says about all of them."""

    def __init__(self, first: Record, columns: Mapping[str, str]) -> None:
        self.known = set(first.fields)
        for column in columns.values():
            if column not in self.known:
                raise BadInput(first.path, f"there is no column {column!r}", suggestion(column, sorted(self.known)))
        free = self.known - set(columns.values()) - set(columns)
        own = {name: name for name in first.fields if name in free and isinstance(first.fields[name], str)}
        self.roles = {**own, **columns}
        self.roles.pop("id", None)
        self.id = columns.get("id", "id" if "id" in free else None)
        if not self.roles:
            raise first.wrong("there are no texts in this row", "name the columns by their roles, such as a and b")

    def pair(self, record: Record, number: int) -> TextPair:
        strange = (name for name, value in record.fields.items() if isinstance(value, str) and name not in self.known)
        if (name := next(strange, None)) is not None:
            raise record.wrong(f"the first row has no {name!r}", "give every row the same roles")
        texts = {role: record.text(column) for role, column in self.roles.items()}
        return TextPair(str(number) if self.id is None else _id(record, self.id), texts)


def _id(record: Record, column: str) -> str:
    value = record.fields.get(column)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not (found := record.text(column)):
        raise record.wrong(f"{column!r} is empty, which cannot be an id")
    return found
