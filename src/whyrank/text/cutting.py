"""Cutting texts to a number of tokens, so that whoever counts and whoever scores see the same text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from whyrank.core import Floats, Ints
from whyrank.text.analyzer import Analyzer

LONG_WORD = 1000  # a run without blanks that is longer than this is cut inside
_WORD = re.compile(r"\S+")
_GUESSES = 4  # interpolation finds the place at once in ordinary text; halving bounds the rest

Ends = Sequence[int]


def cut_texts(analyzer: Analyzer, texts: Sequence[str], most: int | None) -> list[str]:
    """The texts, each cut between words to the longest beginning of at most `most` tokens."""
    if most is None:
        return list(texts)
    lengths = _lengths(analyzer, texts)
    long = np.flatnonzero(lengths > most).tolist()
    cut = _cut([texts[i] for i in long], lengths[long], most, lambda given: _lengths(analyzer, given))
    found = list(texts)
    for i, text in zip(long, cut, strict=True):
        found[i] = text
    return found


def _cut(texts: list[str], lengths: Ints, most: int, count: Callable[[list[str]], Ints]) -> list[str]:
    ends = [_ends(text) for text in texts]
    kept = _longest(texts, ends, lengths, most, count)
    inside = [i for i, (e, k) in enumerate(zip(ends, kept, strict=True)) if _gap(e, k) > LONG_WORD]
    places = [_end(e, k) for e, k in zip(ends, kept, strict=True)]
    found = [text[:place] for text, place in zip(texts, places, strict=True)]
    characters = [range(places[i] + 1, ends[i][kept[i]] + 1) for i in inside]
    finer = _longest([texts[i] for i in inside], characters, lengths[inside], most, count)
    for i, e, k in zip(inside, characters, finer, strict=True):
        found[i] = texts[i][: _end(e, k)].rstrip() or found[i]
    return found


def _longest(
    texts: list[str], ends: Sequence[Ends], lengths: Ints, most: int, count: Callable[[list[str]], Ints]
) -> list[int]:
    """For each text, how many of its ends can be kept; all of them are too many."""
    low, high = np.zeros(len(texts), np.int64), np.array([len(e) for e in ends], np.int64)
    below, above = np.zeros(len(texts)), lengths.astype(np.float64)
    rounds = 0
    while len(open_ := np.flatnonzero(high - low > 1)):
        middle = _middle(low[open_], high[open_], below[open_], above[open_], most, rounds)
        sizes = count([texts[i][: ends[i][m - 1]] for i, m in zip(open_.tolist(), middle.tolist(), strict=True)])
        fits = sizes <= most
        low[open_[fits]], below[open_[fits]] = middle[fits], sizes[fits]
        high[open_[~fits]], above[open_[~fits]] = middle[~fits], sizes[~fits]
        rounds += 1
    kept: list[int] = low.tolist()
    return kept


def _middle(low: Ints, high: Ints, below: Floats, above: Floats, most: int, rounds: int) -> Ints:
    if rounds >= _GUESSES:
        return np.asarray((low + high) // 2)
    share = (most + 0.5 - below) / np.maximum(above - below, 1)
    return np.asarray(np.clip(low + (share * (high - low)).astype(np.int64), low + 1, high - 1))


def _ends(text: str) -> list[int]:
    """Where the words of a text end, and then the text: some tokenizers count blanks behind the last word."""
    ends = [word.end() for word in _WORD.finditer(text)]
    return ends if ends and ends[-1] == len(text) else [*ends, len(text)]


def _gap(ends: Ends, kept: int) -> int:
    return ends[kept] - _end(ends, kept) if kept < len(ends) else 0


def _end(ends: Ends, kept: int) -> int:
    return ends[kept - 1] if kept else 0


def _lengths(analyzer: Analyzer, texts: Sequence[str]) -> Ints:
    return np.asarray(np.diff(analyzer.docs(texts).offsets), dtype=np.int64)
