from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.scoring import pairs as module
from whyrank.scoring.pairs import digest, unique_pairs

TEXTS = st.lists(st.text(st.characters(), max_size=3), min_size=1, max_size=6)


@st.composite
def requests(draw):
    queries, docs = draw(TEXTS), draw(TEXTS)
    rows = draw(st.lists(st.tuples(st.integers(0, len(queries) - 1), st.integers(0, len(docs) - 1)), max_size=30))
    query, doc = np.array(rows, np.int32).reshape(-1, 2).T
    return queries, docs, query, doc


def loops(queries, docs, query, doc):
    return [(queries[q], docs[d]) for q, d in zip(query, doc, strict=True)]


@given(requests())
def test_pairs_are_the_distinct_texts_in_digest_order(given_rows):
    pairs = unique_pairs(*given_rows)
    rows = np.arange(len(pairs.keys))
    found = list(zip(pairs.query_texts(rows), pairs.doc_texts(rows), strict=True))
    expected = set(loops(*given_rows))
    assert len(found) == len(expected)
    assert set(found) == expected
    assert [found[i] for i in pairs.inverse] == loops(*given_rows)
    halves = [tuple(np.frombuffer(digest(t), "<u8").tolist()) for t in pairs.docs.texts]
    assert halves == sorted(halves)
    assert found == sorted(found, key=lambda p: tuple(np.frombuffer(digest(p[0]) + digest(p[1]), "<u8").tolist()))


@given(requests())
def test_sorting_and_the_grid_of_flags_agree(given_rows):
    found = []
    for dense in (0, 10**6):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(module, "_DENSE", dense)
            found.append(unique_pairs(*given_rows))
    assert found[0].keys.tolist() == found[1].keys.tolist()
    assert found[0].inverse.tolist() == found[1].inverse.tolist()


def test_batch_order_is_by_query_then_by_length_of_the_document():
    docs = ["ccc", "a", "bb", "", "dddd"]
    query, doc = np.repeat(np.arange(2, dtype=np.int32), 5), np.tile(np.arange(5, dtype=np.int32), 2)
    pairs = unique_pairs(["x", "y"], docs, query, doc)
    order = pairs.by_length(np.arange(10))
    assert [len(d) for d in pairs.doc_texts(order)] == [0, 1, 2, 3, 4] * 2
    assert len(set(pairs.query_texts(order)[:5])) == 1
