"""Compiled loops of BM25T and QLT: how often a text has each query term, partners in a term table included.

The partners of a query term are the document terms that count for it. Query terms and partners get a line each, with
a column for each of `WIDTH` query terms; the first lines are those of the query terms themselves. A token of a text
costs one look-up, and nothing more where it has no line.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Codes, Floats, Ints

WIDTH = 8
Singles = npt.NDArray[np.float32]


@njit(cache=True, nogil=True)
def partners(
    indptr: Ints, indices: Codes, weights: Singles, rows: Ints, own: Codes, ids: Codes
) -> tuple[Ints, Codes, Singles]:
    """The entries of the query terms `own`, which are `rows` of a table or none (-1): starts, ids and weights.

    `ids` has the id of each document term, -1 for none. Weights of 0 and those of a term for itself are left out.
    """
    starts, most = np.zeros(len(rows) + 1, np.int64), 0
    for row in rows:
        most += indptr[row + 1] - indptr[row] if row >= 0 else 0
    found, given, n = np.empty(most, np.int32), np.empty(most, np.float32), 0
    for j in range(len(rows)):
        if rows[j] >= 0:
            for entry in range(indptr[rows[j]], indptr[rows[j] + 1]):
                found[n], given[n] = ids[indices[entry]], weights[entry]
                n += found[n] >= 0 and found[n] != own[j] and given[n] > 0.0
        starts[j + 1] = n
    return starts, found[:n], given[:n]


@njit(cache=True, nogil=True)
def spread(terms: Codes, starts: Ints, ids: Codes, weights: Singles, own: float, slot: Codes) -> Singles:
    """Give lines to query terms and partners; `slot` has the line of each term, and was all -1 before.

    The partners of query term j are `ids[starts[j]:starts[j + 1]]`. A query term weighs `own` for itself.
    """
    table, used = np.zeros((len(terms) + len(ids), WIDTH), np.float32), len(terms)
    for j in range(len(terms)):
        slot[terms[j]] = j
        table[j, j] = own
    for j in range(len(terms)):
        for entry in range(starts[j], starts[j + 1]):
            if slot[ids[entry]] < 0:
                slot[ids[entry]] = used
                used += 1
            table[slot[ids[entry]], j] = weights[entry]
    return table


@njit(cache=True, nogil=True)
def clear(terms: Codes, ids: Codes, slot: Codes) -> None:
    """Undo `spread`."""
    for term in terms:
        slot[term] = -1
    for term in ids:
        slot[term] = -1


@njit(cache=True, nogil=True)
def room(offsets: Ints, rows: Codes) -> Codes:
    """Room for the lines of any one of the texts `rows`."""
    longest = 0
    for row in rows:
        longest = max(longest, offsets[row + 1] - offsets[row])
    return np.empty(longest, np.int32)


@njit(cache=True, nogil=True, inline="always")
def read(ids: Codes, start: int, stop: int, slot: Codes, lines: Codes) -> int:
    """Write the lines of the tokens that have one, and say how many; a branch would often be guessed wrong."""
    n = 0
    for position in range(start, stop):
        line = slot[ids[position]]
        lines[n] = line
        n += line >= 0
    return n


@njit(cache=True, nogil=True)
def first(ids: Codes, offsets: Ints, rows: Codes, slot: Codes, table: Singles, terms: int, found: Floats) -> None:
    """The count of each query term in the texts `rows`; where it is 0, the best weight of a partner."""
    lines, best = room(offsets, rows), np.zeros(WIDTH, np.float32)
    for i in range(len(rows)):
        best[:] = 0.0
        for line in lines[: read(ids, offsets[rows[i]], offsets[rows[i] + 1], slot, lines)]:
            if line < terms:
                found[i, line] += 1.0
            for j in range(WIDTH):
                best[j] = max(best[j], table[line, j])
        for j in range(terms):
            if found[i, j] == 0.0:
                found[i, j] = best[j]


@njit(cache=True, nogil=True)
def max_tf(ids: Codes, offsets: Ints, rows: Codes, slot: Codes, table: Singles, terms: int, found: Floats) -> None:
    """The highest count times weight among a query term and its partners, in each of the texts `rows`."""
    lines, counts, best = room(offsets, rows), np.zeros(len(table), np.int32), np.zeros(WIDTH)
    for i in range(len(rows)):
        best[:] = 0.0
        n = read(ids, offsets[rows[i]], offsets[rows[i] + 1], slot, lines)
        for line in lines[:n]:
            counts[line] += 1
            for j in range(WIDTH):
                best[j] = max(best[j], counts[line] * np.float64(table[line, j]))
        counts[lines[:n]] = 0
        found[i, :terms] = best[:terms]


@njit(cache=True, nogil=True)
def add_up(ids: Codes, offsets: Ints, rows: Codes, slot: Codes, table: Singles, terms: int, found: Floats) -> None:
    """The sum of count times weight over a query term and its partners, in each of the texts `rows`."""
    lines, total = room(offsets, rows), np.zeros(WIDTH)
    for i in range(len(rows)):
        total[:] = 0.0
        for line in lines[: read(ids, offsets[rows[i]], offsets[rows[i] + 1], slot, lines)]:
            for j in range(WIDTH):
                total[j] += table[line, j]
        found[i, :terms] = total[:terms]
