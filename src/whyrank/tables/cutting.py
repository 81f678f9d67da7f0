"""Texts cut into chunks about as long as the query they answer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whyrank.core.protocols import Flags, Ints
from whyrank.text.vocabulary import Tokens


class Chunks(NamedTuple):
    """Chunk `i` belongs to judged pair `pair[i]` and has the tokens `starts[i]` up to `starts[i] + sizes[i]`."""

    pair: Ints
    starts: Ints
    sizes: Ints

    def kept(self, keep: Flags) -> Chunks:
        """The chunks that are marked."""
        return Chunks(self.pair[keep], self.starts[keep], self.sizes[keep])


def chunk_sizes(query_sizes: Ints, ratio: float) -> Ints:
    """How many tokens a full chunk has: the smallest n with n / len(query) >= ratio, for queries of these lengths.

    It is where a walk over the tokens ends a chunk that asks before each token whether the chunk is long enough.
    """
    lengths = np.maximum(query_sizes, 1)
    sizes = np.maximum(np.ceil(ratio * lengths).astype(np.int64), 1)
    sizes -= (sizes > 1) & ((sizes - 1) / lengths >= ratio)  # the product may be rounded to the other side
    return sizes + (sizes / lengths < ratio)


def cut(query_sizes: Ints, text_starts: Ints, text_sizes: Ints, ratio: float) -> Chunks:
    """Cut the text of each judged pair from front to back; the last chunk may be short.

    A query without tokens gets no chunk.
    """
    sizes = chunk_sizes(query_sizes, ratio)
    counts = np.where(query_sizes > 0, -(-text_sizes // sizes), 0)
    pair = np.repeat(np.arange(len(counts)), counts)
    before = (np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)) * sizes[pair]
    return Chunks(pair, text_starts[pair] + before, np.minimum(sizes[pair], text_sizes[pair] - before))


def comparable(one: Ints, other: Ints, fertility: float) -> Flags:
    """Whether both sides have tokens and neither has more than `fertility` times as many as the other."""
    less, more = np.minimum(one, other), np.maximum(one, other)
    found: Flags = (less > 0) & (more <= fertility * np.maximum(less, 1))
    return found


def ranges(starts: Ints, sizes: Ints) -> Ints:
    """The positions of all these runs, one run after the other."""
    ends = np.cumsum(sizes)
    return np.repeat(starts - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)


def only(tokens: Tokens, known: Flags) -> Tokens:
    """The tokens that are in the vocabulary; the others are skipped."""
    keep = known[tokens.ids]
    before = np.concatenate([[0], np.cumsum(keep)])
    return Tokens(tokens.ids[keep], before[tokens.offsets])
