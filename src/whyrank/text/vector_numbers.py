"""From words with their numbers as text to a matrix, a batch at a time."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import BadInput
from whyrank.core.progress import Progress

Matrix = npt.NDArray[np.float32]

GET_AGAIN = "get the file again, or mend or drop this word"
_BATCH = 16_384
_GZIP = b"\x1f\x8b"


class Parsed(NamedTuple):
    """Words and the matrix of their vectors, a row each."""

    words: Sequence[str]
    matrix: Matrix


class Entry(NamedTuple):
    """A word with its numbers as they are written, and the line it stands in (None where lines mean nothing)."""

    word: str
    numbers: bytes
    line: int | None


class Entries(NamedTuple):
    """Words as they stream by, each with `width` numbers of which the first `dims` are its vector."""

    dims: int
    width: int
    separator: str
    entries: Iterator[Entry]


def parse(path: Path, size: int, take_apart: Callable[[Path, IO[bytes]], Entries]) -> Parsed:
    """Read a file of so many bytes whose layout `take_apart` knows."""
    words: list[str] = []
    parts: list[Matrix] = []
    with _reading(path) as (file, raw), Progress(f"reading {path.name}: bytes", size) as progress:
        found = take_apart(path, file)
        while batch := list(islice(found.entries, _BATCH)):
            words += [entry.word for entry in batch]
            parts.append(_numbers(path, batch, found))
            progress.step(raw.tell() - progress.done)
    if not words:
        raise BadInput(path, "no word with its vector was found", "give a file of word vectors")
    return Parsed(words, _stacked(parts, len(words), found.dims))


def _numbers(path: Path, batch: list[Entry], found: Entries) -> Matrix:
    import pyarrow as pa

    try:
        numbers = _converted(b"\n".join(entry.numbers for entry in batch), found)
    except pa.ArrowInvalid:
        numbers = np.full((len(batch), found.dims), np.nan, np.float32)
    if len(numbers) != len(batch) or not np.isfinite(numbers).all():
        raise next((_problem(path, entry, found) for entry in batch if _bad(entry, found)), _unclear(path, batch))
    return numbers


def _converted(lines: bytes, found: Entries) -> Matrix:
    """The numbers of many lines; Arrow reads them several times faster than numpy does."""
    import pyarrow as pa
    from pyarrow import csv

    names = [str(i) for i in range(found.width)]
    table = csv.read_csv(
        pa.BufferReader(lines),
        csv.ReadOptions(use_threads=False, column_names=names, block_size=max(len(lines) + 1, 1 << 16)),
        csv.ParseOptions(delimiter=found.separator, quote_char=False),
        csv.ConvertOptions(column_types=dict.fromkeys(names, pa.float32()), null_values=[], check_utf8=False),
    )
    return np.column_stack([table[name].to_numpy() for name in names[: found.dims]])


def _bad(entry: Entry, found: Entries) -> bool:
    return len(entry.numbers.split(found.separator.encode())) != found.width or bool(_wrong(entry, found))


def _wrong(entry: Entry, found: Entries) -> list[bytes]:
    return [field for field in entry.numbers.split(found.separator.encode()) if not _is_number(field)]


def _is_number(field: bytes) -> bool:
    try:
        return abs(float(field)) <= float(np.finfo(np.float32).max) and b"_" not in field
    except ValueError:
        return False


def _problem(path: Path, entry: Entry, found: Entries) -> BadInput:
    wrong = _wrong(entry, found)
    shown = wrong[0].decode("utf-8", "replace") if wrong else ""
    what = f"the vector of {entry.word!r} has {shown!r} where a number is expected"
    return BadInput(path, what, GET_AGAIN, entry.line)


def _unclear(path: Path, batch: list[Entry]) -> BadInput:
    return BadInput(path, f"the vectors from {batch[0].word!r} on cannot be read", GET_AGAIN, batch[0].line)


def _stacked(parts: list[Matrix], n: int, dims: int) -> Matrix:
    """The parts in one matrix; each is given up when it is copied, so that memory is not needed twice."""
    whole, at = np.empty((n, dims), np.float32), 0
    parts.reverse()
    while parts:
        part = parts.pop()
        whole[at : at + len(part)] = part
        at += len(part)
    return whole


@contextmanager
def _reading(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The content of a file, unpacked where it is gzip, and the file itself, which knows how far we are."""
    try:
        with open(path, "rb") as raw:
            packed = raw.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
            yield (gzip.GzipFile(fileobj=raw) if packed else raw), raw  # type: ignore[misc]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(path, f"the gzip data is damaged ({error})", "get the file again") from None
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror or error})") from None
