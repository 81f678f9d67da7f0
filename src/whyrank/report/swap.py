"""A folder that is replaced as a whole: built beside its place, then renamed into it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whyrank.core.errors import BadInput, WhyrankError
from whyrank.report.record import KIND


def place_for(path: str | os.PathLike[str]) -> Path:
    """The real path of a result folder; an error unless it is free or holds an older result."""
    target = Path(os.path.realpath(path))
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


@contextmanager
def swapped(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give an empty folder beside `path`; it takes the place of `path` only when the block succeeds."""
    target = place_for(path)
    beside = _beside(target, path)
    try:
        yield beside
        _open_to_others(beside)
        _exchange(beside, place_for(path))
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _beside(target: Path, given: str | os.PathLike[str]) -> Path:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{target.name[:40]}.", suffix=".tmp", dir=target.parent))
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
_OURS = frozenset((*_RESULT, "sweep.csv", "sweep.svg", "stability.csv", "overlap.csv", "overlap.svg", "bias"))


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
    if not target.exists():
        new.rename(target)
        return
    old = new.with_suffix(".old")
    try:
        target.rename(old)
        new.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
