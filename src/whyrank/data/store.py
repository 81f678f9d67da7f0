"""Making a document store: streamed into a folder beside, then renamed, so that it is whole or not there."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from whyrank.core.checksums import check_listed, list_checksums
from whyrank.core.errors import BadInput, WhyrankError
from whyrank.core.files import cache_folder
from whyrank.core.protocols import Ints
from whyrank.data.disk import VERSION, DiskDocs, hash_of

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
