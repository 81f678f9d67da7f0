"""Axioms on semantic matching: words that are not in the query, but near to it in meaning.

The vector of a text without the query's terms, V(D - Q), is the mean of the vectors of its other tokens, each as
often as it occurs. V(Q) is the mean over the tokens of the query. Tokens without a vector are left out. Where a mean
is undefined, nothing follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from whyrank.core import Codes, Flags, Range
from whyrank.studies.axioms.axiom import Precondition, allowance, same_total
from whyrank.studies.axioms.meaning import SAME, SemanticAxiom, pair_cosines
from whyrank.studies.axioms.view import View


def same_distinct(view: View, a: Codes, b: Codes) -> Flags:
    """Both documents have equally many distinct query terms."""
    return np.asarray(view.distinct[a] == view.distinct[b])


@dataclass(frozen=True, kw_only=True)
class STMC1(SemanticAxiom):
    """Of two texts with as many query terms, the one whose other words are nearer to the query wins.

    Original: for a query of one term q and two texts of one other term each, d1 and d2, s(q, d1) > s(q, d2) implies
    S(Q, D1) > S(Q, D2), where s is the similarity of two terms.
    Adapted: for any texts with equally many distinct query terms (`coverage`; or as many occurrences). Then s is the
    cosine of the mean vectors of the query and of the text without query terms. In print the similarity is called
    cosine distance.
    Formula: |D1 ∩ Q| = |D2 ∩ Q|, cos(V(D1 - Q), V(Q)) > cos(V(D2 - Q), V(Q)).
    Conclusion: S(Q, D1) > S(Q, D2).
    Compat: query terms are counted as often as they occur. The cosine distance takes the place of the
    similarity, so the text whose other words are further from the query must win.
    Paper: Fang and Zhai, "Semantic term matching in axiomatic approaches to information retrieval", SIGIR 2006;
    adapted in Câmara and Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.

    Attributes:
        coverage: `distinct` or `occurrences`: what is counted where the texts must have as many query terms.
    """

    coverage: Literal["distinct", "occurrences"] = "distinct"

    name = "STMC1"
    favours = "the text whose other words are nearer to the query in meaning"
    compat_favours = "the text whose other words are further from the query in meaning"
    not_filled = ()

    def preconditions(self) -> tuple[Precondition, ...]:
        """As many query terms in both."""
        return (same_total if self.compat or self.coverage == "occurrences" else same_distinct,)

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The other words of `a` are nearer to the query; under `compat` those of `b`."""
        near = self.nearness(view).cosine
        return np.asarray(near[b] - near[a] > SAME if self.compat else near[a] - near[b] > SAME)


@dataclass(frozen=True, kw_only=True)
class STMC2(SemanticAxiom):
    """Of two texts whose other words mean about the same, the one with more query terms does not lose.

    Original: a text that is one query term scores no lower than a text of k copies of another term, however similar
    to the query. To match the term itself is at least as good.
    Adapted: for any texts without whose query terms the cosine distance is at most `distance` (0.2). The printed
    condition compares the other words of D2 with the query terms of D1; query terms of both are compared.
    Formula: 1 - cos(V(D1 - Q), V(D2 - Q)) <= 0.2, sum_q c(q, D1) > sum_q c(q, D2).
    Conclusion: S(Q, D1) >= S(Q, D2).
    Compat: the same.
    Paper: Fang and Zhai, "Semantic term matching in axiomatic approaches to information retrieval", SIGIR 2006;
    adapted in Câmara and Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.

    Attributes:
        distance: largest cosine distance of texts that count as alike.
    """

    distance: Annotated[float, Range(0, 2)] = 0.2

    name = "STMC2"
    favours = "the text with more query terms, other words being alike in meaning"
    needs_query = False
    strict = False
    not_filled = ()

    def preconditions(self) -> tuple[Precondition, ...]:
        """Other words that mean about the same."""
        return (
            lambda view, a, b: np.asarray(1 - pair_cosines(self.nearness(view).units, a, b) <= self.distance + SAME),
        )

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """`a` has more query terms."""
        return np.asarray(view.total[a] > view.total[b])


@dataclass(frozen=True, kw_only=True)
class STMC3(SemanticAxiom):
    """Of two texts with the same query terms, one with fewer of them but nearer other words does not lose.

    Original: for a query of two terms and texts of equal length, D2 of nothing but the first term does not beat D1,
    where one occurrence of it is replaced by a term that is similar to the second.
    Adapted: for any texts with equally many distinct query terms whose lengths differ by less than `length` tokens
    (10). D2 has more query-term occurrences, and the other words of D1 are nearer to the query. The conclusion that
    is printed for this condition contradicts the original, which is used.
    Formula: | |D1| - |D2| | < 10, |D1 ∩ Q| = |D2 ∩ Q|, sum_q c(q, D1) < sum_q c(q, D2),
    cos(V(D1 - Q), V(Q)) > cos(V(D2 - Q), V(Q)).
    Conclusion: S(Q, D1) >= S(Q, D2).
    Compat: D2 has more tokens outside the query, in place of more query terms. The cosine distance takes the
    place of the similarity, so the other words of D1 are further from the query.
    Paper: Fang and Zhai, "Semantic term matching in axiomatic approaches to information retrieval", SIGIR 2006;
    adapted in Câmara and Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020.

    Attributes:
        length: how far the lengths may differ: tokens, or a share of the longer text such as `10%`.
    """

    length: float | str = 10

    name = "STMC3"
    favours = "the text with nearer other words over one with more query terms"
    compat_favours = "the text with further other words over one with more of them"
    strict = False
    not_filled = ()

    def preconditions(self) -> tuple[Precondition, ...]:
        """Lengths that differ by less than the tolerance, and as many distinct query terms."""

        def near_length(view: View, a: Codes, b: Codes) -> Flags:
            one, two = view.lengths[a], view.lengths[b]
            room = allowance("length", self.length, np.maximum(one, two))
            return np.asarray(
                np.abs(one - two) < room * (1 - SAME)
            )  # in floating point 7% of 100 is a little above 7

        return near_length, same_distinct

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """`b` has more query terms (under `compat`: other tokens), but `a` is nearer (further)."""
        near, more = self.nearness(view).cosine, view.total
        if self.compat:
            near, more = -near, view.lengths - view.total
        return np.asarray((more[b] > more[a]) & (near[a] - near[b] > SAME))
