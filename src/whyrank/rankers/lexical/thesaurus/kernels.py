"""Compiled loops of BM25T and QLT: how often a text has each query term, partners in a term table included.

The partners of a query term are the document terms that count for it. Query terms and partners get a line each, with
a column for each of `WIDTH` query terms; the first lines are those of the query terms themselves. A token of a text
costs one look-up, and nothing more where it has no line. Retrieval walks the inverted lists of the same terms.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Codes, Floats, Ints
from whyrank.rankers.lexical.kernels import DIRICHLET, SATURATED, Counts

WIDTH = 8
FIRST, MAX_TF, SUM = 0, 1, 2
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


@njit(cache=True, nogil=True, inline="always")
def gain(kind: int, f: float, length: float, weight: float, prior: float, a: float, b: float) -> float:
    """What a term of frequency `f` adds to the score of a text beyond what the text has without it."""
    if kind == SATURATED:
        return weight * (f / (f + (a + b * length)))
    share = f / a if kind == DIRICHLET else (1.0 - a) * f / (a * length)
    added: float = weight * np.log1p(share / prior)
    return added


@njit(cache=True, nogil=True)
def gains(kind: int, f: Floats, lengths: Ints, weight: float, prior: float, a: float, b: float) -> Floats:
    """The gain of each frequency in a text of the length beside it; 0 for a frequency of 0."""
    found = np.zeros(len(f))
    for i in range(len(f)):
        if f[i] > 0.0:
            found[i] = gain(kind, f[i], lengths[i], weight, prior, a, b)
    return found


@njit(cache=True, nogil=True)
def walk(
    starts: Ints, docs: Codes, counts: Counts, own: int, ids: Codes, weights: Floats, match: int, f: Floats,
    touched: Codes,
) -> int:  # fmt: skip
    """Write the frequency of one query term into `f` for all documents that have it or a partner; say how many.

    `f` is all zero before; `own` is -1 for a term that no document has. Under `FIRST`, a count is written below zero.
    """
    n = 0
    if own >= 0:
        for position in range(starts[own], starts[own + 1]):
            touched[n] = docs[position]
            n += 1
            f[docs[position]] = -counts[position] if match == FIRST else counts[position]
    for entry in range(len(ids)):
        for position in range(starts[ids[entry]], starts[ids[entry] + 1]):
            d = docs[position]
            if f[d] == 0.0:
                touched[n] = d
                n += 1
            if match == SUM:
                f[d] += counts[position] * weights[entry]
            elif f[d] >= 0.0:
                f[d] = max(f[d], weights[entry] * (1 if match == FIRST else counts[position]))
    return n


@njit(cache=True, nogil=True)
def collect(
    kind: int, lengths: Ints, weight: float, prior: float, a: float, b: float, touched: Codes, f: Floats,
    scores: Floats, hit: npt.NDArray[np.bool_], matched: Codes, n: int,
) -> int:  # fmt: skip
    """Add one query term's gains to `scores` and empty `f`; documents new to `hit` join the `n` of `matched`."""
    for d in touched:
        scores[d] += gain(kind, abs(f[d]), lengths[d], weight, prior, a, b)
        f[d] = 0.0
        if not hit[d]:
            hit[d] = True
            matched[n] = d
            n += 1
    return n
