"""Sqlite files that several processes use at once: how they are made, recognised, checked and written to."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from whyrank.core.errors import BadInput

BUSY_SECONDS = 120.0


@dataclass(frozen=True)
class Layout:
    """One kind of file: what it is called, how it is recognised, its tables, and what to do instead of using it.

    `application` marks a file as ours, so that no other program's database is written to; a file of another
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
            connection = sqlite3.connect(path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
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
        except (sqlite3.OperationalError, OSError) as error:
            remedy = f"see that it can be written and that no other program holds it, or {self.elsewhere}"
            raise BadInput(path, f"the {self.what} cannot be used ({error})", remedy) from error
        except sqlite3.DatabaseError as error:
            raise BadInput(path, f"not a {self.what}, or damaged ({error})", self.remedy) from error

    def damaged(self, path: Path) -> BadInput:
        """The error for a row that does not make sense."""
        return BadInput(path, f"the {self.what} is damaged", self.remedy)

    def _prepare(self, connection: sqlite3.Connection, path: Path) -> None:
        connection.execute("PRAGMA synchronous = FULL")
        if self._is_empty(connection, path):
            connection.execute("PRAGMA page_size = 8192")
            _use_wal(connection)
            with writing(connection):
                if self._is_empty(connection, path):
                    self._create(connection)

    def _is_empty(self, connection: sqlite3.Connection, path: Path) -> bool:
        """Whether the file is new; an error when it is not, and not ours either."""
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

    def _create(self, connection: sqlite3.Connection) -> None:
        for statement in self.tables:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {self.application}")
        connection.execute(f"PRAGMA user_version = {self.version}")


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
