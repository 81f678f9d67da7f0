"""Where shards are kept: in memory up to a limit, the rest in one file without a name."""

from __future__ import annotations

import os
import tempfile
import weakref
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import WhyrankError
from whyrank.core.files import temporary_room
from whyrank.tables.links import Meetings, Shard


class _Place(NamedTuple):
    """Where an array lies in the file."""

    offset: int
    size: int
    kind: str


class Shelf:
    """Shards by number; those that do not fit in memory are read when they are visited and written back after it."""

    def __init__(self, memory: float) -> None:
        """Start empty; `memory` is how many bytes of shards may stay in memory."""
        self._memory, self._used, self._end = memory, 0, 0
        self._held: dict[int, Shard] = {}
        self._places: dict[int, tuple[int, list[_Place]]] = {}
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        """How many shards there are."""
        return len(self._held) + len(self._places)

    @property
    def on_disk(self) -> int:
        """How many shards lie in the file."""
        return len(self._places)

    def add(self, number: int, shard: Shard) -> None:
        """Keep a shard."""
        size = sum(array.nbytes for array in _arrays(shard))
        if self._used + size <= self._memory:
            self._used += size
            self._held[number] = shard
        else:
            self._places[number] = shard.first, [self._write(array) for array in _arrays(shard)]

    def get(self, number: int) -> Shard:
        """A shard; its values may be changed in place, `put` keeps them."""
        if number in self._held:
            return self._held[number]
        first, places = self._places[number]
        return _shard(first, [self._read(place) for place in places])

    def put(self, number: int, shard: Shard) -> None:
        """Keep the values of a shard that `get` gave."""
        if number in self._places:
            place = self._places[number][1][_VALUES]
            self._at(shard.values, place.offset)

    def _write(self, array: npt.NDArray[Any]) -> _Place:
        place = _Place(self._end, len(array), array.dtype.str)
        self._at(array, place.offset)
        self._end += array.nbytes
        return place

    def _at(self, array: npt.NDArray[Any], offset: int) -> None:
        view = _bytes(array)
        with temporary_room(", or give more memory with --memory"):
            while view:
                done = os.pwrite(self._handle(), view, offset)
                view, offset = view[done:], offset + done

    def _read(self, place: _Place) -> npt.NDArray[Any]:
        array = np.empty(place.size, place.kind)
        view, offset = _bytes(array), place.offset
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


_VALUES = 2


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    return array.view(np.uint8).data if array.size else memoryview(b"")


def _arrays(shard: Shard) -> list[npt.NDArray[Any]]:
    trained = shard.training
    return [shard.indptr, shard.indices, shard.values, trained.starts, trained.sizes, trained.links, *shard.held_out]


def _shard(first: int, arrays: list[npt.NDArray[Any]]) -> Shard:
    indptr, indices, values, starts, sizes, links, *held = arrays
    return Shard(first, indptr, indices, values, Meetings(starts, sizes, sizes, links), Meetings(*held))
