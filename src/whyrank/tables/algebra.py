"""Term tables from term tables (pruned, renormalised, with self-translation), and a term table in figures."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import Codes, Flags, Ints, WhyrankError, check_number, check_whole
from whyrank.tables.table import Entry, TermTable, row_starts

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def pruned(
    table: TermTable, threshold: float | None, top_query: int | None, top_doc: int | None,
    vocabulary: Collection[str] | None,
) -> TermTable:  # fmt: skip
    """Without the entries that one of the limits excludes; facts tell of the limits that hold now."""
    rows, keep, facts = table.row_numbers(), np.ones(len(table), dtype=np.bool_), dict(table.facts)
    if vocabulary is not None:
        known = vocabulary if isinstance(vocabulary, set | frozenset | dict) else set(vocabulary)
        queries, docs = (
            np.fromiter((term in known for term in terms), np.bool_, len(terms))
            for terms in (table.query_terms, table.doc_terms)
        )
        keep &= queries[rows] & docs[table.indices]
    if threshold is not None:
        check_number("threshold", threshold, 0)
        keep &= table.weights >= np.float32(threshold)
        before = facts.get("threshold")
        facts["threshold"] = max(float(threshold), before if isinstance(before, int | float) else 0.0)
    passed = keep
    for name, most, groups in (("top_query", top_query, rows), ("top_doc", top_doc, table.indices)):
        if most is not None:
            passed = passed & _best(name, most, groups, table, keep)
            before = facts.get(name)
            facts[name] = min(int(most), before) if isinstance(before, int) else int(most)
    return replace(kept(table, passed), facts=facts, trusted=True)


def _best(name: str, most: int, groups: Codes, table: TermTable, keep: Flags) -> Flags:
    """Which of the entries to keep are among the best `most` of their group; of equal ones the first."""
    check_whole(name, most, 1)
    sizes = np.bincount(groups[keep], minlength=int(groups.max(initial=-1)) + 1)
    crowded = (sizes > most)[groups]
    best: Flags = keep & ~crowded
    positions = np.flatnonzero(keep & crowded)
    # one number per entry orders them by group, then from large to small weights: the bits of floats from zero up are
    # in order (plus zero, because -0.0 has other bits), and one sort of integers takes a third of the time of lexsort
    descending = np.uint32(0xFFFFFFFF) - (table.weights[positions] + np.float32(0)).view(np.uint32)
    keys = (groups[positions].astype(np.uint64) << np.uint64(32)) | descending
    positions = positions[np.argsort(keys, kind="stable")]
    sizes = np.where(sizes > most, sizes, 0)
    ranks = np.arange(len(positions)) - (np.cumsum(sizes) - sizes)[groups[positions]]
    best[positions[ranks < most]] = True
    return best


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
    return _best("most", most, table.row_numbers(), table, np.ones(len(table), dtype=np.bool_))


def kept(table: TermTable, keep: Flags) -> TermTable:
    """With these entries alone; vocabularies and counts stay."""
    indptr = row_starts(table.row_numbers()[keep], len(table.query_terms))
    return replace(table, indptr=indptr, indices=table.indices[keep], weights=table.weights[keep], trusted=True)


def compacted(table: TermTable) -> TermTable:
    """Without terms that have no entry."""
    q = np.flatnonzero(np.diff(table.indptr))
    d = np.flatnonzero(np.bincount(table.indices, minlength=len(table.doc_terms)))
    number = np.zeros(len(table.doc_terms), dtype=np.int32)
    number[d] = np.arange(len(d), dtype=np.int32)
    indptr = np.append(table.indptr[q], table.indptr[-1:])
    counts = None if table.counts is None else table.counts[d]
    queries, docs = [table.query_terms[i] for i in q.tolist()], [table.doc_terms[i] for i in d.tolist()]
    return TermTable(queries, docs, indptr, number[table.indices], table.weights, table.facts, counts, trusted=True)


def renormalised(table: TermTable, by: str) -> TermTable:
    """With weights that add up to 1 for each term of one side; a term whose weights are all zero keeps them."""
    groups = {"doc": table.indices, "query": table.row_numbers()}
    if by not in groups:
        raise WhyrankError(f'renormalised by {by!r}: say "doc" or "query"')
    sums = np.bincount(groups[by], weights=table.weights)
    weights = table.weights / np.where(sums > 0, sums, 1)[groups[by]]
    facts = {**table.facts, "renormalised": by}
    return replace(table, weights=weights.astype(np.float32), facts=facts, trusted=True)


def with_self(table: TermTable, p_self: float, keep: str) -> TermTable:
    """Every term translates to itself with p_self, and to the others with what is left; zero weights are left out."""
    check_number("p_self", p_self, 0, 1)
    if keep not in ("add", "replace"):
        raise WhyrankError(f'keep={keep!r}: say "add" or "replace"')
    wider = _with_both_sides(table)
    rows, numbers = wider.row_numbers(), wider.own_numbers()
    weights, own = wider.weights.astype(np.float64) * (1 - p_self), wider.indices == numbers[rows]
    selves = np.full(len(wider.query_terms), float(p_self))
    if keep == "add":
        selves[rows[own]] += weights[own]
    q = np.concatenate([rows[~own], np.arange(len(selves), dtype=np.int32)])
    d = np.concatenate([wider.indices[~own], numbers])
    w = np.concatenate([weights[~own], selves]).astype(np.float32)
    facts = {**table.facts, "p_self": float(p_self)}
    some = w > 0
    return TermTable.from_codes(wider.query_terms, wider.doc_terms, q[some], d[some], w[some], facts, wider.counts)


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


def _with_both_sides(table: TermTable) -> TermTable:
    """The same entries where each side's vocabulary has the terms of the other side too."""
    more_queries = [term for term in table.doc_terms if term not in table.query_numbers]
    more_docs = [term for term in table.query_terms if term not in table.doc_numbers]
    indptr = np.append(table.indptr, np.full(len(more_queries), table.indptr[-1]))
    counts = None if table.counts is None else np.append(table.counts, np.zeros(len(more_docs), dtype=np.int64))
    queries, docs = (*table.query_terms, *more_queries), (*table.doc_terms, *more_docs)
    return TermTable(queries, docs, indptr, table.indices, table.weights, table.facts, counts, trusted=True)


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
