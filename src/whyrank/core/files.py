"""Files that are never half-written (write beside, then rename), and outputs that one process works on at a time."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from whyrank.core.errors import BadInput, nearest

LOCK = ".lock"  # in a folder that one process works on at a time


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside `path`; it takes the place of `path` only when the block succeeds.

    A link is followed; what is there and no ordinary file (a folder, a device) is left alone.
    """
    target = _target(path)
    sweep(target)

    def make() -> str:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=hidden_prefix(target), suffix=".tmp", dir=target.parent)
        except OSError as error:
            raise _unwritable(path, error) from None
        os.close(handle)
        return name

    beside, handle = make_locked(make)
    try:
        yield Path(beside)
        with open(beside, "rb") as file:  # after a power failure the name must never stand for an empty file
            os.fsync(file.fileno())
        os.umask(mask := os.umask(0))
        os.chmod(beside, 0o666 & ~mask)  # mkstemp makes private files; results are ordinary ones
        os.replace(beside, target)
    except OSError as error:
        if type(error) is OSError and error.filename in (None, beside):  # a full disk; others name what is missing
            raise _unwritable(path, error, "free the disk, or choose another place") from None
        raise
    finally:
        Path(beside).unlink(missing_ok=True)
        os.close(handle)


def make_locked(make: Callable[[], str]) -> tuple[str, int]:
    """Make a temporary file or folder, and lock it for as long as the returned handle is open.

    What can be locked is left over from a process that ended; `sweep` removes it.
    """
    while True:
        beside = make()
        with suppress(FileNotFoundError):  # another process swept it before it was locked
            handle = os.open(beside, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks, where nothing is swept
                fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.exists(beside):
                return beside, handle
            os.close(handle)


def sweep(target: Path) -> None:
    """Remove what processes that were killed left beside a file or folder that they wrote."""
    for left in hidden(target, "tmp"):
        with suppress(OSError):  # a living process has the lock, or another one sweeps too
            handle = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            finally:
                os.close(handle)


def hidden_prefix(target: Path) -> str:
    """How the names of temporary neighbours of a file or folder begin, however long its own name is."""
    name = target.name
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f".{name}." if len(name) <= 40 else f".{name[:40]}-{digest}."


def hidden(target: Path, suffix: str) -> list[Path]:
    """The temporary neighbours of a file or folder."""
    return sorted(target.parent.glob(f"{glob.escape(hidden_prefix(target))}????????.{suffix}"))


@contextmanager
def exclusive(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a lock file while the block runs; an error at once where another process holds it.

    The system lets go of the lock when its process ends, however that comes about, so that a file that a killed
    process left blocks nothing. The file is removed at the end, and so is its folder where that was made for it and
    is still empty.
    """
    lock = Path(path)
    new = not lock.parent.exists()
    handle = _lock_file(lock)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)
        with suppress(OSError):
            if new:
                lock.parent.rmdir()


def _lock_file(lock: Path) -> int:
    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise _unwritable(lock.parent, error) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(lock)):
                return handle
        except BlockingIOError:
            os.close(handle)
            what = "another process is at work on the same output"
            raise BadInput(lock, what, "wait until it ends, or name another output") from None
        except FileNotFoundError:
            pass
        os.close(handle)  # its holder removed the file after we opened it: try again with a new one


@contextmanager
def temporary_room(remedy: str = "") -> Iterator[None]:
    """Say in one line where a temporary file finds no room, and what may help."""
    try:
        yield
    except OSError as error:
        what = f"a temporary file cannot be written ({error.strerror or error})"
        more = f"free the disk, or name another folder in TMPDIR{remedy}"
        raise BadInput(tempfile.tempdir or "TMPDIR", what, more) from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an error where no file can be written, before long work goes into what it is to hold."""
    target = _target(path)
    folder = next(each for each in target.parents if each.exists())
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise _unwritable(path, error) from None


def _target(path: str | os.PathLike[str]) -> Path:
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise BadInput(path, "is no ordinary file, so it is not replaced", "name another file")
    return target


def _unwritable(path: str | os.PathLike[str], error: OSError, remedy: str = "choose another place") -> BadInput:
    return BadInput(path, f"cannot be written ({error.strerror or error})", remedy)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file in one step."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def file_digest(path: str | os.PathLike[str], digits: int = 16) -> str:
    """The first hexadecimal digits of the SHA-256 of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:digits]


def cache_folder() -> Path:
    """Where scores and disk-backed documents are kept: `WHYRANK_CACHE`, else the user's cache folder."""
    given = os.environ.get("WHYRANK_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "whyrank"
    return Path(given) if given else base


def near_folder(path: Path) -> Path | None:
    """What a path that does not exist may have meant: its first missing part is mended by a folder beside it."""
    missing = path
    while not missing.parent.is_dir():
        missing = missing.parent
    try:
        beside = sorted(each.name for each in missing.parent.iterdir() if each.is_dir())
    except OSError:  # nobody may look into it
        return None
    near = nearest(missing.name, beside, most=1, cutoff=0.6)
    return missing.with_name(near[0]) / path.relative_to(missing) if near else None
