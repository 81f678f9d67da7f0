"""Two term tables side by side: every pair that one of them has, with both weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import Codes, Flags, Floats, Ints, NonNegative, check
from whyrank.tables.table import TermTable, Weights, entry_keys
from whyrank.tables.tsv import escaped_terms, tab_separated

TOLERANCE = 1e-6  # above the rounding of weights in single precision


class Change(NamedTuple):
    """One pair in two tables; a weight is None where the table has no entry."""

    query_term: str
    document_term: str
    first: float | None
    second: float | None

    @property
    def difference(self) -> float:
        """The second weight minus the first; a missing one counts as zero."""
        return (self.second or 0.0) - (self.first or 0.0)


@dataclass(frozen=True, eq=False)
class TableDifference:
    """The pairs of two tables, by query term; in vocabularies the terms of the first table come first."""

    query_terms: Sequence[str]  # the query terms of both tables
    doc_terms: Sequence[str]  # the document terms of both tables
    rows: Codes  # the number of each pair's query term
    columns: Codes  # the number of each pair's document term
    first: Weights  # the weights of the first table, zero where it has no entry
    second: Weights  # the weights of the second table, zero where it has no entry
    in_first: Flags  # whether the first table has an entry
    in_second: Flags  # whether the second table has one
    tolerance: float = TOLERANCE  # weights that differ by at most this count as the same

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def changes(self) -> Floats:
        """The second weight minus the first, for each pair."""
        return self.second.astype(np.float64) - self.first

    @property
    def only_first(self) -> Flags:
        """The pairs that the second table lacks."""
        return self.in_first & ~self.in_second

    @property
    def only_second(self) -> Flags:
        """The pairs that the first table lacks."""
        return self.in_second & ~self.in_first

    @property
    def changed(self) -> Flags:
        """The pairs that both have, with weights that differ by more than the tolerance."""
        found: Flags = self.in_first & self.in_second & (np.abs(self.changes) > self.tolerance)
        return found

    def largest(self, n: int, among: Flags | None = None) -> list[Change]:
        """The pairs that differ most, among all or some of them; of equal ones the first."""
        positions = np.flatnonzero(self.only_first | self.only_second | self.changed if among is None else among)
        order = positions[np.argsort(-np.abs(self.changes[positions]), kind="stable")[:n]]
        found: list[Change] = []
        for i in order.tolist():
            first = float(self.first[i]) if self.in_first[i] else None
            second = float(self.second[i]) if self.in_second[i] else None
            found.append(Change(self.query_terms[self.rows[i]], self.doc_terms[self.columns[i]], first, second))
        return found


def difference(first: TermTable, second: TermTable, tolerance: float = TOLERANCE) -> TableDifference:
    """Join two tables over the pairs of either; weights that differ by at most `tolerance` count as the same."""
    check("tolerance", tolerance, NonNegative)
    query_terms, rows = _merge_terms(first.query_terms, first.query_numbers, second.query_terms)
    doc_terms, columns = _merge_terms(first.doc_terms, first.doc_numbers, second.doc_terms)
    ours = entry_keys(first.row_numbers(), first.indices, len(doc_terms))
    theirs = entry_keys(rows[second.row_numbers()], columns[second.indices], len(doc_terms))
    # a stable sort only merges what is in order already
    both = np.sort(np.concatenate([ours, np.sort(theirs, kind="stable")]), kind="stable")
    keys = both[np.append(True, both[1:] != both[:-1])[: len(both)]]
    held = [_align(keys, ours, first.weights), _align(keys, theirs, second.weights)]
    q, d = (part.astype(np.int32) for part in np.divmod(keys, max(len(doc_terms), 1)))
    return TableDifference(query_terms, doc_terms, q, d, held[0][0], held[1][0], held[0][1], held[1][1], tolerance)


def change_columns(found: TableDifference) -> Any:
    """All pairs as Arrow columns: both terms, the weights as `a` and `b`, null where there is no entry, and b - a."""
    import pyarrow as pa

    terms = ((found.rows, found.query_terms), (found.columns, found.doc_terms))
    named = [pa.array(names).take(pa.array(codes)) for codes, names in terms]
    weights = [pa.array(found.first, mask=~found.in_first), pa.array(found.second, mask=~found.in_second)]
    columns = [*named, *weights, pa.array(found.changes.astype(np.float32))]
    return pa.table(columns, names=["query_term", "document_term", "a", "b", "difference"])


def change_lines(found: TableDifference) -> Iterator[bytes]:
    """The changes as tab-separated text, in large parts, after a line of names."""
    escaped = replace(found, query_terms=escaped_terms(found.query_terms), doc_terms=escaped_terms(found.doc_terms))
    columns = change_columns(escaped)
    yield ("\t".join(columns.column_names) + "\n").encode()
    for batch in columns.to_batches(max_chunksize=1 << 20):
        yield tab_separated(*batch.columns)


def _merge_terms(terms: Sequence[str], numbers: dict[str, int], others: Sequence[str]) -> tuple[list[str], Codes]:
    """The terms of both, and the number of each of the others among them."""
    both = dict(numbers)
    positions = np.fromiter((both.setdefault(term, len(both)) for term in others), np.int32, len(others))
    return list(both), positions


def _align(keys: Ints, own: Ints, weights: Weights) -> tuple[Weights, Flags]:
    """The weights of a table at all the keys, and where it has them."""
    positions = np.searchsorted(keys, own)
    held, has = np.zeros(len(keys), dtype=np.float32), np.zeros(len(keys), dtype=np.bool_)
    held[positions], has[positions] = weights, True
    return held, has
