"""Axioms on query aspects: which of the query's terms a text should have more of, by how the terms are related."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from whyrank.core import Codes, Flags, Floats, Ints
from whyrank.studies.axioms.axiom import LongQuery, OfSimilarLength, same_total
from whyrank.studies.axioms.meaning import SAME, SemanticAxiom
from whyrank.studies.axioms.view import View, Views


@dataclass(frozen=True, kw_only=True)
class REG(OfSimilarLength, SemanticAxiom):
    """Of two texts with as many query terms, the one with more of the term least like the others wins.

    Original: related terms of a query are one aspect of it, and a text that covers more aspects beats one that
    repeats terms of the same aspect.
    Adapted: the term t* with the smallest mean cosine to the other query terms stands for the aspect that is easily
    left out. It must be the only one, among three or more terms with vectors. The texts have equally many query-term
    occurrences, and lengths differ by at most `length` tokens (10).
    Formula: | |D1| - |D2| | <= 10, sum_q c(q, D1) = sum_q c(q, D2), t* = argmin_t mean_{u in Q, u != t} cos(t, u),
    c(t*, D1) > c(t*, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Wu and Fang, "Relation based term weighting regularization", ECIR 2012, after Zheng and Fang, "Query aspect
    based term weighting regularization in information retrieval", ECIR 2010.
    """

    name = "REG"
    favours = "the text with more of the query term that is least like the others"
    conditions = (LongQuery(3), same_total)
    sign = -1

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """`a` has more of the term that stands out."""
        term = self.outstanding(view)
        if term is None:
            return np.zeros(len(a), bool)
        return np.asarray(view.counts[a, term] > view.counts[b, term])

    def outstanding(self, view: View) -> int | None:
        """The number of the query term whose mean cosine to the others stands out; None where there is none."""
        likeness, terms = self._likeness(view)
        if len(terms) < 3:
            return None
        first, second = np.argsort(-self.sign * likeness)[:2]
        return int(terms[first]) if abs(likeness[first] - likeness[second]) > SAME else None

    def excluded_counts(self, views: Views) -> Mapping[str, int]:
        """Queries without a term that stands out."""
        short = sum(len(self._likeness(view)[1]) < 3 for view in views)
        lost = sum(self.outstanding(view) is None for view in views)
        return {
            "queries of fewer than three terms with a vector": short,
            f"queries without a single term {'least' if self.sign < 0 else 'most'} like the others": lost - short,
        }

    def _likeness(self, view: View) -> tuple[Floats, Ints]:
        """The mean cosine to the others of each query term that has a vector, and the numbers of these terms."""
        slot, units, _ = self.term_vectors(view.views)
        rows = slot[view.term_ids]
        vectors = np.full((len(rows), units.shape[1]), np.nan)
        vectors[rows >= 0] = units[rows[rows >= 0]]
        cosines = vectors @ vectors.T
        terms = np.flatnonzero(~np.isnan(np.diag(cosines)))
        among = cosines[np.ix_(terms, terms)]
        return np.asarray((among.sum(axis=1) - np.diag(among)) / max(len(terms) - 1, 1)), terms


@dataclass(frozen=True, kw_only=True)
class ANTI_REG(REG):  # noqa: N801
    """Of two texts with as many query terms, the one with more of the term most like the others wins.

    Original: the reverse of REG: what most of the query is about counts most.
    Adapted: as REG, with the query term t* that has the largest mean cosine to the others.
    Formula: | |D1| - |D2| | <= 10, sum_q c(q, D1) = sum_q c(q, D2), t* = argmax_t mean_{u in Q, u != t} cos(t, u),
    c(t*, D1) > c(t*, D2).
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: Hagen, Völske, Göring and Stein, "Axiomatic result re-ranking", CIKM 2016, after Zheng and Fang, "Query
    aspect based term weighting regularization in information retrieval", ECIR 2010.
    """

    name = "ANTI-REG"
    favours = "the text with more of the query term that is most like the others"
    sign = 1
