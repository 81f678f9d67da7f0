"""What analyzers are made of: tokenisers, steps that change or drop one token, and lists of stop words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from whyrank.core import BadInput, MissingExtra, WhyrankError, file_digest, read_lines
from whyrank.text.analyzer import Step

# Tokenisers: from a text to its raw tokens. `unicode_words` has a chapter of its own.

ascii_words = re.compile(r"[A-Za-z0-9]+").findall
"""Maximal runs of ASCII letters and digits: Terrier's English tokeniser."""

plain_words = re.compile(r"[^\W_]+").findall
"""Maximal runs of letters and digits of any script, without any punctuation inside."""

whitespace_words = str.split
"""What stands between white space."""


# Steps: each takes one token and gives another, or None to drop it.

APOSTROPHES = ("'", "\u2019", "\uff07")


def lower(token: str) -> str:
    """Lower-case character by character, as Lucene does: Σ is always σ, and İ is i."""
    return token.lower() if token.isascii() else "".join([c.lower()[0] for c in token])


def possessive(token: str) -> str:
    """Take away a final 's, with any of the three apostrophes that Lucene knows."""
    return token[:-2] if token[-1:] in ("s", "S") and token[-2:-1] in APOSTROPHES else token


class stop:  # noqa: N801
    """Drops the tokens that are in a list of words; an analyzer's `stopwords` come from here."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = frozenset(words)

    def __call__(self, token: str) -> str | None:
        """The token, or None when it is listed."""
        return None if token in self.words else token


def limits(max_length: int = 0, max_digits: int | None = None, max_repeat: int = 0) -> Step:
    """Drop tokens that are longer, have more digits or a longer run of one character; 0 and None: no limit.

    No digits at all is a sensible limit, so that for `max_digits` only None stands for none.
    """
    run = re.compile(rf"(.)\1{{{max_repeat}}}", re.DOTALL) if max_repeat else None

    def limit(token: str) -> str | None:
        long = 0 < max_length < len(token)
        numeric = max_digits is not None and sum(map(str.isdigit, token)) > max_digits
        return None if long or numeric or (run and run.search(token)) else token

    return limit


@lru_cache(maxsize=1 << 20)
def porter(token: str, mode: str = "MARTIN_EXTENSIONS") -> str:
    """Porter's stemmer with its author's own amendments, as Lucene and Terrier have it (Porter 1980)."""
    return str(_porter(mode).stem(token, to_lowercase=False))


porter_original = partial(porter, mode="ORIGINAL_ALGORITHM")
"""Porter's stemmer as first printed, without the later amendments (Porter 1980)."""


def krovetz() -> Step:
    """Krovetz's stemmer: lower-case words of its dictionary (Krovetz 1993); needs the extra `krovetz`."""
    try:
        import krovetzstemmer
    except ImportError:
        raise MissingExtra("the Krovetz stemmer", "krovetz") from None
    stem = krovetzstemmer.Stemmer().stem

    def stem_word(token: str) -> str:
        # The extension lower-cases a single letter inside the byte that all of Python shares (b"P" is b"p" from then
        # on), and fails on half a surrogate pair or a zero byte; it leaves words with other letters as they are.
        safe = lower(token)
        return str(stem(safe)) if len(safe) > 1 and safe.isascii() and safe.isprintable() else safe

    return stem_word


@cache
def _porter(mode: str) -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer(mode=mode)


# Stop word lists: Lucene's short one, and files with one word a line.

_LUCENE = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they
this to was will with
"""
LUCENE: frozenset[str] = frozenset(_LUCENE.split())
"""The 33 English stop words of Lucene."""

_ONE_A_LINE = "give a file with one word a line"


class StopWords(NamedTuple):
    """The words of a list, the file that they came from, and a digest of its content (of no file: none)."""

    path: str
    words: frozenset[str]
    digests: Sequence[str]


def find_stopwords(analyzer: str, given: str | os.PathLike[str], variable: str) -> StopWords:
    """The words, in lower case, of the file that is given, else of the one that an environment variable names."""
    path = os.fspath(given)
    if not path:
        if not (named := os.environ.get(variable)):
            ways = f"write {analyzer}(stopwords=FILE) or set {variable}=FILE"
            raise WhyrankError(f"analyzer {analyzer!r} needs a stop word list; {ways}")
        path = os.path.abspath(os.path.expanduser(named))
    found = read_stopwords(path)
    return found._replace(words=frozenset(map(lower, found.words)))


def read_stopwords(path: str) -> StopWords:
    """Read a UTF-8 file with one word a line; blank lines and lines that start with # are ignored."""
    file = Path(os.path.expanduser(path))
    lines = [(line.number, line.text.strip()) for line in read_lines(file) if not line.text.lstrip().startswith("#")]
    for number, text in lines:
        if len(text.split()) > 1:
            raise BadInput(path, f"more than one word in a line: {text!r}", _ONE_A_LINE, number)
    if not lines:
        raise BadInput(path, "there are no stop words in it", _ONE_A_LINE)
    return StopWords(path, frozenset(text for _, text in lines), (file_digest(file),))
