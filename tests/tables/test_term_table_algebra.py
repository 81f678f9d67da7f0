"""Pruning, renormalising, self-translation and differences of term tables, against loops over dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from term_table_samples import TERMS, as_dict, tables

from whyrank.core import WhyrankError
from whyrank.tables import TermTable, change_columns, change_lines, cut_at, self_entries, strongest, summary

SHARES = st.floats(0, 1, width=32)
LIMITS = st.none() | st.integers(1, 3)
WORDS = st.sampled_from(["a", "b", "c", "d", "e", "f"])


def best_of(entries, side, table, most):
    """The entries that are among the best of their term on one side, by loops."""
    if most is None:
        return set(entries)
    order = {**{("q", t): i for i, t in enumerate(table.query_terms)}, **{("d", t): i for i, t in enumerate(table.doc_terms)}}  # fmt: skip
    found = set()
    for term in {pair[side] for pair in entries}:
        mine = [pair for pair in entries if pair[side] == term]
        mine.sort(key=lambda pair: (-entries[pair], order["qd"[1 - side], pair[1 - side]]))
        found |= set(mine[:most])
    return found


@given(tables(SHARES, WORDS), st.none() | SHARES, LIMITS, LIMITS, st.none() | st.sets(WORDS, min_size=3))
def test_pruned(drawn, threshold, top_query, top_doc, vocabulary):
    table, entries = drawn
    left = {p: w for p, w in entries.items() if vocabulary is None or vocabulary >= set(p)}
    left = {p: w for p, w in left.items() if threshold is None or w >= threshold}
    stay = best_of(left, 0, table, top_query) & best_of(left, 1, table, top_doc)
    found = table.prune(threshold, top_query, top_doc, vocabulary)
    assert as_dict(found) == {p: w for p, w in left.items() if p in stay}
    assert (found.query_terms, found.doc_terms) == (table.query_terms, table.doc_terms)
    limits = {"threshold": threshold, "top_query": top_query, "top_doc": top_doc}
    assert found.facts == {**table.facts, **{name: given for name, given in limits.items() if given is not None}}


def test_facts_tell_the_limits_that_hold():
    learned = TermTable.from_triples(["a", "a"], ["b", "c"], [0.5, 0.2], threshold=0.1, top=9, top_doc=1)
    found = learned.prune(0.3, top_query=2, top_doc=5)
    assert found.facts == {"threshold": 0.3, "top": 9, "top_query": 2, "top_doc": 1}
    assert found.prune(0.05, top_query=1).facts == {**found.facts, "top_query": 1}  # what is gone stays away
    assert learned.prune(vocabulary={"a", "b"}).facts == learned.facts
    assert learned.renormalise("query").facts == {**learned.facts, "renormalised": "query"}
    assert TermTable.from_triples(["a"], ["b"], [0.5], threshold="low").prune(0.1).facts == {"threshold": 0.1}


@pytest.mark.parametrize(
    ("learner", "limit"),
    [("parm", 9), ("neural-model1", 9), ("emil", 9), ("em", 0), ("em(iterations=2)", 0),
     ("local-to-global(target=bm25)", 0)],
)  # fmt: skip
def test_the_top_of_a_learner_may_be_no_limit_of_entries(learner, limit):
    learned = TermTable.from_triples(["a", "a"], ["b", "c"], [0.5, 0.2], learner=learner, top=9)
    assert cut_at(learned) == limit
    assert cut_at(learned.prune(top_query=2)) == 2


@given(tables(SHARES, WORDS), st.sampled_from(["doc", "query"]))
def test_renormalised(drawn, by):
    table, entries = drawn
    side = {"query": 0, "doc": 1}[by]
    sums = {}
    for pair, weight in entries.items():
        sums[pair[side]] = sums.get(pair[side], 0.0) + weight
    expected = {pair: weight / sums[pair[side]] if sums[pair[side]] else 0.0 for pair, weight in entries.items()}
    found = as_dict(table.renormalise(by))
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair], rel=1e-6, abs=1e-30) for pair in expected)
    for term, total in sums.items():
        assert not total or sum(w for pair, w in found.items() if pair[side] == term) == pytest.approx(1, rel=1e-5)


@given(tables(SHARES, WORDS), st.floats(0, 1), st.sampled_from(["add", "replace"]))
def test_with_self(drawn, p_self, keep):
    table, entries = drawn
    found = table.with_self(p_self, keep)
    terms = {*table.query_terms, *table.doc_terms}
    assert set(found.query_terms) == set(found.doc_terms) == terms
    for q in terms:
        for d in terms:
            expected = (1 - p_self) * entries.get((q, d), 0.0) + p_self * (q == d)
            if keep == "replace" and q == d:
                expected = p_self
            assert found.weight(q, d) == pytest.approx(expected, rel=1e-6, abs=1e-37)
    assert found.facts == {**table.facts, "p_self": p_self}
    if table.counts is not None:
        counted = dict(zip(table.doc_terms, table.counts.tolist(), strict=True))
        assert dict(zip(found.doc_terms, found.counts.tolist(), strict=True)) == {t: counted.get(t, 0) for t in terms}


@given(tables(SHARES))
def test_compacted(drawn):
    table, entries = drawn
    found = table.compact()
    assert as_dict(found) == entries
    assert list(found.query_terms) == [t for t in table.query_terms if any(q == t for q, _ in entries)]
    assert list(found.doc_terms) == [t for t in table.doc_terms if any(d == t for _, d in entries)]
    if table.counts is not None:
        counted = dict(zip(table.doc_terms, table.counts.tolist(), strict=True))
        assert found.counts.tolist() == [counted[t] for t in found.doc_terms]


@given(tables(SHARES, WORDS), tables(SHARES, WORDS))
def test_difference(one, other):
    (first, ours), (second, theirs) = one, other
    found = first.difference(second, tolerance=0)
    pairs = [(found.query_terms[q], found.doc_terms[d]) for q, d in zip(found.rows, found.columns, strict=True)]
    assert sorted(pairs) == sorted({*ours, *theirs})
    for i, pair in enumerate(pairs):
        assert (found.first[i], found.second[i]) == (ours.get(pair, 0), theirs.get(pair, 0))
        assert (bool(found.in_first[i]), bool(found.in_second[i])) == (pair in ours, pair in theirs)
        assert bool(found.only_first[i]) == (pair in ours and pair not in theirs)
        assert bool(found.only_second[i]) == (pair in theirs and pair not in ours)
        assert bool(found.changed[i]) == (pair in ours and pair in theirs and ours[pair] != theirs[pair])
    differ = {p: theirs.get(p, 0) - ours.get(p, 0) for p in pairs if ours.get(p) != theirs.get(p)}
    largest = found.largest(len(pairs))
    assert {(c.query_term, c.document_term): c.difference for c in largest} == pytest.approx(differ)
    sizes = [abs(change.difference) for change in largest]
    assert sizes == sorted(sizes, reverse=True)
    assert all((c.first, c.second) == (ours.get(c[:2]), theirs.get(c[:2])) for c in largest)
    assert not first.difference(first).largest(5)


@given(tables(SHARES), tables(SHARES))
def test_differences_as_columns_and_lines(one, other):
    found = one[0].difference(other[0])
    rows = [tuple(row.values()) for row in change_columns(found).to_pylist()]
    assert {row[:2]: row[2:4] for row in rows} == {p: (one[1].get(p), other[1].get(p)) for p in {*one[1], *other[1]}}
    lines = b"".join(change_lines(found)).decode().split("\n")
    assert lines[0].split("\t") == ["query_term", "document_term", "a", "b", "difference"]
    assert lines[-1] == ""
    assert len(lines) == len(rows) + 2
    for line, row in zip(lines[1:-1], rows, strict=True):
        written = [np.float32(field) if field else None for field in line.split("\t")[2:]]
        assert written == [None if value is None else np.float32(value) for value in row[2:]]


@given(tables(SHARES, WORDS), st.integers(1, 6))
def test_strongest_and_summary(drawn, n):
    table, entries = drawn
    assert self_entries(table).tolist() == [q == d for q, d, _ in table.rows()]
    listed = sorted(table.rows(), key=lambda entry: -entry.weight)  # stable
    assert [list(table.rows())[i] for i in strongest(table, n)] == listed[:n]
    found = summary(table, n)
    assert found.strongest == [entry for entry in listed if entry.query_term != entry.document_term][:n]
    assert found.self_entries == sum(q == d for q, d in entries)
    assert (found.query_terms_used, found.document_terms_used) == (len({q for q, _ in entries}), len({d for _, d in entries}))  # fmt: skip
    assert bool(found.quantiles) == bool(entries)
    if entries:
        assert (found.quantiles["0%"], found.quantiles["100%"]) == (min(entries.values()), max(entries.values()))


@pytest.mark.parametrize(
    ("work", "message"),
    [(lambda t: t.renormalise("document"), 'say "doc" or "query"'), (lambda t: t.with_self(1.5), "p_self must be a number between 0 and 1"),
     (lambda t: t.with_self(0.5, "drop"), 'say "add" or "replace"'), (lambda t: t.prune(threshold=-1), "threshold must be"),
     (lambda t: t.prune(threshold=float("nan")), "threshold must be"), (lambda t: t.prune(top_query=0), "top_query must be a whole number, 1 or more"),
     (lambda t: t.prune(top_doc=1.5), "top_doc must be")],
)  # fmt: skip
def test_wrong_arguments(work, message):
    with pytest.raises(WhyrankError, match=message):
        work(TermTable.from_triples(["a"], ["b"], [1]))


@given(tables(SHARES, TERMS))
def test_algebra_makes_whole_tables(drawn):
    """What skips the checks, because it starts from a table that passed them, would pass them again."""
    for made in (drawn[0].prune(0.5, 1, 1), drawn[0].compact(), drawn[0].renormalise(), drawn[0].with_self(0.3)):
        TermTable(made.query_terms, made.doc_terms, made.indptr, made.indices, made.weights, made.facts, made.counts)
