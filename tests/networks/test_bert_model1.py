"""Neural Model 1 over BERT's states, against its definition in plain loops."""

from __future__ import annotations

import model1_oracle as oracle
import numpy as np
import pytest
import torch
from chunked_models import small_network, small_pairs, small_pieces

from whyrank.networks import matrix, pair_arrays, tensors

torch.set_num_threads(1)
KINDS = [{}, {"chunks": 1}, {"p_self": None}, {"variant": "cosine"}]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return small_pieces(tmp_path_factory.mktemp("tokens"))


def scores(network, queries, docs):
    with torch.inference_mode():
        return network.score_texts(queries, docs).numpy()


def read(network, query, doc):
    """Pieces and states: each chunk of 12 with the query by itself, the query's states from the first."""
    asked, told = network.query_ids([query])[0], network.doc_ids([doc])[0]
    found_query, found_doc = [], []
    for start in range(0, max(len(told), 1), network.max_doc):
        chunk = told[start : start + network.max_doc]
        batch = tensors(pair_arrays([asked], [chunk], network.tokenizer.special))
        with torch.inference_mode():
            states = network.encoder.last(batch)[0].double().numpy()
        found_query = found_query or list(zip(asked.tolist(), states[1 : 1 + len(asked)], strict=True))
        found_doc += zip(chunk.tolist(), states[2 + len(asked) : 2 + len(asked) + len(chunk)], strict=True)
    return found_query, found_doc


@pytest.mark.parametrize("settings", KINDS)
def test_scores_are_those_of_the_definition(tokenizer, settings):
    network = small_network("bert-model1", tokenizer, **settings)
    queries, docs = small_pairs()
    expected = [oracle.score(network.layer, *read(network, q, d)) for q, d in zip(queries, docs, strict=True)]
    np.testing.assert_allclose(scores(network, queries, docs), expected, rtol=1e-4, atol=1e-4)


def test_the_matrix_has_a_column_for_each_place(tokenizer):
    network = small_network("bert-model1", tokenizer)
    text = "w1 w2 w1 " * 8
    found = matrix(network, "w2 w9 w2", text)
    assert found.query_pieces == ["w2", "w9", "w2"]
    assert found.doc_pieces == text.split()
    np.testing.assert_allclose(found.translations[[0, 2]][:, 1::3], 0.3)
    np.testing.assert_allclose(found.shares, 1 / 24)
    assert len(set(np.round(found.translations[1], 6))) == 12  # places of a chunk differ, the two chunks are alike
    logs = np.log(np.maximum(network.layer.eps, found.translations @ found.shares))
    assert scores(network, ["w2 w9 w2"], [text])[0] == pytest.approx(found.counts @ logs, abs=1e-9)


def test_the_first_position_counts_nowhere(tokenizer, monkeypatch):
    network = small_network("bert-model1", tokenizer)
    expected = scores(network, *small_pairs())

    plain = type(network.encoder).last

    def other(self, batch):
        states = plain(self, batch)
        states[:, 0] = 7.0
        return states

    monkeypatch.setattr(type(network.encoder), "last", other)
    np.testing.assert_array_equal(scores(network, *small_pairs()), expected)
