"""Texts with a slot: which values of a class a text has, and the text with another value in their place."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from whyrank.core.errors import WhyrankError

SLOT = "{value}"
SMALL, CAPITAL, PLAIN = "small", "capital", "plain"
_ARTICLE = re.compile(r"(?<!\w)(a)n?(\s+)$", re.IGNORECASE)
_VOWELS = frozenset("aeiou")


@dataclass(frozen=True)
class Slotted:
    """A text around its slots; `forms` says how the word of each was written, and so how another value is.

    SMALL: in small letters; CAPITAL: not so, and a value in small letters gets a capital one; PLAIN: as values are.
    """

    parts: tuple[str, ...]
    forms: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Slotted:
        """The text of a template with `{value}` in it."""
        parts = tuple(text.split(SLOT))
        if len(parts) < 2:
            raise WhyrankError(f"template {text[:60]!r} has no slot; write {SLOT} where the values go")
        return cls(parts, (PLAIN,) * (len(parts) - 1))

    @property
    def text(self) -> str:
        """The text with `{value}` in its slots."""
        return SLOT.join(self.parts)

    def filled(self, value: str) -> str:
        """The text with a value in its slots, and the right `a` or `an` before it."""
        found = [self.parts[0]]
        for part, form in zip(self.parts[1:], self.forms, strict=True):
            word = _written(value, form)
            found[-1] = _with_article(found[-1], word)
            found += [word + part]
        return "".join(found)


class Slot(NamedTuple):
    """A text made a template: the value that stood there, and the other values that the text has."""

    slotted: Slotted
    value: str
    others: frozenset[str]


@dataclass(frozen=True)
class ValueClass:
    """The values of a class, found in texts as whole words in any case of letters."""

    values: tuple[str, ...]

    @cached_property
    def _names(self) -> dict[str, str]:
        return {_folded(value): value for value in self.values}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.values, key=len, reverse=True)
        names = "|".join(r"\s+".join(map(re.escape, value.split())) for value in longest_first)
        return re.compile(rf"(?<![\w-])(?:{names})(?![\w-])", re.IGNORECASE)

    def counts(self, text: str) -> Counter[str]:
        """How often a text has each value."""
        return Counter(self._names[_folded(found)] for found in self._pattern.findall(text))

    def slot(self, text: str) -> Slot | None:
        """The text with a slot for the value that it has most often, of equals the first; None without any."""
        counts = self.counts(text)
        if not counts:
            return None
        value = counts.most_common(1)[0][0]
        spans = [m for m in self._pattern.finditer(text) if self._names[_folded(m[0])] == value]
        edges = [0, *(place for m in spans for place in m.span()), len(text)]
        parts = tuple(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))
        slotted = Slotted(parts, tuple(SMALL if m[0].islower() else CAPITAL for m in spans))
        return Slot(slotted, value, frozenset(counts) - {value})


def mentions(text: str, word: str) -> bool:
    """Whether a text has a word, in any case of letters."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def _folded(value: str) -> str:
    return " ".join(value.lower().split())


def _written(value: str, form: str) -> str:
    if form == SMALL:
        return value.lower()
    return value[:1].upper() + value[1:] if form == CAPITAL and value.islower() else value


def _with_article(before: str, word: str) -> str:
    found = _ARTICLE.search(before)
    if found is None or not word[:1].isalpha():
        return before
    article = found[1] + ("n" if word[0].lower() in _VOWELS else "")
    return before[: found.start()] + article + found[2]
