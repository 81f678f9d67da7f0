"""Words and phrases of a text as spans of characters, and the text without some of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # scripts without blanks: each character is a word
_WORD = re.compile(rf"[{_ALONE}]|[^\s{_ALONE}]+")
_BLANKS = re.compile(r"\s*")


class Span(NamedTuple):
    """The characters from `start` up to `end` of a text."""

    start: int
    end: int


def words_of(text: str) -> list[Span]:
    """What stands between blanks; a Han or Kana character is a word of its own."""
    return [Span(*found.span()) for found in _WORD.finditer(text)]


def without(text: str, spans: Iterable[Span]) -> str:
    """The text without some spans and the blanks behind them."""
    kept, at = [], 0
    for start, end in sorted(spans):
        kept.append(text[at:start])
        at = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
    return "".join([*kept, text[at:]]).strip() if kept else text


def phrases(text: str, words: Sequence[Span], count: int) -> list[list[Span]]:
    """The words in so many groups of neighbours of about equal size, cut behind punctuation where some is near."""
    size = len(words) / count
    near, cuts = int(size / 3), [0]

    def badness(cut: int, wanted: int) -> tuple[int, int]:
        mark = text[words[cut - 1].end - 1]
        return 0 if mark in ".!?" else 1 if mark in ",;:)" else 2, abs(cut - wanted)

    for wanted in (round(number * size) for number in range(1, count)):
        choices = range(max(cuts[-1] + 1, wanted - near), min(len(words) - 1, wanted + near) + 1)
        cuts.append(min(choices, key=lambda cut: badness(cut, wanted)))
    return [list(words[start:end]) for start, end in zip(cuts, [*cuts[1:], len(words)], strict=True)]
