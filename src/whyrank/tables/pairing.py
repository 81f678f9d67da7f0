"""From analysed queries and texts to pairs: cut, filtered, drawn, and turned round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from whyrank.core.checks import check_flag, check_number
from whyrank.core.protocols import Codes, Ints
from whyrank.core.seeds import generator
from whyrank.tables.cutting import Chunks, comparable, cut, ranges
from whyrank.tables.growing import Growing
from whyrank.text import Tokens


class Making(NamedTuple):
    """How a bitext is made; see `make_bitext`."""

    ratio: float
    fertility: float
    symmetrise: bool
    sample: float
    seed: int

    def checked(self) -> Making:
        """The same; an error in one line where a value makes no sense."""
        check_number("ratio", self.ratio, 0, strict=True)
        check_number("fertility", self.fertility, 1)
        check_flag("symmetrise", self.symmetrise)
        check_number("sample", self.sample, 0, 1)
        return self


class Sides(NamedTuple):
    """The token ids of both sides of all pairs, where each pair begins, and the group that each belongs to."""

    source: Codes
    source_offsets: Ints
    target: Codes
    target_offsets: Ints
    group: Codes


class PairWriter:
    """Cuts, filters, draws and turns round; collects token ids and lengths."""

    def __init__(self, how: Making, held: int) -> None:
        self._how, self._draw = how, generator(how.seed, "bitext").random
        self._ids = {side: Growing(np.int32, held) for side in ("source", "target")}
        self._sizes = {side: Growing(np.int32, held) for side in ("source", "target")}
        self._group = Growing(np.int32, held)

    def add(self, queries: Tokens, docs: Tokens, group: Sequence[int]) -> None:
        """Add the pairs of one block: query `i` beside the chunks of document `i`."""
        lengths = np.diff(queries.offsets)
        chunks = self._chunks(lengths, docs)
        keep = comparable(chunks.sizes, lengths[chunks.pair], self._how.fertility)
        if self._how.sample < 1:
            keep[keep] = self._draw(int(keep.sum())) < self._how.sample
        chunks = chunks.kept(keep)
        texts = Runs(docs.ids, chunks.starts, chunks.sizes)
        asked = Runs(queries.ids, queries.offsets[:-1][chunks.pair], lengths[chunks.pair])
        self._write(texts, asked, np.asarray(group, np.int32)[chunks.pair])

    def _chunks(self, lengths: Ints, docs: Tokens) -> Chunks:
        starts, sizes = docs.offsets[:-1], np.diff(docs.offsets)
        if self._how.ratio == np.inf:
            return Chunks(np.arange(len(sizes)), starts, sizes)
        return cut(lengths, starts, sizes, self._how.ratio)

    def _write(self, texts: Runs, asked: Runs, group: Codes) -> None:
        turned = self._how.symmetrise
        for side, runs in (("source", texts.beside(asked, turned)), ("target", asked.beside(texts, turned))):
            self._ids[side].add(runs.tokens())
            self._sizes[side].add(runs.sizes)
        self._group.add(np.repeat(group, 2 if turned else 1))

    def finish(self) -> Sides:
        """All that was added."""
        (source, sources), (target, targets) = (
            (self._ids[side].finish(), _offsets(self._sizes[side].finish())) for side in ("source", "target")
        )
        return Sides(source, sources, target, targets, self._group.finish())


class Runs(NamedTuple):
    """Runs of tokens somewhere in an array."""

    ids: Codes
    starts: Ints
    sizes: Ints

    def beside(self, other: Runs, turned: bool) -> Runs:
        """These runs, each followed by the run of the other side where pairs are turned round too."""
        if not turned:
            return self
        both = np.concatenate([self.ids, other.ids])
        starts = np.stack([self.starts, other.starts + len(self.ids)], axis=1).ravel()
        return Runs(both, starts, np.stack([self.sizes, other.sizes], axis=1).ravel())

    def tokens(self) -> Codes:
        """All tokens of all runs."""
        found: Codes = self.ids[ranges(self.starts, self.sizes)]
        return found


def _offsets(sizes: Codes) -> Ints:
    found = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=found[1:])
    return found
