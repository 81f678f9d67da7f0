"""Classes of values: which values there are, where a text has one, and the text with another in its place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

from whyrank.core import BadInput, WhyrankError
from whyrank.data import read_lines

BUNDLED = Path(__file__).parent / "bundled"  # lists of values and templates, in the formats that users write
_RANGE = re.compile(r"(\d{1,6})\.\.(\d{1,6})")
_LONGEST_RANGE = 1_000


def _lines(path: Path) -> list[str]:
    """One value a line; lines that begin with a hash and a blank are comments."""
    lines = [line.text.strip() for line in read_lines(path)]
    return [line for line in lines if line != "#" and not line.startswith("# ")]


_NAMES = ("car-makes", "car-models", "countries", "nationalities", "currencies", "first-names")
LISTS: Mapping[str, tuple[str, ...]] = {
    **{name: tuple(_lines(BUNDLED / f"{name}.txt")) for name in _NAMES},
    "letters": tuple(ascii_lowercase),
}
# Values whose words mostly mean other things: to polish, what was won or weighs pounds, a name.
DOUBTFUL: Mapping[str, frozenset[str]] = {
    "currencies": frozenset({"won", "pounds", "rand"}),
    "nationalities": frozenset({"Polish"}),
}


def values_of(given: str) -> tuple[str, ...]:
    """The values that a built-in list, a range `2000..2024`, a file or `a+b+c` stands for."""
    if given in LISTS:
        return LISTS[given]
    if span := _RANGE.fullmatch(given):
        first, last = int(span[1]), int(span[2])
        if not 0 < last - first < _LONGEST_RANGE:
            raise WhyrankError(f"values {given!r}: a range goes up, over {_LONGEST_RANGE:,} numbers at most")
        return tuple(str(number) for number in range(first, last + 1))
    if Path(given).is_file():
        return _check_values(given, _lines(Path(given)))
    if "+" not in given:
        ways = f"a file with one a line, a+b+c, a range such as 2000..2024, or one of {', '.join(LISTS)}"
        raise WhyrankError(f"values {given!r} is no file; give {ways}")
    return _check_values(given, [value.strip() for value in given.split("+")])


def _check_values(given: str, found: list[str]) -> tuple[str, ...]:
    """The values, none empty and none twice in whatever case of letters."""
    folded = [" ".join(value.casefold().split()) for value in found]
    twice = next((value for value in folded if folded.count(value) > 1), None)
    if "" in folded:
        raise WhyrankError(f"values {given!r}: one of them is empty")
    if twice is not None:
        raise BadInput(given, f"has the value {twice!r} twice", "leave one out")
    if len(found) < 2:
        raise WhyrankError(f"values {given!r}: give two values at least")
    return tuple(found)


# Texts with slots, and the values of a class that a text has.

SLOT = "{value}"
SMALL, CAPITAL, PLAIN = "small", "capital", "plain"
_ARTICLE = re.compile(r"(?<!\w)(a)n?(\s+)$", re.IGNORECASE)
# Vowels that are spoken as consonants: European, one-way, UK, Ukrainian, unique, useful, Utah; not unnamed, ushers.
_A = r"eu|on(?:e(?![a-z])|ce)|u(?![a-z])|u[ksnv](?![a-z])|uk|ugand|uni(?![dmn])|u[rs][aeiou]|ut[aeio]|ubi"
# Vowels, names of letters (F-150, X-ray), a silent h, and the numbers that begin with eight or eleven, years too.
_AN = r"[aeiou]|[fhlmnrsx](?![a-z])|hour|hono(?!l)|hones|heir|8|1[18](?:\d\d)?(?!\d)"
_SPOKEN = re.compile(f"(?!{_A})(?:{_AN})", re.IGNORECASE)
_CONTRACTED = r"['’](?:t|d|m|ll|re|ve)(?!\w)"  # won't is no won; Ford's is a Ford


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

    @property
    def around(self) -> str:
        """What stands outside of the slots; a word never reaches over one."""
        return "\0".join(self.parts)

    def filled(self, value: str) -> str:
        """The text with a value in its slots, and the right `a` or `an` before it."""
        found = [self.parts[0]]
        for part, form in zip(self.parts[1:], self.forms, strict=True):
            word = value.lower() if form == SMALL else value
            if form == CAPITAL and value.islower():
                word = value[:1].upper() + value[1:]
            article = _ARTICLE.search(found[-1])
            if article is not None and word[:1].isalnum():
                right = article[1] + ("n" if _SPOKEN.match(word) else "")
                found[-1] = found[-1][: article.start()] + right + article[2]
            found += [word + part]
        return "".join(found)


class ValueSlot(NamedTuple):
    """A text made a template: the value that stood there, and the values that stay, in any case of letters."""

    slotted: Slotted
    value: str
    others: frozenset[str]


@dataclass(frozen=True)
class ValueClass:
    """The values of a class, found in texts as whole words.

    A value that has capitals is a name: in a text with capitals it is found only where it has one. The words of
    `doubtful` mostly mean other things: of these, names are found with a capital only, others not at all.
    """

    values: tuple[str, ...]
    doubtful: frozenset[str] = frozenset()

    @cached_property
    def _longest_first(self) -> list[str]:
        return sorted(self.values, key=len, reverse=True)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """A group per value: small letters do not say which value a match is, as of an i without its dot."""
        names = "|".join(r"\s+".join(map(re.escape, value.split())).join("()") for value in self._longest_first)
        return re.compile(rf"(?<![\w-])(?:{names})(?![\w-])(?!{_CONTRACTED})", re.IGNORECASE)

    def _matches(self, text: str) -> list[tuple[str, re.Match[str]]]:
        return [(self._longest_first[(m.lastindex or 0) - 1], m) for m in self._pattern.finditer(text)]

    def named(self, text: str) -> frozenset[str]:
        """The values whose words a text has, in any case of letters, whatever they mean there."""
        return frozenset(value for value, _ in self._matches(text))

    def counts(self, text: str) -> Counter[str]:
        """How often a text has each value."""
        return Counter(value for value, _ in self._found(text))

    def slot(self, text: str) -> ValueSlot | None:
        """The text with a slot for the value that it has most often, of equals the first; None without any."""
        found = self._found(text)
        if not found:
            return None
        value = Counter(each for each, _ in found).most_common(1)[0][0]
        spans = [m for each, m in found if each == value]
        edges = [0, *(position for m in spans for position in m.span()), len(text)]
        parts = tuple(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))
        slotted = Slotted(parts, tuple(SMALL if m[0].islower() else CAPITAL for m in spans))
        return ValueSlot(slotted, value, self.named(slotted.around))

    def _found(self, text: str) -> list[tuple[str, re.Match[str]]]:
        """The matches that stand for a value."""
        found, without_capitals = [], text == text.lower()
        for value, m in self._matches(text):
            named = value != value.lower() and m[0] != m[0].lower()
            if named or (value not in self.doubtful and (without_capitals or value == value.lower())):
                found.append((value, m))
        return found


def mentions(text: str, word: str) -> bool:
    """Whether a text has a word, in any case of letters."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
