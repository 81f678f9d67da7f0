"""A folder that is replaced as a whole: built beside its place, then renamed into it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from whyrank.core import BadInput, WhyrankError, held, hidden, hidden_prefix, sweep
from whyrank.report.record import KIND


def place_for(path: str | os.PathLike[str]) -> Path:
    """The real path of a result folder; an error unless it is free or holds an older result."""
    target = restored(path)
    here = Path(os.path.realpath("."))
    if target == here or target in here.parents:
        raise WhyrankError(
            f"{path} holds the current folder, which results must not replace; name a folder inside it"
        )
    if target.is_dir():
        _check_ours(target, Path(path))
    elif target.exists():
        raise BadInput(path, "is a file, not a folder", "name another place for the results")
    return target


def restored(path: str | os.PathLike[str]) -> Path:
    """The real path of a result folder; an older result that a killed process left hidden is put back first."""
    target = Path(os.path.realpath(path))
    if not target.exists() and (left := hidden(target, "old")):
        with _alone(target.parent), suppress(OSError):
            old = next((each for each in left if is_result_folder(each)), None)
            if old is not None and not target.exists():
                old.rename(target)
    return target


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process exchanges results in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def swapped(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give an empty folder beside `path`; it takes the place of `path` only when the block succeeds."""
    target = place_for(path)
    sweep(target)
    made, handle = held(lambda: _beside(target, path))
    beside = Path(made)
    try:
        yield beside
        _open_to_others(beside)
        _exchange(beside, place_for(path))
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        os.close(handle)


def _beside(target: Path, given: str | os.PathLike[str]) -> str:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.mkdtemp(prefix=hidden_prefix(target), suffix=".tmp", dir=target.parent)
    except OSError as error:
        raise BadInput(given, f"cannot be written ({error.strerror or error})", "choose another place") from None


def is_result_folder(path: Path) -> bool:
    """Whether a folder holds a settings.json that says it is a result of ours."""
    try:
        record = json.loads((path / "settings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("kind") == KIND


_RESULT = ("settings.json", "findings.parquet", "findings.csv", "texts.parquet", "report.html", "scores", "tables")
TABLE_PAGE = "table.html"
_OURS = frozenset(
    (*_RESULT, "sweep.csv", "sweep.svg", "stability.csv", "overlap.csv", "overlap.svg", "bias", TABLE_PAGE)
)


def _check_ours(target: Path, shown: Path) -> None:
    foreign = sorted(each.name for each in target.iterdir() if each.name not in _OURS)
    if foreign and is_result_folder(target):
        what = f"holds {foreign[0]!r} beside an older result, so it is left alone"
        raise BadInput(shown, what, "move that away, or name another folder")
    if any(target.iterdir()) and not is_result_folder(target):
        raise BadInput(
            shown,
            "is not empty and holds no whyrank result, so it is left alone",
            "name a new or an empty folder",
        )


def _open_to_others(folder: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)  # mkdtemp makes private folders; results are ordinary ones


def _exchange(new: Path, target: Path) -> None:
    with _alone(target.parent):
        old = new.with_suffix(".old")
        try:
            if target.exists():
                target.rename(old)
            new.rename(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.rename(target)
            raise
        for each in hidden(target, "old"):
            shutil.rmtree(each, ignore_errors=True)
