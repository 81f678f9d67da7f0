"""How often words stand near one another: counts within a window, the nearer the more."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from whyrank.core.protocols import Codes, Floats, Ints
from whyrank.text.vocabulary import Tokens


class Cells(NamedTuple):
    """The cells of a square table that are not zero, sorted by row and column."""

    row: Codes
    column: Codes
    counts: Floats


def cooccurrences(tokens: Tokens, n_words: int, window: int) -> Cells:
    """Count, for each word, the words at most `window` places away in the same text; one d places away counts 1/d.

    Ids are word numbers below `n_words`. The parts 1/d are added up as whole multiples of 1/lcm(1..window), so the
    counts are exact and do not depend on the order of the texts.
    """
    unit = math.lcm(*range(1, window + 1))
    parts = np.array([0, *(unit // d for d in range(1, window + 1))], np.int64)
    order = np.argsort(tokens.ids, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(tokens.ids, minlength=n_words))]).astype(np.int64)
    text = np.repeat(np.arange(len(tokens.offsets) - 1, dtype=np.int32), np.diff(tokens.offsets))
    sizes = np.zeros(n_words, np.int64)
    _count(tokens.ids, tokens.offsets, text, order, starts, window, sizes)
    column, total = np.empty(sizes.sum(), np.int32), np.empty(sizes.sum(), np.int64)
    _fill(tokens.ids, tokens.offsets, text, order, starts, parts, sizes, column, total)
    return Cells(np.repeat(np.arange(n_words, dtype=np.int32), sizes), column, total / unit)


@njit(cache=True, nogil=True)
def _count(ids: Codes, offsets: Ints, text: Codes, order: Ints, starts: Ints, window: int, sizes: Ints) -> None:
    """How many different words stand near each word."""
    seen = np.full(len(sizes), -1, np.int64)
    for word in range(len(sizes)):
        for place in order[starts[word] : starts[word + 1]]:
            first = max(offsets[text[place]], place - window)
            for other in range(first, min(offsets[text[place] + 1], place + window + 1)):
                if other != place and seen[ids[other]] != word:
                    seen[ids[other]] = word
                    sizes[word] += 1


@njit(cache=True, nogil=True)
def _fill(
    ids: Codes,
    offsets: Ints,
    text: Codes,
    order: Ints,
    starts: Ints,
    parts: Ints,
    sizes: Ints,
    column: Codes,
    total: Ints,
) -> None:
    sums, at, window = np.zeros(len(sizes), np.int64), 0, len(parts) - 1
    for word in range(len(sizes)):
        end = at
        for place in order[starts[word] : starts[word + 1]]:
            first = max(offsets[text[place]], place - window)
            for other in range(first, min(offsets[text[place] + 1], place + window + 1)):
                if other != place:
                    if sums[ids[other]] == 0:
                        column[end] = ids[other]
                        end += 1
                    sums[ids[other]] += parts[abs(other - place)]
        column[at:end] = np.sort(column[at:end])
        for cell in range(at, end):
            total[cell] = sums[column[cell]]
            sums[column[cell]] = 0
        at = end
