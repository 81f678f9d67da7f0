"""Queries that a model wrote for texts, on disk: each text costs a model's time once."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from whyrank.core.sqlite import Layout, writing

_AT_ONCE = 500  # sqlite takes a limited number of values in one statement
_LAYOUT = Layout(
    what="cache of generated queries",
    application=0x77726E71,
    version=1,
    tables=(
        "CREATE TABLE makers (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE)",
        """CREATE TABLE expansions (maker INTEGER NOT NULL REFERENCES makers, text BLOB NOT NULL,
        queries TEXT NOT NULL, PRIMARY KEY (maker, text))""",
    ),
    elsewhere="name another folder in the variable WHYRANK_CACHE",
)


class ExpansionStore:
    """All queries that were ever generated, by the identity of their maker and the digest of the text."""

    def __init__(self, path: Path) -> None:
        """Open the file, and make it where there is none."""
        self.path = path
        self._connection = _LAYOUT.connect(path)
        self._finalizer = weakref.finalize(self, self._connection.close)

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._finalizer()

    def find(self, identity: str, texts: Sequence[str]) -> dict[str, list[str]]:
        """The queries of those texts that have been stored."""
        found: dict[str, list[str]] = {}
        with _LAYOUT.reporting(self.path):
            for start in range(0, len(texts), _AT_ONCE):
                by_digest = {_digest(text): text for text in texts[start : start + _AT_ONCE]}
                for key, value in self._rows(identity, list(by_digest)):
                    found[by_digest[key]] = self._decoded(value)
        return found

    def add(self, identity: str, text: str, queries: Sequence[str]) -> None:
        """Commit the queries of one text; what is stored already stays."""
        with _LAYOUT.reporting(self.path), writing(self._connection):
            self._connection.execute("INSERT OR IGNORE INTO makers (identity) VALUES (?)", (identity,))
            row = (_digest(text), json.dumps(list(queries)), identity)
            self._connection.execute(
                "INSERT OR IGNORE INTO expansions SELECT id, ?, ? FROM makers WHERE identity = ?", row
            )

    def _rows(self, identity: str, digests: Sequence[bytes]) -> Iterator[tuple[bytes, str]]:
        marks = ",".join("?" * len(digests))
        asked = f"""SELECT text, queries FROM expansions JOIN makers ON maker = id
        WHERE identity = ? AND text IN ({marks})"""
        yield from self._connection.execute(asked, (identity, *digests))

    def _decoded(self, value: str) -> list[str]:
        try:
            found = json.loads(value)
        except ValueError:
            found = None
        if not isinstance(found, list):
            raise _LAYOUT.damaged(self.path)
        return [str(query) for query in found]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
