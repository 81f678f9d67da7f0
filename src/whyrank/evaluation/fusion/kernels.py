"""Compiled loops behind the exact line search: where two texts of a query change places, and what that changes.

Along one weight t the score of a text is base + t * slope. Two texts of a query change places where their lines
cross. A measure that looks at ranks changes only there, so it is known for every t once all crossings are. Rows are
texts, those of one query side by side; of equal scores the earlier row counts as the better one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from whyrank.core import Floats, Ints


@njit(cache=True, nogil=True)
def measured(scores: Floats, offsets: Ints, gains: Floats, discounts: Floats, norms: Floats, first: bool) -> float:
    """The sum over queries of gain * discount[rank] / norm, or with `first` of the best discount of a hit."""
    total = 0.0
    for q in range(len(offsets) - 1):
        found = 0.0
        for i in range(offsets[q], offsets[q + 1]):
            if gains[i] > 0:
                rank = 0
                for j in range(offsets[q], offsets[q + 1]):
                    rank += scores[j] > scores[i] or (scores[j] == scores[i] and j < i)
                if first:
                    found = max(found, discounts[rank])
                else:
                    found += gains[i] * discounts[rank] / norms[q]
        total += found
    return total


@njit(cache=True, nogil=True)
def _far_left(base: Floats, slope: Floats, low: int, high: int, i: int) -> int:
    """How many texts stand before text i when t is below all crossings."""
    rank = 0
    for j in range(low, high):
        higher = base[j] > base[i] or (base[j] == base[i] and j < i)
        rank += slope[j] < slope[i] or (slope[j] == slope[i] and higher)
    return rank


@njit(cache=True, nogil=True)
def _events(base: Floats, slope: Floats, low: int, high: int, gaining: Ints) -> tuple[Floats, Ints, Ints]:
    """Where a gaining text meets another one, which gaining text it is, and by how much its rank changes."""
    size = len(gaining) * (high - low)
    times, who, step, n = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int64), 0
    for g in range(len(gaining)):
        i = gaining[g]
        for j in range(low, high):
            if slope[j] != slope[i]:
                times[n], who[n] = (base[j] - base[i]) / (slope[i] - slope[j]), g
                step[n] = -1 if slope[j] < slope[i] else 1
                n += 1
    order = np.argsort(times[:n], kind="mergesort")
    return times[:n][order], who[:n][order], step[:n][order]


@njit(cache=True, nogil=True)
def _worth(ranks: Ints, gaining: Ints, gains: Floats, discounts: Floats, norm: float, first: bool) -> float:
    """What one query adds to the sum when its gaining texts have these ranks."""
    total = 0.0
    for g in range(len(ranks)):
        if first:
            total = max(total, discounts[ranks[g]])
        else:
            total += gains[gaining[g]] * discounts[ranks[g]] / norm
    return total


@njit(cache=True, nogil=True)
def sweep(
    base: Floats, slope: Floats, offsets: Ints, gains: Floats, discounts: Floats, norms: Floats, first: bool
) -> tuple[float, Floats, Floats]:
    """The sum for a t below all crossings, all t where it changes (in no order), and by how much."""
    start, n, room = 0.0, 0, 1024
    times, changes = np.empty(room), np.empty(room)
    for q in range(len(offsets) - 1):
        low, high = offsets[q], offsets[q + 1]
        gaining = low + np.flatnonzero(gains[low:high] > 0)
        ranks = np.array([_far_left(base, slope, low, high, i) for i in gaining], dtype=np.int64)
        known = _worth(ranks, gaining, gains, discounts, norms[q], first)
        start += known
        when, who, step = _events(base, slope, low, high, gaining)
        for e in range(len(when)):
            before = discounts[ranks[who[e]]]
            ranks[who[e]] += step[e]
            if discounts[ranks[who[e]]] == before:
                continue
            now = _worth(ranks, gaining, gains, discounts, norms[q], first)
            if now != known:
                if n == room:
                    times, changes = np.append(times, np.empty(room)), np.append(changes, np.empty(room))
                    room *= 2
                times[n], changes[n], known, n = when[e], now - known, now, n + 1
    return start, times[:n], changes[:n]


@njit(cache=True, nogil=True)
def crossings(base: Floats, slope: Floats, offsets: Ints, labels: Ints) -> Floats:
    """All t where two texts of one query with different labels change places, in no order."""
    size = 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(i + 1, offsets[q + 1]):
                size += labels[i] != labels[j] and slope[i] != slope[j]
    found, n = np.empty(size), 0
    for q in range(len(offsets) - 1):
        for i in range(offsets[q], offsets[q + 1]):
            for j in range(i + 1, offsets[q + 1]):
                if labels[i] != labels[j] and slope[i] != slope[j]:
                    found[n] = (base[j] - base[i]) / (slope[i] - slope[j])
                    n += 1
    return found
