"""Axioms on counts of query terms: term frequency, term discrimination and coverage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from whyrank.core import Codes, Flags, Floats, Ints, WhyrankError, tolerance_of
from whyrank.studies.axioms.axiom import LongQuery, OfAnyLength, OfSimilarLength, QueryTerms, allowance, same_total
from whyrank.studies.axioms.view import View

BLOCK = 1 << 20  # triples at a time

# Axioms on term frequency: more query terms, ever less for another one, and more different ones.


@dataclass(frozen=True, kw_only=True)
class TFC1(OfSimilarLength):
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

    name = "TFC1"
    favours = "the text with more query terms, at similar length"
    conditions = (QueryTerms(1),)
    not_filled = ()

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """No query term is rarer in `a`, and some is more frequent."""
        more = view.counts[a] - view.counts[b]
        return np.asarray((more >= 0).all(axis=1) & (more > 0).any(axis=1))


@dataclass(frozen=True, kw_only=True)
class TFC2(OfSimilarLength):
    """Of three texts with ever more query terms in equal steps, the first step adds more to the score.

    Original: for a query of one term q and |D1| = |D2| = |D3|, c(q, D1) > 0, c(q, D2) - c(q, D1) = 1 and
    c(q, D3) - c(q, D2) = 1 imply S(Q, D2) - S(Q, D1) > S(Q, D3) - S(Q, D2).
    Adapted: for any query. The steps are equal for each term and of any size, and their sums grow. Any two
    lengths differ by at most `length` tokens (10), and each text has a query term.
    Formula: for all i, j | |Di| - |Dj| | <= 10, sum_q c(q, Di) >= 1, sum_q c(q, D1) < sum_q c(q, D2) <
    sum_q c(q, D3), for all q in Q c(q, D2) - c(q, D1) = c(q, D3) - c(q, D2).
    Conclusion: S(Q, D2) - S(Q, D1) > S(Q, D3) - S(Q, D2).
    Compat: the same.
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004; adapted in Câmara and
    Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.
    """

    name = "TFC2"
    favours = "first occurrences of query terms over further ones"
    conditions = (QueryTerms(1),)
    size = 3
    not_filled = ()

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Nothing can be said of two texts: always an error."""
        raise WhyrankError("TFC2 compares three texts; ask for its instances or contrasts, not for a preference")

    def instances(self, view: View) -> Iterator[Codes]:
        """Blocks of instances: rows D1, D2, D3 of document numbers, in the order of their query-term sums."""
        groups, room = _groups(view), np.array(tolerance_of("length", self.length))
        held, size = [np.empty((0, 3), np.int32)], 0
        for group in range(len(groups.vectors)):
            for document in groups.members[groups.offsets[group] : groups.offsets[group + 1]]:
                held.append(_triples(document, group, *groups, view.lengths, room))
                size += len(held[-1])
                if size >= BLOCK:
                    yield np.concatenate(held)
                    held, size = held[:1], 0
        yield np.concatenate(held)


@dataclass(frozen=True, kw_only=True)
class TFC3(OfSimilarLength):
    """Of two texts with equally many query terms, the one that spreads them over two terms and not one wins.

    Original: for a query of two terms a, b of equal rarity and |D1| = |D2|, c(a, D2) = c(a, D1) + c(b, D1),
    c(b, D2) = 0, c(a, D1) > 0 and c(b, D1) > 0 imply S(Q, D1) > S(Q, D2).
    Adapted: for any query, in which all terms but a and b are equally frequent in both texts. Lengths differ by at
    most `length` tokens (10). The rarities differ by at most `idf`, a number or a share of the larger (10%), where
    idf(q) = ln((N + 1) / max(df(q), 1)).
    Formula: | |D1| - |D2| | <= 10, exist a != b in Q: | idf(a) - idf(b) | <= 10% of the larger,
    c(a, D2) = c(a, D1) + c(b, D1), c(b, D2) = 0, c(a, D1) > 0, c(b, D1) > 0, and for all other q in Q
    c(q, D1) = c(q, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004.

    Attributes:
        idf: how far the rarity of two terms may differ: a number, or a share of the larger such as `10%`.
    """

    idf: float | str = "10%"

    name = "TFC3"
    favours = "the text with more different query terms, at equal count"
    conditions = (same_total,)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """All that `b` has more of one term, `a` has of another that `b` lacks."""
        more = view.counts[a] - view.counts[b]
        found = np.asarray((more != 0).sum(axis=1) == 2)
        rows, a, b = more[found], a[found], b[found]
        if len(rows):  # the totals are equal, so one of the two terms is more frequent in `a`, the other in `b`
            shared, gained = rows.argmin(axis=1), rows.argmax(axis=1)
            spread = view.present[a, shared] & ~view.present[b, gained]
            one, two = view.idf[shared], view.idf[gained]
            found[found] = spread & (np.abs(one - two) <= allowance("idf", self.idf, np.maximum(one, two)))
        return found


# Axioms on term discrimination: of two query terms, the rarer one counts more.


@dataclass(frozen=True, kw_only=True)
class TDC(OfSimilarLength):
    """Of two texts that differ in two query terms only, the one with more of the rarer term wins.

    Original: for a query of two terms a, b and |D1| = |D2|, c(a, D1) + c(b, D1) = c(a, D2) + c(b, D2),
    idf(a) >= idf(b) and c(a, D1) >= c(a, D2) imply S(Q, D1) >= S(Q, D2).
    Adapted: for any query, in which all terms but a and b are equally frequent in both texts and these two are not.
    Lengths differ by at most `length` tokens (10). For terms of equal rarity either text would have to win, so that
    nothing follows. Rarity is compared by document frequency.
    Formula: | |D1| - |D2| | <= 10, exist a != b in Q: idf(a) >= idf(b), c(a, D1) > c(a, D2),
    c(a, D1) + c(b, D1) = c(a, D2) + c(b, D2), and for all other q in Q c(q, D1) = c(q, D2).
    Conclusion: S(Q, D1) >= S(Q, D2).
    Paper: Fang, Tao and Zhai, "A formal study of information retrieval heuristics", SIGIR 2004.
    """

    name = "TDC"
    favours = "the text with more of the rarer query term"
    conditions = (same_total,)
    strict = False

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Two terms differ, and the one that `a` has more of is not the more common one."""
        more = view.counts[a] - view.counts[b]
        found = np.asarray((more != 0).sum(axis=1) == 2)
        rows, frequency = more[found], np.maximum(view.df, 1)
        if len(rows):
            found[found] = frequency[rows.argmax(axis=1)] <= frequency[rows.argmin(axis=1)]
        return found


@dataclass(frozen=True, kw_only=True)
class M_TDC(OfSimilarLength):  # noqa: N801
    """Of two texts whose query-term counts are exchanged between terms, the one with more of the rarer terms wins.

    Original: TDC, for queries of two terms.
    Adapted: for any query. The texts have equally many query terms. Each term whose count differs takes part in at
    least one exchange with another one. In each such exchange D1 has the larger count for the rarer term, which
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

    name = "M-TDC"
    favours = "the text with more of the rarer query terms"
    conditions = (same_total,)
    strict = False
    not_filled = ()
    both_orders = True

    @property
    def concludes(self) -> str:
        """`weak`, or under `compat` `strict`, unless a conclusion is given."""
        return self.conclusion or ("weak" if self.compat is None else "strict")

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """All counts that differ are exchanged in favour of a term that is not more common."""
        frequency = np.maximum(view.df if self.compat is None else view.cf, 1)
        rarer = frequency[:, None] <= frequency[None, :]
        return _is_exchange(view.counts, a, b, rarer & (view.in_query[:, None] >= view.in_query[None, :]))


@njit(cache=True, nogil=True)
def _is_exchange(counts: Codes, a: Codes, b: Codes, may_swap: Flags) -> Flags:
    """Whether some counts differ, and each of these belongs to an allowed pair of terms that swap their counts."""
    found = np.zeros(len(a), np.bool_)
    for i in range(len(a)):
        one, two = counts[a[i]], counts[b[i]]
        open_ = one != two
        found[i] = open_.any()
        for x in range(len(one)):
            for y in range(len(one)):
                if may_swap[x, y] and one[x] > two[x] and one[x] == two[y] and one[y] == two[x]:
                    open_[x] = open_[y] = False
        found[i] = found[i] and not open_.any()
    return found


# Axioms on coverage: all query terms, more of them, and words beyond them.


@dataclass(frozen=True, kw_only=True)
class AND(OfAnyLength):
    """A text with all query terms beats a text that lacks one.

    Original: the terms of a query form aspects. A text that covers all of them is to be ranked above one that does
    not, however often the latter has the terms of a single aspect.
    Adapted: every query term is an aspect of its own; the query has at least two distinct terms; with `length`, the
    lengths differ by at most so much.
    Formula: |Q| >= 2, for all q in Q c(q, D1) > 0, there is a q in Q with c(q, D2) = 0.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Zheng and Fang, "Query aspect based term weighting regularization in information retrieval", ECIR 2010; Wu
    and Fang, "Relation based term weighting regularization", ECIR 2012; adapted in Hagen, Völske, Göring and Stein,
    "Axiomatic result re-ranking", CIKM 2016.
    """

    name = "AND"
    favours = "the text with all query terms"
    conditions = (LongQuery(2),)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Only `a` has all query terms."""
        full = view.distinct == len(view.terms)
        return np.asarray(full[a] & ~full[b])


@dataclass(frozen=True, kw_only=True)
class M_AND(OfAnyLength):  # noqa: N801
    """A text with more distinct query terms beats a text with fewer.

    Original: as AND, from which it follows by giving up that the winner has every term.
    Adapted: the number of distinct query terms is compared; the query has at least two; with `length`, the lengths
    differ by at most so much.
    Formula: |Q| >= 2, |{q in Q: c(q, D1) > 0}| > |{q in Q: c(q, D2) > 0}|.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Zheng and Fang, "Query aspect based term weighting regularization in information retrieval", ECIR 2010; Wu
    and Fang, "Relation based term weighting regularization", ECIR 2012; adapted in Hagen, Völske, Göring and Stein,
    "Axiomatic result re-ranking", CIKM 2016.
    """

    name = "M-AND"
    favours = "the text with more distinct query terms"
    conditions = (LongQuery(2),)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """More distinct query terms are in `a`."""
        return np.asarray(view.distinct[a] > view.distinct[b])


@dataclass(frozen=True, kw_only=True)
class DIV(OfAnyLength):
    """The text whose words overlap less with the query wins: it has more to say beyond it.

    Original: axioms of result diversification, on sets of documents that are to differ from each other.
    Adapted: the difference is that between one text and the query, as the Jaccard coefficient of their sets of terms,
    compared as exact fractions. With `length`, the lengths differ by at most so much.
    Formula: J(D) = |Q and D| / |Q or D| over sets of terms, J(D1) < J(D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Gollapudi and Sharma, "An axiomatic approach for result diversification", WWW 2009; adapted in Hagen,
    Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016.
    """

    name = "DIV"
    favours = "the text that overlaps less with the query"

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The share of common terms is smaller in `a`."""
        tokens, size = view.pool.pools.tokens, len(view.pool.pools.analyzer.vocabulary)
        sizes = view.views.once("distinct terms", lambda: _count_distinct(tokens.ids, tokens.offsets, size))
        shared, joined = view.distinct, len(view.terms) + sizes[view.pool.rows] - view.distinct
        return np.asarray(shared[a] * joined[b] < shared[b] * joined[a])


@njit(cache=True, nogil=True)
def _count_distinct(ids: Codes, offsets: Ints, size: int) -> Ints:
    """How many distinct terms each text has."""
    found, last = np.zeros(len(offsets) - 1, np.int64), np.full(size, -1, np.int64)
    for text in range(len(found)):
        for at in range(offsets[text], offsets[text + 1]):
            found[text] += last[ids[at]] != text
            last[ids[at]] = text
    return found


# Triples of texts for TFC2: documents with equal counts are one group, and the third group follows from two.


class _Groups(NamedTuple):
    """Documents by their counts of query terms: those with `vectors[g]` are `members[offsets[g]:offsets[g + 1]]`."""

    vectors: Codes
    totals: Ints
    offsets: Ints
    members: Codes


def _groups(view: View) -> _Groups:
    """The documents that have a query term, by their counts."""
    some = np.flatnonzero(view.total).astype(np.int32)
    if not len(some):
        return _Groups(view.counts[some], np.zeros(0, np.int64), np.zeros(1, np.int64), some)
    vectors, group = np.unique(view.counts[some], axis=0, return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(group.ravel()))])
    return _Groups(
        vectors, vectors.sum(axis=1, dtype=np.int64), offsets, some[np.argsort(group.ravel(), kind="stable")]
    )


@njit(cache=True, nogil=True)
def _triples(
    one: int, first: int, vectors: Codes, totals: Ints, offsets: Ints, members: Codes, lengths: Ints, room: Floats
) -> Codes:
    """All triples that begin with the document `one` of the group `first`."""
    found, n = np.empty((16, 3), np.int32), 0
    for second in range(len(vectors)):
        third = _third(vectors, first, second) if totals[first] < totals[second] else -1
        if third < 0:
            continue
        for two in members[offsets[second] : offsets[second + 1]]:
            if not _near(lengths[one], lengths[two], room):
                continue
            for three in members[offsets[third] : offsets[third + 1]]:
                if _near(lengths[one], lengths[three], room) and _near(lengths[two], lengths[three], room):
                    if n == len(found):
                        found = np.concatenate((found, np.empty_like(found)))
                    found[n] = one, two, three
                    n += 1
    return found[:n]


@njit(cache=True, nogil=True)
def _third(vectors: Codes, one: int, two: int) -> int:
    """The number of the vector 2 * two - one among the sorted vectors, or -1."""
    low, high = 0, len(vectors)
    while low < high:
        middle, sign = (low + high) // 2, 0
        for term in range(vectors.shape[1]):
            sign = 2 * vectors[two, term] - vectors[one, term] - vectors[middle, term]
            if sign != 0:
                break
        if sign == 0:
            return middle
        low, high = (middle + 1, high) if sign > 0 else (low, middle)
    return -1


@njit(cache=True, nogil=True)
def _near(one: int, two: int, room: Floats) -> bool:
    return bool(abs(one - two) <= room[0] + room[1] * max(one, two))
