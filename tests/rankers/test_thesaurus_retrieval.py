"""Retrieval by BM25T and QLT finds what scoring every document finds, in the same order and to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thesaurus_oracle import TERMS, matches, random_table, related

from whyrank.data import Collection, open_collection
from whyrank.evaluation import Runner
from whyrank.rankers import Setting, open_ranker
from whyrank.rankers.lexical import LexicalIndex
from whyrank.rankers.lexical.thesaurus import search as thesaurus_retrieval
from whyrank.scoring import Engine, rescore, retrieve
from whyrank.tables import TermTable
from whyrank.text import analyzers

words = st.sampled_from([*TERMS, *TERMS[:3], "common", "common", "other"])
texts = st.lists(words, max_size=14).map(" ".join)
queries = st.lists(st.sampled_from([*TERMS, "onlyquery", "common"]), max_size=6).map(" ".join)
SPECS = [
    "bm25t:TABLE", "bm25t:TABLE(match=max-tf)", "bm25t:TABLE(match=sum)", "bm25t:TABLE(variant=terrier)", "bm25t:TABLE(k1=0)",
    "bm25t:TABLE(match=sum,variant=robertson,b=1)", "qlt:TABLE", "qlt:TABLE(mu=0.5)", "qlt:TABLE(smoothing=jm,lam=0.01)", "qlt:TABLE(variant=plain,mu=10)",
]  # fmt: skip


def exhaustive(ranker, docs, query, k):
    """Every document that matches, scored from its text; ties by id, descending."""
    entries = related(ranker.table)
    found = {
        d: ranker.score([query], [text])[0]
        for d, text in docs.items()
        if matches(entries, query.split(), text.split())
    }
    return [(d, found[d]) for d in sorted(sorted(found, reverse=True), key=lambda d: -found[d])[:k]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("thesauri")
    for seed in range(4):
        random_table(seed, 0.3, 1.0 if seed < 2 else 3.0).save(made / f"{seed}.arrow")
    TermTable.from_triples([], [], [], analyzer="whitespace").save(made / "empty.arrow")
    return made


def opened(spec, table, collection):
    return open_ranker(spec.replace("TABLE", str(table)), Setting(collection, "whitespace"))


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("eager", [0.0, 1.0])  # stop as soon as that is safe, or when it is faster too
@given(seed=st.integers(0, 3), docs=st.lists(texts, min_size=1, max_size=25), query=queries, k=st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_the_best_are_those_of_scoring_all(folder, spec, eager, seed, docs, query, k):
    collection = Collection.of({f"d{i}": text for i, text in enumerate(["t1", *docs])}, {"q": query})
    ranker = opened(spec, folder / f"{seed}.arrow", collection)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thesaurus_retrieval, "POSTINGS_PER_TOKEN", eager)
        found = LexicalIndex.of(ranker, collection.docs).search({"q": query}, k)
    assert list(found["q"].items()) == exhaustive(ranker, collection.docs, query, k)


def test_lists_that_cannot_matter_are_not_walked(folder, tmp_path, monkeypatch):
    docs = {f"d{i:03}": " ".join(["common"] * 3 + ["rare", "word"] * (i < 5) + [f"w{i}"]) for i in range(400)}
    TermTable.from_triples(["rare"], ["word"], [0.5], analyzer="whitespace").save(tmp_path / "t.tsv")
    collection = Collection.of(docs, {"q": "common rare"})
    ranker = opened("bm25t:TABLE", tmp_path / "t.tsv", collection)
    walked = []
    add = thesaurus_retrieval.Search.add
    monkeypatch.setattr(
        thesaurus_retrieval.Search, "add", lambda self, term: (walked.append(term.number), add(self, term))
    )
    index = LexicalIndex.of(ranker, docs)
    assert list(index.search(collection.queries, 5)["q"].items()) == exhaustive(ranker, docs, "common rare", 5)
    assert walked == [1]
    walked.clear()
    assert list(index.search(collection.queries, 6)["q"].items()) == exhaustive(ranker, docs, "common rare", 6)
    assert walked == [1, 0]


def test_a_term_that_counts_against_a_document(tmp_path, monkeypatch):
    """With the variant of Terrier, a term of most documents has a negative weight: what leads may fall behind."""
    monkeypatch.setattr(thesaurus_retrieval, "POSTINGS_PER_TOKEN", 0.0)
    docs = {"a": "rare common", "b": "rare other longer"} | {f"c{i}": "common" for i in range(20)}
    TermTable.from_triples(["other"], ["longer"], [0.5], analyzer="whitespace").save(tmp_path / "t.tsv")
    collection = Collection.of(docs, {"q": "rare common"})
    ranker = opened("bm25t:TABLE(variant=terrier)", tmp_path / "t.tsv", collection)
    assert ranker.score(["rare"] * 2, [docs["a"], docs["b"]]).argmax() == 0
    found = LexicalIndex.of(ranker, docs).search(collection.queries, 1)
    assert list(found["q"].items()) == exhaustive(ranker, docs, "rare common", 1)
    assert list(found["q"]) == ["b"]


def test_an_empty_table_retrieves_as_bm25(folder):
    sample = open_collection("sample")
    plain, found = (
        open_ranker(s, Setting(sample))
        for s in ("bm25(variant=parm)", f"bm25t:{folder / 'empty.arrow'}(analyzer=lucene)")
    )
    runs = [retrieve(Engine(), ranker, sample, 10)[0] for ranker in (plain, found)]
    assert {q: list(run.items()) for q, run in runs[0].items()} == {
        q: list(run.items()) for q, run in runs[1].items()
    }


@pytest.mark.parametrize("spec", SPECS)
def test_given_candidates_get_the_scores_of_their_texts(folder, spec):
    rng = np.random.default_rng(0)
    docs = {f"d{i}": " ".join(rng.choice([*TERMS, "other"], 8)) for i in range(30)}
    collection = Collection.of(docs, {"q": "t1 t5 t5 onlyquery", "p": "common new"})
    ranker = opened(spec, folder / "3.arrow", collection)
    found = rescore(LexicalIndex.of(ranker, docs), collection.queries, {q: dict.fromkeys(docs, 0.0) for q in "qp"})
    for query_id, text in collection.queries.items():
        assert list(found[query_id].values()) == ranker.score([text] * 30, list(docs.values())).tolist()


def test_an_index_serves_other_rankers_in_turn(folder):
    docs = {f"d{i}": text for i, text in enumerate(["t1 t2", "t3 t3 t4", "t5", "t6 t1"])}
    collection = Collection.of(docs, {"q": "t1 t3"}, {"q": {"d0": 1}})
    runner = Runner(Engine(), Setting(collection, "whitespace"), None, 3)
    for spec in (
        "bm25",
        f"bm25t:{folder / '2.arrow'}",
        f"qlt:{folder / '2.arrow'}",
        "bm25",
        f"bm25t:{folder / '3.arrow'}(match=sum)",
    ):
        ranker = open_ranker(spec, Setting(collection, "whitespace"))
        alone = LexicalIndex.of(ranker, docs).search(collection.queries, 3)
        assert list(runner.run(spec, collection)["q"].items()) == list(alone["q"].items())


def test_no_documents_and_no_words(folder):
    for docs in ({}, {"a": "", "b": "other"}):
        collection = Collection.of(docs, {"q": "t1", "p": "", "r": "never seen"})
        for spec in ("bm25t:TABLE", "qlt:TABLE"):
            ranker = opened(spec, folder / "empty.arrow", collection)
            assert LexicalIndex.of(ranker, docs).search(collection.queries, 3) == {"q": {}, "p": {}, "r": {}}


@pytest.mark.parametrize("spec", ["bm25t:TABLE", "bm25t:TABLE(match=sum)", "qlt:TABLE"])
def test_real_text(data_folder, tmp_path, spec):
    collection = open_collection(str(data_folder / "cranfield"))
    stems = sorted({w for text in collection.docs.values() for w in analyzers.create("lucene").terms(text)})
    rng = np.random.default_rng(0)
    pairs = {(stems[a], stems[b]) for a, b in rng.integers(0, len(stems), (20_000, 2))}
    TermTable.from_triples(*zip(*sorted(pairs), strict=True), rng.random(len(pairs)), analyzer="lucene").save(
        tmp_path / "t.arrow"
    )
    ranker = open_ranker(spec.replace("TABLE", str(tmp_path / "t.arrow")), Setting(collection))
    queries = dict(list(collection.queries.items())[:10])
    run = LexicalIndex.of(ranker, collection.docs).search(queries, 20)
    for query_id, text in queries.items():
        scores = ranker.score([text] * len(collection.docs), list(collection.docs.values()))
        every = dict(zip(collection.docs, scores.tolist(), strict=True))
        best = sorted(sorted(every, reverse=True), key=lambda d: -every[d])[:20]
        assert list(run[query_id].items()) == [(d, every[d]) for d in best]
