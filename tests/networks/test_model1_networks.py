"""Neural Model 1, without context and over BERT's states, against its definition in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from small_networks import (
    DOCS,
    QUERIES,
    long_pairs,
    scores,
    small,
    tokenizer_file,
)

from whyrank.core import WhyrankError
from whyrank.networks import ModelTokenizer, make, matrix, pair_arrays, tensors
from whyrank.networks.encoder import WordEncoder
from whyrank.networks.model1 import Translating

KINDS = [{}, {"p_self": None}, {"p_self": 0.9}, {"variant": "cosine"}, {"variant": "cosine", "p_self": None}]


def weights(module):
    return [p.detach().double().numpy() for p in (module.weight, module.bias)]


def projected(norm, projection, vector):
    """P(tanh(LN(v)))."""
    (gain, shift), (weight, bias) = weights(norm), weights(projection)
    centred = vector - vector.mean()
    return weight @ np.tanh(centred / np.sqrt((centred**2).mean() + norm.eps) * gain + shift) + bias


def translation(layer: Translating, q, d) -> float:
    """T(q|d) of two vectors, before self-translation."""
    if layer.variant == "cosine":
        return 0.5 * (float(q @ d) / (np.linalg.norm(q) * np.linalg.norm(d)) + 1)
    x = projected(layer.query_norm, layer.query_projection, q)
    y = projected(layer.doc_norm, layer.doc_projection, d)
    hidden = np.concatenate([x, y, x * y])
    for module in (layer.first, layer.second):
        weight, bias = weights(module)
        hidden = np.maximum(weight @ hidden + bias, 0)
    weight, bias = weights(layer.third)
    return 1 / (1 + math.exp(-float((weight @ hidden + bias)[0])))


def with_self(layer: Translating, same: bool, value: float) -> float:
    if layer.p_self is None:
        return value
    return layer.p_self if same else (1 - layer.p_self) * value


def log_score(layer: Translating, query, doc) -> float:
    """The log score of (number, vector) pairs of a query and a text, token by token."""
    total = 0.0
    for a, q in query:
        found = sum(with_self(layer, a == b, translation(layer, q, d)) for b, d in doc)
        total += math.log(max(layer.eps, found / max(len(doc), 1)))
    return total


def read_tokens(network, query, doc):
    """The tokens of a query and a text with their vectors: rows of the two halves of one matrix."""
    rows = network.encoder.vectors.weight.detach().double().numpy()
    query_ids, doc_ids = network.query_ids([query])[0].tolist(), network.doc_ids([doc])[0].tolist()
    halves = rows[1 : 1 + len(network.tokenizer)], rows[1 + len(network.tokenizer) :]
    return [(i, halves[0][i]) for i in query_ids], [(i, halves[1][i]) for i in doc_ids]


@pytest.mark.parametrize("settings", KINDS)
def test_scores_are_those_of_the_definition(settings, tmp_path):
    network = small("neural-model1", tmp_path, **settings)
    pairs = [(q, d) for q in QUERIES for d in DOCS]
    found = scores(network, [q for q, _ in pairs], [d for _, d in pairs])
    expected = [log_score(network.layer, *read_tokens(network, q, d)) for q, d in pairs]
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


@pytest.mark.parametrize("text", ["w3 w1 w3 w5", "", "w1"])
def test_the_matrix_gives_the_score(text, tmp_path):
    network = small("neural-model1", tmp_path)
    found = matrix(network, "w1 w7 w1", text)
    assert found.query_tokens == ["w1", "w7"]
    assert found.counts.tolist() == [2, 1]
    assert found.doc_tokens == list(dict.fromkeys(text.split()))
    assert found.shares.sum() == pytest.approx(1.0 if text else 0.0, abs=1e-6)
    logs = np.log(np.maximum(network.layer.eps, found.translations @ found.shares))
    assert scores(network, ["w1 w7 w1"], [text])[0] == pytest.approx(found.counts @ logs, abs=1e-9)


def test_vectors_must_be_those_of_the_tokenizer(tmp_path):
    tokenizer = ModelTokenizer(tokenizer_file(tmp_path))
    with pytest.raises(WhyrankError, match="has vectors of its own for"):
        make("neural-model1", WordEncoder(len(tokenizer), 8), tokenizer)


def read_states(network, query, doc):
    """Tokens and states: each chunk of 12 with the query by itself, the query's states from the first."""
    query_ids, doc_ids = network.query_ids([query])[0], network.doc_ids([doc])[0]
    found_query, found_doc = [], []
    for begin in range(0, max(len(doc_ids), 1), network.max_doc):
        chunk = doc_ids[begin : begin + network.max_doc]
        batch = tensors(pair_arrays([query_ids], [chunk], network.tokenizer.special))
        with torch.inference_mode():
            states = network.encoder.last(batch)[0].double().numpy()
        found_query = found_query or list(zip(query_ids.tolist(), states[1 : 1 + len(query_ids)], strict=True))
        found_doc += zip(chunk.tolist(), states[2 + len(query_ids) : 2 + len(query_ids) + len(chunk)], strict=True)
    return found_query, found_doc


@pytest.mark.parametrize("settings", [{}, {"chunks": 1}, {"p_self": None}, {"variant": "cosine"}])
def test_scores_over_states_are_those_of_the_definition(tmp_path, settings):
    network = small("bert-model1", tmp_path, **settings)
    queries, docs = long_pairs()
    expected = [log_score(network.layer, *read_states(network, q, d)) for q, d in zip(queries, docs, strict=True)]
    np.testing.assert_allclose(scores(network, queries, docs), expected, rtol=1e-4, atol=1e-4)


def test_the_matrix_has_a_column_for_each_position(tmp_path):
    network = small("bert-model1", tmp_path)
    text = "w1 w2 w1 " * 8
    found = matrix(network, "w2 w9 w2", text)
    assert found.query_tokens == ["w2", "w9", "w2"]
    assert found.doc_tokens == text.split()
    np.testing.assert_allclose(found.translations[[0, 2]][:, 1::3], 0.3)
    np.testing.assert_allclose(found.shares, 1 / 24)
    assert len(set(np.round(found.translations[1], 6))) == 12  # positions of a chunk differ, the two chunks are alike
    logs = np.log(np.maximum(network.layer.eps, found.translations @ found.shares))
    assert scores(network, ["w2 w9 w2"], [text])[0] == pytest.approx(found.counts @ logs, abs=1e-9)
