"""A JSON file that is one array, item by item: only the item at hand is in memory, however large the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core.errors import BadInput
from whyrank.core.files import check_size
from whyrank.data.raw import pieces

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
