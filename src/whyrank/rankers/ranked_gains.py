"""Measures that add up gains by rank (nDCG, P, R) or look at the first hit (RR, Success), exact along a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whyrank.core.protocols import Floats, Ints
from whyrank.rankers import crossing_kernels as kernels
from whyrank.rankers.coordinate_ascent import Pieces


@dataclass(frozen=True, eq=False)
class RankedGains:
    """The mean over queries of sum(gain * discount[rank]) / norm, or with `first` of the best discount of a hit.

    Attributes:
        offsets: where the rows of each query start, and the number of rows; of equal scores the earlier row is first.
        gains: of each row; what gains nothing has 0.
        discounts: by rank from 0, one more than a query has rows.
        norms: of each query.
        n_queries: what the sum is divided by; queries without rows count too.
        first: whether only the first row that gains counts.
    """

    offsets: Ints
    gains: Floats
    discounts: Floats
    norms: Floats
    n_queries: int
    first: bool = False

    def value(self, scores: Floats) -> float:
        """The mean measure."""
        total = kernels.measured(scores, self.offsets, self.gains, self.discounts, self.norms, self.first)
        return float(total) / max(self.n_queries, 1)

    def pieces(self, base: Floats, slope: Floats) -> Pieces:
        """The mean measure of base + t * slope for all t: every stretch between two changes."""
        start, times, changes = kernels.sweep(
            base, slope, self.offsets, self.gains, self.discounts, self.norms, self.first
        )
        order = np.argsort(times, kind="stable")
        edges, totals = times[order], start + np.concatenate([[0.0], np.cumsum(changes[order])])
        ends = np.concatenate([edges, [np.inf]])
        return Pieces(np.concatenate([[-np.inf], edges]), ends, totals / max(self.n_queries, 1))


def cut(discounts: Floats, cutoff: int | None) -> Floats:
    """Discounts that are 0 from a rank on."""
    return discounts if cutoff is None else np.where(np.arange(len(discounts)) < cutoff, discounts, 0.0)
