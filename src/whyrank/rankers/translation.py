"""A term table as a translation model: T'(query term | document term), with thresholds and self-translation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from whyrank.core.protocols import Codes, Floats, Ints
from whyrank.data.term_table import TermTable
from whyrank.data.term_table_algebra import self_entries
from whyrank.rankers import model1_kernels as kernels
from whyrank.text import Analyzer, Tokens


@dataclass(frozen=True, eq=False)
class Translation:
    """T'(q|d) = (1 - p_self) T(q|d) + p_self [q = d], computed for the query terms that are asked for.

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

    def sums(self, terms: Sequence[str], texts: Tokens, rows: Codes, dense: kernels.Singles) -> Floats:
        """The sum of T'(q|d) over the tokens d of each of the texts `rows`, a column for each query term."""
        found = np.empty((len(rows), len(terms)))
        for start in range(0, len(terms), kernels.WIDTH):
            some = terms[start : start + kernels.WIDTH]
            added = np.zeros((len(rows), kernels.WIDTH))
            self._spread(some, dense)
            kernels.add_up(texts.ids, texts.offsets, rows, dense, added)
            self._clear(some, dense)
            found[:, start : start + len(some)] = added[:, : len(some)]
        return found

    def cells(self, terms: Sequence[str], numbers: Codes | Ints) -> Floats:
        """T'(q|d) of each query term and each document term."""
        found, dense = np.empty((len(terms), len(numbers))), self.dense()
        for start in range(0, len(terms), kernels.WIDTH):
            some = terms[start : start + kernels.WIDTH]
            self._spread(some, dense)
            found[start : start + len(some)] = dense[numbers, : len(some)].T
            self._clear(some, dense)
        return found

    def dense(self) -> kernels.Singles:
        """Room for a few query terms, all zero."""
        return np.zeros((len(self.numbers), kernels.WIDTH), np.float32)

    def _spread(self, terms: Sequence[str], dense: kernels.Singles) -> None:
        entries, (rows, own) = self.table.by_query, self._places(terms)
        limits = self.threshold, self.threshold if self.rescaled else 0.0
        kernels.spread(*entries, self._whole, rows, own, self.p_self, self.replace, *limits, dense)

    def _clear(self, terms: Sequence[str], dense: kernels.Singles) -> None:
        kernels.clear(self.table.indptr, self.table.indices, *self._places(terms), dense)

    def _places(self, terms: Sequence[str]) -> tuple[Ints, Ints]:
        """The row of each query term in the table and its number as a document term; -1 for none."""
        rows = np.array([self.table.query_numbers.get(term, -1) for term in terms], np.int64)
        return rows, np.array([self.numbers.get(term, -1) for term in terms], np.int64)

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
