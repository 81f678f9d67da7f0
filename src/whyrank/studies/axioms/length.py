"""Axioms on length: what a text has beyond the query terms must not help it, and query terms must pay for theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba import njit

from whyrank.core import Codes, Flags, Floats, Ints, UnknownName, WhyrankError, tolerance_of
from whyrank.studies.axioms.axiom import Axiom, BothWays, Precondition
from whyrank.studies.axioms.view import View

# Bags of the words that are no query terms: which of two texts has one more of some word.
#
# A bag is a text as its distinct terms in ascending order with their counts. The bags of a view take about as much
# memory as its texts, so only those of the last view are kept.


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


VARIANTS = ("strict", "length")


@dataclass(frozen=True, kw_only=True)
class LNC1(BothWays):
    """Of two texts with the same query terms, the one with an extra occurrence of another word does not win.

    Original: for a word t that is not in Q, c(t, D2) = c(t, D1) + 1 and equal counts of all other words imply
    S(Q, D1) >= S(Q, D2).
    Adapted: only query terms must have equal counts (`variant` strict); where each text has one more of some word,
    nothing follows. With `variant` length, D2 is the longer text, whatever its words.
    Formula: strict: for all q in Q c(q, D1) = c(q, D2), exists t not in Q: c(t, D2) = c(t, D1) + 1;
    length: for all q in Q c(q, D1) = c(q, D2), |D2| > |D1|.
    Conclusion: S(Q, D1) >= S(Q, D2).
    Compat: the counts of query terms need not be equal, t occurs in D1, and a pair for which both directions hold,
    as they do for most, is an instance in both.
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004; adapted in Câmara and
    Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.
    """

    variant: str = "strict"

    name: ClassVar[str] = "LNC1"
    favours: ClassVar[str] = "the text with fewer other words, at equal query terms"
    compat_favours: ClassVar[str] = "the text with one less of some other word"
    strict: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in VARIANTS:
            raise UnknownName("variant of LNC1", str(self.variant), VARIANTS)
        if self.compat is not None and self.variant != "strict":
            raise WhyrankError("axiom LNC1 has a compat mode for variant=strict alone; leave out compat or variant")

    def preconditions(self) -> tuple[Precondition, ...]:
        """The same counts of all query terms; under `compat` nothing."""
        return (same_counts,) if self.compat is None else ()

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """`b` has one more of some word, or is longer."""
        if self.variant == "length":
            return np.asarray(view.lengths[a] < view.lengths[b])
        return one_more(bags_of(view), a, b, least=0 if self.compat is None else 1)


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
    """

    length: float | str = 0

    name: ClassVar[str] = "TF-LNC"
    favours: ClassVar[str] = "the text that is longer by occurrences of a query term"

    def __post_init__(self) -> None:
        super().__post_init__()
        tolerance_of("length", self.length)

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
            one, two = _without(view, a, term), _without(view, b, term)
            found[found] = np.abs(one - two) <= self._room(np.maximum(one, two))
        return found

    def _similar_others(self, view: View, a: Codes, b: Codes) -> Flags:
        others = view.lengths - view.total
        return np.asarray(np.abs(others[a] - others[b]) <= self._room(np.maximum(view.lengths[a], view.lengths[b])))

    def _room(self, longer: Ints) -> Floats:
        absolute, relative = tolerance_of("length", self.length)
        return np.asarray(absolute + relative * longer)


def same_counts(view: View, a: Codes, b: Codes) -> Flags:
    """Both documents have each query term equally often."""
    return np.asarray((view.counts[a] == view.counts[b]).all(axis=1))


def _without(view: View, documents: Codes, term: Ints) -> Ints:
    """The lengths of documents without the occurrences of one term each."""
    return view.lengths[documents] - view.counts[documents, term]
