"""Links: where a target token meets the source tokens of its pair, grouped by target word.

All that the E step of a target word needs is the row of that word, so links are bucketed by target word: the row is
small enough for the processor's cache, and no two words touch the same numbers. Each link is the precomputed position
of its source word in the row. Position 0 of each row is NULL, the empty source word, which needs no links.

A shard is a run of target words with about as many links as any other. How words are put into shards depends on the
bitext alone, and so does each sum: the number of threads and the memory change nothing in the result.
"""

from __future__ import annotations

import mmap
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Codes, Flags, Ints
from whyrank.learners.em.bitext import Bitext, Growing

SHARDS = 16
SMALLEST, LARGEST = 1 << 20, 1 << 24  # links of a shard, unless a single word has more


class Meetings(NamedTuple):
    """The occurrences of target words: `sizes` links each, in pairs with `lengths` source tokens."""

    starts: Ints
    sizes: Codes
    lengths: Codes
    links: Codes


class Shard(NamedTuple):
    """Target words from `first` on: their rows (CSR; source words in order of first sight) and their occurrences.

    `values` are changed in place.
    """

    first: int
    indptr: Ints
    indices: Codes
    values: npt.NDArray[Any]
    training: Meetings
    held_out: Meetings

    @property
    def nbytes(self) -> int:
        """The size in bytes; lengths of training pairs are their sizes."""
        trained = self.training
        arrays = (self.indptr, self.indices, self.values, trained.starts, trained.sizes, trained.links)
        return sum(array.nbytes for array in (*arrays, *self.held_out))

    def release(self) -> None:
        """Let pages of mapped files leave the memory of this process; they come back when they are read again."""
        for array in (self.indptr, self.indices, self.values, *self.training, *self.held_out):
            if isinstance(array.base, np.memmap):
                array.base._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]

    def on_disk(self) -> Shard:
        """The shard with its arrays in temporary files that are mapped into memory."""

        def stored(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            file = Growing(array.dtype.type, held=0, remedy=", or give more memory with --memory")
            file.add(array)
            return file.finish()

        trained, held = self.training, self.held_out
        sizes = stored(trained.sizes)
        training = Meetings(stored(trained.starts), sizes, sizes, stored(trained.links))
        held_out = Meetings(stored(held.starts), stored(held.sizes), stored(held.lengths), stored(held.links))
        rows = stored(self.indptr), stored(self.indices), stored(self.values)
        return Shard(self.first, *rows, training, held_out)


class Shards(NamedTuple):
    """Where shards begin (one number more than there are shards), and how many links each has."""

    starts: Ints
    links: Ints


def plan_shards(bitext: Bitext, use: Flags) -> Shards:
    """Runs of target words with about the same number of links, from the pairs that are marked."""
    counts = np.zeros(len(bitext.target_terms), np.int64)
    _count_links(bitext.target, bitext.target_offsets, bitext.source_offsets, use, counts)
    before = np.concatenate([[0], np.cumsum(counts)])
    size = min(max(int(before[-1]) // SHARDS, SMALLEST), LARGEST)
    shard = before[:-1] // size
    starts = np.concatenate([[0], np.flatnonzero(np.diff(shard)) + 1, [len(counts)]])
    return Shards(starts, np.diff(before[starts]))


def make_shard(bitext: Bitext, use: Flags, plan: Shards, number: int, precision: type[np.floating[Any]]) -> Shard:
    """Number the links of one shard; pairs that are not marked are held out."""
    source, offsets = bitext.source, bitext.source_offsets
    first, last = int(plan.starts[number]), int(plan.starts[number + 1])
    n_links, slots = int(plan.links[number]), np.zeros(len(bitext.source_terms), np.int64)
    starts, pairs = _occurrences(bitext.target, bitext.target_offsets, use, True, first, last)
    sizes = (offsets[pairs + 1] - offsets[pairs]).astype(np.int32)
    indptr, links = np.zeros(last - first + 1, np.int64), np.empty(n_links, np.int32)
    room = np.empty(n_links + last - first, np.int32)  # only what is used of it is ever touched
    _number(source, offsets, starts, pairs, slots, links, indptr, room)
    indices = room[: indptr[-1]].copy()
    training, none = Meetings(starts, sizes, sizes, links), np.empty(0, np.int32)
    held_out = Meetings(np.zeros(len(indptr), np.int64), none, none, none)
    if not use.all():
        starts, pairs = _occurrences(bitext.target, bitext.target_offsets, use, False, first, last)
        lengths = (offsets[pairs + 1] - offsets[pairs]).astype(np.int32)
        sizes, room = np.zeros(len(pairs), np.int32), np.empty(int(lengths.sum()), np.int32)
        slots[:] = 0
        used = _look_up(source, offsets, starts, pairs, slots, indptr, indices, sizes, room)
        held_out = Meetings(starts, sizes, lengths, room[:used].copy())
    return Shard(first, indptr, indices, np.ones(len(indices), precision), training, held_out)


@njit(cache=True, nogil=True)
def _count_links(target: Codes, target_offsets: Ints, source_offsets: Ints, use: Flags, counts: Ints) -> None:
    for pair in range(len(use)):
        if use[pair]:
            length = source_offsets[pair + 1] - source_offsets[pair]
            for position in range(target_offsets[pair], target_offsets[pair + 1]):
                counts[target[position]] += length


@njit(cache=True, nogil=True)
def _occurrences(
    target: Codes, target_offsets: Ints, use: Flags, wanted: bool, first: int, last: int
) -> tuple[Ints, Codes]:
    """The pairs in which the words from `first` up to `last` occur, word by word, by counting and filling buckets."""
    starts = np.zeros(last - first + 1, np.int64)
    for pair in range(len(use)):
        if use[pair] == wanted:
            for position in range(target_offsets[pair], target_offsets[pair + 1]):
                if first <= target[position] < last:
                    starts[target[position] - first + 1] += 1
    starts = np.cumsum(starts)
    fill, pairs = starts[:-1].copy(), np.empty(starts[-1], np.int32)
    for pair in range(len(use)):
        if use[pair] == wanted:
            for position in range(target_offsets[pair], target_offsets[pair + 1]):
                word = target[position] - first
                if 0 <= word < last - first:
                    pairs[fill[word]] = pair
                    fill[word] += 1
    return starts, pairs


@njit(cache=True, nogil=True)
def _number(
    source: Codes, source_offsets: Ints, starts: Ints, pairs: Codes, slots: Ints, links: Codes, indptr: Ints,
    room: Codes,
) -> None:  # fmt: skip
    """Give each source word its position in the row of a word on first sight; `slots` has word and position."""
    null, at, row = len(slots), 0, 0
    for word in range(len(starts) - 1):
        room[row] = null
        stamp, size = np.int64(word + 1) << 32, 1
        for occurrence in range(starts[word], starts[word + 1]):
            pair = pairs[occurrence]
            for position in range(source_offsets[pair], source_offsets[pair + 1]):
                slot = slots[source[position]]
                if slot < stamp:
                    slot = stamp | size
                    slots[source[position]] = slot
                    room[row + size] = source[position]
                    size += 1
                links[at] = slot & 0x7FFFFFFF
                at += 1
        row += size
        indptr[word + 1] = row


@njit(cache=True, nogil=True)
def _look_up(
    source: Codes, source_offsets: Ints, starts: Ints, pairs: Codes, slots: Ints, indptr: Ints, indices: Codes,
    sizes: Codes, room: Codes,
) -> int:  # fmt: skip
    """The positions of source words in rows that are there already; a word without a position has no link."""
    at = 0
    for word in range(len(starts) - 1):
        stamp = np.int64(word + 1) << 32
        if starts[word + 1] > starts[word]:
            for column in range(1, indptr[word + 1] - indptr[word]):
                slots[indices[indptr[word] + column]] = stamp | column
        for occurrence in range(starts[word], starts[word + 1]):
            pair = pairs[occurrence]
            for position in range(source_offsets[pair], source_offsets[pair + 1]):
                slot = slots[source[position]]
                if slot >= stamp:
                    room[at] = slot & 0x7FFFFFFF
                    at += 1
                    sizes[occurrence] += 1
    return at
