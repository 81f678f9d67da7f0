"""Text files line by line: plain or gzip, UTF-8, and every problem named with its file and line."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from whyrank.core import BadInput, WhyrankError, check_size, lines_of, replacing

# Oddities that stop nothing: counted as data streams by, with the first few examples, told in notes.

_SHOWN = 5
_SURROGATE = re.compile("[\ud800-\udfff]")


class Tally:
    """Counts one kind of oddity and remembers the first few examples."""

    def __init__(self, what: str) -> None:
        """Start at none; `what` says in the plural what is counted."""
        self.what, self.count = what, 0
        self.first: list[str] = []

    def add(self, example: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.first) < _SHOWN:
            self.first.append(example)

    def notes(self, source: str) -> list[str]:
        """One line for the user, or nothing when nothing was counted."""
        if not self.count:
            return []
        more = ", …" if self.count > len(self.first) else ""
        return [f"{source}: {self.what}: {self.count:,} ({', '.join(self.first)}{more})"]


class TextTallies:
    """What can be odd about texts: empty ones are kept, lone surrogates are replaced."""

    def __init__(self, things: str, strict: bool = False) -> None:
        """Start at none; `things` are `documents` or `queries`. With `strict` an empty text is an error."""
        self.things, self.strict = things, strict
        self.empty = Tally(f"{things} with an empty text")
        self.mended = Tally(f"{things} with lone surrogates (each replaced by U+FFFD)")

    def mend(self, text_id: str, text: str, source: str | Path, line: int | None = None) -> str:
        """Count what is odd about a text and give it in a form that can be encoded."""
        if not text or text.isspace():
            if self.strict:
                what = f"{self.things}: the text of {text_id!r} is empty"
                raise BadInput(source, what, "give it a text, or open the collection without strict", line)
            self.empty.add(text_id)
        mended = without_surrogates(text)
        if mended is not text:
            self.mended.add(text_id)
        return mended

    def notes(self, source: str) -> list[str]:
        """The lines for the user."""
        return self.empty.notes(source) + self.mended.notes(source)


def without_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD, one for one; a text without any comes back as the same object."""
    return text if encodable(text) else _SURROGATE.sub("\ufffd", text)


def encodable(text: str) -> bool:
    """Whether the text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Text files as they are: every line, blank ones too, with its end; the whole text; or pieces of it.
#
# `lines` skips blank lines; here they count, for files whose lines are aligned and for texts over many lines.

_PIECE = 1 << 20


class RawLine(NamedTuple):
    """One line of a text file: its number from 1, its text, and the line end that followed it."""

    number: int
    text: str
    end: str


def every_line(path: Path) -> Iterator[RawLine]:
    """Yield all lines; a file without any text is an error, as are bytes that are not UTF-8."""
    found = False
    with _reading(path) as file:
        for number, raw in lines_of(path, file):
            text = decode(path, number, raw)
            found = found or not (text == "" or text.isspace())
            yield RawLine(number, text, raw[len(raw.rstrip(b"\r\n")) :].decode())
    if not found:
        raise BadInput(path, "the file is empty", "put at least one line into it")


def whole_text(path: Path) -> str:
    """The text of a file that has some."""
    found, size = list[str](), 0
    for line in every_line(path):
        found += [line.text, line.end]
        size += len(line.text)
        check_size(path, size, "the file")
    return "".join(found)


def pieces(path: Path, size: int = _PIECE) -> Iterator[str]:
    """Yield the text in pieces of about `size` bytes, however long its lines are."""
    decoder, line = codecs.getincrementaldecoder("utf-8-sig")(), 1
    with _reading(path) as file:
        while raw := file.read(size):
            text = _piece(path, decoder, raw, line)
            line += text.count("\n")
            yield text
    yield _piece(path, decoder, b"", line)


def _piece(path: Path, decoder: codecs.IncrementalDecoder, raw: bytes, line: int) -> str:
    try:
        return decoder.decode(raw, final=not raw)
    except UnicodeDecodeError as error:
        line += error.object[: error.start].count(b"\n")
        what = f"a byte of this line (0x{error.object[error.start]:02x}) is not UTF-8"
        raise BadInput(path, what, "save the file as UTF-8", line) from None


@contextmanager
def _reading(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    try:
        with opened(path) as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInput(path, f"the gzip data is damaged ({error})", "get the file again") from None
    except OSError as error:
        raise BadInput(path, f"cannot be read ({error.strerror or error})") from None


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


# A JSON file that is one array, item by item: only the item at hand is in memory, however large the file.

_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")
_AFTER = frozenset(" \t\r\n,]")
# the longest thing that decodes wrongly because its end has not been read yet: "\ud83d\ude00", -Infinity
_LONGEST_CUT = 16


class Item(NamedTuple):
    """One item of the array and the line where it begins."""

    line: int
    value: Any


def array_items(path: Path, size: int = 1 << 20) -> Iterator[Item]:
    """Stream the items of the array in a JSON file, which is read in pieces of `size` bytes."""
    text = _Text(path, size)
    if text.peek() != "[":
        raise text.wrong("expected a JSON array, which begins with [")
    text.skip()
    if text.peek() == "]":
        text.skip()
    else:
        yield from _items(text)
    if text.peek():
        raise text.wrong("there is something after the array")


def _items(text: _Text) -> Iterator[Item]:
    while True:
        text.peek()
        yield Item(text.line, text.value())
        if (mark := text.peek()) not in (",", "]"):
            raise text.wrong("expected a comma or ] after an item")
        text.skip()
        if mark == "]":
            return


class _Text:
    """What has been read and not yet been used; `at` is where we are in it, on line `line`."""

    def __init__(self, path: Path, size: int) -> None:
        self.path, self.line = path, 1
        self._pieces = pieces(path, size)
        self._buffer, self._at, self._whole = "", 0, False

    def peek(self) -> str:
        """Pass blanks and give the next character, or nothing at the end of the file."""
        while True:
            self._go_to(_end(_BLANKS, self._buffer, self._at))
            if self._at < len(self._buffer) or not self._more():
                return self._buffer[self._at : self._at + 1]

    def skip(self) -> None:
        """Pass one character."""
        self._go_to(self._at + 1)

    def value(self) -> Any:
        """Decode the value that begins here, reading on until it is whole."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if self._is_malformed(error) or not self._grow():
                    what = f"malformed JSON ({error.msg})"
                    raise self.wrong(what, self.line + self._buffer.count("\n", self._at, error.pos)) from None
            except (ValueError, RecursionError) as error:
                raise self.wrong(f"malformed JSON ({error})") from None
            else:
                if not (self._may_go_on(end) and self._more()):
                    self._go_to(end)
                    return value

    def wrong(self, what: str, line: int | None = None) -> BadInput:
        """The error for something wrong here."""
        return BadInput(self.path, what, "the file must be one JSON array", line or self.line)

    def _may_go_on(self, end: int) -> bool:
        """Whether a value that was decoded may be the beginning of a longer number: 1 of 1.5."""
        return len(self._buffer) - end < _LONGEST_CUT and self._buffer[end : end + 1] not in _AFTER

    def _is_malformed(self, error: json.JSONDecodeError) -> bool:
        """Whether reading on cannot help: the error is not at the end, and no string is open."""
        open_string = error.msg.startswith("Unterminated string")
        return not open_string and error.pos < len(self._buffer) - _LONGEST_CUT

    def _grow(self) -> bool:
        """Read as much again as there is, so that a long item is not tried too often."""
        wanted = 2 * (len(self._buffer) - self._at)
        grown = self._more()
        while grown and len(self._buffer) - self._at < wanted and self._more():
            pass
        return grown

    def _more(self) -> bool:
        """Read one more piece, and forget what was used; whether there was one."""
        piece = next((piece for piece in self._pieces if piece), None)
        if piece is None:
            return False
        self._buffer, self._at = self._buffer[self._at :] + piece, 0
        check_size(self.path, len(self._buffer), "this item", self.line)
        return True

    def _go_to(self, position: int) -> None:
        self.line += self._buffer.count("\n", self._at, position)
        self._at = position


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start
