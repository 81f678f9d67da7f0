"""Compiled loops of fidelity: how well one list of scores agrees with another, for many pairs of lists at once.

All that looks at order works on dense ranks, so that equal scores are ties and nothing else is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Floats, Ints

PEARSON, KENDALL, AGREEMENT, FIRST_TOP = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def compare(target: Floats, surrogate: Floats, offsets: Ints, ks: Ints, out: Floats) -> None:
    """Fill a row of `out` for each pair of lists: Pearson, Kendall's tau-b, pairwise agreement, an overlap per k.

    A row is NaN where a list has fewer than two scores or is constant, an overlap where there are not more than k.
    """
    out[:] = np.nan
    for q in range(len(offsets) - 1):
        x, y = target[offsets[q] : offsets[q + 1]], surrogate[offsets[q] : offsets[q + 1]]
        if len(x) < 2 or x.min() == x.max() or y.min() == y.max():
            continue
        x_ranks, y_ranks = dense_ranks(x), dense_ranks(y)
        out[q, PEARSON] = pearson(x, y)
        out[q, KENDALL], out[q, AGREEMENT] = concordance(x_ranks, y_ranks)
        for i in range(len(ks)):
            if len(x) > ks[i]:
                out[q, FIRST_TOP + i] = overlap(x_ranks, y_ranks, ks[i])


@njit(cache=True, nogil=True)
def dense_ranks(values: Floats) -> Ints:
    """0 for the smallest value, 1 for the next larger one, and so on; equal values have one rank."""
    ordered, n = np.sort(values), min(1, len(values))
    for i in range(1, len(ordered)):
        if ordered[i] != ordered[n - 1]:
            ordered[n] = ordered[i]
            n += 1
    return np.searchsorted(ordered[:n], values)


@njit(cache=True, nogil=True)
def pearson(x: Floats, y: Floats) -> float:
    """Pearson's correlation of two lists that are not constant."""
    a, b = _centre(x), _centre(y)
    found: float = np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))
    return min(1.0, max(-1.0, found))


@njit(cache=True, nogil=True)
def _centre(values: Floats) -> Floats:
    """Differences from the mean, the largest of size 1: squares of very large or small ones would be lost."""
    scaled = values / np.abs(values).max()
    centred = scaled - scaled.mean()
    found: Floats = centred / np.abs(centred).max()
    return found


@njit(cache=True, nogil=True)
def concordance(target: Ints, surrogate: Ints) -> tuple[float, float]:
    """Kendall's tau-b and pairwise agreement of two lists of dense ranks, by counting inversions.

    Of the pairs that the target does not tie, agreement is the share in the same order; half of a pair that the
    surrogate ties counts.
    """
    n = len(target)
    width = surrogate.max() + 1
    keys = np.sort(target * width + surrogate)
    both, x_ties = _tied_pairs(keys), _tied_pairs(keys // width)
    y_ties, pairs = _tied_pairs(np.sort(surrogate)), n * (n - 1) // 2
    net = float(pairs - x_ties - y_ties + both - 2 * _inversions(keys % width, width))
    x_open, y_open = float(pairs - x_ties), float(pairs - y_ties)
    tau = net / (np.sqrt(x_open) * np.sqrt(y_open))
    return min(1.0, max(-1.0, tau)), (net / x_open + 1.0) / 2.0


@njit(cache=True, nogil=True)
def _tied_pairs(ordered: Ints) -> int:
    """Pairs of equal values in a sorted list."""
    found, run = 0, 0
    for i in range(1, len(ordered)):
        run = run + 1 if ordered[i] == ordered[i - 1] else 0
        found += run
    return found


@njit(cache=True, nogil=True)
def _inversions(ranks: Ints, width: int) -> int:
    """Pairs of which the first is larger; a Fenwick tree counts how many before are not."""
    tree, found = np.zeros(width + 1, np.int64), 0
    for i in range(len(ranks)):
        found += i
        node = ranks[i] + 1
        while node > 0:
            found -= tree[node]
            node -= node & -node
        node = ranks[i] + 1
        while node <= width:
            tree[node] += 1
            node += node & -node
    return found


@njit(cache=True, nogil=True)
def overlap(target: Ints, surrogate: Ints, k: int) -> float:
    """Expected share of documents in both top k when ties are broken at random; there are more than k documents."""
    found: float = np.sum(_inside(target, k) * _inside(surrogate, k)) / k
    return found


@njit(cache=True, nogil=True)
def _inside(ranks: Ints, k: int) -> Floats:
    """The chance of each document to be among the top k: a share where its rank is that of the last of them."""
    last = np.sort(ranks)[len(ranks) - k]
    share = (k - np.sum(ranks > last)) / np.sum(ranks == last)
    return np.where(ranks > last, 1.0, np.where(ranks == last, share, 0.0))


@njit(cache=True, nogil=True)
def greedy(target: Ints, base: Floats, columns: npt.NDArray[np.float64], most: int, gain: float) -> Ints:
    """Columns that, added to `base` one after the other, bring its order nearest to that of the target by tau-b.

    A column is added only when tau-b rises by more than `gain`; of equal ones the first is taken. `columns` has a row
    per column, so that each is contiguous.
    """
    chosen, used = np.full(most, -1, np.int64), np.zeros(len(columns), np.bool_)
    total, best = base.copy(), _tau(target, base)
    for step in range(most):
        found = -1
        for j in range(len(columns)):
            if not used[j]:
                tau = _tau(target, total + columns[j])
                if tau > best + gain:
                    best, found = tau, j
        if found < 0:
            return chosen[:step]
        chosen[step], used[found] = found, True
        total += columns[found]
    return chosen


@njit(cache=True, nogil=True)
def _tau(target: Ints, scores: Floats) -> float:
    """Kendall's tau-b; 0 for constant scores, which order nothing."""
    if scores.min() == scores.max():
        return 0.0
    return concordance(target, dense_ranks(scores))[0]
