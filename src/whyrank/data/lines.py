"""Text files line by line: plain or gzip, UTF-8, and every problem named with its file and line."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from whyrank.core.errors import BadInput, WhyrankError
from whyrank.core.files import lines_of, replacing

_GZIP = b"\x1f\x8b"


class Line(NamedTuple):
    """One line of a text file: its number from 1, its text without the line end, its size in bytes."""

    number: int
    text: str
    size: int


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines that are not blank; a file without any is an error.

    Gzip is seen from the content, not from the name. Lines end at a line feed only, so that the other
    separators of Unicode stay inside the text. A byte order mark at the beginning is skipped.
    """
    found = False
    for number, raw in _raw_lines(path):
        text = decode(path, number, raw)
        if text and not text.isspace():
            found = True
            yield Line(number, text, len(raw))
    if not found:
        raise BadInput(path, "the file is empty", "put at least one line into it")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a UTF-8 file in one step, compressed when its name ends in `.gz`."""
    with replacing(path) as beside, open(beside, "wb") as file:
        if path.suffix != ".gz":
            _write(file, lines)
            return
        # no name and no time in the header: the same lines give the same bytes
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            _write(packed, lines)


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of these files that the folder has, each as it is or with `.gz` appended."""
    candidates = (folder / each for name in names for each in (name, f"{name}.gz"))
    return next((path for path in candidates if path.is_file()), None)


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with opened(path) as file:
            for number, raw in lines_of(path, file):
                yield number, raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(path, f"the gzip data is damaged ({error})", "get the file again", number + 1) from None
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror or error})") from None


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open a file for reading bytes, unpacked where its content says that it is gzip."""
    with open(path, "rb") as file:
        if file.peek(len(_GZIP))[: len(_GZIP)] != _GZIP:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield unpacked


def decode(path: Path, number: int, raw: bytes) -> str:
    """The text of a line; a byte order mark before the first is skipped, and bad UTF-8 is an error with its line."""
    if number == 1:
        raw = raw.removeprefix(codecs.BOM_UTF8)
    try:
        return raw.rstrip(b"\r\n").decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"byte {error.start + 1} of this line (0x{raw[error.start]:02x}) is not UTF-8"
        raise BadInput(path, what, "save the file as UTF-8", number) from None


def _write(file: io.BufferedIOBase | IO[bytes] | gzip.GzipFile, lines: Iterable[str]) -> None:
    try:
        for line in lines:
            file.write(f"{line}\n".encode())
    except UnicodeEncodeError as error:
        raise WhyrankError(f"{error.object[:60]!r} cannot be written as UTF-8: it has a lone surrogate") from None
