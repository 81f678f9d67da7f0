"""Neural Model 1 without context, against its definition in plain loops."""

from __future__ import annotations

import math

import model1_oracle as oracle
import numpy as np
import pytest
import torch
from separate_models import DOCS, QUERIES, puzzle, reciprocal_rank_of, scores, small, tokenizer_file, trainer

from whyrank.core import WhyrankError
from whyrank.networks import ModelTokenizer, load, make, matrix, save, start
from whyrank.networks.encoder import WordEncoder
from whyrank.training.schedule import Schedule

torch.set_num_threads(1)
KINDS = [{}, {"p_self": None}, {"p_self": 0.9}, {"variant": "cosine"}, {"variant": "cosine", "p_self": None}]


def read(network, query, doc):
    """The tokens of a query and a text with their vectors: rows of the two halves of one matrix."""
    rows = network.encoder.vectors.weight.detach().double().numpy()
    asked, told = network.query_ids([query])[0].tolist(), network.doc_ids([doc])[0].tolist()
    halves = rows[1 : 1 + len(network.tokenizer)], rows[1 + len(network.tokenizer) :]
    return [(i, halves[0][i]) for i in asked], [(i, halves[1][i]) for i in told]


@pytest.mark.parametrize("settings", KINDS)
def test_scores_are_those_of_the_definition(settings, tmp_path):
    network = small("neural-model1", tmp_path, **settings)
    pairs = [(q, d) for q in QUERIES for d in DOCS]
    found = scores(network, [q for q, _ in pairs], [d for _, d in pairs])
    expected = [oracle.score(network.layer, *read(network, q, d)) for q, d in pairs]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("settings", KINDS)
def test_each_with_each_is_the_same_as_pair_by_pair(settings, tmp_path):
    """The two ways to compute the layer, for texts and for a whole vocabulary."""
    network = small("neural-model1", tmp_path, **settings)
    query, doc = network.vectors(torch.arange(20), torch.arange(30))
    left, right = torch.arange(20).repeat_interleave(30), torch.arange(30).repeat(20)
    with torch.inference_mode():
        one = network.layer.every(query, doc)
        other = network.layer.aligned(query, doc, left, right).reshape(20, 30)
        several = network.layer.every(query.expand(2, -1, -1), doc.expand(2, -1, -1))
    torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(several[1], one, rtol=1e-5, atol=1e-6)


def test_an_empty_text_has_the_least_probability_and_an_empty_query_none_to_lose(tmp_path):
    network = small("neural-model1", tmp_path, eps=1e-6)
    found = scores(network, ["w1 w2 w1", "", ""], ["", "", "w1"])
    np.testing.assert_allclose(found, [3 * math.log(1e-6), 0, 0])


def test_self_translation_is_p_self(tmp_path):
    network = small("neural-model1", tmp_path, p_self=0.25)
    found = scores(network, ["w1", "w1 w1"], ["w1", "w1 w1 w1"])
    np.testing.assert_allclose(found, [math.log(0.25), 2 * math.log(0.25)], atol=1e-7)


def test_the_same_word_has_two_vectors(tmp_path):
    network = small("neural-model1", tmp_path, p_self=None)
    there, back = scores(network, ["w1", "w2"], ["w2", "w1"])
    assert abs(there - back) > 1e-4


@pytest.mark.parametrize("text", ["w3 w1 w3 w5", "", "w1"])
def test_the_matrix_gives_the_score(text, tmp_path):
    network = small("neural-model1", tmp_path)
    found = matrix(network, "w1 w7 w1", text)
    assert found.query_pieces == ["w1", "w7"]
    assert found.counts.tolist() == [2, 1]
    assert found.doc_pieces == list(dict.fromkeys(text.split()))
    assert found.shares.sum() == pytest.approx(1.0 if text else 0.0, abs=1e-6)
    logs = np.log(np.maximum(network.layer.eps, found.translations @ found.shares))
    assert scores(network, ["w1 w7 w1"], [text])[0] == pytest.approx(found.counts @ logs, abs=1e-9)


@pytest.mark.parametrize("settings", [{"variant": "cosine", "p_self": None}, {"dropout": 0.2}])
def test_every_variant_learns(settings, tmp_path):
    network, (queries, docs) = small("neural-model1", tmp_path, **settings), puzzle(n=10)
    before = reciprocal_rank_of(network, queries, docs)
    trainer(network, queries, docs, Schedule(epochs=25, batch=10, rate=1e-2, head_rate=1e-2, decay=False)).run()
    assert reciprocal_rank_of(network, queries, docs) > before + 0.2


def test_settings_survive(tmp_path):
    settings = {
        "p_self": None,
        "widths": (6, 5, 4),
        "eps": 1e-7,
        "dropout": 0.3,
        "start": -4.0,
        "max_query": 5,
        "max_doc": 9,
    }
    network = small("neural-model1", tmp_path, **settings)
    save(network, tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert again.settings == network.settings == {**settings, "widths": [6, 5, 4], "variant": "network"}
    assert np.array_equal(scores(again, QUERIES, DOCS), scores(network, QUERIES, DOCS))


def test_a_new_network_has_the_published_shape(tmp_path):
    network = start("neural-model1", tokenizer_file(tmp_path))
    assert network.encoder.width == 128
    assert network.layer.settings["widths"] == [128, 128, 64]
    assert (network.layer.p_self, network.layer.eps) == (0.3, 1e-8)
    assert not network.encoder.vectors.weight[0].any()
    for half in network.encoder.vectors.weight[1:].chunk(2):
        bound = math.sqrt(6 / (len(network.tokenizer) + 128))
        assert 0.9 * bound < half.abs().max() <= bound


@pytest.mark.parametrize(
    ("settings", "what"),
    [({"variant": "dot"}, "unknown variant"), ({"p_self": 2}, "p_self"), ({"widths": [1, 2]}, "widths must be three"),
     ({"widths": [1, 0, 3]}, "widths must be"), ({"eps": 0}, "eps"), ({"dims": 0}, "dims"), ({"dropout": 2}, "dropout"),
     ({"start": "low"}, "start")],
)  # fmt: skip
def test_what_cannot_be_is_one_clear_line(settings, what, tmp_path):
    with pytest.raises(WhyrankError, match=what):
        small("neural-model1", tmp_path, **settings)


def test_vectors_must_be_those_of_the_pieces(tmp_path):
    tokenizer = ModelTokenizer(tokenizer_file(tmp_path))
    with pytest.raises(WhyrankError, match="stands on vectors of its own for"):
        make("neural-model1", WordEncoder(len(tokenizer), 8), tokenizer)
    with pytest.raises(WhyrankError, match="which have none"):
        start("neural-model1", tmp_path, layers=[0])
