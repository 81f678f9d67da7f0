"""BM25 over expanded texts, fused with an exported neural Model 1, re-ranked by BERT-Model1: one call string."""

from __future__ import annotations

import numpy as np
import pytest

from tiny_generators import generator
from whyrank.data import Collection, ranking
from whyrank.evaluation import Runner, Split
from whyrank.evaluation.fusion.fitting import fit_fusion
from whyrank.rankers import Setting, open_ranker, query_scale
from whyrank.scoring import Engine, rerank, retrieve
from whyrank.scoring.ranking import retriever

pytest.importorskip("torch", reason="the extra models is not installed")
DOCS = {
    "wall": "the berlin wall fell",
    "city": "a city of explorers",
    "gray": "robert gray was an explorer in berlin",
    "stone": "it stood since and had fallen",
    "what": "what is a wall",
    "none": "emoji x x",
    "empty": "",
}
QUERIES = {"1": "berlin wall", "2": "who is the explorer", "3": "city"}
QRELS = {"1": {"wall": 1, "gray": 0}, "2": {"gray": 1}, "3": {"city": 1}}


@pytest.fixture(scope="module")
def collection():
    return Collection.of(DOCS, QUERIES, QRELS, name="toy")


@pytest.fixture(scope="module")
def parts(models, tmp_path_factory):
    """The call strings of the three models."""
    from whyrank.learners import export_table, open_network

    place, network = tmp_path_factory.mktemp("parts"), models.folder("tokens", "neural-model1")
    export_table(open_network(network), 1e-4).save(place / "neural.arrow")
    return {
        "expanded": f"doc2query:{generator('seq2seq', place / 'generator')}(n=2)",
        "table": f"model1:{place / 'neural.arrow'}",
        "bert": f"bert-model1:{models.folder('network', 'bert-model1', max_doc=8, chunks=3)}(device=cpu)",
        "short": f"bert-model1:{models.folder('network', 'bert-model1', max_doc=8, chunks=1)}(device=cpu)",
    }


def fused(parts, weights):
    return f"fuse(of={[parts['expanded'], parts['table']]!r},weights={weights!r},normalise=query)"


def test_the_whole_cascade_is_one_call_string(parts, collection, tmp_path):
    runner = Runner(Engine(), Setting(collection), None, 20)
    weights = fit_fusion(fused(parts, None), Split(collection, None), "RR@10", runner, restarts=1)
    weights.save(str(tmp_path / "weights.json"))
    spec = f"cascade(of={[fused(parts, str(tmp_path / 'weights.json')), parts['bert']]!r},depth=2)"
    ranker = open_ranker(spec, Setting(collection))
    run, failures = retrieve(Engine(), ranker, collection, 10)
    assert not failures
    for query_id, query in QUERIES.items():
        assert list(run[query_id]) == by_hand(parts, weights.fitted.weights, collection, query)
    assert repr(open_ranker(ranker.name, Setting(collection))) == repr(ranker)


def by_hand(parts, weights, collection, query):
    """All three rankers asked one by one, and their scores put together with the formulas of the documentation."""
    setting = Setting(collection)
    bm25, table, bert = open_ranker("bm25", setting), open_ranker(parts["table"]), open_ranker(parts["bert"])
    expanded = dict(zip(DOCS, open_ranker(parts["expanded"], setting).expanded(list(DOCS.values())), strict=True))
    lexical = {d: bm25.score([query], [text])[0] for d, text in expanded.items()}
    found = {d: score for d, score in lexical.items() if score > 0}
    scale = query_scale(bm25, query)
    total = {d: weights[0] * found[d] / scale + weights[1] * table.score([query], [DOCS[d]])[0] for d in found}
    order = ranking(total)
    last = {d: bert.score([query], [DOCS[d]])[0] for d in order[:2]}
    return [*ranking(last), *order[2:]]


def test_expanded_texts_are_retrieved_as_they_are_scored(parts, collection):
    ranker = open_ranker(parts["expanded"], Setting(collection))
    run, _ = retrieve(Engine(), ranker, collection, 10)
    for query_id, query in QUERIES.items():
        scores = dict(zip(DOCS, ranker.score([query] * len(DOCS), list(DOCS.values())), strict=True))
        expected = {d: score for d, score in scores.items() if score > 0}
        assert run[query_id] == pytest.approx(expected)
        assert list(run[query_id]) == ranking(run[query_id])
    plain, _ = retrieve(Engine(), ranker.ranker, collection, 10)
    assert any(set(run[q]) > set(plain[q]) for q in QUERIES)  # what only the expanded texts have is found


def test_who_retrieves(parts, collection):
    setting = Setting(collection)

    def name(spec):
        found = retriever(open_ranker(spec, setting))
        return found and found.name

    assert name("bm25(k1=1.5)") == "bm25(k1=1.5)"
    assert name("cascade(of=['bm25(k1=1.5)','ql'])") == "bm25(k1=1.5)"
    assert name("fuse(of=['bm25(b=0.1)','ql'])") == "bm25(b=0.1)"
    assert name("cascade(of=['ql','bm25'])") is name("fuse(of=['ql','bm25'])") is name("ql") is None
    assert name(fused(parts, [1, 1])).startswith("doc2query:")
    assert name(parts["expanded"].replace("n=2", "n=2,ranker=ql")) is None


def test_a_cascade_whose_first_ranker_cannot_retrieve_takes_bm25(collection):
    spec = "cascade(of=['ql','bm25'],depth=1)"
    ranker = open_ranker(spec, Setting(collection))
    bm25, _ = retrieve(Engine(), open_ranker("bm25", Setting(collection)), collection, 10)
    assert retrieve(Engine(), ranker, collection, 10)[0] == rerank(Engine(), ranker, collection, bm25)[0]


def test_the_scale_of_a_query_is_that_of_the_ranker_behind(parts, collection):
    expanded, plain = (open_ranker(spec, Setting(collection)) for spec in (parts["expanded"], "bm25"))
    for query in ("berlin wall", "nothing known", ""):
        assert query_scale(expanded, query) == query_scale(plain, query)
    assert query_scale(expanded, "berlin wall") != 1


def test_short_and_full_differ_on_texts_longer_than_one_chunk_alone(parts):
    short, full = open_ranker(parts["short"]), open_ranker(parts["bert"])
    words = ["the", "berlin", "wall", "fell", "and", "robert", "gray", "stood"]  # a chunk of eight tokens
    inside, longer = " ".join(words), " ".join([*words, "explorer", "since"])
    query = "who was the explorer"
    assert short.score([query], [inside]) == pytest.approx(full.score([query], [inside]), abs=1e-6)
    assert short.score([query], [longer]) == pytest.approx(short.score([query], [inside]), abs=1e-6)
    assert abs(full.score([query], [longer]) - full.score([query], [inside]))[0] > 1e-3
    assert np.isfinite(full.score([query], [" ".join([inside] * 9)])).all()
