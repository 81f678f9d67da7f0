"""Bags of the words that are no query terms: which of two texts has one more of some word.

A bag is a text as its distinct terms in ascending order with their counts. The bags of a view take about as much
memory as its texts, so only those of the last view are kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from whyrank.axioms.view import View
from whyrank.core.protocols import Codes, Flags, Ints


class Bags(NamedTuple):
    """The words of the documents of a view: document `i` has `offsets[i]:offsets[i + 1]`."""

    offsets: Ints
    terms: Codes
    counts: Codes


def bags_of(view: View) -> Bags:
    """The bags of a view; kept until those of another view are asked for."""
    memo = view.views.memo
    owner, bags = memo.get("bags", (None, None))
    if owner is not view:
        bags = _bags(view)
        memo["bags"] = (view, bags)
    found: Bags = bags
    return found


def one_more(bags: Bags, a: Codes, b: Codes, least: int) -> Flags:
    """Whether `b[i]` has exactly one more of some word than `a[i]`, which has it at least `least` times."""
    found = np.zeros(len(a), bool)
    _one_more(bags.offsets, bags.terms, bags.counts, a, b, least, found)
    return found


def _bags(view: View) -> Bags:
    tokens, size = view.pool.pools.tokens, int(view.lengths.sum())
    offsets, terms, counts = np.zeros(len(view) + 1, np.int64), np.empty(size, np.int32), np.empty(size, np.int32)
    _gather(tokens.ids, tokens.offsets, view.pool.rows, np.sort(view.term_ids), offsets, terms, counts)
    return Bags(offsets, terms[: offsets[-1]], counts[: offsets[-1]])


@njit(cache=True, nogil=True)
def _gather(ids: Codes, places: Ints, rows: Codes, query: Codes, offsets: Ints, terms: Codes, counts: Codes) -> None:
    """Sort the tokens of each document, leave out those of the query, and count equal ones."""
    n = 0
    for i in range(len(rows)):
        asked = 0
        for token in np.sort(ids[places[rows[i]] : places[rows[i] + 1]]):
            while asked < len(query) and query[asked] < token:
                asked += 1
            if asked < len(query) and query[asked] == token:
                continue
            if n == offsets[i] or terms[n - 1] != token:
                terms[n], counts[n] = token, 0
                n += 1
            counts[n - 1] += 1
        offsets[i + 1] = n


@njit(cache=True, nogil=True)
def _one_more(offsets: Ints, terms: Codes, counts: Codes, a: Codes, b: Codes, least: int, found: Flags) -> None:
    """Walk two bags side by side until a word is found."""
    for i in range(len(a)):
        own, end = offsets[a[i]], offsets[a[i] + 1]
        for other in range(offsets[b[i]], offsets[b[i] + 1]):
            if counts[other] <= least:
                continue
            while own < end and terms[own] < terms[other]:
                own += 1
            held = counts[own] if own < end and terms[own] == terms[other] else 0
            if held >= least and counts[other] == held + 1:
                found[i] = True
                break
