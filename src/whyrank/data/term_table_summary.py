"""A term table in figures: sizes, quantiles of its weights, its strongest entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from whyrank.data.term_table import Entry, TermTable
from whyrank.data.term_table_algebra import self_entries, strongest

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


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
    return Summary(
        len(table),
        len(table.query_terms),
        int(np.count_nonzero(np.diff(table.indptr))),
        len(table.doc_terms),
        int(np.count_nonzero(np.bincount(table.indices, minlength=len(table.doc_terms)))),
        int(np.count_nonzero(own)),
        None if table.counts is None else int(table.counts.sum()),
        table.digest,
        table.facts,
        _quantiles(table),
        _entries(table, top, ~own),
    )


def _quantiles(table: TermTable) -> dict[str, float]:
    if not len(table):
        return {}
    found = np.quantile(table.weights, QUANTILES).tolist()
    return {f"{share:.0%}": value for share, value in zip(QUANTILES, found, strict=True)}


def _entries(table: TermTable, top: int, among: Any) -> list[Entry]:
    places = strongest(table, top, among)
    rows = np.searchsorted(table.indptr, places, side="right") - 1
    named = zip(rows.tolist(), table.indices[places].tolist(), table.weights[places].tolist(), strict=True)
    return [Entry(table.query_terms[q], table.doc_terms[d], weight) for q, d, weight in named]
