"""Axioms on term frequency: more query terms, and more different ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whyrank.axioms.axiom import Axiom
from whyrank.axioms.preconditions import Precondition, QueryTerms, SimilarLength, same_total
from whyrank.axioms.view import View
from whyrank.core.checks import tolerance_of
from whyrank.core.protocols import Codes, Flags, Floats


@dataclass(frozen=True, kw_only=True)
class TFC1(Axiom):
    """Of two texts of about the same length, the one with more query terms wins.

    Original: for a query of one term q and |D1| = |D2|, c(q, D1) > c(q, D2) implies S(Q, D1) > S(Q, D2).
    Adapted: for any query, no query term is rarer in D1 and their sum is larger; lengths differ by at most `length`
    tokens (10); both texts have a query term. The printed condition |D1| - |D2| <= |delta| is one-sided; the
    absolute difference is meant and used.
    Formula: | |D1| - |D2| | <= 10, sum_q c(q, D1) >= 1, sum_q c(q, D2) >= 1, for all q in Q c(q, D1) >= c(q, D2),
    sum_q c(q, D1) > sum_q c(q, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Compat: the same.
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004; adapted in Câmara and
    Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.
    """

    length: float | str = 10

    name: ClassVar[str] = "TFC1"
    favours: ClassVar[str] = "the text with more query terms, at similar length"
    not_filled: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        tolerance_of("length", self.length)

    def preconditions(self) -> tuple[Precondition, ...]:
        """Similar length, and a query term in both."""
        return SimilarLength(self.length), QueryTerms(1)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """No query term is rarer in `a`, and some is more frequent."""
        more = view.counts[a] - view.counts[b]
        return np.asarray((more >= 0).all(axis=1) & (more > 0).any(axis=1))


@dataclass(frozen=True, kw_only=True)
class TFC3(Axiom):
    """Of two texts with equally many query terms, the one that spreads them over two terms and not one wins.

    Original: for a query of two terms a, b of equal rarity and |D1| = |D2|, c(a, D2) = c(a, D1) + c(b, D1),
    c(b, D2) = 0, c(a, D1) > 0 and c(b, D1) > 0 imply S(Q, D1) > S(Q, D2).
    Adapted: for any query, in which all terms but a and b are equally frequent in both texts; lengths differ by at
    most `length` tokens (10); the rarities differ by at most `idf`, a number or a share of the larger (10%), where
    idf(q) = ln((N + 1) / max(df(q), 1)).
    Formula: | |D1| - |D2| | <= 10, exist a != b in Q: | idf(a) - idf(b) | <= 10% of the larger,
    c(a, D2) = c(a, D1) + c(b, D1), c(b, D2) = 0, c(a, D1) > 0, c(b, D1) > 0, and for all other q in Q
    c(q, D1) = c(q, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004.
    """

    length: float | str = 10
    idf: float | str = "10%"

    name: ClassVar[str] = "TFC3"
    favours: ClassVar[str] = "the text with more different query terms, at equal count"

    def __post_init__(self) -> None:
        super().__post_init__()
        tolerance_of("length", self.length)
        tolerance_of("idf", self.idf)

    def preconditions(self) -> tuple[Precondition, ...]:
        """Similar length, and equally many query terms."""
        return SimilarLength(self.length), same_total

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """All that `b` has more of one term, `a` has of another that `b` lacks."""
        more = view.counts[a] - view.counts[b]
        found = np.asarray((more != 0).sum(axis=1) == 2)
        rows, a, b = more[found], a[found], b[found]
        if len(rows):  # the totals are equal, so one of the two terms is more frequent in `a`, the other in `b`
            shared, gained = rows.argmin(axis=1), rows.argmax(axis=1)
            spread = view.present[a, shared] & ~view.present[b, gained]
            found[found] = spread & self._similar(view.idf[shared], view.idf[gained])
        return found

    def _similar(self, one: Floats, two: Floats) -> Flags:
        absolute, relative = tolerance_of("idf", self.idf)
        return np.asarray(np.abs(one - two) <= absolute + relative * np.maximum(one, two))
