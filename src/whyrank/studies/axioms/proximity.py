"""Axioms on proximity: query terms near each other, near the beginning, and as a phrase.

Positions count the tokens of the analyzer: where it drops stop words, the words around one stand side by side. A
ranker that sees a bag of words scores two orders of the same words alike, so it ties on every such pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from whyrank.core import Codes, Flags, Ints
from whyrank.studies.axioms.axiom import LongQuery, OfAnyLength, Precondition, QueryTerms
from whyrank.studies.axioms.view import View

NEVER = np.iinfo(np.int32).max  # the position of what a document does not have


def shared_terms(least: int) -> Precondition:
    """The two documents share at least so many distinct query terms."""
    return lambda view, a, b: np.asarray(_shared(_first_positions(view), a, b) >= least)


def all_terms(view: View, a: Codes, b: Codes) -> Flags:
    """Both documents have all query terms."""
    full = view.distinct == len(view.terms)
    return np.asarray(full[a] & full[b])


def phrase_query(view: View, a: Codes, b: Codes) -> Flags:
    """The query has at least two tokens, different or not."""
    return np.full(len(a), len(view.query) >= 2)


@dataclass(frozen=True, kw_only=True)
class TP(OfAnyLength):
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

    name = "TP"
    favours = "the text where two query terms come closest"
    compat_favours = "the text where query terms stay farther apart"
    conditions = (QueryTerms(2),)
    not_filled = ()

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Two query terms come closer in `a`; under `compat`, in `b`."""
        nearest = view.once("nearest", lambda: _nearest(*view.hits))
        return nearest[b] < nearest[a] if self.compat else nearest[a] < nearest[b]


@dataclass(frozen=True, kw_only=True)
class PROX1(OfAnyLength):
    """Of two texts, the one where the first occurrences of the shared query terms lie closer together wins.

    Original: the fewer words between the query terms of a text on average over pairs of terms, the higher the score.
    Adapted: only the query terms that both texts have are compared, at least two, each by its first occurrence. The
    number of pairs is the same in both, so sums stand for averages.
    Formula: B = Q ∩ D1 ∩ D2, |B| >= 2, f(q, D) = first position of q in D;
    sum over pairs {q, r} of B of (|f(q, D1) - f(r, D1)| - 1) < the same for D2.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name = "PROX1"
    favours = "the text whose query terms first stand closer together"
    conditions = (shared_terms(2),)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Fewer words lie between the shared terms in `a`."""
        first = _first_positions(view)
        order = view.once("order of terms", lambda: np.argsort(first, axis=1).astype(np.int32))
        return np.asarray(_spread(first, order, a, b) < _spread(first, order, b, a))


@dataclass(frozen=True, kw_only=True)
class PROX2(OfAnyLength):
    """Of two texts, the one where the shared query terms occur earlier wins.

    Original: the earlier the query terms first occur in a text, the higher the score.
    Adapted: only the query terms that both texts have are compared, at least one.
    Formula: B = Q ∩ D1 ∩ D2, |B| >= 1, f(q, D) = first position of q in D;
    sum over q in B of f(q, D1) < sum over q in B of f(q, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name = "PROX2"
    favours = "the text whose query terms occur earlier"
    conditions = (shared_terms(1),)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The shared terms come earlier in `a`."""
        return np.asarray(_lead(_first_positions(view), a, b) > 0)


@dataclass(frozen=True, kw_only=True)
class PROX3(OfAnyLength):
    """Of two texts, the one with the earlier occurrence of the whole query as a phrase wins.

    Original: the earlier the query occurs in a text as a phrase, the higher the score.
    Adapted: the phrase is all tokens of the analysed query in their order without a gap, at least two; a text without
    it has it at infinity.
    Formula: |q1 ... qm| >= 2, p(D) = smallest i with D[i] = q1, ..., D[i + m - 1] = qm, infinite without;
    p(D1) < p(D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name = "PROX3"
    favours = "the text with the query as a phrase, or with it earlier"
    conditions = (phrase_query,)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The phrase comes earlier in `a`, or only in `a`."""
        phrase = _phrase_positions(view)
        return np.asarray(phrase[a] < phrase[b])


@dataclass(frozen=True, kw_only=True)
class PROX4(OfAnyLength):
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

    name = "PROX4"
    favours = "the text with the tightest grouping of all query terms"
    conditions = (LongQuery(2), all_terms)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The tightest grouping of `a` is tighter, or as tight and more frequent."""
        hits, opens = view.hits, _opening_hits(view)
        fewest, often = view.once("groups", lambda: _groups(hits.offsets, hits.position, opens))
        as_tight = fewest[a] == fewest[b]
        return np.asarray((fewest[a] < fewest[b]) | (as_tight & (often[a] > often[b])))


@dataclass(frozen=True, kw_only=True)
class PROX5(OfAnyLength):
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

    name = "PROX5"
    favours = "the text whose query terms have each other nearer on average"
    conditions = (LongQuery(2), all_terms)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The spans of `a` are shorter on average."""
        hits, opens = view.hits, _opening_hits(view)
        lengths = view.once("lengths of spans", lambda: _lengths(hits.offsets, hits.position, opens))
        return np.asarray(lengths[a] * view.total[b] < lengths[b] * view.total[a])


@dataclass(frozen=True, kw_only=True)
class QPHRA(OfAnyLength):
    """Of two texts, the one that has the whole query as a phrase wins over the one that has not.

    Original: a text with the query as a phrase scores higher than one without.
    Adapted: the phrase is all tokens of the analysed query in their order without a gap, at least two.
    Formula: |q1 ... qm| >= 2; some i has D1[i] = q1, ..., D1[i + m - 1] = qm; no i has so in D2.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name = "QPHRA"
    favours = "the text with the query as a phrase"
    conditions = (phrase_query,)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Only `a` has the phrase."""
        has = _phrase_positions(view) < NEVER
        return np.asarray(has[a] & ~has[b])


# Where the query terms of a document stand, read off their positions in one pass per document, once per query.


def _first_positions(view: View) -> Codes:
    """The first position of each query term, [documents, terms], NEVER where it is missing."""
    return view.once("first positions", lambda: _first(*view.hits, len(view.terms)))


def _phrase_positions(view: View) -> Codes:
    """The first position of the whole query, token by token, NEVER without."""
    return view.once("phrase positions", lambda: _phrase(*view.hits, view.query))


def _opening_hits(view: View) -> Ints:
    """For each hit that closes a minimal window with all query terms, the hit that opens it; else -1."""
    return view.once("opening hits", lambda: _windows(view.hits.offsets, view.hits.term, len(view.terms)))


@njit(cache=True, nogil=True)
def _nearest(offsets: Ints, position: Codes, term: Codes) -> Codes:
    """The smallest distance between two different query terms in each document, NEVER without.

    Hits next to each other are enough: of two different terms with a hit between them, one differs from that hit and
    is nearer to it.
    """
    found = np.full(len(offsets) - 1, NEVER, np.int32)
    for doc in range(len(found)):
        for k in range(offsets[doc] + 1, offsets[doc + 1]):
            if term[k] != term[k - 1]:
                found[doc] = min(found[doc], position[k] - position[k - 1])
    return found


@njit(cache=True, nogil=True)
def _first(offsets: Ints, position: Codes, term: Codes, n_terms: int) -> Codes:
    found = np.full((len(offsets) - 1, n_terms), NEVER, np.int32)
    for doc in range(len(found)):
        for k in range(offsets[doc], offsets[doc + 1]):
            found[doc, term[k]] = min(found[doc, term[k]], position[k])
    return found


@njit(cache=True, nogil=True)
def _phrase(offsets: Ints, position: Codes, term: Codes, query: Codes) -> Codes:
    found = np.full(len(offsets) - 1, NEVER, np.int32)
    for doc in range(len(found)):
        for k in range(offsets[doc], offsets[doc + 1] - len(query) + 1):
            same = 0
            while same < len(query) and term[k + same] == query[same] and position[k + same] == position[k] + same:
                same += 1
            if 0 < same == len(query):
                found[doc] = position[k]
                break
    return found


@njit(cache=True, nogil=True)
def _spread(first: Codes, order: Codes, a: Codes, b: Codes) -> Ints:
    """Tokens between the first positions in `a` of each two query terms that `b` has as well, summed."""
    found = np.zeros(len(a), np.int64)
    for i in range(len(a)):
        seen, passed = 0, 0
        for term in order[a[i]]:
            position = first[a[i], term]
            if position < NEVER and first[b[i], term] < NEVER:
                found[i] += seen * (position - 1) - passed
                seen, passed = seen + 1, passed + position
    return found


@njit(cache=True, nogil=True)
def _lead(first: Codes, a: Codes, b: Codes) -> Ints:
    """How much later the first positions of the query terms that both have are in `b` than in `a`, summed."""
    found = np.zeros(len(a), np.int64)
    for i in range(len(a)):
        for term in range(first.shape[1]):
            one, two = first[a[i], term], first[b[i], term]
            if one < NEVER and two < NEVER:
                found[i] += two - one
    return found


@njit(cache=True, nogil=True)
def _shared(first: Codes, a: Codes, b: Codes) -> Ints:
    """How many distinct query terms both have."""
    found = np.zeros(len(a), np.int64)
    for i in range(len(a)):
        for term in range(first.shape[1]):
            found[i] += first[a[i], term] < NEVER and first[b[i], term] < NEVER
    return found


@njit(cache=True, nogil=True)
def _windows(offsets: Ints, term: Codes, n_terms: int) -> Ints:
    opens = np.full(len(term), -1, np.int64)
    for doc in range(len(offsets) - 1):
        inside, missing, left = np.zeros(n_terms, np.int64), n_terms, offsets[doc]
        for right in range(offsets[doc], offsets[doc + 1]):
            missing -= inside[term[right]] == 0
            inside[term[right]] += 1
            while not missing and inside[term[left]] > 1:
                inside[term[left]] -= 1
                left += 1
            if not missing and inside[term[right]] == 1:
                opens[right] = left
    return opens


@njit(cache=True, nogil=True)
def _groups(offsets: Ints, position: Codes, opens: Ints) -> tuple[Ints, Ints]:
    """How few other tokens the closest grouping of all query terms has, NEVER without, and how many groupings do."""
    fewest, often = np.full(len(offsets) - 1, NEVER, np.int64), np.zeros(len(offsets) - 1, np.int64)
    for doc in range(len(fewest)):
        for k in range(offsets[doc], offsets[doc + 1]):
            if opens[k] < 0:
                continue
            others = position[k] - position[opens[k]] - (k - opens[k])
            if others < fewest[doc]:
                fewest[doc], often[doc] = others, 0
            often[doc] += others == fewest[doc]
    return fewest, often


@njit(cache=True, nogil=True)
def _lengths(offsets: Ints, position: Codes, opens: Ints) -> Ints:
    """Sum over all query-term occurrences of the shortest span with it and all query terms, in tokens.

    Only for documents with all query terms does it mean anything. The shortest span with a hit is that of a minimal
    window, stretched to the hit where it lies outside. Windows around one hit open with different terms, so that a
    hit is visited no more often than there are terms.
    """
    found, shortest = np.zeros(len(offsets) - 1, np.int64), np.full(len(position), NEVER, np.int64)
    for doc in range(len(found)):
        left, reached = -1, offsets[doc]
        for k in range(offsets[doc], offsets[doc + 1]):
            if opens[k] >= 0:
                left = opens[k]
                for i in range(reached, k + 1):
                    shortest[i] = min(shortest[i], position[k] - position[min(i, left)] + 1)
                reached = left + 1
            elif left >= 0:
                shortest[k] = position[k] - position[left] + 1
        found[doc] = shortest[offsets[doc] : offsets[doc + 1]].sum()
    return found
