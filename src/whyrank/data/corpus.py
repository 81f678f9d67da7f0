"""A corpus file read once: kept in memory while it is small, moved to a store on disk when it is not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from whyrank.core.errors import WhyrankError
from whyrank.core.progress import track
from whyrank.data.disk import DiskDocs, DiskTitles
from whyrank.data.documents import Document, duplicate, read_documents
from whyrank.data.store import StoreWriter, building, open_store, store_folder
from whyrank.data.tallies import TextTallies

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
