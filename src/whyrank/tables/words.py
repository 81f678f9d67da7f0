"""The words behind the terms of a table: how texts write a stem, and which pairs of words a reader should check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from whyrank.data import Collection, read_lines
from whyrank.text import Analyzer
from whyrank.text.steps import porter

OPPOSITE, NAME = "opposite", "name"
_WORD = re.compile(r"(?<![\w'-])(?P<inner>(?<=[\w,;] ))?[^\W_]+(?:[-'][^\W_]+)*")
_PREFIXES = [
    *((prefix, "") for prefix in ("un", "dis", "non", "im", "il", "ir")),
    *(("in", "ex"), ("im", "ex"), ("in", "de"), ("as", "des"), ("hyper", "hypo"), ("over", "under"), ("pre", "post")),
    *(("up", "down"), ("macro", "micro")),
]
_SUFFIXES = (("less", "ful"), ("ful", "less"))


def count_words(texts: Iterable[str]) -> Counter[str]:
    """How often texts have each word, as they write it; a word that may begin a sentence counts in small letters."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(w[0] if w["inner"] is not None else w[0].lower() for w in _WORD.finditer(text))
    return counts


def surface_words(counts: Mapping[str, int], term_of: Callable[[str], str]) -> dict[str, str]:
    """For each term the most frequent word that `term_of` turns into it, in its most frequent spelling."""
    totals, spelling = Counter[tuple[str, str]](), dict[tuple[str, str], str]()
    for word, n in Counter(counts).most_common():
        form = term_of(word), word.lower()
        totals[form] += n
        spelling.setdefault(form, word)
    found: dict[str, str] = {}
    for form, _ in totals.most_common():
        found.setdefault(form[0], spelling[form])
    return found


def collection_words(collection: Collection, analyzer: Analyzer) -> dict[str, str]:
    """For each term of an analyzer the word that the texts and queries of a collection have most often."""

    def term_of(word: str) -> str:
        terms = analyzer.terms(word)
        return terms[0] if len(terms) == 1 else ""

    texts = dict.fromkeys([*collection.docs.values(), *collection.queries.values()])
    return surface_words(count_words(texts), term_of)


def flag(query_word: str, doc_word: str) -> str:
    """Why a person should check a pair of words before an engine takes them for synonyms; empty for most pairs.

    `opposite`: they exclude each other, by a list of common pairs or by a prefix. `name`: texts write the document
    word with a capital letter, as they do brands, places and persons, and not the query word.
    """
    first, second = query_word.lower(), doc_word.lower()
    if frozenset((porter(first), porter(second))) in _opposites() or _prefixed(first, second):
        return OPPOSITE
    return NAME if doc_word != second and query_word == first else ""


def _prefixed(first: str, second: str) -> bool:
    """Whether two words differ only in a prefix or suffix that turns the meaning round."""
    for one, other in (*_PREFIXES, *((b, a) for a, b in _PREFIXES)):
        rest = first.removeprefix(one)
        if len(rest) > 4 and (one + rest, other + rest) == (first, second):
            return True
    return any(first.endswith(one) and first.removesuffix(one) + other == second for one, other in _SUFFIXES)


@cache
def _opposites() -> frozenset[frozenset[str]]:
    lines = [line.text for line in read_lines(Path(__file__).parent / "bundled" / "opposites.txt")]
    return frozenset(frozenset(map(porter, line.split())) for line in lines if not line.startswith("#"))
