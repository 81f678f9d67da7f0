"""Cutting texts to a number of tokens, so that whoever counts and whoever scores see the same text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from whyrank.core import Ints
from whyrank.text.analyzer import Analyzer

LONG_WORD = 1000  # a run without blanks that is longer than this is cut inside
_WORD = re.compile(r"\S+")
_GUESSES = 4  # interpolation finds the cut at once in ordinary text; halving bounds the rest


def cut_texts(analyzer: Analyzer, texts: Sequence[str], most: int | None) -> list[str]:
    """The texts, each cut between words to the longest beginning of at most `most` tokens."""
    found = list(texts)
    if most is None:
        return found
    lengths = _lengths(analyzer, texts)
    long = np.flatnonzero(lengths > most).tolist()
    ends = {i: _ends(texts[i]) for i in long}
    kept = _longest(analyzer, texts, ends, lengths, most)
    cuts = {i: ends[i][kept[i] - 1] if kept[i] else 0 for i in long}
    # where the next word is very long, it is cut between two of its characters
    inside = [i for i in long if ends[i][kept[i]] - cuts[i] > LONG_WORD]
    characters = {i: range(cuts[i] + 1, ends[i][kept[i]] + 1) for i in inside}
    finer = _longest(analyzer, texts, characters, lengths, most)
    for i in long:
        found[i] = texts[i][: cuts[i]]
        if i in finer:
            found[i] = texts[i][: characters[i][finer[i] - 1] if finer[i] else 0].rstrip() or found[i]
    return found


def _longest(
    analyzer: Analyzer, texts: Sequence[str], ends: Mapping[int, Sequence[int]], lengths: Ints, most: int
) -> dict[int, int]:
    """For each text that has ends, how many of them can be kept; all of them are too many."""
    rows = list(ends)
    low, high = np.zeros(len(rows), np.int64), np.array([len(ends[i]) for i in rows], np.int64)
    below, above = np.zeros(len(rows)), lengths[rows].astype(np.float64)
    rounds = 0
    while len(open_ := np.flatnonzero(high - low > 1)):
        first, last = low[open_], high[open_]
        if rounds < _GUESSES:
            share = (most + 0.5 - below[open_]) / np.maximum(above[open_] - below[open_], 1)
            middle = np.clip(first + (share * (last - first)).astype(np.int64), first + 1, last - 1)
        else:
            middle = (first + last) // 2
        tried = [(rows[k], m) for k, m in zip(open_.tolist(), middle.tolist(), strict=True)]
        sizes = _lengths(analyzer, [texts[i][: ends[i][m - 1]] for i, m in tried])
        fits = sizes <= most
        low[open_[fits]], below[open_[fits]] = middle[fits], sizes[fits]
        high[open_[~fits]], above[open_[~fits]] = middle[~fits], sizes[~fits]
        rounds += 1
    return dict(zip(rows, low.tolist(), strict=True))


def _ends(text: str) -> list[int]:
    """Where the words of a text end, and then the text: some tokenizers count blanks behind the last word."""
    ends = [word.end() for word in _WORD.finditer(text)]
    return ends if ends and ends[-1] == len(text) else [*ends, len(text)]


def _lengths(analyzer: Analyzer, texts: Sequence[str]) -> Ints:
    return np.asarray(np.diff(analyzer.docs(texts).offsets), dtype=np.int64)
