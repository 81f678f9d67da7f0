"""`chain(...)`: an analyzer put together on the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from whyrank.core.errors import UnknownName, WhyrankError
from whyrank.text import steps
from whyrank.text.analyzers import Analyzer, Tokenise, call_of_factory
from whyrank.text.state import Step
from whyrank.text.stopwords import LUCENE, StopWords, read_stopwords
from whyrank.text.tokenizers import ascii_words, plain_words, unicode_words, whitespace_words

T = TypeVar("T")

_TOKENS: Mapping[str, Tokenise] = {
    "unicode": unicode_words,
    "plain": plain_words,
    "ascii": ascii_words,
    "whitespace": whitespace_words,
}
_STEMS: Mapping[str, Callable[[], list[Step]]] = {
    "": list,
    "porter": lambda: [steps.porter],
    "porter-original": lambda: [steps.porter_original],
    "krovetz": lambda: [steps.krovetz()],
}
_FLAGS = ("lower", "possessive", "keep_query_stops")


def chain(
    *,
    tokens: str = "unicode",
    lower: bool = True,
    possessive: bool = False,
    stop: str = "",
    stem: str = "",
    keep_query_stops: bool = False,
    max_length: int = 0,
    max_digits: int | None = None,
    max_repeat: int = 0,
) -> Analyzer:
    """An analyzer of one's own, in this order: tokens, possessives, lower case, limits, stop words, stems.

    `tokens` is unicode, plain, ascii or whitespace; `stop` is `lucene` or a file; `stem` is porter,
    porter-original or krovetz. The limits are those of `steps.limits`; `keep_query_stops` keeps stop words
    in queries.
    """
    given = _checked(dict(locals()))
    stops = _stop_words(given["stop"])
    words = map(steps.lower, stops.words) if lower else stops.words
    first: list[Step] = [*_where(possessive, steps.possessive), *_where(lower, steps.lower)]
    first.append(steps.limits(max_length, max_digits, max_repeat))
    last = _pick("stemmer", stem, _STEMS)()
    return Analyzer.of(
        call_of_factory(chain, given),
        _pick("tokeniser", tokens, _TOKENS),
        [*first, steps.stop(words), *last],
        query_steps=[*first, *last] if keep_query_stops else None,
        digests=_where(stops.digest, stops.digest),
    )


def _where(wanted: object, item: T) -> list[T]:
    return [item] if wanted else []


def _stop_words(stop: str) -> StopWords:
    if stop in ("", "lucene"):
        return StopWords(LUCENE if stop else frozenset(), "")
    return read_stopwords(stop)


def _pick(kind: str, name: str, known: Mapping[str, T]) -> T:
    if name not in known:
        raise UnknownName(kind, name, filter(None, known))
    return known[name]


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments, a path as a string; an error for a value of the wrong type."""
    if isinstance(given["stop"], os.PathLike):
        given["stop"] = os.fspath(given["stop"])
    for key, value in given.items():
        if problem := _problem(key, value):
            raise WhyrankError(f"analyzer 'chain': {key}={value!r} must be {problem}")
    return given


def _problem(key: str, value: object) -> str:
    """What a value should have been, or nothing when it is fine."""
    if key in _FLAGS:
        return "" if isinstance(value, bool) else "True or False"
    if key.startswith("max_"):
        fits = type(value) is int and value >= 0
        return "" if fits or (key == "max_digits" and value is None) else "a whole number from 0 up"
    return "" if isinstance(value, str) else "text; write it in quotes"
