"""Pools: which documents a query is paired over, and their texts cut to a number of tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.studies import Pools, Source

DOCS = {f"d{i}": text for i, text in enumerate(["red shoes", "blue shoes now", "red", "", "red shoes here"])}
QUERIES = {"q1": "red shoes", "q2": "blue"}


def collection(qrels=None, runs=None, docs=DOCS):
    return Collection.of(docs, QUERIES, qrels or {}, runs=runs or {})


names = st.sampled_from([*DOCS, "missing"])
judgements = st.dictionaries(
    st.sampled_from([*QUERIES, "excluded_counts"]), st.dictionaries(names, st.integers(0, 3))
)
retrieved = st.dictionaries(st.sampled_from([*QUERIES]), st.dictionaries(names, st.floats(0, 9)))


@given(judgements, retrieved, retrieved)
def test_all_is_what_is_judged_or_in_any_run(qrels, one, two):
    given_ = collection(qrels, {"one": one, "two": two})
    for run, used in ((None, [qrels, one, two]), ("one", [qrels, one])):
        pools = Pools(given_, Source("all", run, "whitespace"))
        for pool in pools:
            expected = {d for source in used for d in source.get(pool.query_id, {}) if d in DOCS}
            assert set(pool.doc_ids) == expected
            assert len(pool.doc_ids) == len(expected)
        asked = {
            query for source in used for query, ids in source.items() if query in QUERIES and set(ids) & set(DOCS)
        }
        assert {pool.query_id for pool in pools if pool.doc_ids} == asked


def test_an_unknown_kind_of_pairs_or_run_is_one_clear_line():
    given_ = collection({"q1": {"d0": 2}}, {"one": {"q1": {"d1": 1.0}}, "two": {}})
    with pytest.raises(WhyrankError, match="'every' is none of 'judged', 'all' and 'top:K'"):
        list(Pools(given_, Source("every")))
    with pytest.raises(WhyrankError, match="nowhere"):
        list(Pools(given_, Source("all", "nowhere")))
    with pytest.raises(WhyrankError, match=r"needs --candidates RUN .* one, two"):
        list(Pools(given_, Source("top:5")))


words = st.lists(st.sampled_from(["red", "shoes", "blue", "now"]), max_size=8)


@given(st.lists(words, min_size=1, max_size=6), st.integers(1, 9))
def test_texts_are_cut_to_max_tokens_and_equal_ones_held_once(texts, most):
    docs = {str(i): " ".join(text) for i, text in enumerate(texts)}
    given_ = collection({"q1": dict.fromkeys(docs, 0)}, docs=docs)
    pools = Pools(given_, Source(analyzer="whitespace", max_tokens=most))
    [pool] = pools
    assert [text.split() for text in pool.texts] == [text[:most] for text in texts]
    assert pool.lengths.tolist() == [min(len(text), most) for text in texts]
    counts = [[text[:most].count(term) for term in ("red", "shoes")] for text in texts]
    assert np.array_equal(pool.counts, np.array(counts).reshape(-1, 2))
    assert len(set(pools.texts)) == len(pools.texts) == len({" ".join(text[:most]) for text in texts})
