"""Links: where a target token meets the source tokens of its pair, grouped by target word.

All that the E step of a target word needs is the row of that word, so links are bucketed by target word: the row is
small enough for the processor's cache, and no two words touch the same numbers. Each link is the precomputed position
of its source word in the row. Position 0 of each row is NULL, the empty source word, which needs no links.

A shard is a run of target words with about as many links as any other. How words are put into shards depends on the
bitext alone, and so does each sum: the number of threads and the memory change nothing in the result.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Codes, Flags, Ints, WhyrankError, temporary_room
from whyrank.learners.em.bitext import Bitext

SHARDS = 16
SMALLEST, LARGEST = 1 << 20, 1 << 24  # links of a shard, unless a single word has more


class Meetings(NamedTuple):
    """The occurrences of target words: `sizes` links each, in pairs with `lengths` source tokens."""

    starts: Ints
    sizes: Codes
    lengths: Codes
    links: Codes


class Shard(NamedTuple):
    """Target words from `first` on: their rows (CSR; source words in order of first sight) and their occurrences."""

    first: int
    indptr: Ints
    indices: Codes
    values: npt.NDArray[Any]
    training: Meetings
    held_out: Meetings


class Plan(NamedTuple):
    """Where shards begin (one number more than there are shards), and how many links each has."""

    starts: Ints
    links: Ints


def plan_shards(bitext: Bitext, use: Flags) -> Plan:
    """Runs of target words with about the same number of links, from the pairs that are marked."""
    counts = np.zeros(len(bitext.target_terms), np.int64)
    _count_links(bitext.target, bitext.target_offsets, bitext.source_offsets, use, counts)
    before = np.concatenate([[0], np.cumsum(counts)])
    size = min(max(int(before[-1]) // SHARDS, SMALLEST), LARGEST)
    shard = before[:-1] // size
    starts = np.concatenate([[0], np.flatnonzero(np.diff(shard)) + 1, [len(counts)]])
    return Plan(starts, np.diff(before[starts]))


def make_shard(bitext: Bitext, use: Flags, plan: Plan, number: int, precision: type[np.floating[Any]]) -> Shard:
    """Number the links of one shard; pairs that are not marked are held out."""
    first, last = int(plan.starts[number]), int(plan.starts[number + 1])
    n_links, slots = int(plan.links[number]), np.zeros(len(bitext.source_terms), np.int64)
    starts, pairs = _occurrences(bitext.target, bitext.target_offsets, use, True, first, last)
    sizes = _lengths(bitext, pairs)
    indptr, links = np.zeros(last - first + 1, np.int64), np.empty(n_links, np.int32)
    room = np.empty(n_links + last - first, np.int32)  # only what is used of it is ever touched
    _number(bitext.source, bitext.source_offsets, starts, pairs, slots, links, indptr, room)
    indices = room[: indptr[-1]].copy()
    held = _held_out(bitext, use, first, indptr, indices, slots)
    return Shard(
        first, indptr, indices, np.ones(len(indices), precision), Meetings(starts, sizes, sizes, links), held
    )


def _held_out(bitext: Bitext, use: Flags, first: int, indptr: Ints, indices: Codes, slots: Ints) -> Meetings:
    if use.all():
        none = np.empty(0, np.int32)
        return Meetings(np.zeros(len(indptr), np.int64), none, none, none)
    last = first + len(indptr) - 1
    starts, pairs = _occurrences(bitext.target, bitext.target_offsets, use, False, first, last)
    lengths = _lengths(bitext, pairs)
    sizes, room = np.zeros(len(pairs), np.int32), np.empty(int(lengths.sum()), np.int32)
    slots[:] = 0
    used = _look_up(bitext.source, bitext.source_offsets, starts, pairs, slots, indptr, indices, sizes, room)
    return Meetings(starts, sizes, lengths, room[:used].copy())


def _lengths(bitext: Bitext, pairs: Codes) -> Codes:
    return (bitext.source_offsets[pairs + 1] - bitext.source_offsets[pairs]).astype(np.int32)


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


class _Stored(NamedTuple):
    """Where an array lies in the file."""

    offset: int
    size: int
    kind: str


class Shelf:
    """Shards by number: in memory up to a limit, the rest in one file without a name.

    Those in the file are read when they are visited and written back after it.
    """

    def __init__(self, memory: float) -> None:
        """Start empty; `memory` is how many bytes of shards may stay in memory."""
        self._memory, self._used, self._end = memory, 0, 0
        self._held: dict[int, Shard] = {}
        self._stored: dict[int, tuple[int, list[_Stored]]] = {}
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        """How many shards there are."""
        return len(self._held) + len(self._stored)

    @property
    def on_disk(self) -> int:
        """How many shards lie in the file."""
        return len(self._stored)

    def add(self, number: int, shard: Shard) -> None:
        """Keep a shard."""
        trained, stored = shard.training, list[_Stored]()
        arrays: list[npt.NDArray[Any]] = [
            shard.indptr, shard.indices, shard.values, trained.starts, trained.sizes, trained.links, *shard.held_out,
        ]  # fmt: skip
        size = sum(array.nbytes for array in arrays)
        if self._used + size <= self._memory:
            self._used += size
            self._held[number] = shard
            return
        for array in arrays:
            stored.append(_Stored(self._end, len(array), array.dtype.str))
            self._write(array, self._end)
            self._end += array.nbytes
        self._stored[number] = shard.first, stored

    def get(self, number: int) -> Shard:
        """A shard; its values may be changed in place, `put` keeps them."""
        if number in self._held:
            return self._held[number]
        first, stored = self._stored[number]
        indptr, indices, values, starts, sizes, links, *held = map(self._read, stored)
        return Shard(first, indptr, indices, values, Meetings(starts, sizes, sizes, links), Meetings(*held))

    def put(self, number: int, shard: Shard) -> None:
        """Keep the values of a shard that `get` gave."""
        if number in self._stored:
            _, stored = self._stored[number]
            self._write(shard.values, stored[2].offset)

    def _write(self, array: npt.NDArray[Any], offset: int) -> None:
        view = _bytes(array)
        with temporary_room(", or give more memory with --memory"):
            while view:
                done = os.pwrite(self._handle(), view, offset)
                view, offset = view[done:], offset + done

    def _read(self, stored: _Stored) -> npt.NDArray[Any]:
        array = np.empty(stored.size, stored.kind)
        view, offset = _bytes(array), stored.offset
        while view:
            done = os.preadv(self._handle(), [view], offset)
            if not done:
                raise WhyrankError("a temporary file was cut short; free the disk and start again")
            view, offset = view[done:], offset + done
        return array

    def _handle(self) -> int:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="whyrank-", buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        return self._file.fileno()


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    return array.view(np.uint8).data if array.size else memoryview(b"")
