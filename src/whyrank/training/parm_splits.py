"""How phase 1 cuts queries in two: a span of pieces, and what is left around it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.training.parm_texts import Numbers, PieceTexts

Draws = npt.NDArray[np.floating[Any]]


class Spans(NamedTuple):
    """The span [start, end) of each query, and the sizes of both parts in pieces as they are read."""

    start: Numbers
    end: Numbers
    sizes: Numbers

    @classmethod
    def of(cls, start: Numbers, end: Numbers, lengths: Numbers) -> Spans:
        """Part 1 is the rest with one [MASK] for the span; part 2 the span with one where something was cut off."""
        rest = lengths - (end - start) + 1
        span = (end - start) + (start > 0) + (end < lengths)
        return cls(start, end, np.stack([rest, span], axis=-1))


class Splitter:
    """Draws spans for queries.

    The start is uniform over the pieces, and moves right to the next word; a start behind the last word's first piece
    moves back to that. The end is uniform over the pieces behind the start, and with `whole` words moves right too.
    """

    def __init__(self, queries: PieceTexts, whole: bool) -> None:
        """Note where the words of all queries begin."""
        self.sizes, self.whole = queries.sizes, whole
        self._next = _next_opening(queries)
        columns = np.arange(queries.ids.shape[1])
        self._last = np.where(queries.opens, columns, 0).max(axis=1)

    def __call__(self, query: Numbers, draws: Draws) -> Spans:
        """Spans of some queries from two uniform draws each: [queries, 2]."""
        sizes = self.sizes[query]
        start = self._next[query, _uniform(draws[:, 0], sizes)]
        start = np.minimum(start, self._last[query])
        end = start + 1 + _uniform(draws[:, 1], sizes - start)
        if self.whole:
            end = np.where(end < sizes, self._next[query, np.minimum(end, self._next.shape[1] - 1)], sizes)
        return Spans.of(start, end, sizes)


def _uniform(draws: Draws, sizes: Numbers) -> Numbers:
    """Whole numbers from 0 to the size less one."""
    return np.minimum((draws * sizes).astype(np.int64), sizes - 1)


def _next_opening(queries: PieceTexts) -> Numbers:
    """For each place, the first piece from there on that opens a word; the size where there is none."""
    columns = np.arange(queries.ids.shape[1])
    found = np.where(queries.opens, columns, queries.sizes[:, None])
    return np.minimum.accumulate(found[:, ::-1], axis=1)[:, ::-1]
