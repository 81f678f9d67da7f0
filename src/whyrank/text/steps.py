"""Steps of an analyzer: each takes one token and gives another, or None to drop it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from whyrank.core import MissingExtra
from whyrank.text.analyzer import Step

_APOSTROPHES = ("'", "\u2019", "\uff07")


def lower(token: str) -> str:
    """Lower-case character by character, as Lucene does: Σ is always σ, and İ is i."""
    return token.lower() if token.isascii() else "".join([c.lower()[0] for c in token])


def possessive(token: str) -> str:
    """Take away a final 's, with any of the three apostrophes that Lucene knows."""
    return token[:-2] if token[-1:] in ("s", "S") and token[-2:-1] in _APOSTROPHES else token


class Stop:
    """Drops the tokens that are in a list of words."""

    def __init__(self, words: Iterable[str]) -> None:
        """Keep the list; `words` tells it to those who ask what an analyzer drops."""
        self.words = frozenset(words)

    def __call__(self, token: str) -> str | None:
        """The token, or None when it is listed."""
        return None if token in self.words else token


def stop(words: Iterable[str]) -> Step:
    """Drop the tokens that are in a list of words."""
    return Stop(words)


def limits(max_length: int = 0, max_digits: int | None = None, max_repeat: int = 0) -> Step:
    """Drop tokens that are longer, have more digits or a longer run of one character; 0 and None: no limit.

    No digits at all is a sensible limit, so that for `max_digits` only None stands for none.
    """
    run = re.compile(rf"(.)\1{{{max_repeat}}}", re.DOTALL) if max_repeat else None

    def limited(token: str) -> str | None:
        long = 0 < max_length < len(token)
        numeric = max_digits is not None and sum(map(str.isdigit, token)) > max_digits
        return None if long or numeric or (run and run.search(token)) else token

    return limited


@lru_cache(maxsize=1 << 20)
def porter(token: str) -> str:
    """Porter's stemmer with its author's own amendments, as Lucene and Terrier have it (Porter 1980)."""
    stem: str = _porter("MARTIN_EXTENSIONS").stem(token, to_lowercase=False)
    return stem


@lru_cache(maxsize=1 << 20)
def porter_original(token: str) -> str:
    """Porter's stemmer as first printed, without the later amendments (Porter 1980)."""
    stem: str = _porter("ORIGINAL_ALGORITHM").stem(token, to_lowercase=False)
    return stem


def krovetz() -> Step:
    """Krovetz's stemmer: lower-case words of its dictionary (Krovetz 1993); needs the extra `krovetz`."""
    try:
        import krovetzstemmer
    except ImportError:
        raise MissingExtra("the Krovetz stemmer", "krovetz") from None
    stem = krovetzstemmer.Stemmer().stem

    def stemmed(token: str) -> str:
        # The extension lower-cases a single letter inside the byte that all of Python shares (b"P" is b"p" from then
        # on), and fails on half a surrogate pair or a zero byte; it leaves words with other letters as they are.
        safe = lower(token)
        return str(stem(safe)) if len(safe) > 1 and safe.isascii() and safe.isprintable() else safe

    return stemmed


@cache
def _porter(mode: str) -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer(mode=mode)
