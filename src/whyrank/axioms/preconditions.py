"""Preconditions: what both documents of a pair must meet before an axiom says anything about them.

The runner checks them before it asks the axiom, so an axiom cannot forget or override its own. A new one is any
function of a view and two arrays of document numbers that gives a flag per pair and does not mind their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whyrank.axioms.view import View
from whyrank.core.checks import tolerance_of
from whyrank.core.protocols import Codes, Flags

Precondition = Callable[[View, Codes, Codes], Flags]


@dataclass(frozen=True)
class SimilarLength:
    """||D1| - |D2|| is at most `tolerance` tokens, or a share of the longer one such as `10%`."""

    tolerance: float | str

    def __call__(self, view: View, a: Codes, b: Codes) -> Flags:
        """A flag per pair."""
        absolute, relative = tolerance_of("length", self.tolerance)
        one, two = view.lengths[a], view.lengths[b]
        return np.asarray(np.abs(one - two) <= absolute + relative * np.maximum(one, two))


@dataclass(frozen=True)
class QueryTerms:
    """Both documents have at least so many distinct query terms."""

    least: int = 1

    def __call__(self, view: View, a: Codes, b: Codes) -> Flags:
        """A flag per pair."""
        enough = view.distinct >= self.least
        return np.asarray(enough[a] & enough[b])


@dataclass(frozen=True)
class LongQuery:
    """The query has at least so many distinct terms."""

    least: int = 2

    def __call__(self, view: View, a: Codes, b: Codes) -> Flags:
        """A flag per pair."""
        return np.full(len(a), len(view.terms) >= self.least)


def all_terms(view: View, a: Codes, b: Codes) -> Flags:
    """Both documents have all query terms."""
    full = view.distinct == len(view.terms)
    return np.asarray(full[a] & full[b])


def same_total(view: View, a: Codes, b: Codes) -> Flags:
    """Both documents have equally many query-term occurrences."""
    return np.asarray(view.total[a] == view.total[b])


def similar_length(tolerance: float | str | None) -> tuple[Precondition, ...]:
    """The precondition on length, or none."""
    return () if tolerance is None else (SimilarLength(tolerance),)
