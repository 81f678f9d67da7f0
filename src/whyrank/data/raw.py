"""Text files as they are: every line, blank ones too, with its end; the whole text; or pieces of it.

`lines` skips blank lines; here they count, for files whose lines are aligned and for texts over many lines.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from whyrank.core.errors import BadInput
from whyrank.core.files import check_size, lines_of
from whyrank.data.lines import decode, opened

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
