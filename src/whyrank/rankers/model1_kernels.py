"""Compiled loops of Model 1: spread the rows of a few query terms out over all document terms, then read texts.

A row of `dense` belongs to a document term and has a column for each of `WIDTH` query terms, so that a token costs
one short addition of neighbouring numbers, and no search.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core.protocols import Codes, Floats, Ints

WIDTH = 8
Singles = npt.NDArray[np.float32]


@njit(cache=True, nogil=True)
def spread(
    indptr: Ints,
    indices: Codes,
    weights: Singles,
    sums: Floats,
    rows: Ints,
    own: Ints,
    p_self: float,
    replace: bool,
    raw: float,
    rescaled: float,
    dense: Singles,
) -> None:
    """Write T'(q|d) into column j for the query term j, which is the row `rows[j]` of the table, or none (-1).

    Weights below `raw` are left out, the others divided by `sums` where it is given; what is then below `rescaled` is
    left out too. `own[j]` is the number of query term j among the document terms, or -1.
    """
    for j in range(len(rows)):
        if rows[j] >= 0:
            for entry in range(indptr[rows[j]], indptr[rows[j] + 1]):
                d = indices[entry]
                if weights[entry] < np.float32(raw) or (replace and d == own[j]):
                    continue
                whole = sums[d] if len(sums) else 1.0
                dense[d, j] = (1.0 - p_self) * weights[entry] / whole if whole > 0 else 0.0
                if d != own[j] and dense[d, j] < np.float32(rescaled):
                    dense[d, j] = 0.0
        if own[j] >= 0:
            dense[own[j], j] += p_self
            if dense[own[j], j] < np.float32(rescaled):
                dense[own[j], j] = 0.0


@njit(cache=True, nogil=True)
def clear(indptr: Ints, indices: Codes, rows: Ints, own: Ints, dense: Singles) -> None:
    """Undo `spread`."""
    for j in range(len(rows)):
        if rows[j] >= 0:
            for entry in range(indptr[rows[j]], indptr[rows[j] + 1]):
                dense[indices[entry], j] = 0.0
        if own[j] >= 0:
            dense[own[j], j] = 0.0


@njit(cache=True, nogil=True)
def add_up(ids: Codes, offsets: Ints, rows: Codes, dense: Singles, sums: Floats) -> None:
    """Add the rows of all tokens of each of the texts `rows`; `sums` is all zero before."""
    for i in range(len(rows)):
        for position in range(offsets[rows[i]], offsets[rows[i] + 1]):
            d = ids[position]
            for j in range(WIDTH):
                sums[i, j] += dense[d, j]


@njit(cache=True, nogil=True)
def likelihoods(
    sums: Floats, lengths: Ints, rows: Codes, weights: Floats, priors: Floats, lam: float, floor: float, out: Floats
) -> None:
    """Add to `out` what the query terms give to the score of each of the texts `rows`.

    With P = sum / length and C the prior: weight * (ln((1 - lam) P + lam C) - ln(lam C)), or for lam = 0
    weight * ln(max(floor, P)).
    """
    for i in range(len(rows)):
        length = max(lengths[rows[i]], 1)
        for j in range(len(weights)):
            if lam > 0.0:
                out[i] += weights[j] * np.log1p((1.0 - lam) * (sums[i, j] / length) / (lam * priors[j]))
            else:
                out[i] += weights[j] * np.log(max(floor, sums[i, j] / length))
