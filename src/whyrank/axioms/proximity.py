"""Axioms on proximity: query terms near each other, near the beginning, and as a phrase.

Positions count the tokens of the analyzer: where it drops stop words, the words around one stand side by side. A
ranker that sees a bag of words scores two orders of the same words alike, so it ties on every such pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whyrank.axioms.axiom import Axiom
from whyrank.axioms.preconditions import LongQuery, Precondition, QueryTerms, all_terms, similar_length
from whyrank.axioms.spans import NEVER, Spans
from whyrank.axioms.view import View
from whyrank.core.checks import tolerance_of
from whyrank.core.protocols import Codes, Flags


@dataclass(frozen=True)
class SharedTerms:
    """The two documents share at least so many distinct query terms."""

    least: int = 1

    def __call__(self, view: View, a: Codes, b: Codes) -> Flags:
        """A flag per pair."""
        return Spans.of(view).shared(a, b) >= self.least


def phrase_query(view: View, a: Codes, b: Codes) -> Flags:
    """The query has at least two tokens, different or not."""
    return np.full(len(a), len(view.query) >= 2)


@dataclass(frozen=True, kw_only=True)
class Proximity(Axiom):
    """An axiom on where query terms stand; `length` may ask for texts of about the same length as well."""

    length: float | str | None = None

    needs: ClassVar[tuple[Precondition, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length is not None:
            tolerance_of("length", self.length)

    def preconditions(self) -> tuple[Precondition, ...]:
        """What the axiom needs, and similar length where it is asked for."""
        return *self.needs, *similar_length(self.length)


@dataclass(frozen=True, kw_only=True)
class TP(Proximity):
    """Of two texts with at least two query terms, the one where two of them come closest wins.

    Original: let G(D) be the smallest distance between occurrences of two different query terms; the smaller it is,
    the higher the score, all else equal.
    Adapted: all else need not be equal; both texts have at least two different query terms; `length` may ask for
    similar length.
    Formula: G(D) = min over q != r in Q of |i - j|, i a position of q in D, j of r; both D have two terms of Q;
    G(D1) < G(D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Compat: the released code stores the text with the larger G first and then requires it to win: G(D1) > G(D2).
    Paper: Tao and Zhai, "An exploration of proximity measures in information retrieval", SIGIR 2007; adapted in
    Câmara and Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.
    """

    name: ClassVar[str] = "TP"
    favours: ClassVar[str] = "the text where two query terms come closest"
    compat_favours: ClassVar[str] = "the text where query terms stay farther apart"
    needs: ClassVar[tuple[Precondition, ...]] = (QueryTerms(2),)
    not_filled: ClassVar[tuple[str, ...]] = ()

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Two query terms come closer in `a`; under `compat`, in `b`."""
        nearest = Spans.of(view).nearest
        return nearest[b] < nearest[a] if self.compat else nearest[a] < nearest[b]


@dataclass(frozen=True, kw_only=True)
class PROX1(Proximity):
    """Of two texts, the one where the first occurrences of the shared query terms lie closer together wins.

    Original: the fewer words between the query terms of a text on average over pairs of terms, the higher the score.
    Adapted: only the query terms that both texts have are compared, at least two, each by its first occurrence; the
    number of pairs is the same in both, so sums stand for averages.
    Formula: B = Q ∩ D1 ∩ D2, |B| >= 2, f(q, D) = first position of q in D;
    sum over pairs {q, r} of B of (|f(q, D1) - f(r, D1)| - 1) < the same for D2.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name: ClassVar[str] = "PROX1"
    favours: ClassVar[str] = "the text whose query terms first stand closer together"
    needs: ClassVar[tuple[Precondition, ...]] = (SharedTerms(2),)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Fewer words lie between the shared terms in `a`."""
        spans = Spans.of(view)
        return spans.spread(a, b) < spans.spread(b, a)


@dataclass(frozen=True, kw_only=True)
class PROX2(Proximity):
    """Of two texts, the one where the shared query terms occur earlier wins.

    Original: the earlier the query terms first occur in a text, the higher the score.
    Adapted: only the query terms that both texts have are compared, at least one.
    Formula: B = Q ∩ D1 ∩ D2, |B| >= 1, f(q, D) = first position of q in D;
    sum over q in B of f(q, D1) < sum over q in B of f(q, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name: ClassVar[str] = "PROX2"
    favours: ClassVar[str] = "the text whose query terms occur earlier"
    needs: ClassVar[tuple[Precondition, ...]] = (SharedTerms(1),)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The shared terms come earlier in `a`."""
        return Spans.of(view).lead(a, b) > 0


@dataclass(frozen=True, kw_only=True)
class PROX3(Proximity):
    """Of two texts, the one with the earlier occurrence of the whole query as a phrase wins.

    Original: the earlier the query occurs in a text as a phrase, the higher the score.
    Adapted: the phrase is all tokens of the analysed query in their order without a gap, at least two; a text without
    it has it at infinity.
    Formula: |q1 ... qm| >= 2, p(D) = smallest i with D[i] = q1, ..., D[i + m - 1] = qm, infinite without;
    p(D1) < p(D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name: ClassVar[str] = "PROX3"
    favours: ClassVar[str] = "the text with the query as a phrase, or with it earlier"
    needs: ClassVar[tuple[Precondition, ...]] = (phrase_query,)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The phrase comes earlier in `a`, or only in `a`."""
        phrase = Spans.of(view).phrase
        return phrase[a] < phrase[b]


@dataclass(frozen=True, kw_only=True)
class PROX4(Proximity):
    """Of two texts with all query terms, the one with the tightest grouping of them, or with more such, wins.

    Original: the fewer other words in the closest grouping of all query terms, the higher the score; at equally many,
    the more often such a grouping occurs.
    Adapted: a grouping is a minimal window: it has all query terms, and no smaller window inside it has. Both texts
    have all query terms, at least two different ones.
    Formula: |Q| >= 2, Q ⊆ D1, Q ⊆ D2; a(D) = fewest tokens outside Q in a minimal window of D, b(D) = number of
    minimal windows with a(D) such tokens; a(D1) < a(D2), or a(D1) = a(D2) and b(D1) > b(D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name: ClassVar[str] = "PROX4"
    favours: ClassVar[str] = "the text with the tightest grouping of all query terms"
    needs: ClassVar[tuple[Precondition, ...]] = (LongQuery(2), all_terms)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The tightest grouping of `a` is tighter, or as tight and more frequent."""
        fewest, often = Spans.of(view).groups
        as_tight = fewest[a] == fewest[b]
        return np.asarray((fewest[a] < fewest[b]) | (as_tight & (often[a] > often[b])))


@dataclass(frozen=True, kw_only=True)
class PROX5(Proximity):
    """Of two texts with all query terms, the one whose occurrences have the others nearer on average wins.

    Original: for each occurrence of a query term take the smallest span of text with it and all other query terms;
    the smaller the average, the higher the score.
    Adapted: spans are counted in tokens, first and last included. Both texts have all query terms, at least two
    different ones. Averages are compared as fractions of whole numbers.
    Formula: |Q| >= 2, Q ⊆ D1, Q ⊆ D2; s(i, D) = smallest k - j + 1 with j <= i <= k and Q ⊆ D[j..k];
    mean of s(i, D1) over positions i with D1[i] in Q < the same for D2.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name: ClassVar[str] = "PROX5"
    favours: ClassVar[str] = "the text whose query terms have each other nearer on average"
    needs: ClassVar[tuple[Precondition, ...]] = (LongQuery(2), all_terms)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The spans of `a` are shorter on average."""
        lengths = Spans.of(view).lengths
        return lengths[a] * view.total[b] < lengths[b] * view.total[a]


@dataclass(frozen=True, kw_only=True)
class QPHRA(Proximity):
    """Of two texts, the one that has the whole query as a phrase wins over the one that has not.

    Original: a text with the query as a phrase scores higher than one without.
    Adapted: the phrase is all tokens of the analysed query in their order without a gap, at least two.
    Formula: |q1 ... qm| >= 2; some i has D1[i] = q1, ..., D1[i + m - 1] = qm; no i has so in D2.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name: ClassVar[str] = "QPHRA"
    favours: ClassVar[str] = "the text with the query as a phrase"
    needs: ClassVar[tuple[Precondition, ...]] = (phrase_query,)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Only `a` has the phrase."""
        has = Spans.of(view).phrase < NEVER
        return has[a] & ~has[b]
