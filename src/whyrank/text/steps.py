"""What analyzers are made of: tokenisers, steps that change or drop one token, and lists of stop words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

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


# Porter's stemmer: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980. A stem is read as a row of
# vowels and consonants, `y` being a vowel after a consonant; its measure is how often a consonant follows a vowel. It
# is written out because the library that has it takes two seconds to import.

_STEP_2 = [
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("alli", "al"),
    ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"), ("ator", "ate"),
    ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"),
    ("biliti", "ble"),
]  # fmt: skip
_PRINTED, _AMENDED = [*_STEP_2, ("abli", "able")], [*_STEP_2, ("bli", "ble"), ("logi", "log")]
_STEP_3 = [
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
]  # fmt: skip
_STEP_4 = [(suffix, "") for suffix in (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)]  # fmt: skip


@lru_cache(maxsize=1 << 20)
def porter(word: str, amended: bool = True) -> str:
    """Porter's stemmer with its author's own amendments, as Lucene and Terrier have it, or as first printed."""
    if amended and len(word) <= 2:
        return word
    word = _inflection(word)
    if word.endswith("y") and "v" in _letters(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _AMENDED if amended else _PRINTED, 0)
    word = _replaced(word, _STEP_3, 0)
    word = _replaced(word, _STEP_4, 1)
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _is_short(word[:-1])):
            word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


porter_original = partial(porter, amended=False)
"""Porter's stemmer as first printed, without the later amendments (Porter 1980)."""


def _inflection(word: str) -> str:
    """A word without its ending of plural, past or -ing (steps 1a and 1b)."""
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    ending = next((each for each in ("ed", "ing") if word.endswith(each)), "")
    stem = word.removesuffix(ending)
    if not ending or "v" not in _letters(stem):
        return word
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if len(stem) > 1 and stem[-1] == stem[-2] and _letters(stem)[-1] == "c":
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _is_short(stem) else stem


def _replaced(word: str, suffixes: Sequence[tuple[str, str]], least: int) -> str:
    """A word with the suffix that it has replaced, where the measure of the rest is above the least."""
    for suffix, other in suffixes:
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            fits = suffix != "ion" or stem.endswith(("s", "t"))
            return stem + other if fits and _measure(stem) > least else word
    return word


def _letters(stem: str) -> str:
    """For each letter whether it is a consonant, c, or a vowel, v."""
    found = ""
    for letter in stem:
        found += "v" if letter in "aeiou" or (letter == "y" and found.endswith("c")) else "c"
    return found


def _measure(stem: str) -> int:
    return _letters(stem).count("vc")


def _is_short(stem: str) -> bool:
    """Whether a stem ends in consonant, vowel and a consonant other than w, x and y."""
    return _letters(stem).endswith("cvc") and stem[-1] not in "wxy"


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
