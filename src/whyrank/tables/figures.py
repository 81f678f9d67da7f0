"""A term table in figures: its strongest entries, those of a term and itself, where it was cut, a summary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import Flags, Ints
from whyrank.tables.table import Entry, TermTable, best_of_groups

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def cut_at(table: TermTable) -> int:
    """How many document terms a query term has at most, if the table was cut so; else 0.

    Slices of audited terms have the facts of a table that was cut, and longer rows. The `top` of some learners is
    another one: of EM the most frequent terms that are kept, of local-to-global the documents that are explained.
    """
    other = re.match(r"(em|local-to-global)\b", str(table.facts.get("learner", "")))
    names = ("top_query",) if other else ("top", "top_query")
    tops = [top for name in names if isinstance(top := table.facts.get(name), int)]
    return min(tops) if tops and min(tops) >= np.diff(table.indptr).max(initial=0) else 0


def best_of_each(table: TermTable, most: int) -> Flags:
    """Which entries are among the best `most` of their query term; of equal ones the first."""
    return best_of_groups(table.weights, table.row_numbers(), most, np.ones(len(table), dtype=np.bool_))


def self_entries(table: TermTable) -> Flags:
    """For each entry whether both its terms are the same."""
    own: Flags = table.indices == table.own_numbers()[table.row_numbers()]
    return own


def strongest(table: TermTable, n: int, among: Flags | None = None) -> Ints:
    """The positions of the entries of the largest weights, largest first; of equal ones the first in the table."""
    weights = table.weights if among is None else np.where(among, table.weights, np.float32(-1))
    n = min(n, int(np.count_nonzero(weights >= 0)))
    if n < 1:
        return np.empty(0, dtype=np.int64)
    cut = np.partition(weights, len(weights) - n)[len(weights) - n]
    positions = np.flatnonzero(weights >= cut)
    return positions[np.argsort(-weights[positions], kind="stable")[:n]]


class Summary(NamedTuple):
    """What there is to say about a whole table; `quantiles` is empty and `strongest` too where it has no entries."""

    entries: int
    query_terms: int
    query_terms_used: int
    document_terms: int
    document_terms_used: int
    self_entries: int
    counted: int | None
    digest: str
    facts: Mapping[str, Any]
    quantiles: dict[str, float]
    strongest: list[Entry]


def summary(table: TermTable, top: int = 10) -> Summary:
    """Sum a table up; the strongest entries are those between two different terms."""
    own = self_entries(table)
    quantiles = np.quantile(table.weights, QUANTILES).tolist() if len(table) else []
    positions = strongest(table, top, ~own)
    rows = np.searchsorted(table.indptr, positions, side="right") - 1
    found = zip(rows.tolist(), table.indices[positions].tolist(), table.weights[positions].tolist(), strict=True)
    return Summary(
        entries=len(table),
        query_terms=len(table.query_terms),
        query_terms_used=int(np.count_nonzero(np.diff(table.indptr))),
        document_terms=len(table.doc_terms),
        document_terms_used=int(np.count_nonzero(np.bincount(table.indices, minlength=len(table.doc_terms)))),
        self_entries=int(np.count_nonzero(own)),
        counted=None if table.counts is None else int(table.counts.sum()),
        digest=table.digest,
        facts=table.facts,
        quantiles={f"{share:.0%}": value for share, value in zip(QUANTILES, quantiles, strict=False)},
        strongest=[Entry(table.query_terms[q], table.doc_terms[d], weight) for q, d, weight in found],
    )
