"""Documents and queries in JSON lines or tab-separated lines; a corpus stays in memory while it is small."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from whyrank.core import BadInput, Record, WhyrankError, json_records, read_lines, track
from whyrank.data.disk import DiskDocs, DiskTitles, StoreWriter, building, open_store, store_folder
from whyrank.data.tallies import TextTallies, is_encodable, without_surrogates

_ID_KEYS = ("id", "_id", "docno", "doc_id")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"([0-9]{1,15})\s*([KMGT]?)(?:I?B)?", re.IGNORECASE)


class Document(NamedTuple):
    """One document as it streams by; the title, where there is one, is a prefix of the text."""

    id: str
    text: str
    title: str
    line: int
    size: int


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

    tallies = TextTallies("documents", strict)
    stream = track(read_documents(path, tallies), f"reading {path.name}")
    docs: dict[str, str] = {}
    titles: dict[str, str] = {}
    # a file above the limit need not fill the memory first; a compressed one only grows when it is unpacked
    size, most = 0, limit if packed <= limit else 0
    for document in stream:
        if document.id in docs:
            raise _duplicate(path, document.id)
        docs[document.id] = document.text
        if document.title:
            titles[document.id] = document.title
        size += document.size
        if size > most:
            break
    else:
        return Corpus(docs, titles, tallies.notes(path.name))

    with building(store) as folder, StoreWriter(folder) as writer:  # what was read so far, and then the rest
        for doc_id, text in docs.items():
            writer.add(doc_id, text, titles.get(doc_id, ""))
        docs.clear()
        for document in stream:
            writer.add(document.id, document.text, document.title)
            size += document.size
        repeated = writer.finish(tallies.notes(path.name), size)
        if repeated is not None:
            raise _duplicate(path, repeated)
    made = DiskDocs(store)
    return Corpus(made, DiskTitles(made), made.notes)


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
        doc_id = _id(record)
        title = "" if record.fields.get("title") is None else record.text("title")
        text = tallies.mend(doc_id, full_text(title, record.text("text")), path, record.line)
        yield Document(doc_id, text, without_surrogates(title) if title.strip() else "", record.line, record.size)


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


def _id(record: Record) -> str:
    key = next((key for key in _ID_KEYS if key in record.fields), "id")
    found = record.text(key)
    if not found or not is_encodable(found):
        raise record.wrong(f"{key!r} is {found!r}, which cannot be an id")
    return found


def _duplicate(path: Path, doc_id: str) -> BadInput:
    """The error for an id that occurs twice; it finds both lines by reading the file again."""
    lines = (record.line for record in json_records(path) if _id(record) == doc_id)
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
