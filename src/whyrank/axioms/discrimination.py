"""Axioms on term discrimination: of two query terms, the rarer one counts more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from whyrank.axioms.axiom import Axiom, BothWays
from whyrank.axioms.preconditions import Precondition, SimilarLength, same_total
from whyrank.axioms.view import View
from whyrank.core.checks import tolerance_of
from whyrank.core.protocols import Codes, Flags


@dataclass(frozen=True, kw_only=True)
class TDC(Axiom):
    """Of two texts that differ in two query terms only, the one with more of the rarer term wins.

    Original: for a query of two terms a, b and |D1| = |D2|, c(a, D1) + c(b, D1) = c(a, D2) + c(b, D2),
    idf(a) >= idf(b) and c(a, D1) >= c(a, D2) imply S(Q, D1) >= S(Q, D2).
    Adapted: for any query, in which all terms but a and b are equally frequent in both texts and these two are not;
    lengths differ by at most `length` tokens (10). For terms of equal rarity either text would have to win, so that
    nothing follows. Rarity is compared by document frequency.
    Formula: | |D1| - |D2| | <= 10, exist a != b in Q: idf(a) >= idf(b), c(a, D1) > c(a, D2),
    c(a, D1) + c(b, D1) = c(a, D2) + c(b, D2), and for all other q in Q c(q, D1) = c(q, D2).
    Conclusion: S(Q, D1) >= S(Q, D2).
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004.
    """

    length: float | str = 10

    name: ClassVar[str] = "TDC"
    favours: ClassVar[str] = "the text with more of the rarer query term"
    strict: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        tolerance_of("length", self.length)

    def preconditions(self) -> tuple[Precondition, ...]:
        """Similar length, and equally many query terms."""
        return SimilarLength(self.length), same_total

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Two terms differ, and the one that `a` has more of is not the more common one."""
        more = view.counts[a] - view.counts[b]
        found = np.asarray((more != 0).sum(axis=1) == 2)
        rows, frequency = more[found], np.maximum(view.df, 1)
        if len(rows):
            found[found] = frequency[rows.argmax(axis=1)] <= frequency[rows.argmin(axis=1)]
        return found


@dataclass(frozen=True, kw_only=True)
class M_TDC(BothWays):  # noqa: N801
    """Of two texts whose query-term counts are exchanged between terms, the one with more of the rarer terms wins.

    Original: TDC, for queries of two terms.
    Adapted: for any query. The texts have equally many query terms; each term whose count differs takes part in at
    least one exchange with another one, and in each such exchange D1 has the larger count for the rarer term, which
    is not less frequent in the query. Lengths differ by at most `length` tokens (10). The printed formula asks for
    both c(a, D1) != c(b, D2) and c(a, D1) = c(b, D2); the first must read c(a, D1) != c(a, D2). Rarity is compared by
    document frequency. Where both texts would have to win, nothing follows.
    Formula: | |D1| - |D2| | <= 10, sum_q c(q, D1) = sum_q c(q, D2), V = {q in Q: c(q, D1) != c(q, D2)} is not empty,
    each q in V is a or b of a pair in V with idf(a) >= idf(b), c(a, D1) = c(b, D2), c(b, D1) = c(a, D2),
    c(a, D1) > c(a, D2), c(a, Q) >= c(b, Q).
    Conclusion: S(Q, D1) >= S(Q, D2).
    Compat: rarity is 1 / collection frequency, the conclusion is strict (S(Q, D1) > S(Q, D2)), and a pair for which
    both directions hold is an instance in both.
    Paper: Câmara and Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020, after Fang, Tao and Zhai, "A
    formal study of information retrieval heuristics", SIGIR 2004.
    """

    length: float | str = 10

    name: ClassVar[str] = "M-TDC"
    favours: ClassVar[str] = "the text with more of the rarer query terms"
    strict: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        tolerance_of("length", self.length)

    @property
    def concludes(self) -> str:
        """`weak`, or under `compat` `strict`; what was asked for comes first."""
        return self.conclusion or ("weak" if self.compat is None else "strict")

    def preconditions(self) -> tuple[Precondition, ...]:
        """Similar length, and equally many query terms."""
        return SimilarLength(self.length), same_total

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """All counts that differ are exchanged in favour of a term that is not more common."""
        frequency = np.maximum(view.df if self.compat is None else view.cf, 1)
        rarer = frequency[:, None] <= frequency[None, :]
        found = np.zeros(len(a), bool)
        _exchanged(view.counts, a, b, rarer & (view.in_query[:, None] >= view.in_query[None, :]), found)
        return found


@njit(cache=True, nogil=True)
def _exchanged(counts: Codes, a: Codes, b: Codes, allowed: Flags, found: Flags) -> None:
    """Whether some counts differ, and each of these belongs to an allowed pair of terms that swap their counts."""
    for i in range(len(a)):
        one, two = counts[a[i]], counts[b[i]]
        open_ = one != two
        found[i] = open_.any()
        for x in range(len(one)):
            for y in range(len(one)):
                if allowed[x, y] and one[x] > two[x] and one[x] == two[y] and one[y] == two[x]:
                    open_[x] = open_[y] = False
        found[i] = found[i] and not open_.any()
