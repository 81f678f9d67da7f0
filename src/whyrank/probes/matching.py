"""Enumeration of matched pairs: documents equal in one characteristic and different in another."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from whyrank.core.protocols import Codes, Floats, Ints


class Tolerance(NamedTuple):
    """How far two control values may lie apart, |a - b| <= absolute + relative * max(|a|, |b|); and the least
    difference of the variable.
    """

    absolute: float = 0.0
    relative: float = 0.0
    margin: float = 0.0


def match(control: Floats, variable: Floats, tolerance: Tolerance) -> Codes:
    """Every unordered pair with equal control and different variable, once, the higher one first: [pairs, 2].

    Rows are documents. A matrix of several columns is compared as a whole: equal if every column is, higher if no
    column is lower and some column is higher. NaN is never equal and never higher.
    """
    if tolerance.absolute or tolerance.relative:
        return _filled(_matches, control, variable, tolerance)
    usable = np.flatnonzero(~np.isnan(control).any(axis=1))
    order = usable[np.lexsort(control[usable].T)] if control.shape[1] else usable
    starts = _group_starts(control[order])
    room = np.empty((_within(np.diff(starts)), 2), np.int32)
    n = _grouped(starts, order, variable, tolerance.margin, room)
    return room[:n]


def walk(control: Floats, variable: Floats, tolerance: Tolerance) -> Codes:
    """The pairs that the released ABNIRML code finds, its two slips included.

    Documents are sorted by the sum of their control values; from each, a walk in both directions stops at the first
    document that is not equal, so that equal vectors behind an unequal one of the same sum are missed. From the
    first document the backward walk starts at the end of the list, which repeats pairs when all documents are equal.
    """
    order = np.argsort(control.sum(axis=1), kind="stable")
    return order[_filled(_walked, control[order], variable[order], tolerance)].astype(np.int32)


def _filled(enumerate_pairs: Callable[..., int], control: Floats, variable: Floats, tolerance: Tolerance) -> Codes:
    """Count the pairs, then write them."""
    n = enumerate_pairs(control, variable, *tolerance, np.empty((0, 2), np.int32))
    pairs = np.empty((n, 2), np.int32)
    enumerate_pairs(control, variable, *tolerance, pairs)
    return pairs


def _group_starts(rows: Floats) -> Ints:
    """Where groups of equal rows begin, and the end."""
    new = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
    return np.concatenate([[0], new, [len(rows)]]).astype(np.int64)


def _within(sizes: Ints) -> int:
    """Number of unordered pairs within groups of these sizes."""
    return int((sizes * (sizes - 1) // 2).sum())


@njit(cache=True, nogil=True)
def _grouped(starts: Ints, order: Ints, variable: Floats, margin: float, out: Codes) -> int:
    """Pairs within groups of equal control; `out` has room for all of them."""
    n = 0
    for group in range(len(starts) - 1):
        for a in range(starts[group], starts[group + 1]):
            for b in range(a + 1, starts[group + 1]):
                i, j = order[a], order[b]
                if _higher(variable, i, j, margin):
                    out[n, 0], out[n, 1] = i, j
                    n += 1
                elif _higher(variable, j, i, margin):
                    out[n, 0], out[n, 1] = j, i
                    n += 1
    return n


@njit(cache=True, nogil=True)
def _equal(values: Floats, i: int, j: int, absolute: float, relative: float) -> bool:
    for c in range(values.shape[1]):
        a, b = values[i, c], values[j, c]
        allowed = absolute + relative * max(abs(a), abs(b))
        if not abs(a - b) <= allowed:
            return False
    return True


@njit(cache=True, nogil=True)
def _higher(values: Floats, i: int, j: int, margin: float) -> bool:
    some = False
    for c in range(values.shape[1]):
        if not values[i, c] - margin >= values[j, c]:
            return False
        some = some or values[i, c] - margin > values[j, c]
    return some


@njit(cache=True, nogil=True)
def _matches(control: Floats, variable: Floats, absolute: float, relative: float, margin: float, out: Codes) -> int:
    """Write the pairs to `out` if it has room, and count them."""
    n = 0
    for i in range(len(control)):
        for j in range(i + 1, len(control)):
            if not _equal(control, i, j, absolute, relative):
                continue
            up = _higher(variable, i, j, margin)
            if up or _higher(variable, j, i, margin):
                if n < len(out):
                    out[n, 0], out[n, 1] = (i, j) if up else (j, i)
                n += 1
    return n


@njit(cache=True, nogil=True)
def _walked(control: Floats, variable: Floats, absolute: float, relative: float, margin: float, out: Codes) -> int:
    n, size = 0, len(control)
    for i in range(size):
        for backwards in (False, True):
            j = i + 1
            if backwards:
                j = i - 1 if i > 0 else size - 1
            while 0 <= j < size and _equal(control, i, j, absolute, relative):
                if _higher(variable, i, j, margin):
                    if n < len(out):
                        out[n, 0], out[n, 1] = i, j
                    n += 1
                j += -1 if backwards else 1
    return n
