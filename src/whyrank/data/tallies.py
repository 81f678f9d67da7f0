"""Oddities that stop nothing: counted as data streams by, with the first few examples, and listed in notes."""

from __future__ import annotations

import re
from pathlib import Path

from whyrank.core import BadInput

_SURROGATE = re.compile("[\ud800-\udfff]")
_EXAMPLES = 5


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
