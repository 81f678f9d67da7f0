"""Values of texts in an sqlite file, such as annotations: each costs its maker's time once."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from whyrank.core.sqlite import Layout, checksum, writing

V = TypeVar("V")
_AT_ONCE = 500  # sqlite takes a limited number of values in one statement


class Names(NamedTuple):
    """What the two tables and their columns are called: makers by `id` and `identity`, values by maker and `text`."""

    makers: str
    values: str
    maker: str
    value: str
    type: str

    def layout(self, what: str, application: int) -> Layout:
        """The layout of a file with these tables."""
        makers = f"CREATE TABLE {self.makers} (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE)"
        values = f"""CREATE TABLE {self.values} ({self.maker} INTEGER NOT NULL REFERENCES {self.makers},
        text BLOB NOT NULL, {self.value} {self.type} NOT NULL, checksum BLOB NOT NULL,
        PRIMARY KEY ({self.maker}, text))"""
        identity = f"(SELECT identity FROM {self.makers} WHERE id = {self.maker})"
        upgrade = (
            f"ALTER TABLE {self.values} ADD COLUMN checksum BLOB NOT NULL DEFAULT x''",
            f"UPDATE {self.values} SET checksum = checksum({identity}, text, {self.value})",
        )
        elsewhere = "name another folder in the variable WHYRANK_CACHE"
        return Layout(what, application, 2, (makers, values), elsewhere, upgrade)


class TextStore(Generic[V]):
    """All values that were ever made of texts, by the identity of their maker and the digest of the text."""

    def __init__(self, path: Path, layout: Layout, names: Names) -> None:
        """Open the file, and make it where there is none."""
        self.path, self.layout, self.names = path, layout, names
        self._connection = layout.connect(path)
        self._finalizer = weakref.finalize(self, self._connection.close)

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._finalizer()

    def find(self, identity: str, texts: Sequence[str]) -> dict[str, V]:
        """The values of those texts that have been stored."""
        found: dict[str, V] = {}
        with self.layout.reporting(self.path):
            for start in range(0, len(texts), _AT_ONCE):
                by_digest = {digest(text): text for text in texts[start : start + _AT_ONCE]}
                for key, stored, kept in self._rows(identity, list(by_digest)):
                    if kept != checksum(self.key(identity), key, stored) or key not in by_digest:
                        raise self.layout.damaged(self.path)
                    found[by_digest[key]] = self.decoded(by_digest[key], stored, identity)
        return found

    def keep(self, identity: str, values: Iterable[tuple[str, V]]) -> None:
        """Commit values of some texts in one step; what is stored of a text already stays."""
        makers, table, key = self.names.makers, self.names.values, self.key(identity)
        made = [(digest(text), self.encoded(value)) for text, value in values]
        rows = [(text, value, checksum(key, text, value), key) for text, value in made]
        with self.layout.reporting(self.path), writing(self._connection):
            self._connection.execute(f"INSERT OR IGNORE INTO {makers} (identity) VALUES (?)", (key,))
            self._connection.executemany(
                f"INSERT OR IGNORE INTO {table} SELECT id, ?, ?, ? FROM {makers} WHERE identity = ?", rows
            )

    def encoded(self, value: V) -> str | bytes:
        """A value as it is stored."""
        raise NotImplementedError

    def decoded(self, text: str, stored: Any, identity: str) -> V:
        """A value as it was given; `layout.damaged` is raised for what makes no sense."""
        raise NotImplementedError

    def key(self, identity: str) -> str:
        """What stands for a maker in the file, which takes valid Unicode only."""
        return identity.encode("utf-8", "backslashreplace").decode("utf-8")

    def _rows(self, identity: str, digests: Sequence[bytes]) -> list[tuple[bytes, Any, bytes]]:
        of, marks = self.names, ",".join("?" * len(digests))
        asked = f"""SELECT text, {of.value}, checksum FROM {of.values} JOIN {of.makers} ON {of.maker} = id
        WHERE identity = ? AND text IN ({marks})"""
        return self._connection.execute(asked, (self.key(identity), *digests)).fetchall()


def digest(text: str) -> bytes:
    """The 16 bytes (BLAKE2b) that stand for a text; lone surrogates are texts too."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
