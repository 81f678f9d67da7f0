"""Documents and queries in JSON lines or tab-separated lines; a corpus stays in memory while it is small."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core import BadInput, Record, WhyrankError, json_records, read_lines, track
from whyrank.data.disk import DiskDocs, DiskPart, StoreWriter, building, files_of, open_store, store_folder
from whyrank.data.tallies import TextTallies, is_encodable, without_surrogates

_ID_KEYS = ("id", "_id", "docno", "doc_id")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"([0-9]{1,15})\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)


class Document(NamedTuple):
    """One document as it streams by; the title, where there is one, is a prefix of the text, and fields are JSON."""

    id: str
    text: str
    title: str
    line: int
    size: int
    fields: str = ""


Reader = Callable[[Path, TextTallies], Iterator[Document]]  # streams the documents of a corpus, checked


class Fields(Mapping[str, Mapping[str, Any]]):
    """What else is known of documents, id -> name -> value, decoded from JSON when it is looked at."""

    def __init__(self, encoded: Mapping[str, str]) -> None:
        self._encoded = encoded

    def __len__(self) -> int:
        return len(self._encoded)

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __getitem__(self, doc_id: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(self._encoded[doc_id])
        return found


def encode_fields(given: Mapping[str, Any]) -> str:
    """Fields as JSON, without those that are empty; an empty string where none is left."""
    kept = {name: value for name, value in given.items() if value not in (None, "", [], {})}
    return json.dumps(kept, sort_keys=True, default=_plain) if kept else ""


def _plain(value: Any) -> float | str:
    return float(value) if isinstance(value, Decimal) else str(value)


class Corpus(NamedTuple):
    """The documents of a file: id -> text, id -> title, id -> fields, and what was odd about them."""

    docs: Mapping[str, str]
    titles: Mapping[str, str]
    fields: Mapping[str, Mapping[str, Any]]
    notes: list[str]


def read_corpus(
    path: Path, limit: int | None = None, strict: bool = False, reader: Reader | None = None, columns: str = ""
) -> Corpus:
    """Read a corpus; above `limit` bytes (default: `memory_limit`) its documents stay on disk.

    It is read as JSON lines, or by a `reader` that takes some `columns` of it. With `strict` an empty text is an
    error, and a store that has some is not used.
    """
    limit, reader = memory_limit() if limit is None else limit, reader or read_documents
    store, packed = store_folder(path, columns), sum(each.stat().st_size for each in files_of(path))
    kept = open_store(store)
    if strict and kept is not None and any("with an empty text" in note for note in kept.notes):
        kept = None
    if kept is not None and max(kept.corpus_bytes, packed) > limit:
        return _on_disk(kept)

    tallies = TextTallies("documents", strict)
    stream = track(reader(path, tallies), f"reading {path.name}")
    docs, titles, fields = (dict[str, str]() for _ in range(3))
    # a file above the limit need not fill the memory first; a compressed one only grows when it is unpacked
    size, most = 0, limit if packed <= limit else 0
    for document in stream:
        if document.id in docs:
            raise _duplicate(path, document.id, reader)
        docs[document.id] = document.text
        if document.title:
            titles[document.id] = document.title
        if document.fields:
            fields[document.id] = document.fields
        size += document.size
        if size > most:
            break
    else:
        return Corpus(docs, titles, Fields(fields), tallies.notes(path.name))

    with building(store) as folder, StoreWriter(folder) as writer:  # what was read so far, and then the rest
        for doc_id, text in docs.items():
            writer.add(doc_id, text, titles.get(doc_id, ""), fields.get(doc_id, ""))
        docs.clear()
        for document in stream:
            writer.add(document.id, document.text, document.title, document.fields)
            size += document.size
        repeated = writer.finish(tallies.notes(path.name), size)
        if repeated is not None:
            raise _duplicate(path, repeated, reader)
    return _on_disk(DiskDocs(store))


def _on_disk(docs: DiskDocs) -> Corpus:
    titles = DiskPart(docs, docs.titled(), docs.title_at)
    return Corpus(docs, titles, Fields(DiskPart(docs, docs.with_fields(), docs.fields_at)), docs.notes)


def memory_limit() -> int:
    """Bytes of corpus that are held in memory: `WHYRANK_MEMORY_LIMIT` (such as `512M`), else 1 GiB."""
    given = os.environ.get("WHYRANK_MEMORY_LIMIT") or "1G"
    size = _SIZE.fullmatch(given.strip())
    if not size:
        raise WhyrankError(f"WHYRANK_MEMORY_LIMIT={given!r} is not a size; write bytes, or 64K, 512M, 2G")
    return int(size[1]) * _UNITS[size[2].upper()]


def read_documents(path: Path, tallies: TextTallies) -> Iterator[Document]:
    """Stream the documents of a JSON lines file, checked; oddities go to the tallies."""
    for record in json_records(path):
        key = next((key for key in _ID_KEYS if key in record.fields), "id")
        doc_id = _id(record, key)
        title = "" if record.fields.get("title") is None else record.text("title")
        text = tallies.mend(doc_id, full_text(title, record.text("text")), path, record.line)
        title = without_surrogates(title) if title.strip() else ""
        others = {name: value for name, value in record.fields.items() if name not in (key, "title", "text")}
        yield Document(doc_id, text, title, record.line, record.size, encode_fields(others) if others else "")


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


def _id(record: Record, key: str) -> str:
    found = record.text(key)
    if not found or not is_encodable(found):
        raise record.wrong(f"{key!r} is {found!r}, which cannot be an id")
    return found


def _duplicate(path: Path, doc_id: str, reader: Reader) -> BadInput:
    """The error for an id that occurs twice; it finds both lines by reading the file again."""
    lines = (document.line for document in reader(path, TextTallies("documents")) if document.id == doc_id)
    what = f"id {doc_id!r} was already used in line {next(lines)}"
    return BadInput(path, what, "give every text an id of its own", next(lines))


def read_queries(path: Path, notes: list[str], strict: bool = False) -> dict[str, str]:
    """Read queries from JSON lines, as BEIR has them, or from tab-separated lines without a header.

    Of the latter, columns after the second are ignored.
    """
    tallies = TextTallies("queries", strict)
    in_json = path.name.removesuffix(".gz").endswith(".jsonl")
    queries: dict[str, str] = {}
    lines: dict[str, int] = {}
    for query in read_documents(path, tallies) if in_json else _tab_separated(path, tallies):
        if query.id in queries:
            what = f"query id {query.id!r} was already used in line {lines[query.id]}"
            raise BadInput(path, what, "give every query an id of its own", query.line)
        queries[query.id], lines[query.id] = query.text, query.line
    notes += tallies.notes(path.name)
    return queries


def _tab_separated(path: Path, tallies: TextTallies) -> Iterator[Document]:
    for line in read_lines(path):
        query_id, *columns = line.text.split("\t")
        if not columns or not query_id:
            what = f"expected an id, a tab and a text, found {line.text[:60]!r}"
            raise BadInput(path, what, "separate the columns by a tab", line.number)
        text = tallies.mend(query_id, columns[0], path, line.number)
        yield Document(query_id, text, "", line.number, len(line.raw))
