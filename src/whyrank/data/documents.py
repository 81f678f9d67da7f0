"""Documents and queries in JSON lines: one object a line with id, text and sometimes title."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core import BadInput, WhyrankError, track
from whyrank.data.disk import DiskDocs, DiskTitles, StoreWriter, building, open_store, store_folder
from whyrank.data.lines import Line, TextTallies, encodable, read_lines, without_surrogates

_ID_KEYS = ("id", "_id", "docno", "doc_id")


class Document(NamedTuple):
    """One document as it streams by; the title, where there is one, is a prefix of the text."""

    id: str
    text: str
    title: str
    line: int
    size: int


def read_documents(path: Path, tallies: TextTallies) -> Iterator[Document]:
    """Stream the documents of a JSON lines file, checked; oddities go to the tallies."""
    for line in read_lines(path):
        fields = _fields(path, line)
        doc_id, title = _id(path, line, fields), _string(path, line, fields, "title", "")
        text = tallies.mend(doc_id, full_text(title, _string(path, line, fields, "text")), path, line.number)
        yield Document(doc_id, text, without_surrogates(title) if title.strip() else "", line.number, line.size)


def full_text(title: str, text: str) -> str:
    """Title, blank, text (the field's convention), unless the text already begins with the title.

    A text begins with a title only where the title ends with a word: `Art` does not begin `Artificial`.
    """
    if not title.strip():
        return text
    if not text.strip():
        return title
    repeated = text.startswith(title) and not text[len(title) : len(title) + 1].isalnum()
    return text if repeated else f"{title} {text}"


def duplicate(path: Path, doc_id: str) -> BadInput:
    """The error for an id that occurs twice; it finds both lines by reading the file again."""
    both = (line.number for line in read_lines(path) if _id(path, line, _fields(path, line)) == doc_id)
    first, second = next(both, None), next(both, None)
    return BadInput(
        path, f"id {doc_id!r} was already used in line {first}", "give every text an id of its own", second
    )


def _fields(path: Path, line: Line) -> dict[str, Any]:
    try:
        fields = json.loads(line.text)
    except json.JSONDecodeError as error:
        raise BadInput(path, f"malformed JSON ({error.msg}, column {error.colno})", _REMEDY, line.number) from None
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"malformed JSON ({error})", _REMEDY, line.number) from None
    if not isinstance(fields, dict):
        raise BadInput(path, f"expected a JSON object, found {_shown(fields)}", _REMEDY, line.number)
    return fields


def _id(path: Path, line: Line, fields: dict[str, Any]) -> str:
    key = next((key for key in _ID_KEYS if key in fields), "id")
    found = _string(path, line, fields, key)
    if not found or not encodable(found):
        raise BadInput(path, f"{key!r} is {found!r}, which cannot be an id", _REMEDY, line.number)
    return found


def _string(path: Path, line: Line, fields: dict[str, Any], key: str, default: str | None = None) -> str:
    value = fields.get(key)
    if value is None and default is not None:
        return default
    if key not in fields:
        raise BadInput(path, f"{key!r} is missing", _REMEDY, line.number)
    if not isinstance(value, str):
        raise BadInput(path, f"{key!r} is {_shown(value)}, not a string", _REMEDY, line.number)
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "…"


_REMEDY = 'write one object a line such as {"id": "d1", "text": "..."}'


# A corpus file read once: kept in memory while it is small, moved to a store on disk when it is not.

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"([0-9]{1,15})\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)


class Corpus(NamedTuple):
    """The documents of a file: id -> text, id -> title, and what was odd about them."""

    docs: Mapping[str, str]
    titles: Mapping[str, str]
    notes: list[str]


def read_corpus(path: Path, limit: int | None = None, strict: bool = False) -> Corpus:
    """Read a JSON lines corpus; above `limit` bytes (default: `memory_limit`) its documents stay on disk.

    With `strict` an empty text is an error, and a store that has some is not used.
    """
    limit = memory_limit() if limit is None else limit
    store, packed = store_folder(path), path.stat().st_size
    kept = open_store(store)
    if strict and kept is not None and any("with an empty text" in note for note in kept.notes):
        kept = None
    if kept is not None and max(kept.corpus_bytes, packed) > limit:
        return Corpus(kept, DiskTitles(kept), kept.notes)
    # a file above the limit need not fill the memory first; a compressed one only grows when it is unpacked
    return _stream(path, store, limit if packed <= limit else 0, strict)


def memory_limit() -> int:
    """Bytes of corpus that are held in memory: `WHYRANK_MEMORY_LIMIT` (such as `512M`), else 1 GiB."""
    given = os.environ.get("WHYRANK_MEMORY_LIMIT") or "1G"
    size = _SIZE.fullmatch(given.strip())
    if not size:
        raise WhyrankError(f"WHYRANK_MEMORY_LIMIT={given!r} is not a size; write bytes, or 64K, 512M, 2G")
    return int(size[1]) * _UNITS[size[2].upper()]


class _Memory:
    def __init__(self) -> None:
        self.docs: dict[str, str] = {}
        self.titles: dict[str, str] = {}
        self.size = 0

    def add(self, document: Document) -> None:
        self.docs[document.id] = document.text
        if document.title:
            self.titles[document.id] = document.title
        self.size += document.size

    def move_to(self, writer: StoreWriter) -> None:
        for doc_id, text in self.docs.items():
            writer.add(doc_id, text, self.titles.get(doc_id, ""))
        self.docs.clear()
        self.titles.clear()


def _stream(path: Path, store: Path, limit: int, strict: bool) -> Corpus:
    tallies, memory = TextTallies("documents", strict), _Memory()
    stream = track(read_documents(path, tallies), f"reading {path.name}")
    for document in stream:
        if document.id in memory.docs:
            raise duplicate(path, document.id)
        memory.add(document)
        if memory.size > limit:
            return _spill(path, store, memory, stream, tallies)
    return Corpus(memory.docs, memory.titles, tallies.notes(path.name))


def _spill(path: Path, store: Path, memory: _Memory, rest: Iterator[Document], tallies: TextTallies) -> Corpus:
    """Move what was read so far to a store and stream the rest there."""
    with building(store) as folder, StoreWriter(folder) as writer:
        memory.move_to(writer)
        for document in rest:
            writer.add(document.id, document.text, document.title)
            memory.size += document.size
        repeated = writer.finish(tallies.notes(path.name), memory.size)
        if repeated is not None:
            raise duplicate(path, repeated)
    docs = DiskDocs(store)
    return Corpus(docs, DiskTitles(docs), docs.notes)


# Queries from `queries.tsv` (`query_id<TAB>text`) or from BEIR's `queries.jsonl`.


def read_queries(path: Path, notes: list[str], strict: bool = False) -> dict[str, str]:
    """Read queries from tab-separated lines without a header; columns after the second are ignored."""
    tallies = TextTallies("queries", strict)
    rows = ((query_id, tallies.mend(query_id, text, path, line), line) for query_id, text, line in _columns(path))
    queries = _unique(path, rows)
    notes += tallies.notes(path.name)
    return queries


def read_json_queries(path: Path, notes: list[str], strict: bool = False) -> dict[str, str]:
    """Read queries from JSON lines with `_id` and `text`."""
    tallies = TextTallies("queries", strict)
    queries = _unique(path, ((query.id, query.text, query.line) for query in read_documents(path, tallies)))
    notes += tallies.notes(path.name)
    return queries


def _columns(path: Path) -> Iterator[tuple[str, str, int]]:
    for line in read_lines(path):
        query_id, *columns = line.text.split("\t")
        if not columns or not query_id:
            what = f"expected an id, a tab and a text, found {line.text[:60]!r}"
            raise BadInput(path, what, "separate the columns by a tab", line.number)
        yield query_id, columns[0], line.number


def _unique(path: Path, rows: Iterable[tuple[str, str, int]]) -> dict[str, str]:
    queries: dict[str, str] = {}
    lines: dict[str, int] = {}
    for query_id, text, line in rows:
        if query_id in queries:
            what = f"query id {query_id!r} was already used in line {lines[query_id]}"
            raise BadInput(path, what, "give every query an id of its own", line)
        queries[query_id], lines[query_id] = text, line
    return queries
