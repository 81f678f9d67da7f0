"""Cutting texts to a number of tokens, so that whoever counts and whoever scores see the same text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from whyrank.core import Ints
from whyrank.text.analyzer import Analyzer

LONG_WORD = 1000  # a run without blanks that is longer than this is cut inside
_WORD = re.compile(r"\S+")
_GUESSES = 4  # interpolation finds the cut at once in ordinary text; halving bounds the rest

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
    cuts = [e[k - 1] if k else 0 for e, k in zip(ends, kept, strict=True)]
    found = [text[:cut] for text, cut in zip(texts, cuts, strict=True)]
    # where the next word is very long, it is cut between two of its characters
    inside = [i for i, (e, k) in enumerate(zip(ends, kept, strict=True)) if e[k] - cuts[i] > LONG_WORD]
    characters = [range(cuts[i] + 1, ends[i][kept[i]] + 1) for i in inside]
    finer = _longest([texts[i] for i in inside], characters, lengths[inside], most, count)
    for i, e, k in zip(inside, characters, finer, strict=True):
        found[i] = texts[i][: e[k - 1] if k else 0].rstrip() or found[i]
    return found


def _longest(
    texts: list[str], ends: Sequence[Ends], lengths: Ints, most: int, count: Callable[[list[str]], Ints]
) -> list[int]:
    """For each text, how many of its ends can be kept; all of them are too many."""
    low, high = np.zeros(len(texts), np.int64), np.array([len(e) for e in ends], np.int64)
    below, above = np.zeros(len(texts)), lengths.astype(np.float64)
    rounds = 0
    while len(open_ := np.flatnonzero(high - low > 1)):
        first, last = low[open_], high[open_]
        if rounds < _GUESSES:
            share = (most + 0.5 - below[open_]) / np.maximum(above[open_] - below[open_], 1)
            middle = np.clip(first + (share * (last - first)).astype(np.int64), first + 1, last - 1)
        else:
            middle = (first + last) // 2
        sizes = count([texts[i][: ends[i][m - 1]] for i, m in zip(open_.tolist(), middle.tolist(), strict=True)])
        fits = sizes <= most
        low[open_[fits]], below[open_[fits]] = middle[fits], sizes[fits]
        high[open_[~fits]], above[open_[~fits]] = middle[~fits], sizes[~fits]
        rounds += 1
    kept: list[int] = low.tolist()
    return kept


def _ends(text: str) -> list[int]:
    """Where the words of a text end, and then the text: some tokenizers count blanks behind the last word."""
    ends = [word.end() for word in _WORD.finditer(text)]
    return ends if ends and ends[-1] == len(text) else [*ends, len(text)]


def _lengths(analyzer: Analyzer, texts: Sequence[str]) -> Ints:
    return np.asarray(np.diff(analyzer.docs(texts).offsets), dtype=np.int64)
