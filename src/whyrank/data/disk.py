"""Documents that stay on disk: a read-only mapping over memory-mapped files.

A store is a folder with these files (integers little-endian, n documents in the order of the corpus):

- `texts`, `ids`: all texts and all ids, UTF-8, one after the other
- `text_ends`, `id_ends`: int64[n], where each ends
- `title_sizes`: int32[n], bytes of the text's beginning that are its title
- `fields`, `field_ends`: all fields, a JSON object for each document that has some, and where each ends
- `hashes`: int64[n], the 64-bit hashes of the ids, sorted; `order`: int32[n], whose hash each one is
- `crcs`: uint32[n], the CRC-32 of each text, which every reading of a text verifies
- `meta.json`: version, number of documents, bytes of the corpus, of `texts` and of `ids`, notes
- `checksums.json`: the SHA-256 of all of them but `texts`, which opening the store verifies

An id is found by binary search over the hashes and then compared itself, so that equal hashes do no harm.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from whyrank.core import (
    BadInput,
    Ints,
    WhyrankError,
    cache_folder,
    check_listed,
    damage_error,
    hidden_prefix,
    list_checksums,
    make_locked,
    sweep,
)

VERSION = 2
_CHUNK = 4096
_INTEGERS = {
    "text_ends": "<i8", "id_ends": "<i8", "field_ends": "<i8", "title_sizes": "<i4", "hashes": "<i8", "order": "<i4",
    "crcs": "<u4",
}  # fmt: skip


class DiskDocs(Mapping[str, str]):
    """The documents of a store, id -> text, in the order of the corpus; equal to the dict of that corpus."""

    def __init__(self, folder: Path) -> None:
        """Open a whole store; an error of the system or a ValueError when it is not."""
        meta: dict[str, Any] = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        sizes = {name: np.dtype(kind).itemsize * meta["documents"] for name, kind in _INTEGERS.items()}
        sizes |= {"texts": meta["text_bytes"], "ids": meta["id_bytes"], "fields": meta["field_bytes"]}
        if meta["version"] != VERSION or any((folder / name).stat().st_size != size for name, size in sizes.items()):
            raise ValueError(f"the document store {folder} is not whole")
        self.folder, self.notes = folder, list(map(str, meta["notes"]))
        self.corpus_bytes = int(meta["corpus_bytes"])
        self._texts, self._ids, self._fields = (_map_file(folder / name) for name in ("texts", "ids", "fields"))
        self._integers: dict[str, npt.NDArray[Any]] = {
            name: np.asarray(np.memmap(folder / name, kind, "r")) for name, kind in _INTEGERS.items()
        }

    def __len__(self) -> int:
        return len(self._integers["order"])

    def __iter__(self) -> Iterator[str]:
        return (doc_id.decode() for doc_id in _slices(self._ids, self._integers["id_ends"]))

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, str) and self.position(doc_id) is not None  # without reading the text

    def __getitem__(self, doc_id: str) -> str:
        return self._text(self._position_of(doc_id)).decode()

    def __reduce__(self) -> tuple[type[DiskDocs], tuple[Path]]:
        return type(self), (self.folder,)

    def __repr__(self) -> str:
        return f"DiskDocs({str(self.folder)!r}, {len(self):,} documents)"

    def items(self) -> ItemsView[str, str]:
        """Ids with texts, read from front to back."""
        return _Items(self)

    def values(self) -> ValuesView[str]:
        """Texts, read from front to back."""
        return _Values(self)

    def get_many(self, doc_ids: Sequence[str]) -> list[str]:
        """Texts of these documents in the given order, read in the order of the file."""
        positions = [self._position_of(doc_id) for doc_id in doc_ids]
        texts = {position: self._text(position).decode() for position in sorted(set(positions))}
        return [texts[position] for position in positions]

    def position(self, doc_id: str) -> int | None:
        """Where in the corpus a document stands, from 0; None when it is not there."""
        hashes, key = self._integers["hashes"], np.int64(hash_of(doc_id))
        i = int(np.searchsorted(hashes, key))
        while i < len(self) and hashes[i] == key:
            position = int(self._integers["order"][i])
            if self.id_at(position) == doc_id:
                return position
            i += 1
        return None

    def id_at(self, position: int) -> str:
        """Id of the document at a position."""
        return _slice(self._ids, self._integers["id_ends"], position).decode()

    def title_at(self, position: int) -> str:
        """Title of the document at a position, or an empty string."""
        return self._text(position)[: int(self._integers["title_sizes"][position])].decode()

    def texts(self) -> Iterator[str]:
        """All texts, from front to back."""
        texts = _slices(self._texts, self._integers["text_ends"])
        return (self._verify(text, position).decode() for position, text in enumerate(texts))

    def titled(self) -> Ints:
        """Positions of the documents that have a title."""
        return np.flatnonzero(self._integers["title_sizes"])

    def fields_at(self, position: int) -> str:
        """Fields of the document at a position as JSON, or an empty string."""
        return _slice(self._fields, self._integers["field_ends"], position).decode()

    def with_fields(self) -> Ints:
        """Positions of the documents that have fields."""
        return np.flatnonzero(np.diff(self._integers["field_ends"], prepend=0))

    def _text(self, position: int) -> bytes:
        return self._verify(_slice(self._texts, self._integers["text_ends"], position), position)

    def _verify(self, text: bytes, position: int) -> bytes:
        if zlib.crc32(text) != self._integers["crcs"][position]:
            raise damage_error(
                self.folder / "texts", f"remove the folder {self.folder}; the next command makes it again"
            )
        return text

    def _position_of(self, doc_id: str) -> int:
        position = self.position(doc_id) if isinstance(doc_id, str) else None
        if position is None:
            raise KeyError(doc_id)
        return position


class DiskPart(Mapping[str, str]):
    """What some documents of a store have, such as a title, in the order of the corpus."""

    def __init__(self, docs: DiskDocs, positions: Ints, at: Callable[[int], str]) -> None:
        self._docs, self._positions, self._at = docs, positions, at

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[str]:
        return (self._docs.id_at(int(position)) for position in self._positions)

    def __getitem__(self, doc_id: str) -> str:
        position = self._docs.position(doc_id) if isinstance(doc_id, str) else None
        found = self._at(position) if position is not None else ""
        if not found:
            raise KeyError(doc_id)
        return found


class _Items(ItemsView[str, str]):
    _mapping: DiskDocs

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self._mapping, self._mapping.texts(), strict=True)


class _Values(ValuesView[str]):
    _mapping: DiskDocs

    def __iter__(self) -> Iterator[str]:
        return self._mapping.texts()


def texts_of(docs: Mapping[str, str], doc_ids: Iterable[str]) -> list[str]:
    """Texts of many documents in the given order, with one pass over the disk where they lie there."""
    wanted, get_many = list(doc_ids), getattr(docs, "get_many", None)
    found: list[str] = get_many(wanted) if get_many else [docs[doc_id] for doc_id in wanted]
    return found


def hash_of(doc_id: str) -> int:
    """64-bit hash of an id, the same in every process."""
    digest = hashlib.blake2b(doc_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _map_file(path: Path) -> mmap.mmap | bytes:
    with open(path, "rb") as file:
        # an empty file cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def _slice(data: mmap.mmap | bytes, ends: Ints, position: int) -> bytes:
    start = int(ends[position - 1]) if position else 0
    return data[start : int(ends[position])]


def _slices(data: mmap.mmap | bytes, ends: Ints) -> Iterator[bytes]:
    before = 0
    for start in range(0, len(ends), _CHUNK):
        bounds = [before, *ends[start : start + _CHUNK].tolist()]
        yield from (data[a:b] for a, b in pairwise(bounds))
        before = bounds[-1]


# Making a document store: streamed into a folder beside, then renamed, so that it is whole or not there.


class StoreWriter:
    """Writes documents into the files of a store as they come; only `finish` holds arrays over all."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._stack = folder, ExitStack()
        names = ("texts", "ids", "fields", *(name for name in _INTEGERS if name != "order"))
        self._write = {name: self._stack.enter_context((folder / name).open("wb")).write for name in names}
        self._documents = self._text_bytes = self._id_bytes = self._field_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, doc_id: str, text: str, title: str, fields: str) -> None:
        """Append one document; a title must be a prefix of the text, and `fields` are JSON or empty."""
        write = self._write
        content = text.encode()
        self._text_bytes += write["texts"](content)
        write["crcs"](zlib.crc32(content).to_bytes(4, "little"))
        self._id_bytes += write["ids"](doc_id.encode())
        write["text_ends"](self._text_bytes.to_bytes(8, "little"))
        write["id_ends"](self._id_bytes.to_bytes(8, "little"))
        self._field_bytes += write["fields"](fields.encode())
        write["field_ends"](self._field_bytes.to_bytes(8, "little"))
        write["title_sizes"](len(title.encode()).to_bytes(4, "little"))
        write["hashes"](hash_of(doc_id).to_bytes(8, "little", signed=True))
        self._documents += 1

    def finish(self, notes: list[str], corpus_bytes: int) -> str | None:
        """Sort the hashes and close the store; give the first id that occurs twice, if one does."""
        self._stack.close()
        hashes = np.fromfile(self.folder / "hashes", "<i8")
        order = np.argsort(hashes).astype("<i4")
        hashes = hashes[order]
        hashes.tofile(self.folder / "hashes")
        order.tofile(self.folder / "order")
        meta = {"version": VERSION, "documents": self._documents, "notes": notes}
        meta |= {"corpus_bytes": corpus_bytes, "text_bytes": self._text_bytes, "id_bytes": self._id_bytes}
        meta["field_bytes"] = self._field_bytes
        (self.folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
        list_checksums(self.folder, (file for file in self.folder.iterdir() if file.name != "texts"))
        for path in self.folder.iterdir():  # a power failure must not leave a whole-looking store behind
            with open(path, "rb+") as file:
                os.fsync(file.fileno())

        suspects = np.flatnonzero(hashes[1:] == hashes[:-1])
        docs, seen = DiskDocs(self.folder), set[str]()
        for position in np.unique(np.r_[order[suspects], order[suspects + 1]]).tolist():
            if (doc_id := docs.id_at(position)) in seen:  # equal hashes of different ids do no harm
                return doc_id
            seen.add(doc_id)
        return None


def store_folder(corpus: Path, columns: str = "") -> Path:
    """Where the store of a corpus is kept; its path, size, time of change and `columns` decide which it is."""
    found = [each.stat() for each in files_of(corpus)]
    facts = "\0".join(f"{each.st_size}\0{each.st_mtime_ns}" for each in found)
    text = f"{VERSION}\0{corpus.resolve()}\0{facts}\0{columns}"
    return cache_folder() / "docs" / hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def files_of(corpus: Path) -> list[Path]:
    """The file of a corpus, or the files of its folder."""
    return [corpus] if corpus.is_file() else sorted(each for each in corpus.iterdir() if each.is_file())


def open_store(folder: Path) -> DiskDocs | None:
    """The store in this folder, or None when there is none or it is not whole."""
    try:
        check_listed(folder, "remove the folder")
        return DiskDocs(folder)
    except (OSError, ValueError, KeyError, TypeError, BadInput):
        return None


@contextmanager
def building(target: Path) -> Iterator[Path]:
    """Give an empty folder beside `target`; it becomes `target` only when the block succeeds.

    Of two processes that build at once the first one wins; the other's work is dropped.
    """
    try:
        with folder_beside(target) as made:
            yield made
            try:
                os.rename(made, target)
            except OSError:
                if open_store(target) is None:  # what lies there is not whole: take its place
                    shutil.rmtree(target)
                    os.rename(made, target)
    except OSError as error:
        what = f"the documents cannot be kept in {target.parent} ({error.strerror or error})"
        raise WhyrankError(
            f"{what}; set WHYRANK_CACHE to a folder with room, or raise WHYRANK_MEMORY_LIMIT"
        ) from error


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """Give an empty hidden folder beside `target`; what is left of it at the end is removed.

    What killed processes left beside the same target is removed too.
    """

    def make() -> str:
        made = target.parent / f"{hidden_prefix(target)}{secrets.token_hex(4)}.tmp"
        made.mkdir(parents=True)
        return str(made)

    sweep(target)
    made, handle = make_locked(make)
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(handle)
