"""Explanations of BM25T and QLT: the score follows from the cells, and cells are where the formulas say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thesaurus_oracle import WORDS, random_table, related

from whyrank.data import Collection
from whyrank.rankers import Setting, open_ranker, rankers
from whyrank.rankers.lexical import Explaining
from whyrank.tables import TermTable

texts = st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join)
SETTING = Setting(Collection.of({"a": "t1 t2 t2 t3", "b": "t4 t5 t6", "c": "t7 t1 t8 t9"}, {"q": "t1"}), "whitespace")
bm25t = st.builds(
    "bm25t:TABLE(match={},variant={},k1={},b={})".format,
    st.sampled_from(["first", "max-tf", "sum"]),
    st.sampled_from(["parm", "lucene", "terrier"]),
    st.sampled_from([0, 0.9, 5]),
    st.sampled_from([0, 0.4, 1]),
)
qlt = st.builds(
    "qlt:TABLE(smoothing={},variant={},mu={})".format,
    st.sampled_from(["dirichlet", "jm"]),
    st.sampled_from(["parm", "plain"]),
    st.sampled_from([0.1, 1000]),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("thesauri")
    for seed in range(4):
        random_table(seed, 0.4, 1.0 if seed < 2 else 3.0).save(made / f"{seed}.arrow")
    return made


def opened(spec, folder, seed):
    return open_ranker(spec.replace("TABLE", str(folder / f"{seed}.arrow")), SETTING)


@given(spec=st.one_of(bm25t, qlt), seed=st.integers(0, 3), query=texts, text=texts)
@settings(deadline=None)
def test_the_score_follows_from_the_cells(folder, spec, seed, query, text):
    ranker = opened(spec, folder, seed)
    found = ranker.explain(query, text)
    assert found.score == ranker.score([query], [text])[0]
    assert found.recomputed == pytest.approx(found.score, rel=0, abs=1e-6)
    if spec.startswith("bm25t"):
        assert found.kind == "additive"
        assert found.cells.sum() == pytest.approx(found.score, rel=0, abs=1e-6)
    else:
        rows = zip(found.cells.sum(axis=1) + found.background, found.weights, strict=True)
        assert sum(w * math.log(total) for total, w in rows) == pytest.approx(found.score, rel=0, abs=1e-6)
    assert list(found.query_terms) == list(dict.fromkeys(query.split()))
    assert list(found.document_terms) == list(dict.fromkeys(text.split()))


@given(seed=st.integers(0, 3), query=texts, text=texts, match=st.sampled_from(["first", "max-tf", "sum"]))
@settings(deadline=None)
def test_cells_stand_where_a_term_or_a_partner_does(folder, seed, query, text, match):
    ranker = opened(f"bm25t:TABLE(match={match})", folder, seed)
    entries, found = related(ranker.table), ranker.explain(query, text)
    words = list(found.document_terms)
    for term, row in zip(found.query_terms, found.cells, strict=True):
        filled = [words[i] for i in np.flatnonzero(row)]
        possible = [word for word in words if word == term or (term, word) in entries]
        assert filled == possible if match == "sum" else len(filled) == bool(possible)
        assert set(filled) <= set(possible)
        if match == "first" and term in words:
            assert filled == [term]
        elif match == "first" and filled:
            assert entries[term, filled[0]] == max(entries[term, word] for word in possible)


def test_the_shares_of_a_sum(tmp_path):
    TermTable.from_triples(["t1", "t1", "t1"], ["t2", "t3", "t1"], [0.5, 0.25, 0.9]).save(tmp_path / "t.tsv")
    found = open_ranker(f"bm25t:{tmp_path / 't.tsv'}(match=sum)", SETTING).explain("t1 t5", "t1 t2 t2 t3 t4")
    assert found.cells[0, :3] / found.cells[0].sum() == pytest.approx([1 / 2.25, 1 / 2.25, 0.25 / 2.25])
    assert not found.cells[0, 3]
    assert found.notes == ("without an entry in the table: t5", "entries of a term for itself are left out: t1")


def test_the_parts_of_a_probability(tmp_path):
    TermTable.from_triples(["t1"], ["t2"], [0.5]).save(tmp_path / "t.tsv")
    found = open_ranker(f"qlt:{tmp_path / 't.tsv'}(mu=10)", SETTING).explain("t1", "t1 t2 t2 t4")
    assert found.cells == pytest.approx(np.array([[1 / 14, 1 / 14, 0]]))
    assert found.background == pytest.approx([10 * 2 / 11 / 14])  # 2 of the 11 words of the collection


def test_of_equal_partners_the_first_and_of_equal_counts_the_term_itself(tmp_path):
    TermTable.from_triples(["t1", "t1", "t4"], ["t2", "t3", "t5"], [0.5, 0.5, 1.0]).save(tmp_path / "t.tsv")
    first = open_ranker(f"bm25t:{tmp_path / 't.tsv'}", SETTING).explain("t1", "t9 t3 t2")
    assert np.flatnonzero(first.cells[0]).tolist() == [1]
    same = open_ranker(f"bm25t:{tmp_path / 't.tsv'}(match=max-tf)", SETTING).explain("t4", "t5 t4")
    assert np.flatnonzero(same.cells[0]).tolist() == [1]


@pytest.mark.parametrize("name", ["bm25t", "qlt"])
def test_they_say_that_they_explain(folder, name):
    assert rankers.factory(name).explains
    assert isinstance(opened(f"{name}:TABLE", folder, 0), Explaining)
