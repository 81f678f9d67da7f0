"""Axioms on length: what a text has beyond the query terms must not help it, and query terms must pay for theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whyrank.axioms.axiom import Axiom, BothWays
from whyrank.axioms.bags import bags_of, one_more
from whyrank.axioms.preconditions import Precondition
from whyrank.axioms.view import View
from whyrank.core.checks import tolerance_of
from whyrank.core.errors import UnknownName, WhyrankError
from whyrank.core.protocols import Codes, Flags, Floats, Ints

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
