"""What the readers of published layouts share: places, splits, options, and files aligned line by line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core.errors import BadInput, UnknownName, WhyrankError
from whyrank.data.lines import find_file
from whyrank.data.pair_rows import TextPair
from whyrank.data.pairs import PairSet
from whyrank.data.raw import RawLine, every_line


class Part(NamedTuple):
    """One split of a data set and the file that holds it."""

    split: str
    file: Path


def located(resource: str) -> Path:
    """The file or folder of a layout, which must be there."""
    path = Path(resource).expanduser()
    if not path.exists():
        raise BadInput(path, "there is no such file or folder", "write LAYOUT:PATH")
    return path


def laid_out(layout: str, path: Path, pairs: Iterable[TextPair]) -> PairSet:
    """The pair set of a layout, named after the layout and the place."""
    place = path.resolve().name if path.is_dir() else path.name.partition(".")[0]
    return PairSet.of(pairs, layout if place == layout else f"{layout}:{place}", str(path))


def chosen(splits: Sequence[str], wanted: str | None) -> Sequence[str]:
    """The wanted split, or all of them; an unknown one is an error that lists those there are."""
    if wanted is None:
        return splits
    if wanted not in splits:
        raise UnknownName("split", str(wanted), splits)
    return [wanted]


def parts(path: Path, splits: Sequence[str], wanted: str | None, *names: str) -> list[Part]:
    """The files of the splits, which may have any of these names (`{}` is the split), plain or `.gz`.

    A file is the only part of itself; the beginning of its name is its split.
    """
    if path.is_file():
        if wanted is not None:
            raise WhyrankError(f"{path}: a file has no splits; leave out split={wanted}, or name the folder")
        return [Part(path.name.partition(".")[0], path)]
    asked = chosen(splits, wanted)
    return [Part(split, needed(path, *(name.format(split) for name in names))) for split in asked]


def needed(folder: Path, *names: str) -> Path:
    """The first of these files that a folder has, plain or `.gz`; an error when it has none."""
    file = find_file(folder, *names)
    if file is None:
        raise BadInput(folder, f"the folder has no {' or '.join(names)} (nor with .gz)", "add it, or choose a split")
    return file


def flag(name: str, value: Any) -> bool:
    """An option that is True or False; `true` is a string in a call string, and not what was meant."""
    if not isinstance(value, bool):
        raise WhyrankError(f"{name}={value!r} is neither True nor False; write {name}=True")
    return value


def in_sample(name: str) -> bool:
    """The published choice of about 10%: the first byte of the SHA-256 of a name, modulo 10, is 0."""
    return hashlib.sha256(name.encode()).digest()[0] % 10 == 0


def aligned(files: Sequence[Path]) -> Iterator[list[str]]:
    """Stream lines that belong together, one of each file; all files must have the same number of lines.

    Blank lines count, but those that only some files have at their end do not.
    """
    for number, lines in enumerate(zip_longest(*map(every_line, files)), 1):
        if None in lines:
            _check_rest(files, lines, number)
        else:
            yield [line.text for line in lines]


def _check_rest(files: Sequence[Path], lines: Sequence[RawLine | None], number: int) -> None:
    short = next(file for file, line in zip(files, lines, strict=True) if line is None)
    for file, line in zip(files, lines, strict=True):
        if line is not None and line.text.strip():
            what = f"this line has no partner in {short.name}, which ends before it"
            raise BadInput(file, what, "the lines of these files belong together; get both again", number)
