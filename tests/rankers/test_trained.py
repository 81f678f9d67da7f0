"""Networks trained here, models of other packages of the same kinds, and explanations of neural Model 1."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pair_models import forward
from whyrank import networks
from whyrank.core import BadInput, WhyrankError
from whyrank.rankers import open_ranker, query_scale, rankers
from whyrank.rankers.lexical import Explaining
from whyrank.testing.examples import PAIRS

QUERIES, DOCS = (list(texts) for texts in zip(*PAIRS, strict=True))
NAMES = sorted(set(networks.networks.names()) - {"cross"})


def folder_of(models, name):
    kinds = {"knrm": "words", "conv-knrm": "words", "neural-model1": "tokens"}
    return models.folder(kinds.get(name, "network"), name)


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_the_network_and_fast_ones_are_close(models, name):
    folder, some = folder_of(models, name), slice(None, None, len(PAIRS) // 12)
    expected = [float(forward(networks.load(folder), [query], [doc]).detach()) for query, doc in PAIRS[some]]
    ranker, fast = (open_ranker(f"{name}:{folder}(precision={p},device=cpu)") for p in ("exact", "fast"))
    found, near = ranker.score(QUERIES, DOCS), fast.score(QUERIES, DOCS)
    assert np.allclose(found[some], expected, rtol=1e-4, atol=1e-4)
    assert len(set(np.round(found, 4).tolist())) > 5
    assert ranker.scale == networks.networks.factory(name).scale
    assert np.corrcoef(found, near)[0, 1] > 0.98
    with pytest.raises(BadInput, match=f"is a network of architecture cross, not {name}; write cross:PATH"):
        open_ranker(f"{name}:{models.folder('network')}").score(["q"], ["d"])
    assert rankers.factory(name).__doc__


@pytest.mark.parametrize(("name", "kind", "package", "scale"), [
    ("sparse", "sparse", "SparseEncoder", "dot"), ("late", "colbert", "MultiVectorEncoder", "sum of similarities"),
])  # fmt: skip
def test_models_of_sentence_transformers(models, name, kind, package, scale):
    import sentence_transformers

    model = getattr(sentence_transformers, package)(str(models.folder(kind)), device="cpu")
    expected = model.similarity_pairwise(model.encode_query(QUERIES), model.encode_document(DOCS))
    ranker = open_ranker(f"{name}:{models.folder(kind)}")
    assert np.allclose(ranker.score(QUERIES, DOCS), expected, rtol=1e-5, atol=1e-5)
    assert ranker.scale == scale


def test_a_released_colbert_and_our_network_from_it_agree(models):
    folder = models.folder("stanford")
    ours = networks.start("late", folder, dim=16, max_query=29, max_doc=57).eval()
    expected = forward(ours, QUERIES, DOCS).detach().numpy()
    found = open_ranker(f"late:{folder}").score(QUERIES, DOCS)
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["late", "knrm"])
def test_each_distinct_text_is_encoded_once(models, name):
    ranker = open_ranker(f"{name}:{folder_of(models, name)}")
    made, seen = ranker._scorer.reader.network, []
    doc_ids = made.doc_ids
    made.doc_ids = lambda texts: seen.extend(texts) or doc_ids(texts)
    found = ranker.score(["wall", "who", "wall"], ["a wall", "a wall", "the gray wall"])
    assert sorted(seen) == ["a wall", "the gray wall"]
    assert found[0] != found[2]


# Explanations of neural Model 1: the score follows from the matrix

EXPLAINED = {"neural-model1": "tokens", "bert-model1": "network"}
TEXTS = st.text("abc rt?.é", max_size=60) | st.lists(st.sampled_from(["the", "wall", "fell", "of"])).map(" ".join)


@pytest.fixture(params=EXPLAINED)
def translating(request, models):
    return open_ranker(f"{request.param}:{models.folder(EXPLAINED[request.param], request.param)}(device=cpu)")


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, TEXTS)
def test_the_score_is_recovered_from_the_matrix(translating, query, text):
    found = translating.explain(query, text)
    assert found.recomputed == pytest.approx(found.score, abs=1e-6)
    assert found.score == translating.score([query], [text])[0]
    assert (found.cells >= 0).all()
    assert not found.background.any()
    json.dumps(found.partners())


def test_it_says_that_it_explains_but_not_windows(translating, models):
    assert isinstance(translating, Explaining)
    assert rankers.factory(translating.registered).explains
    assert translating.scale == "log probability"
    windows = open_ranker(f"neural-model1:{models.folder('tokens', 'neural-model1')}(passages=max)")
    with pytest.raises(WhyrankError, match="explain with passages=truncate"):
        windows.explain("the wall", "berlin")


def test_a_query_counts_with_its_distinct_tokens_in_a_fuse(translating):
    """As `model1` has it: the query has the wall twice, and a query of 40 words ends after 32 tokens."""
    texts = ["berlin wall fell?", "the the of"]
    fused = open_ranker(f"fuse(of=['{translating.name}','{translating.name}'],weights=[0.25,0.75],normalise=query)")
    for query, tokens in (("wall of wall", 2), ("the", 1), ("", 1), ("the " * 31 + "wall of berlin", 2)):
        assert query_scale(translating, query) == tokens
        found = fused.score([query] * 2, texts)
        assert found == pytest.approx(translating.score([query] * 2, texts) / tokens)


def test_a_note_says_what_is_cut(translating):
    """Without context 477 tokens of a text are read; the tiny BERT has 128 positions, and reads three chunks."""
    whole = {"neural-model1": 477, "bert-model1": 3 * (128 - 32 - 3)}[translating.registered]
    assert not translating.explain("the " * 32, "wall " * whole).notes
    assert translating.explain("the " * 33, "wall " * whole).notes == (
        "the query is cut: its first 32 tokens are read",
    )
    note = f"the text is cut: its first {whole:,} tokens are read"
    assert translating.explain("the", "wall " * (whole + 1)).notes == (note,)
    far = translating.explain("the", "wall" + " " * 24 * whole + "fell")
    assert far.notes == (f"the text is cut: its first {24 * whole:,} characters are read",)
    assert far.document_terms == ["wall"]
    assert not translating.explain("the", "wall" + " " * 24 * whole).notes
