"""Edits of content: the query put in or in place of the text, the text repeated, queries added, typos."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from whyrank.core import BadInput, Range, Share, Whole, WhyrankError, json_records, read_lines
from whyrank.text.analyzer import Analyzer
from whyrank.text.edits.base import Slot, fill, published


def replace_with_query(query: str) -> str:
    """Replaced by the query itself"""
    return query


def prepend_query(text: str, query: str) -> str:
    """With the query put before it"""
    return f"{query} {text}"


def repeat_document(text: str, *, times: Annotated[int, Range(2, 1000)] = 2) -> str:
    """Repeated as a whole

    Args:
        times: how often the text occurs afterwards.
    """
    return " ".join([text] * times)


# Queries that the text may answer, from a file or from a model.


def doc2query(text: str, rng: random.Random, *, expansions: str = "", model: str = "", n: Whole = 4) -> str | None:
    """With queries added that the text may answer (Nogueira and Lin, docTTTTTquery, 2019)

    Args:
        expansions: a file of JSON lines with `text` and `queries`.
        model: a hub id or a folder of a generating model, instead of a file.
        n: queries that are added.
    """
    if bool(expansions) == bool(model):
        raise WhyrankError(
            "doc2query needs expansions=FILE (JSON lines with text and queries) or model=PATH, one of the two"
        )
    if expansions:
        queries = _read_expansions(expansions).get(text)
    else:
        from whyrank.text.generation import generate

        queries = generate([text], model, n, rng.getrandbits(32))[0]
    return f"{text} {' '.join(queries[:n])}" if queries else None


def _lacking(options: Mapping[str, Any]) -> str:
    return "" if options.get("expansions") or options.get("model") else "it needs expansions=FILE or model=PATH"


doc2query.lacking = _lacking  # type: ignore[attr-defined]


@lru_cache(maxsize=4)
def _read_expansions(path: str) -> Mapping[str, list[str]]:
    """Queries by text: one JSON object a line, with `text` and `queries`."""
    return {record.text("text"): record.texts("queries", least=0) for record in json_records(Path(path))}


# Typos: listed misspellings of listed words, or slips of the fingers on a keyboard.

_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_LONG_WORDS = re.compile(r"[^\W\d_]{4,}")


@published(stream=True)
def typos(text: str, rng: random.Random, analyzer: Analyzer, *, list: str = "", rate: Share = 0.15) -> str | None:
    """With spelling mistakes

    With `list=FILE` every word that is a listed correction is replaced by one of its misspellings, the analyzer's
    stop words excepted. Without, words of four letters or more slip with probability `rate`, at least one: two
    letters swapped, one dropped, doubled, or hit on a neighbouring key.

    Args:
        list: a tab-separated file: misspelling, corrections.
        rate: without a list, the share of the longer words that are misspelt.
    """
    if list:
        known = _read_misspellings(list, analyzer.stopwords)
        return known.pattern.sub(lambda found: rng.choice(known.forms[found[0]]), text)
    if rate == 0:
        raise WhyrankError("typos: a rate of 0 changes nothing; give one above 0")
    slots = [Slot(*found.span()) for found in _LONG_WORDS.finditer(text)]
    if not slots:
        return None
    chosen = [slot for slot in slots if rng.random() < rate] or [rng.choice(slots)]
    return fill(text, chosen, [_slip(text[start:end], rng) for start, end in chosen])


class _Misspellings(NamedTuple):
    """The misspellings of each correct form, and a pattern that finds the forms as whole words."""

    forms: Mapping[str, list[str]]
    pattern: re.Pattern[str]


@lru_cache(maxsize=4)
def _read_misspellings(path: str, stopwords: frozenset[str]) -> _Misspellings:
    """Read a list of misspellings; several corrections stand in one field, separated by commas."""
    forms: dict[str, list[str]] = {}
    for number, line, _ in read_lines(Path(path)):
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
    return _Misspellings(forms, re.compile(rf"\b(?:{'|'.join(longest_first)})\b"))


def _slip(word: str, rng: random.Random) -> str:
    """One slip inside a word that changes it; its first letter stays."""
    i = rng.randrange(1, len(word) - 1)

    def slip(kind: str) -> str:
        if kind == "swap":
            return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
        if kind == "double":
            return word[: i + 1] + word[i:]
        row = next((row for row in _KEYS if word[i].lower() in row), "")
        if kind == "drop" or not row:
            return word[:i] + word[i + 1 :]
        key = row.index(word[i].lower())
        return word[:i] + rng.choice(row[max(key - 1, 0) : key] + row[key + 1 : key + 2]) + word[i + 1 :]

    kinds = rng.sample(("swap", "drop", "double", "neighbouring key"), 4)
    return next(found for kind in kinds if (found := slip(kind)) != word)
