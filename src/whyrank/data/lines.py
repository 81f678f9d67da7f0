"""Text files line by line: plain or gzip, UTF-8, and every problem named with its file and line."""

from __future__ import annotations

import codecs
import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core import BadInput, WhyrankError, check_size, lines_of, open_bytes, replacing

_SURROGATE = re.compile("[\ud800-\udfff]")
_EXAMPLES = 5


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
    """The same file as `find_file`, and an error when the folder has none of them."""
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

    def texts(self, name: str) -> list[str]:
        """The field of this name, which must be a list of one string or more."""
        value = self._field(name)
        if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
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


# Oddities that stop nothing: counted as data streams by, with the first few examples, and listed in notes.


class Tally:
    """Counts one kind of oddity, which `what` names in the plural, and remembers the first few examples."""

    def __init__(self, what: str) -> None:
        self.what, self.count = what, 0
        self.first: list[str] = []

    def add(self, example: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.first) < _EXAMPLES:
            self.first.append(example)

    def notes(self, source: str) -> list[str]:
        """One line for the user, or nothing when nothing was counted."""
        if not self.count:
            return []
        more = ", …" if self.count > len(self.first) else ""
        return [f"{source}: {self.what}: {self.count:,} ({', '.join(self.first)}{more})"]


class TextTallies:
    """What can be odd about `things`, documents or queries: lone surrogates are replaced, empty texts are kept.

    With `strict` an empty text is an error.
    """

    def __init__(self, things: str, strict: bool = False) -> None:
        self.things, self.strict = things, strict
        self.empty = Tally(f"{things} with an empty text")
        self.mended = Tally(f"{things} with lone surrogates (each replaced by U+FFFD)")

    def mend(self, text_id: str, text: str, source: str | Path, line: int | None = None) -> str:
        """Count what is odd about a text, and give it in a form that can be encoded."""
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
    return text if is_encodable(text) else _SURROGATE.sub("\ufffd", text)


def is_encodable(text: str) -> bool:
    """Whether the text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
