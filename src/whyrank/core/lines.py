"""Text files line by line: plain or gzip, UTF-8, and every problem named with its file and line."""

from __future__ import annotations

import codecs
import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from whyrank.core.errors import BadInput, WhyrankError
from whyrank.core.files import replacing

MOST_BYTES = 2**26  # of a line: more than any document, and less than what a small gzip file can unpack to


@contextmanager
def open_bytes(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for reading, unpacked where its content is gzip; one line where it is damaged or cannot be read."""
    try:
        with open(path, "rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(path, f"the gzip data is damaged ({error})", "get the file again") from None
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror or error})") from None


def lines_of(path: str | os.PathLike[str], file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines of an open file with their numbers from 1; a line that is too long is an error before it is read."""
    number = 0
    while raw := file.readline(MOST_BYTES + 1):
        number += 1
        check_size(path, len(raw), "this line", number)
        yield number, raw


def check_size(path: str | os.PathLike[str], size: int, what: str, line: int | None = None) -> None:
    """Raise an error where a part of a file is larger than any text that is meant."""
    if size > MOST_BYTES:
        raise BadInput(path, f"{what} has more than {MOST_BYTES:,} bytes", "cut it, or get the file again", line)


class Line(NamedTuple):
    """One line of a text file: its number from 1, its text without the line end, and its bytes with it."""

    number: int
    text: str
    raw: bytes

    @property
    def blank(self) -> bool:
        """Whether the line has nothing but white space."""
        return not self.text or self.text.isspace()

    @property
    def end(self) -> str:
        """The line feed, with or without a carriage return, that follows the text."""
        return self.raw[len(self.raw.rstrip(b"\r\n")) :].decode()


def every_line(path: Path) -> Iterator[Line]:
    """Yield all lines, blank ones too; a file that has no other ones is an error.

    Gzip is seen from the content, not from the name. Lines end at a line feed only, so that the other separators of
    Unicode stay inside the text. A byte order mark at the beginning is skipped.
    """
    found, number = False, 0
    with open_bytes(path) as file:
        for number, raw in lines_of(path, file):
            content = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            try:
                line = Line(number, content.rstrip(b"\r\n").decode(), raw)
            except UnicodeDecodeError as error:
                what = f"byte {error.start + 1} of this line (0x{content[error.start]:02x}) is not UTF-8"
                raise BadInput(path, what, "save the file as UTF-8", number) from None
            found = found or not line.blank
            yield line
    if not found:
        raise BadInput(path, "the file is empty", "put at least one line into it")


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines that are not blank; a file without any is an error."""
    return (line for line in every_line(path) if not line.blank)


def read_text(path: Path) -> str:
    """The text of a file that has some, with its line ends."""
    parts, size = list[str](), 0
    for line in every_line(path):
        parts += [line.text, line.end]
        check_size(path, size := size + len(line.raw), "the file")
    return "".join(parts)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a UTF-8 file in one step, compressed when its name ends in `.gz`; equal lines give equal bytes."""
    encoded = (f"{line}\n".encode() for line in lines)
    try:
        with replacing(path) as beside, open(beside, "wb") as file:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:  # without a name and a time
                    packed.writelines(encoded)
            else:
                file.writelines(encoded)
    except UnicodeEncodeError as error:
        raise WhyrankError(f"{error.object[:60]!r} cannot be written as UTF-8: it has a lone surrogate") from None


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of these files that the folder has, each as it is or with `.gz` appended."""
    candidates = (folder / each for name in names for each in (name, f"{name}.gz"))
    return next((path for path in candidates if path.is_file()), None)


def needed_file(folder: Path, *names: str) -> Path:
    """The first of these files that the folder has, and an error when it has none."""
    file = find_file(folder, *names)
    if file is None:
        raise BadInput(folder, f"the folder has no {' or '.join(names)} (nor with .gz)", "add one of them")
    return file


# JSON: objects line by line, or one value in a whole file.


class Record(NamedTuple):
    """One row of a file: its path, the line where it begins, its fields by name, and its size in bytes."""

    path: Path
    line: int
    fields: Mapping[str, Any]
    size: int = 0

    def text(self, name: str) -> str:
        """The field of this name, which must be a string."""
        value = self._field(name)
        if not isinstance(value, str):
            raise self.wrong(f"{name!r} is {_show(value)}, not a string")
        return value

    def texts(self, name: str, least: int = 1) -> list[str]:
        """The field of this name, which must be a list of so many strings at least."""
        value = self._field(name)
        if not isinstance(value, list) or len(value) < least or not all(isinstance(each, str) for each in value):
            raise self.wrong(f"{name!r} is {_show(value)}, not a list of strings")
        return value

    def wrong(self, what: str, remedy: str = "mend this row") -> BadInput:
        """The error for something wrong with this row."""
        return BadInput(self.path, what, remedy, self.line)

    def _field(self, name: str) -> Any:
        if name not in self.fields:
            raise self.wrong(f"{name!r} is missing", f"there are: {', '.join(self.fields)}")
        return self.fields[name]


def json_records(path: Path) -> Iterator[Record]:
    """Stream JSON lines, one object each; blank lines are skipped."""
    remedy = 'write one object a line, such as {"id": "d1", "text": "..."}'
    for line in read_lines(path):
        fields = _parse(path, line.text, remedy, line.number)
        if not isinstance(fields, dict):
            raise BadInput(path, f"expected a JSON object, found {_show(fields)}", remedy, line.number)
        yield Record(path, line.number, fields, len(line.raw))


def read_json(path: Path) -> Any:
    """The value of a whole JSON file, plain or gzip."""
    with open_bytes(path) as file:
        return _parse(path, file.read(), "get the file again")


def _parse(path: Path, text: str | bytes, remedy: str, line: int | None = None) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        what = f"malformed JSON ({error.msg}, column {error.colno})"
        raise BadInput(path, what, remedy, line or error.lineno) from None
    except (ValueError, RecursionError) as error:
        raise BadInput(path, f"malformed JSON ({error})", remedy, line) from None


def _show(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "…"
