"""The compiled heart of EM: one visit to the words of a shard."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Codes, Floats, Ints

TINY = 1e-30  # smaller expected counts are zero: they change nothing, and numbers below 1e-38 are slow


@njit(cache=True, nogil=True, error_model="numpy")
def visit(
    indptr: Ints,
    indices: Codes,
    values: npt.NDArray[Any],
    starts: Ints,
    sizes: Codes,
    links: Codes,
    held_starts: Ints,
    held_sizes: Codes,
    held_lengths: Codes,
    held_links: Codes,
    scale: Floats,
    null: int,
    update: bool,
    totals: Floats,
    told: Floats,
) -> None:
    """Take each word's probabilities, tell how likely its occurrences are, and put expected counts in their place.

    `values` has expected counts c(q, d) and `scale` one over their sums by source word: T(q|d) = values * scale. An
    occurrence has the probability s = sum of T over its links and NULL. Each link expects T / s of the occurrence;
    T is the same for all links of one place, so that 1 / s is added up and multiplied by T at the end. `told` gets
    the sums of log(s / (length + 1)) in training and held out, then how many held-out occurrences count: those of
    words that are trained on, with s > 0. Sums are taken in double precision, in the order of the bitext.
    """
    widest = 0
    for word in range(len(starts) - 1):
        widest = max(widest, indptr[word + 1] - indptr[word])
    row, shares = np.empty(widest, np.float64), np.empty(widest, np.float64)
    at = held_at = 0
    for word in range(len(starts) - 1):
        begin, width = indptr[word], indptr[word + 1] - indptr[word]
        for place in range(width):
            row[place] = values[begin + place] * scale[indices[begin + place]]
        shares[:width] = 0.0
        for occurrence in range(held_starts[word], held_starts[word + 1]):
            s = row[0]
            for link in range(held_at, held_at + held_sizes[occurrence]):
                s += row[held_links[link]]
            held_at += held_sizes[occurrence]
            if s > 0.0 and starts[word + 1] > starts[word]:  # only the uniform start explains a word never trained on
                told[1] += np.log(s / (held_lengths[occurrence] + null))
                told[2] += 1.0
        for occurrence in range(starts[word], starts[word + 1]):
            end, s = at + sizes[occurrence], row[0]
            for link in range(at, end):
                s += row[links[link]]
            told[0] += np.log(s / (sizes[occurrence] + null))
            if update:
                share = 1.0 / s
                shares[0] += share
                for link in range(at, end):
                    shares[links[link]] += share
            at = end
        if update:
            for place in range(width):
                count = row[place] * shares[place]
                values[begin + place] = count if count > TINY else 0.0
                totals[indices[begin + place]] += values[begin + place]
