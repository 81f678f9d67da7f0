"""From the rows of any file to pairs: which columns are roles, which is the id, and what the kinds need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from whyrank.core.errors import BadInput, suggestion
from whyrank.data.pair_files import Record, read_records
from whyrank.data.pair_rows import PackedPairs, TextPair

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
