"""The sqlite file behind the score store: how it is laid out, opened, checked and written to."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whyrank.core.errors import BadInput

VERSION = 1
BUSY_SECONDS = 120.0
_APPLICATION = 0x77726E6B  # marks the file as a score store, so that no other program's database is written to
REMEDY = "delete it or pass another path (the variable WHYRANK_CACHE names the folder)"
_TABLES = (
    "CREATE TABLE rankers (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE)",
    # docs: 16-byte digests, ascending by their first half as a little-endian number; scores: float64
    """CREATE TABLE scores (ranker INTEGER NOT NULL REFERENCES rankers, query BLOB NOT NULL,
    docs BLOB NOT NULL, scores BLOB NOT NULL, PRIMARY KEY (ranker, query))""",
    """CREATE TABLE failures (ranker INTEGER NOT NULL REFERENCES rankers, query_digest BLOB NOT NULL,
    doc_digest BLOB NOT NULL, query BLOB NOT NULL, doc BLOB NOT NULL, reason TEXT NOT NULL,
    "when" TEXT NOT NULL, PRIMARY KEY (ranker, query_digest, doc_digest))""",
)


def connect(path: Path) -> sqlite3.Connection:
    """Open a score store, making it where there is none; refuse files that are something else."""
    with reporting(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        with reporting(path):
            _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn what sqlite and the file system complain about into one line that names the file."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except (sqlite3.OperationalError, OSError) as error:
        remedy = "see that it can be written and that no other program holds it, or pass another path"
        raise BadInput(path, f"the score store cannot be used ({error})", remedy) from error
    except sqlite3.DatabaseError as error:
        raise BadInput(path, f"not a score store, or damaged ({error})", REMEDY) from error


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


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    if _is_empty(connection, path):
        connection.execute("PRAGMA page_size = 8192")
        _use_wal(connection)
        with writing(connection):
            if _is_empty(connection, path):
                _create(connection)


def _is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is new; an error when it is not, and not ours either."""
    # one statement, so that a store which another process is making is seen whole or not at all
    found = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master)"
        " FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if found == (0, 0, 0):
        return True
    if found[0] != _APPLICATION:
        raise BadInput(path, "not a score store but another program's database", "pass another path")
    if found[1] != VERSION:
        raise BadInput(path, f"a score store of version {found[1]}, where {VERSION} is needed", REMEDY)
    return False


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


def _create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
