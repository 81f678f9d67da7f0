"""A term table as a translation model: T'(query term | document term), with thresholds and self-translation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Codes, Floats, Ints
from whyrank.tables import TermTable, self_entries
from whyrank.text import Analyzer, Tokens

# Compiled loops of Model 1: spread the rows of a few query terms out over all document terms, then read texts.
#
# A row of `dense` belongs to a document term and has a column for each of `WIDTH` query terms, so that a token costs
# one short addition of neighbouring numbers, and no search.

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


@dataclass(frozen=True, eq=False)
class Translation:
    """T'(q|d) = (1 - p_self) T(q|d) + p_self [q = d], computed for the query terms at hand.

    The table itself stays as it is, so that a memory-mapped one is read where it is needed.

    Attributes:
        table: the weights T(q|d); its vocabulary is the terms of both sides.
        p_self: the probability of a term to stay as it is, on top of T(d|d).
        replace: leave T(d|d) out instead.
        threshold: smaller T(q|d) are left out.
        rescaled: leave out smaller T'(q|d) too.
        renormalize: scale the T(q|d) that are left, so that those of each document term add up to 1.
    """

    table: TermTable
    p_self: float = 0.0
    replace: bool = False
    threshold: float = 0.0
    rescaled: bool = False
    renormalize: bool = False

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each term as a document term; query terms that are no document terms come last."""
        known, more = self.table.doc_numbers, len(self.table.doc_terms)
        return {**known, **{term: more + i for i, term in enumerate(self._extra)}} if self._extra else known

    def terms(self, numbers: Codes | Ints) -> list[str]:
        """The terms of numbers."""
        whole = len(self.table.doc_terms)
        return [self.table.doc_terms[i] if i < whole else self._extra[i - whole] for i in numbers.tolist()]

    def numbered(self, analyzer: Analyzer, tokens: Tokens) -> Tokens:
        """Analysed texts in the numbers of the table, without the tokens that it does not know."""
        numbers = self._numbers(analyzer)[tokens.ids]
        known = numbers >= 0
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])[tokens.offsets]
        return Tokens(numbers[known], offsets)

    def sums(self, terms: Sequence[str], texts: Tokens, rows: Codes, dense: Singles) -> Floats:
        """The sum of T'(q|d) over the tokens d of each of the texts `rows`, a column for each query term."""
        found = np.empty((len(rows), len(terms)))
        for start, width in self._spread_in(terms, dense):
            added = np.zeros((len(rows), WIDTH))
            add_up(texts.ids, texts.offsets, rows, dense, added)
            found[:, start : start + width] = added[:, :width]
        return found

    def cells(self, terms: Sequence[str], numbers: Codes | Ints) -> Floats:
        """T'(q|d) of each query term and each document term."""
        found, dense = np.empty((len(terms), len(numbers))), self.dense()
        for start, width in self._spread_in(terms, dense):
            found[start : start + width] = dense[numbers, :width].T
        return found

    def dense(self) -> Singles:
        """Room for a few query terms, all zero."""
        return np.zeros((len(self.numbers), WIDTH), np.float32)

    def _spread_in(self, terms: Sequence[str], dense: Singles) -> Iterator[tuple[int, int]]:
        """Write T'(q|d) of a few query terms at a time into `dense`; where they start, and how many they are."""
        for start in range(0, len(terms), WIDTH):
            some = terms[start : start + WIDTH]
            rows = np.array([self.table.query_numbers.get(term, -1) for term in some], np.int64)
            own = np.array([self.numbers.get(term, -1) for term in some], np.int64)
            limits = self.threshold, self.threshold if self.rescaled else 0.0
            spread(*self.table.by_query, self._whole, rows, own, self.p_self, self.replace, *limits, dense)
            yield start, len(some)
            clear(self.table.indptr, self.table.indices, rows, own, dense)

    @cached_property
    def _whole(self) -> Floats:
        """The sum of the weights of each document term that are not left out, where they are to be scaled."""
        if not self.renormalize:
            return np.zeros(0)
        enough = self.table.weights >= np.float32(self.threshold)
        if self.replace:
            enough &= ~self_entries(self.table)
        given = self.table.weights[enough]
        return np.bincount(self.table.indices[enough], given, len(self.table.doc_terms)).astype(np.float64)

    def _numbers(self, analyzer: Analyzer) -> Codes:
        """The number of every term that the analyzer has met so far, -1 for those that the table does not know."""
        names = analyzer.vocabulary.terms
        before = self._met.get(analyzer.identity, np.zeros(0, np.int32))
        if len(before) < len(names):
            more = [self.numbers.get(name, -1) for name in names[len(before) :]]
            before = self._met[analyzer.identity] = np.concatenate([before, np.array(more, np.int32)])
        return before

    @cached_property
    def _extra(self) -> list[str]:
        return [term for term in self.table.query_terms if term not in self.table.doc_numbers]

    @cached_property
    def _met(self) -> dict[str, Codes]:
        return {}
