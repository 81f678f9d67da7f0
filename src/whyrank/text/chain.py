"""`chain(...)`: an analyzer put together on the command line."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from whyrank.core import BadInput, UnknownName, WhyrankError
from whyrank.text import steps
from whyrank.text.analyzer import Analyzer, Step, Tokenise, call_of_factory
from whyrank.text.unicode_words import unicode_words

# Tokenisers: from a text to its raw tokens.

__all__ = ["ascii_words", "plain_words", "unicode_words", "whitespace_words"]

ascii_words = re.compile(r"[A-Za-z0-9]+").findall
"""Maximal runs of ASCII letters and digits: Terrier's English tokeniser."""

plain_words = re.compile(r"[^\W_]+").findall
"""Maximal runs of letters and digits of any script, without any punctuation inside."""

whitespace_words = str.split
"""What stands between white space."""


# Stop word lists: Lucene's short one, and files with one word a line.

_LUCENE = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they
this to was will with
"""
LUCENE: frozenset[str] = frozenset(_LUCENE.split())
"""The 33 English stop words of Lucene."""
INDRI = "WHYRANK_INDRI_STOPWORDS"
"""The variable that names a file with the list of Indri."""


class StopWords(NamedTuple):
    """The words of a list and a digest of the file they came from."""

    words: frozenset[str]
    digest: str


def read_stopwords(path: str) -> StopWords:
    """Read a UTF-8 file with one word a line; blank lines and lines that start with # are ignored."""
    content = _content(path)
    lines = content.removeprefix(b"\xef\xbb\xbf").splitlines()
    words = {word for number, line in enumerate(lines, 1) if (word := _word(path, line, number))}
    if not words:
        raise BadInput(path, "there are no stop words in it", "write one word a line")
    return StopWords(frozenset(words), hashlib.sha256(content).hexdigest()[:16])


def stop_file(name: str, given: str | os.PathLike[str], variable: str) -> str:
    """The stop word file of an analyzer: the one given, else the one that an environment variable names."""
    if not isinstance(given, str | os.PathLike):
        raise WhyrankError(f"analyzer {name!r}: stopwords={given!r} is not a path; write it in quotes")
    if path := os.fspath(given):
        return path
    if not (named := os.environ.get(variable)):
        ways = f"write {name}(stopwords=FILE) or set {variable}=FILE"
        raise WhyrankError(f"analyzer {name!r} needs a stop word list; {ways}")
    return os.path.abspath(os.path.expanduser(named))


def _content(path: str) -> bytes:
    try:
        return Path(path).expanduser().read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        remedy = "give a file with one word a line"
        raise BadInput(path, f"cannot read this stop word list ({why})", remedy) from None


def _word(path: str, line: bytes, number: int) -> str:
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        raise BadInput(path, "this is not UTF-8", "save the file as UTF-8", number) from None
    if text.startswith("#"):
        return ""
    if len(text.split()) > 1:
        raise BadInput(path, f"more than one word in a line: {text!r}", "write one word a line", number)
    return text


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
