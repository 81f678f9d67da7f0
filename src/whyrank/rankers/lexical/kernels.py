"""Compiled loops of the lexical rankers: count query terms in texts, weigh the counts, walk inverted lists.

A query is a list of distinct terms; `tf` has one row per text and one column per query term.
The weighing adds up in query order, so that every path to a score gives the same bits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Codes, Floats, Ints

Counts = npt.NDArray[np.int32]
Singles = npt.NDArray[np.float32]
SATURATED, DIRICHLET, JELINEK_MERCER = 0, 1, 2  # kinds of weights
FIRST, MAX_TF, SUM = 0, 1, 2  # how related terms count
WIDTH = 8  # query terms whose related terms are counted at a time


@njit(cache=True, nogil=True)
def scan(ids: Codes, offsets: Ints, rows: Codes, terms: Codes, slot: Codes, tf: Counts) -> None:
    """Count the query terms in the texts `rows` by reading their tokens; `slot` is all -1 before and after."""
    for j in range(len(terms)):
        slot[terms[j]] = j
    for i in range(len(rows)):
        for position in range(offsets[rows[i]], offsets[rows[i] + 1]):
            j = slot[ids[position]]
            if j >= 0:
                tf[i, j] += 1
    for j in range(len(terms)):
        slot[terms[j]] = -1


@njit(cache=True, nogil=True)
def weigh(
    kind: int, tf: Counts | Floats, lengths: Ints, weights: Floats, priors: Floats, a: float, b: float, out: Floats
) -> None:
    """Score each row of counts, or of frequencies that are no whole numbers.

    SATURATED: sum of w * tf / (tf + a + b * length), with a = k1(1-b) and b = k1 b / average length.
    DIRICHLET: sum of w * log((tf + a * prior) / (length + a)), with a = mu.
    JELINEK_MERCER: sum of w * log((1 - a) * tf / length + a * prior), with a = lambda.
    """
    for i in range(len(tf)):
        total = 0.0
        for j in range(len(weights)):
            if kind == SATURATED:
                if tf[i, j] > 0:
                    total += weights[j] * (tf[i, j] / (tf[i, j] + (a + b * lengths[i])))
            elif kind == DIRICHLET:
                total += weights[j] * np.log((tf[i, j] + a * priors[j]) / (lengths[i] + a))
            else:
                share = tf[i, j] / lengths[i] if lengths[i] > 0 else 0.0
                total += weights[j] * np.log((1.0 - a) * share + a * priors[j])
        out[i] = total


@njit(cache=True, nogil=True)
def postings(ids: Codes, offsets: Ints, size: int) -> tuple[Ints, Codes, Counts]:
    """Inverted lists of all terms: start of each list, documents in ascending order, and their counts."""
    starts, last = np.zeros(size + 1, np.int64), np.full(size, -1, np.int32)
    for d in range(len(offsets) - 1):
        for position in range(offsets[d], offsets[d + 1]):
            if last[ids[position]] != d:
                last[ids[position]] = d
                starts[ids[position] + 1] += 1
    starts = np.cumsum(starts)
    docs, tf = np.empty(starts[-1], np.int32), np.zeros(starts[-1], np.int32)
    fill = starts[:-1].copy()
    last[:] = -1
    for d in range(len(offsets) - 1):
        for position in range(offsets[d], offsets[d + 1]):
            term = ids[position]
            if last[term] != d:
                last[term] = d
                docs[fill[term]] = d
                fill[term] += 1
            tf[fill[term] - 1] += 1
    return starts, docs, tf


@njit(cache=True, nogil=True)
def add_lists(
    starts: Ints, docs: Codes, counts: Counts, rows: Codes, terms: Codes, norms: Floats, weights: Floats, slot: Codes,
    out: Floats,
) -> None:  # fmt: skip
    """Add what terms give to the saturated scores of the texts `rows`, by walking their inverted lists."""
    for i in range(len(rows)):
        slot[rows[i]] = i
    for j in range(len(terms)):
        for position in range(starts[terms[j]], starts[terms[j] + 1]):
            i = slot[docs[position]]
            if i >= 0:
                out[i] += weights[j] * (counts[position] / (counts[position] + norms[rows[i]]))
    for i in range(len(rows)):
        slot[rows[i]] = -1


@njit(cache=True, nogil=True)
def add_dense(dense: Counts, rows: Codes, norms: Floats, weight: float, out: Floats) -> None:
    """Add what one frequent term gives, its counts spread out over all documents."""
    for i in range(len(rows)):
        tf = dense[rows[i]]
        if tf > 0:
            out[i] += weight * (tf / (tf + norms[rows[i]]))


# Related terms: how often a text has each query term, its partners in a term table included.
#
# The partners of a query term are the document terms that count for it. Query terms and partners get a line each,
# with a column for each of `WIDTH` query terms; the first lines are those of the query terms themselves. A token of
# a text costs one look-up, and nothing more where it has no line.


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


# Retrieval: term at a time over inverted lists.


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
