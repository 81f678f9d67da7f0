"""The term table: both directions of its storage, look-up, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from term_table_samples import TERMS, as_dict, tables

from whyrank.core import WhyrankError
from whyrank.tables import TermTable

PARTS = {"query_terms": ["a", "b"], "doc_terms": ["x", "y"], "indptr": [0, 2, 3], "indices": [0, 1, 1], "weights": [0.5, 0.25, 1]}  # fmt: skip


@given(tables())
def test_both_directions_are_those_of_a_dictionary(drawn):
    table, entries = drawn
    assert as_dict(table) == entries
    assert {(q, d): w for q, d, w in table.rows()} == entries
    turned = table.by_doc
    found = {}
    for d, term in enumerate(table.doc_terms):
        columns = turned.indices[turned.indptr[d] : turned.indptr[d + 1]].tolist()
        assert columns == sorted(set(columns))
        for q, w in zip(columns, turned.weights[turned.indptr[d] : turned.indptr[d + 1]].tolist(), strict=True):
            found[table.query_terms[q], term] = w
    assert found == entries
    assert (turned.indptr.dtype, turned.indices.dtype, turned.weights.dtype) == (np.int64, np.int32, np.float32)


@given(tables(), TERMS, st.integers(1, 5))
def test_look_up_is_that_of_a_dictionary(drawn, other, n):
    table, entries = drawn
    for q in {*table.query_terms, other}:
        for d in {*table.doc_terms, other}:
            assert table.weight(q, d) == entries.get((q, d), 0.0)
            assert table.has(q, d) is ((q, d) in entries)
        best = sorted((-w, table.doc_terms.index(d), d) for (query, d), w in entries.items() if query == q)
        assert [(t, -w) for t, w in table.doc_terms_for(q, n)] == [(d, w) for w, _, d in best[:n]]
        assert table.neighbours(q, n) == (table.doc_terms_for(q, n), table.query_terms_for(q, n))
    for d in {*table.doc_terms, other}:
        best = sorted((-w, table.query_terms.index(q), q) for (q, document), w in entries.items() if document == d)
        assert [(t, -w) for t, w in table.query_terms_for(d, n)] == [(q, w) for w, _, q in best[:n]]


def test_parts_are_of_one_kind_and_fixed():
    table = TermTable(**PARTS, counts=[3, 4])
    kinds = [
        (part.dtype, part.flags.writeable) for part in (table.indptr, table.indices, table.weights, table.counts)
    ]
    assert kinds == [(np.int64, False), (np.int32, False), (np.float32, False), (np.int64, False)]
    with pytest.raises(ValueError, match="read-only"):
        table.weights[0] = 2
    given = np.array([0.5, 0.25, 1], dtype=np.float32)
    TermTable(**{**PARTS, "weights": given})
    given[0] = 3  # the caller's own array stays the caller's


@pytest.mark.parametrize(
    ("parts", "message"),
    [({"indptr": [0, 3]}, "2 query terms need 3 row starts"),
     ({"indptr": [0, 3, 2]}, "ascend from 0"), ({"indptr": [1, 2, 3]}, "ascend from 0"), ({"indptr": [0, 4, 3]}, "ascend from 0"),
     ({"weights": [1, 2]}, "2 weights for 3 entries"), ({"counts": [1]}, "1 counts for 2 document terms"), ({"counts": [1, -1]}, "a count is negative"),
     ({"indices": [0, 2, 1]}, "out of range; there are 2"), ({"indices": [-1, 1, 1]}, "out of range"), ({"indices": [0.0, 1.0, 1.0]}, "must be whole"),
     ({"indices": [1, 0, 1]}, "must ascend"), ({"indices": [1, 1, 1]}, "must ascend"),
     ({"weights": [1, float("nan"), 0]}, "the weight nan is no number, zero or more"), ({"weights": [1, -0.5, 0]}, "the weight -0.5 is no number"),
     ({"weights": [1, float("inf"), 0]}, "the weight inf is not finite"), ({"weights": [1, 1e39, 0]}, "is not finite"), ({"weights": ["1", "2", "3"]}, "must be numbers"),
     ({"query_terms": ["a", "a"]}, "the query term 'a' is in the vocabulary twice"), ({"doc_terms": ["x", ""]}, "a document term is empty"),
     ({"doc_terms": ["x", "\ud800"]}, "lone surrogate"), ({"doc_terms": ["x", 3]}, "is no text")],
)  # fmt: skip
def test_what_is_no_table(parts, message):
    with pytest.raises(WhyrankError, match=message):
        TermTable(**{**PARTS, **parts})


@pytest.mark.parametrize(
    ("triples", "message"),
    [((["a", "b", "a"], ["x", "y", "x"], [1, 2, 3]), "the pair 'a', 'x' comes twice; keep one weight per pair"),
     ((["a"] * 3, ["x"] * 3, [1, 2, 3]), r"'a', 'x' comes twice \(2 such entries\)"),
     ((["a", "b"], ["x"], [1, 2]), "2 query terms, 1 document terms and 2 weights do not align"),
     ((["a"], ["x"], [1, 2]), "do not align"), ((["a"], ["x"], [float("nan")]), "the weight nan"), ((["a"], ["x"], [-1]), "the weight -1"),
     ((["a"], [None], [1]), "a document term is missing"), (([""], ["x"], [1]), "a query term is empty"), ((["\udc00"], ["x"], [1]), "lone surrogate"),
     (([3], ["x"], [1]), "no text")],
)  # fmt: skip
def test_triples_that_are_none(triples, message):
    with pytest.raises(WhyrankError, match=message):
        TermTable.from_triples(*triples)


@given(tables(), tables())
def test_digest_tells_tables_apart(first, second):
    one, other = first[0], second[0]
    parts = [(list(t.query_terms), list(t.doc_terms), as_dict(t), None if t.counts is None else t.counts.tolist()) for t in (one, other)]  # fmt: skip
    assert (one.digest == other.digest) == (parts[0] == parts[1])
    assert len(one.digest) == 16
    assert int(one.digest, 16) >= 0
