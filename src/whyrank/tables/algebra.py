"""A term table in figures: sizes, quantiles of its weights, its strongest entries."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes, Flags, Ints, WhyrankError, check_number, check_whole
from whyrank.tables.table import Entry, TermTable, Weights, from_codes, row_starts

# Term tables from term tables: pruned, renormalised, with self-translation, without unused terms.


def pruned(
    table: TermTable, threshold: float | None, top_query: int | None, top_doc: int | None,
    vocabulary: Collection[str] | None,
) -> TermTable:  # fmt: skip
    """Without the entries that one of the limits excludes."""
    rows, keep = table.row_numbers(), np.ones(len(table), dtype=np.bool_)
    if vocabulary is not None:
        keep &= _among(table.query_terms, vocabulary)[rows] & _among(table.doc_terms, vocabulary)[table.indices]
    if threshold is not None:
        check_number("threshold", threshold, 0)
        keep &= table.weights >= np.float32(threshold)
    tops = [_top("top_query", top_query, rows, table, keep), _top("top_doc", top_doc, table.indices, table, keep)]
    facts = _pruned_facts(table.facts, threshold, {"top_query": top_query, "top_doc": top_doc})
    return replace(kept(table, keep & tops[0] & tops[1]), facts=facts, trusted=True)


def _pruned_facts(
    facts: Mapping[str, Any], threshold: float | None, tops: Mapping[str, int | None]
) -> dict[str, Any]:
    """The facts with the limits that hold now: the highest threshold, and the fewest entries of each term."""
    found = dict(facts)
    if threshold is not None:
        before = facts.get("threshold")
        found["threshold"] = max(float(threshold), before if isinstance(before, int | float) else 0.0)
    for name, most in tops.items():
        if most is not None:
            before = facts.get(name)
            found[name] = min(int(most), before) if isinstance(before, int) else int(most)
    return found


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
    everything = np.ones(len(table), dtype=np.bool_)
    return everything & _top("most", most, table.row_numbers(), table, everything)


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
    queries, docs = _taken(table.query_terms, q), _taken(table.doc_terms, d)
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
    return from_codes(wider.query_terms, wider.doc_terms, q[some], d[some], w[some], facts, wider.counts)


def self_entries(table: TermTable) -> Flags:
    """For each entry whether both its terms are the same."""
    own: Flags = table.indices == table.own_numbers()[table.row_numbers()]
    return own


def strongest(table: TermTable, n: int, among: Flags | None = None) -> Ints:
    """The places of the entries of the largest weights, largest first; of equal ones the first in the table."""
    weights = table.weights if among is None else np.where(among, table.weights, np.float32(-1))
    n = min(n, int(np.count_nonzero(weights >= 0)))
    if n < 1:
        return np.empty(0, dtype=np.int64)
    cut = np.partition(weights, len(weights) - n)[len(weights) - n]
    places = np.flatnonzero(weights >= cut)
    return places[np.argsort(-weights[places], kind="stable")[:n]]


def _with_both_sides(table: TermTable) -> TermTable:
    """The same entries where each side's vocabulary has the terms of the other side too."""
    more_queries = [term for term in table.doc_terms if term not in table.query_numbers]
    more_docs = [term for term in table.query_terms if term not in table.doc_numbers]
    indptr = np.append(table.indptr, np.full(len(more_queries), table.indptr[-1]))
    counts = None if table.counts is None else np.append(table.counts, np.zeros(len(more_docs), dtype=np.int64))
    queries, docs = (*table.query_terms, *more_queries), (*table.doc_terms, *more_docs)
    return TermTable(queries, docs, indptr, table.indices, table.weights, table.facts, counts, trusted=True)


def _among(terms: Sequence[str], vocabulary: Collection[str]) -> Flags:
    known = vocabulary if isinstance(vocabulary, set | frozenset | dict) else set(vocabulary)
    return np.fromiter((term in known for term in terms), np.bool_, len(terms))


def _top(what: str, most: int | None, groups: Codes, table: TermTable, keep: Flags) -> Flags | np.bool_:
    """The entries that are among the best `most` of their group, of those to keep; of equal ones the first."""
    if most is None:
        return np.True_
    check_whole(what, most, 1)
    sizes = np.bincount(groups[keep], minlength=int(groups.max(initial=-1)) + 1)
    crowded = sizes > most
    passed = ~crowded[groups]
    places = np.flatnonzero(keep & ~passed)
    passed[places[_best(groups[places], table.weights[places], np.where(crowded, sizes, 0), most)]] = True
    return passed


def _best(groups: Codes, weights: Weights, sizes: Ints, most: int) -> Flags:
    """Which entries are the best of their group, where every group has more than `most` or none."""
    keys = _descending(groups, weights)
    full, starts = sizes > 0, np.cumsum(sizes) - sizes
    last = np.zeros(len(sizes), dtype=np.uint64)
    last[full] = np.sort(keys)[starts[full] + most - 1]
    better = keys < last[groups]
    free = most - np.bincount(groups[better], minlength=len(sizes))
    ties = np.flatnonzero(keys == last[groups])
    ties = ties[np.argsort(groups[ties], kind="stable")]
    better[ties[_ranks(groups[ties]) < free[groups[ties]]]] = True
    return better


def _descending(groups: Codes, weights: Weights) -> npt.NDArray[np.uint64]:
    """Numbers that sort by group, then from large to small weights: the bits of floats from zero up are in order."""
    bits = np.uint32(0xFFFFFFFF) - (weights + np.float32(0)).view(np.uint32)  # plus zero: -0.0 has other bits
    keys: npt.NDArray[np.uint64] = (groups.astype(np.uint64) << np.uint64(32)) | bits
    return keys


def _ranks(groups: npt.NDArray[Any]) -> Ints:
    """The place of each element within its run of equal ones, from 0."""
    first = np.flatnonzero(np.append(True, groups[1:] != groups[:-1])[: len(groups)])
    sizes = np.diff(np.append(first, len(groups)))
    return np.arange(len(groups)) - np.repeat(first, sizes)


def _taken(terms: Sequence[str], places: Ints) -> list[str]:
    return [terms[i] for i in places.tolist()]


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
