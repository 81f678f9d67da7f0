"""Terms numbered by how often they occur, over arrays of ids that may lie on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from whyrank.core.protocols import Codes, Ints

_AT_ONCE = 1 << 24  # ids looked at in one go


def counted(ids: Codes, size: int) -> Ints:
    """How often each of `size` ids occurs."""
    found = np.zeros(size, np.int64)
    for part in _parts(ids):
        found += np.bincount(part, minlength=size)
    return found


def by_frequency(counts: Ints, terms: Sequence[str]) -> Ints:
    """The ids that occur, the most frequent first; ties go by spelling, whatever number a term had before."""
    used = np.flatnonzero(counts)
    spelled = sorted(used.tolist(), key=terms.__getitem__)
    return np.array(spelled, np.int64)[np.argsort(-counts[spelled], kind="stable")] if spelled else used


def renumber(ids: Codes, order: Ints, size: int) -> None:
    """Replace, in place, each id by its position in `order`."""
    places = np.full(size, -1, np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    for part in _parts(ids):
        part[:] = places[part]


def _parts(ids: Codes) -> Iterator[Codes]:
    return (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))
