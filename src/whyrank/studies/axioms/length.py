"""Axioms on length: other words must not help a text, and query terms must help it although they make it longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numba import njit

from whyrank.core import Codes, Flags, Ints, WhyrankError
from whyrank.studies.axioms.axiom import Axiom, Precondition, allowance
from whyrank.studies.axioms.view import View


@dataclass(frozen=True, kw_only=True)
class LNC1(Axiom):
    """Of two texts with the same query terms, the one with an extra occurrence of another word does not win.

    Original: for a word t that is not in Q, c(t, D2) = c(t, D1) + 1 and equal counts of all other words imply
    S(Q, D1) >= S(Q, D2).
    Adapted: only query terms must have equal counts (`variant` strict); where each text has one more of some word,
    nothing follows. With `variant` length, D2 is the longer text, whatever its words.
    Formula: strict: for all q in Q c(q, D1) = c(q, D2), exists t not in Q: c(t, D2) = c(t, D1) + 1;
    length: for all q in Q c(q, D1) = c(q, D2), |D2| > |D1|.
    Conclusion: S(Q, D1) >= S(Q, D2).
    Compat: the counts of query terms need not be equal, and t occurs in D1. A pair for which both directions hold,
    as they do for most, is an instance in both.
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004; adapted in Câmara and
    Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.

    Attributes:
        variant: `strict`, one more of some other word; `length`, the longer text.
    """

    variant: Literal["strict", "length"] = "strict"

    name = "LNC1"
    favours = "the text with fewer other words, at equal query terms"
    compat_favours = "the text with one less of some other word"
    strict = False
    not_filled = ()
    both_orders = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.compat is not None and self.variant != "strict":
            raise WhyrankError("axiom LNC1 has a compat mode for variant=strict alone; leave out compat or variant")

    def preconditions(self) -> tuple[Precondition, ...]:
        """Both documents have equal counts of all query terms; under `compat` nothing."""
        return (same_counts,) if self.compat is None else ()

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """`b` has one more of some word, or is longer."""
        if self.variant == "length":
            return np.asarray(view.lengths[a] < view.lengths[b])
        return _has_one_more(*_bags_of(view), a, b, 0 if self.compat is None else 1)


@dataclass(frozen=True, kw_only=True)
class TF_LNC(Axiom):  # noqa: N801
    """Of two texts that are alike but for one query term, the one with more of it wins although it is longer.

    Original: for a query of one term w, c(w, D1) > c(w, D2) and |D1| = |D2| + c(w, D1) - c(w, D2) imply
    S(Q, D1) > S(Q, D2).
    Adapted: for any query, in which all terms but w are equally frequent in both texts; the lengths without w differ
    by at most `length` tokens (0).
    Formula: exists w in Q: c(w, D1) > c(w, D2), (|D1| - c(w, D1)) = (|D2| - c(w, D2)), and for all other q in Q
    c(q, D1) = c(q, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004.

    Attributes:
        length: how far the lengths may differ: tokens, or a share of the longer text such as `10%`.
    """

    length: float | str = 0

    name = "TF-LNC"
    favours = "the text that is longer by occurrences of a query term"

    def preconditions(self) -> tuple[Precondition, ...]:
        """About as many other words: quick to see, and so of each two texts that are alike but for one term."""
        return (self._similar_others,)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """One term differs, `a` has more of it, and the rest is of similar length."""
        more = view.counts[a] - view.counts[b]
        found = np.asarray(((more != 0).sum(axis=1) == 1) & (more > 0).any(axis=1))
        rows, a, b = more[found], a[found], b[found]
        if len(rows):
            term = rows.argmax(axis=1)
            one, two = (view.lengths[side] - view.counts[side, term] for side in (a, b))
            found[found] = np.abs(one - two) <= allowance("length", self.length, np.maximum(one, two))
        return found

    def _similar_others(self, view: View, a: Codes, b: Codes) -> Flags:
        others, longer = view.lengths - view.total, np.maximum(view.lengths[a], view.lengths[b])
        return np.asarray(np.abs(others[a] - others[b]) <= allowance("length", self.length, longer))


def same_counts(view: View, a: Codes, b: Codes) -> Flags:
    """Both documents have each query term equally often."""
    return np.asarray((view.counts[a] == view.counts[b]).all(axis=1))


# Bags of the words that are no query terms: which of two texts has one more of some word.


class _Bags(NamedTuple):
    """The words of the documents of a view, in ascending order: document `i` has `offsets[i]:offsets[i + 1]`."""

    offsets: Ints
    terms: Codes
    counts: Codes


def _bags_of(view: View) -> _Bags:
    """The bags of a view; as they take about as much memory as its texts, only those of the last view are kept."""
    memo = view.views.memo
    if memo.get("bags", (None,))[0] is not view:
        tokens = view.pool.pools.tokens
        memo["bags"] = view, _Bags(*_gather(tokens.ids, tokens.offsets, view.pool.rows, np.sort(view.term_ids)))
    found: _Bags = memo["bags"][1]
    return found


@njit(cache=True, nogil=True)
def _gather(ids: Codes, starts: Ints, rows: Codes, query: Codes) -> tuple[Ints, Codes, Codes]:
    """Sort the tokens of each document, leave out those of the query, and count equal ones."""
    size = 0
    for row in rows:
        size += starts[row + 1] - starts[row]
    offsets, terms, counts = np.zeros(len(rows) + 1, np.int64), np.empty(size, np.int32), np.empty(size, np.int32)
    n = 0
    for i in range(len(rows)):
        at = 0
        for token in np.sort(ids[starts[rows[i]] : starts[rows[i] + 1]]):
            while at < len(query) and query[at] < token:
                at += 1
            if at < len(query) and query[at] == token:
                continue
            if n == offsets[i] or terms[n - 1] != token:
                terms[n], counts[n] = token, 0
                n += 1
            counts[n - 1] += 1
        offsets[i + 1] = n
    return offsets, terms[:n].copy(), counts[:n].copy()


@njit(cache=True, nogil=True)
def _has_one_more(offsets: Ints, terms: Codes, counts: Codes, a: Codes, b: Codes, least: int) -> Flags:
    """Whether `b[i]` has exactly one more of some word than `a[i]`, which has it at least `least` times.

    Two bags are walked side by side until such a word is found.
    """
    found = np.zeros(len(a), np.bool_)
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
    return found
