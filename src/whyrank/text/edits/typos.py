"""Typos: listed misspellings of listed words, or slips of the fingers on a keyboard."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from whyrank.core import BadInput, WhyrankError, check_number, check_text
from whyrank.text.analyzer import Analyzer
from whyrank.text.edits.base import Slot, fill, published

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_WORDS = re.compile(r"[^\W\d_]{4,}")


@published(stream=True)
def typos(text: str, rng: random.Random, analyzer: Analyzer, *, list: str = "", rate: float = 0.15) -> str | None:
    """With spelling mistakes

    With `list=FILE` (tab-separated: misspelling, corrections) every word that is a listed correction is replaced by
    one of its misspellings, the analyzer's stop words excepted. Without, words of four letters or more slip with
    probability `rate`, at least one: two letters swapped, one dropped, doubled, or hit on a neighbouring key.
    """
    check_text("typos: list", list)
    if list:
        known = misspellings(list, frozenset(analyzer.stopwords))
        return known.pattern.sub(lambda found: rng.choice(known.forms[found[0]]), text)
    check_number("typos: rate", rate, 0, 1)
    if rate == 0:
        raise WhyrankError("typos: a rate of 0 changes nothing; give one above 0")
    slots = [Slot(*found.span()) for found in _WORDS.finditer(text)]
    if not slots:
        return None
    chosen = [slot for slot in slots if rng.random() < rate] or [rng.choice(slots)]
    return fill(text, chosen, [_slip(text[start:end], rng) for start, end in chosen])


class Misspellings(NamedTuple):
    """The misspellings of each correct form, and a pattern that finds the forms as whole words."""

    forms: Mapping[str, list[str]]
    pattern: re.Pattern[str]


@lru_cache(maxsize=4)
def misspellings(path: str, stopwords: frozenset[str]) -> Misspellings:
    """Read a list of misspellings; several corrections stand in one field, separated by commas."""
    forms: dict[str, list[str]] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(path, f"cannot be read as a list of misspellings ({error})", "give a UTF-8 file") from None
    for number, line in enumerate(lines, 1):
        wrong, tab, right = line.partition("\t")
        if not tab:
            what = "expected a misspelling and its corrections, separated by a tab"
            raise BadInput(path, what, "mend the line", number)
        for form in map(str.strip, right.split(",")) if number > 1 or right != "corrections" else ():
            if form and form not in stopwords and wrong != form:
                forms.setdefault(form, []).append(wrong)
    if not forms:
        raise BadInput(path, "has no misspelling that can be used", "give misspelling TAB corrections, one a line")
    longest_first = sorted(map(re.escape, forms), key=len, reverse=True)
    return Misspellings(forms, re.compile(rf"\b(?:{'|'.join(longest_first)})\b"))


def _slip(word: str, rng: random.Random) -> str:
    """One slip inside a word that changes it; its first letter stays."""
    position = rng.randrange(1, len(word) - 1)
    slips = rng.sample(SLIPS, len(SLIPS))
    return next(found for slip in slips if (found := slip(word, position, rng)) != word)


def _swap(word: str, i: int, rng: random.Random) -> str:
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


def _drop(word: str, i: int, rng: random.Random) -> str:
    return word[:i] + word[i + 1 :]


def _double(word: str, i: int, rng: random.Random) -> str:
    return word[: i + 1] + word[i:]


def _neighbour(word: str, i: int, rng: random.Random) -> str:
    for row in _ROWS:
        at = row.find(word[i].lower())
        if at >= 0:
            return word[:i] + rng.choice(row[max(at - 1, 0) : at] + row[at + 1 : at + 2]) + word[i + 1 :]
    return _drop(word, i, rng)


SLIPS: tuple[Callable[[str, int, random.Random], str], ...] = (_swap, _drop, _double, _neighbour)
