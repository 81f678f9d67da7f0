"""Documents that stay on disk: a read-only mapping over memory-mapped files.

A store is a folder with these files (integers little-endian, n documents in the order of the corpus):

- `texts`, `ids`: all texts and all ids, UTF-8, one after the other
- `text_ends`, `id_ends`: int64[n], where each ends
- `title_sizes`: int32[n], bytes of the text's beginning that are its title
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
import time
import zlib
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from whyrank.core import BadInput, Codes, Ints, WhyrankError, cache_folder, check_listed, damaged, list_checksums

VERSION = 1
_CHUNK = 4096
_INTEGERS = {"text_ends": "<i8", "id_ends": "<i8", "title_sizes": "<i4", "hashes": "<i8", "order": "<i4"}


class DiskDocs(Mapping[str, str]):
    """The documents of a store, id -> text, in the order of the corpus; equal to the dict of that corpus."""

    def __init__(self, folder: Path) -> None:
        """Open a whole store; an error of the system or a ValueError when it is not."""
        meta = read_meta(folder)
        self.folder, self.notes = folder, list(map(str, meta["notes"]))
        self.corpus_bytes = int(meta["corpus_bytes"])
        self._texts, self._ids = _bytes(folder / "texts"), _bytes(folder / "ids")
        self._text_ends: Ints = _integers(folder, "text_ends")
        self._id_ends: Ints = _integers(folder, "id_ends")
        self._title_sizes: Codes = _integers(folder, "title_sizes")
        self._hashes: Ints = _integers(folder, "hashes")
        self._order: Codes = _integers(folder, "order")
        crcs = folder / "crcs"  # older stores have none
        self._crcs = np.asarray(np.memmap(crcs, "<u4", "r")) if crcs.exists() else None

    def __len__(self) -> int:
        """Number of documents."""
        return len(self._order)

    def __iter__(self) -> Iterator[str]:
        """Ids in the order of the corpus."""
        return (doc_id.decode() for doc_id in _pieces(self._ids, self._id_ends))

    def __contains__(self, doc_id: object) -> bool:
        """Whether the document is there; its text is not read."""
        return isinstance(doc_id, str) and self.position(doc_id) is not None

    def __getitem__(self, doc_id: str) -> str:
        """Text of a document."""
        return self.text_at(self._known(doc_id))

    def __reduce__(self) -> tuple[type[DiskDocs], tuple[Path]]:
        """Travel between processes as a path."""
        return type(self), (self.folder,)

    def __repr__(self) -> str:
        """Where the store is and how many documents it has."""
        return f"DiskDocs({str(self.folder)!r}, {len(self):,} documents)"

    def items(self) -> ItemsView[str, str]:
        """Ids with texts, read from front to back."""
        return _Items(self)

    def values(self) -> ValuesView[str]:
        """Texts, read from front to back."""
        return _Values(self)

    def get_many(self, doc_ids: Sequence[str]) -> list[str]:
        """Texts of these documents in the given order, read in the order of the file."""
        positions = [self._known(doc_id) for doc_id in doc_ids]
        texts = {position: self.text_at(position) for position in sorted(set(positions))}
        return [texts[position] for position in positions]

    def position(self, doc_id: str) -> int | None:
        """Where in the corpus a document stands, from 0; None when it is not there."""
        key = np.int64(hash_of(doc_id))
        i = int(np.searchsorted(self._hashes, key))
        while i < len(self) and self._hashes[i] == key:
            position = int(self._order[i])
            if self.id_at(position) == doc_id:
                return position
            i += 1
        return None

    def id_at(self, position: int) -> str:
        """Id of the document at a position."""
        return _piece(self._ids, self._id_ends, position).decode()

    def text_at(self, position: int) -> str:
        """Text of the document at a position."""
        return self._text_bytes(position).decode()

    def title_at(self, position: int) -> str:
        """Title of the document at a position, or an empty string."""
        return self._text_bytes(position)[: int(self._title_sizes[position])].decode()

    def texts(self) -> Iterator[str]:
        """All texts, from front to back."""
        pieces = _pieces(self._texts, self._text_ends)
        return (self._checked(text, position).decode() for position, text in enumerate(pieces))

    def titled(self) -> Ints:
        """Positions of the documents that have a title."""
        return np.flatnonzero(self._title_sizes)

    def _text_bytes(self, position: int) -> bytes:
        return self._checked(_piece(self._texts, self._text_ends, position), position)

    def _checked(self, text: bytes, position: int) -> bytes:
        if self._crcs is not None and zlib.crc32(text) != self._crcs[position]:
            raise damaged(self.folder / "texts", f"remove the folder {self.folder}; the next command makes it again")
        return text

    def _known(self, doc_id: str) -> int:
        position = self.position(doc_id) if isinstance(doc_id, str) else None
        if position is None:
            raise KeyError(doc_id)
        return position


class DiskTitles(Mapping[str, str]):
    """The titles of a store, id -> title, for the documents that have one."""

    def __init__(self, docs: DiskDocs) -> None:
        """View the titles of these documents."""
        self._docs = docs

    def __len__(self) -> int:
        """Number of documents with a title."""
        return len(self._docs.titled())

    def __iter__(self) -> Iterator[str]:
        """Ids of the documents with a title, in the order of the corpus."""
        return (self._docs.id_at(int(position)) for position in self._docs.titled())

    def __getitem__(self, doc_id: str) -> str:
        """Title of a document that has one."""
        position = self._docs.position(doc_id) if isinstance(doc_id, str) else None
        title = self._docs.title_at(position) if position is not None else ""
        if not title:
            raise KeyError(doc_id)
        return title


@runtime_checkable
class _Batched(Protocol):
    def get_many(self, doc_ids: Sequence[str]) -> list[str]: ...


def texts_of(docs: Mapping[str, str], doc_ids: Iterable[str]) -> list[str]:
    """Texts of many documents in the given order, with one pass over the disk where they lie there."""
    wanted = list(doc_ids)
    return docs.get_many(wanted) if isinstance(docs, _Batched) else [docs[doc_id] for doc_id in wanted]


def hash_of(doc_id: str) -> int:
    """64-bit hash of an id, the same in every process."""
    digest = hashlib.blake2b(doc_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def read_meta(folder: Path) -> dict[str, Any]:
    """What a store says about itself; a ValueError when the sizes of its files say otherwise."""
    meta: dict[str, Any] = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    sizes = {name: np.dtype(kind).itemsize * meta["documents"] for name, kind in _INTEGERS.items()}
    sizes |= {"texts": meta["text_bytes"], "ids": meta["id_bytes"]}
    if meta["version"] != VERSION or any((folder / name).stat().st_size != size for name, size in sizes.items()):
        raise ValueError(f"the document store {folder} is not whole")
    return meta


class _Items(ItemsView[str, str]):
    def __init__(self, docs: DiskDocs) -> None:
        super().__init__(docs)
        self._docs = docs

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self._docs, self._docs.texts(), strict=True)


class _Values(ValuesView[str]):
    def __init__(self, docs: DiskDocs) -> None:
        super().__init__(docs)
        self._docs = docs

    def __iter__(self) -> Iterator[str]:
        return self._docs.texts()


def _bytes(path: Path) -> mmap.mmap | bytes:
    with open(path, "rb") as file:
        # an empty file cannot be mapped
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def _integers(folder: Path, name: str) -> npt.NDArray[Any]:
    return np.asarray(np.memmap(folder / name, _INTEGERS[name], "r"))


def _piece(data: mmap.mmap | bytes, ends: Ints, position: int) -> bytes:
    start = int(ends[position - 1]) if position else 0
    return data[start : int(ends[position])]


def _pieces(data: mmap.mmap | bytes, ends: Ints) -> Iterator[bytes]:
    before = 0
    for start in range(0, len(ends), _CHUNK):
        bounds = [before, *ends[start : start + _CHUNK].tolist()]
        yield from (data[a:b] for a, b in pairwise(bounds))
        before = bounds[-1]


# Making a document store: streamed into a folder beside, then renamed, so that it is whole or not there.

_DAY = 24 * 3600


class StoreWriter:
    """Writes documents into the files of a store as they come; only `finish` holds arrays over all."""

    def __init__(self, folder: Path) -> None:
        """Open the files of a new store in an empty folder."""
        self.folder, self._stack = folder, ExitStack()
        names = ("texts", "ids", "text_ends", "id_ends", "title_sizes", "hashes", "crcs")
        files = {name: self._stack.enter_context((folder / name).open("wb")) for name in names}
        self._write = {name: file.write for name, file in files.items()}
        self._documents = self._text_bytes = self._id_bytes = 0

    def __enter__(self) -> Self:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files."""
        self._stack.close()

    def add(self, doc_id: str, text: str, title: str) -> None:
        """Append one document; a title must be a prefix of the text."""
        write = self._write
        content = text.encode()
        self._text_bytes += write["texts"](content)
        write["crcs"](zlib.crc32(content).to_bytes(4, "little"))
        self._id_bytes += write["ids"](doc_id.encode())
        write["text_ends"](self._text_bytes.to_bytes(8, "little"))
        write["id_ends"](self._id_bytes.to_bytes(8, "little"))
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
        self._write_meta(notes, corpus_bytes)
        list_checksums(self.folder, (file for file in self.folder.iterdir() if file.name != "texts"))
        _settle(self.folder)
        suspects = np.flatnonzero(hashes[1:] == hashes[:-1])
        return _repeated(DiskDocs(self.folder), np.unique(np.r_[order[suspects], order[suspects + 1]]))

    def _write_meta(self, notes: list[str], corpus_bytes: int) -> None:
        meta = {"version": VERSION, "documents": self._documents, "notes": notes}
        meta |= {"corpus_bytes": corpus_bytes, "text_bytes": self._text_bytes, "id_bytes": self._id_bytes}
        (self.folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")


def store_folder(corpus: Path) -> Path:
    """Where the store of a corpus file is kept; another path, size or time of change is another store."""
    facts = corpus.stat()
    text = f"{VERSION}\0{corpus.resolve()}\0{facts.st_size}\0{facts.st_mtime_ns}"
    return cache_folder() / "docs" / hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


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

    Of two processes that build at once the first one wins, and the second takes what the first has made.
    """
    beside = target.parent / f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    try:
        beside.mkdir(parents=True)
        _sweep(target.parent)
        yield beside
        _install(beside, target)
    except OSError as error:
        what = f"the documents cannot be kept in {target.parent} ({error.strerror or error})"
        raise WhyrankError(
            f"{what}; set WHYRANK_CACHE to a folder with room, or raise WHYRANK_MEMORY_LIMIT"
        ) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _install(beside: Path, target: Path) -> None:
    try:
        os.rename(beside, target)
    except OSError:
        if open_store(target) is None:  # what lies there is not whole: take its place
            shutil.rmtree(target)
            os.rename(beside, target)


def _settle(folder: Path) -> None:
    """Wait until the files are on the disk, so that a power cut cannot leave a whole-looking store behind."""
    for path in folder.iterdir():
        with open(path, "rb+") as file:
            os.fsync(file.fileno())


def _sweep(folder: Path) -> None:
    """Remove what killed builds have left; a folder that was written to within a day may still be in use."""
    for left in folder.glob(".*.tmp"):
        with suppress(FileNotFoundError):  # another process may sweep or finish at the same time
            newest = max(path.stat().st_mtime for path in [left, *left.glob("*")])
            if time.time() - newest > _DAY:
                shutil.rmtree(left, ignore_errors=True)


def _repeated(docs: DiskDocs, positions: Ints) -> str | None:
    """The id among these positions that is the first to come back; equal hashes of different ids are none."""
    seen: set[str] = set()
    for position in positions.tolist():
        doc_id = docs.id_at(position)
        if doc_id in seen:
            return doc_id
        seen.add(doc_id)
    return None
