"""Sqlite files that several processes use at once: how they are made, recognised, checked and written to."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from whyrank.core.errors import BadInput

BUSY_SECONDS = 120.0


@dataclass(frozen=True)
class Layout:
    """One kind of file: what it is called, how it is recognised, its tables, and what to do instead of using it.

    `application` marks a file as ours, so that no other program's database is written to. Any other version than
    `version` is refused.
    """

    what: str
    application: int
    version: int
    tables: tuple[str, ...]
    elsewhere: str

    @property
    def remedy(self) -> str:
        """What a user can do about a file that cannot be read."""
        return f"delete it or {self.elsewhere}"

    def connect(self, path: Path) -> sqlite3.Connection:
        """Open a file of this kind, making it where there is none; refuse files that are something else."""
        with self.reporting(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = _connect_to_read(path) if is_read_only(path) else _connect(str(path))
        try:
            with self.reporting(path):
                self._prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def reporting(self, path: Path) -> Iterator[None]:
        """Turn what sqlite and the file system complain about into one line that names the file."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise
        except (sqlite3.DatabaseError, OSError) as error:
            if _tells_of_damage(error):
                raise BadInput(path, f"not a {self.what}, or damaged ({error})", self.remedy) from error
            remedy = f"see that it can be written and that no other program holds it, or {self.elsewhere}"
            raise BadInput(path, f"the {self.what} cannot be used ({error})", remedy) from error

    def damage_error(self, path: Path, rather: str = "") -> BadInput:
        """The error for a row that is not as it was written; `rather` is what a user may try first."""
        return BadInput(path, f"the {self.what} is damaged", rather + self.remedy)

    def _prepare(self, connection: sqlite3.Connection, path: Path) -> None:
        connection.execute("PRAGMA synchronous = FULL")
        if self._is_new(connection, path):
            connection.execute("PRAGMA page_size = 8192")
            _use_wal(connection)
            with writing(connection):
                # another process may have been faster
                for statement in self.tables if self._is_new(connection, path) else ():
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self.application}")
                connection.execute(f"PRAGMA user_version = {self.version}")

    def _is_new(self, connection: sqlite3.Connection, path: Path) -> bool:
        """Whether a file is empty yet; an error when it is another program's, or of another version."""
        # one statement, so that a file which another process is making is seen whole or not at all
        found = connection.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
            " FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if found == (0, 0, 0):
            return True
        if found[0] != self.application:
            raise BadInput(path, f"not a {self.what} but another program's database", self.elsewhere)
        if found[1] != self.version:
            what = f"a {self.what} of version {found[1]}, where {self.version} is needed"
            raise BadInput(path, what, self.remedy)
        return False


def checksum(*values: object) -> bytes:
    """Eight bytes (BLAKE2b) that tell whether the values of a row are still those that were written."""
    found = blake2b(digest_size=8)
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "backslashreplace")
        found.update(b"%d " % len(data) + data)
    return found.digest()


def is_read_only(path: Path) -> bool:
    """Whether a file is there, and it or its folder, where sqlite keeps its log, cannot be written."""
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a file that cannot be written; without its log, which may be missing, when nobody can write one."""
    address = f"{path.resolve().as_uri()}?mode=ro"
    connection = _connect(address)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:  # it holds commits
            raise
        return _connect(f"{address}&immutable=1")
    return connection


def _connect(address: str) -> sqlite3.Connection:
    uri = address.startswith("file:")
    return sqlite3.connect(address, BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri)


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction that no other process writes beside; all of it is kept or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # sqlite rolls back by itself after some errors
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _tells_of_damage(error: Exception) -> bool:
    """Whether it is about the content of a file: also a table, a column or a text that sqlite does not understand."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    unclear = not isinstance(error, sqlite3.OperationalError) or code == sqlite3.SQLITE_ERROR
    return unclear and not isinstance(error, OSError)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; sqlite does not wait here when two processes do so at once, so we do."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


# Values of texts in an sqlite file, such as annotations: each costs its maker's time once.

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
        return Layout(what, application, 2, (makers, values), "name another folder in the variable WHYRANK_CACHE")


class TextStore(Generic[V]):
    """All values that were ever made of texts, by the identity of their maker and the digest of the text."""

    renewable = False
    """Whether a damaged row is removed, so that its value is made again; else it is an error."""

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
        of, maker = self.names, self.key(identity)
        rows = f"FROM {of.values} WHERE {of.maker} = (SELECT id FROM {of.makers} WHERE identity = ?)"
        with self.layout.reporting(self.path):
            for start in range(0, len(texts), _AT_ONCE):
                by_digest = {digest(text): text for text in texts[start : start + _AT_ONCE]}
                select = f"SELECT text, {of.value}, checksum {rows} AND text IN ({','.join('?' * len(by_digest))})"
                for key, stored, kept in self._connection.execute(select, (maker, *by_digest)).fetchall():
                    if key in by_digest and kept == checksum(maker, key, stored):
                        found[by_digest[key]] = self.decode(by_digest[key], stored, identity)
                    elif key in by_digest and self.renewable:
                        self._connection.execute(f"DELETE {rows} AND text = ?", (maker, key))
                    else:
                        raise self.layout.damage_error(self.path)
        return found

    def keep(self, identity: str, values: Iterable[tuple[str, V]]) -> None:
        """Commit values of some texts in one step; what is stored of a text already stays."""
        makers, table, key = self.names.makers, self.names.values, self.key(identity)
        made = [(digest(text), self.encode(value)) for text, value in values]
        rows = [(text, value, checksum(key, text, value), key) for text, value in made]
        with self.layout.reporting(self.path), writing(self._connection):
            self._connection.execute(f"INSERT OR IGNORE INTO {makers} (identity) VALUES (?)", (key,))
            self._connection.executemany(
                f"INSERT OR IGNORE INTO {table} SELECT id, ?, ?, ? FROM {makers} WHERE identity = ?", rows
            )

    def encode(self, value: V) -> str | bytes:
        """A value as it is stored."""
        raise NotImplementedError

    def decode(self, text: str, stored: Any, identity: str) -> V:
        """A value as it was given; the checksum of the row was verified."""
        raise NotImplementedError

    def key(self, identity: str) -> str:
        """What stands for a maker in the file, which takes valid Unicode only."""
        return identity.encode("utf-8", "backslashreplace").decode("utf-8")


def digest(text: str) -> bytes:
    """The 16 bytes (BLAKE2b) that stand for a text; lone surrogates are texts too."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
