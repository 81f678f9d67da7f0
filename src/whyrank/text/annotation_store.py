"""Annotations on disk: a row per (pipeline, text) with compressed JSON, in a file that processes may share."""

from __future__ import annotations

import hashlib
import weakref
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from whyrank.core.sqlite import Layout, writing
from whyrank.text.annotation import Annotation
from whyrank.text.annotation_format import FORMAT, decode, encode

_AT_ONCE = 500  # sqlite takes a limited number of values in one statement
_LAYOUT = Layout(
    what="cache of annotations",
    application=0x77726E61,
    version=1,
    tables=(
        "CREATE TABLE pipelines (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE)",
        """CREATE TABLE annotations (pipeline INTEGER NOT NULL REFERENCES pipelines, text BLOB NOT NULL,
        annotation BLOB NOT NULL, PRIMARY KEY (pipeline, text))""",
    ),
    elsewhere="name another folder in the variable WHYRANK_CACHE",
)
_SAVE = "INSERT OR IGNORE INTO annotations SELECT id, ?, ? FROM pipelines WHERE identity = ?"


class AnnotationStore:
    """All annotations that were ever made, by the identity of the pipeline and the digest of the text."""

    def __init__(self, path: Path) -> None:
        """Open the file, and make it where there is none."""
        self.path = path
        self._connection = _LAYOUT.connect(path)
        self._finalizer = weakref.finalize(self, self._connection.close)

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._finalizer()

    def find(self, identity: str, texts: Sequence[str]) -> dict[str, Annotation]:
        """The annotations of those texts that have been stored."""
        found: dict[str, Annotation] = {}
        with _LAYOUT.reporting(self.path):
            for start in range(0, len(texts), _AT_ONCE):
                by_digest = {digest(text): text for text in texts[start : start + _AT_ONCE]}
                for key, value in self._rows(identity, list(by_digest)):
                    text = by_digest[key]
                    found[text] = self._decoded(text, value, identity)
        return found

    def add(self, identity: str, annotations: Iterable[Annotation]) -> None:
        """Commit some annotations in one step; what is stored of a text already stays."""
        rows = [(digest(annotation.text), encode(annotation)) for annotation in annotations]
        with _LAYOUT.reporting(self.path), writing(self._connection):
            self._connection.execute("INSERT OR IGNORE INTO pipelines (identity) VALUES (?)", (_key(identity),))
            self._connection.executemany(_SAVE, [(*row, _key(identity)) for row in rows])

    def _rows(self, identity: str, digests: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        asked = f"""SELECT text, annotation FROM annotations JOIN pipelines ON pipeline = id
        WHERE identity = ? AND text IN ({",".join("?" * len(digests))})"""
        return self._connection.execute(asked, (_key(identity), *digests)).fetchall()

    def _decoded(self, text: str, value: bytes, identity: str) -> Annotation:
        try:
            return decode(text, value, identity)
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise _LAYOUT.damaged(self.path) from error


def digest(text: str) -> bytes:
    """The 16 bytes (BLAKE2b) that stand for a text; lone surrogates are texts too."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _key(identity: str) -> str:
    return f"{FORMAT} {identity}".encode("utf-8", "backslashreplace").decode(
        "utf-8"
    )  # sqlite takes valid Unicode only
