"""Late interaction against its definition in plain loops."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from small_networks import DOCS, ENCODER, QUERIES, SPECIAL, layer, scores, small, states, tokenizer_file
from transformers import BertConfig, BertModel

from whyrank.core import BadInput
from whyrank.networks import ModelTokenizer, make, new_encoder, start

CLS, SEP, MASK, Q, D, COMMA = (
    ([*SPECIAL, ".", ","]).index(t) for t in ("[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]", ",")
)


def unit_vectors(network, side, text):
    found = layer(network.projection, states(network, side, text))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def best_matches(network, query, doc):
    ids = network.doc_arrays(network.doc_ids([doc]))["ids"][0]
    spelled = network.tokenizer.spell(ids)
    matched = [v for v, token in zip(unit_vectors(network, "doc", doc), spelled, strict=True) if token not in ".,!"]
    return sum(max(float(q @ d) for d in matched) for q in unit_vectors(network, "query", query))


def test_the_score_is_the_sum_of_best_matches(tmp_path):
    network = small("late", tmp_path)
    for query in QUERIES:
        for doc in DOCS:
            assert scores(network, [query], [doc])[0] == pytest.approx(best_matches(network, query, doc), abs=1e-4)


def test_queries_are_filled_up_with_masks_that_nothing_attends_to(tmp_path):
    network = small("late", tmp_path, max_query=4)
    found = network.query_arrays(network.query_ids(["w1 w2", "", "w1 w2 w3 w4 w5 w6"]))
    first = len(SPECIAL) + 3 + 1
    assert found["ids"].tolist() == [
        [CLS, Q, first, first + 1, SEP, MASK, MASK],
        [CLS, Q, SEP, MASK, MASK, MASK, MASK],
        [CLS, Q, first, first + 1, first + 2, first + 3, SEP],
    ]
    assert found["mask"].tolist() == [[1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0], [1] * 7]
    assert found["kept"].tolist() == [[1] * 7] * 3
    network.attend = True
    assert network.query_arrays(network.query_ids(["w1"]))["mask"].tolist() == [[1] * 7]


def test_without_masks_a_query_is_matched_by_its_own_positions(tmp_path):
    network = small("late", tmp_path, augment=False)
    assert network.query_arrays(network.query_ids(["w1 w2", "w1"]))["ids"].shape == (2, 5)
    pairs = [(q, d) for q in QUERIES for d in DOCS]
    found = scores(network, [q for q, _ in pairs], [d for _, d in pairs])
    np.testing.assert_allclose(found, [best_matches(network, q, d) for q, d in pairs], atol=1e-4)


def test_texts_are_marked_and_their_punctuation_is_read_but_not_matched(tmp_path):
    network, first = small("late", tmp_path), len(SPECIAL) + 3 + 1
    found = network.doc_arrays(network.doc_ids(["w1, w2", "w1"]))
    assert found["ids"][0].tolist() == [CLS, D, first, COMMA, first + 1, SEP]
    assert found["mask"].tolist() == [[1] * 6, [1, 1, 1, 1, 0, 0]]
    assert found["kept"].tolist() == [[1, 1, 1, 0, 1, 1], [1, 1, 1, 1, 0, 0]]
    with_all = small("late", tmp_path, punctuation=True)
    assert with_all.doc_arrays(with_all.doc_ids(["w1, w2"]))["kept"].tolist() == [[1] * 6]


def test_a_tokenizer_without_unused_tokens_is_one_clear_line(tmp_path):
    tokenizer = ModelTokenizer(tokenizer_file(tmp_path, SPECIAL[:5]))
    with pytest.raises(BadInput, match=r"\[unused0\]"):
        make("late", new_encoder(ENCODER), tokenizer)


def test_the_projection_of_a_checkpoint_is_taken_over(tmp_path):
    torch.manual_seed(0)
    tokenizer_file(tmp_path)
    shape = {name: value for name, value in ENCODER.items() if name != "model_type"}
    model = BertModel(BertConfig(**shape), add_pooling_layer=False)
    model.save_pretrained(tmp_path)
    weights = {f"bert.{name}": t for name, t in load_file(tmp_path / "model.safetensors").items()}
    projection = torch.randn(24, 64)
    save_file(weights | {"linear.weight": projection}, tmp_path / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text()) | {"architectures": ["HF_ColBERT"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    network = start("late", tmp_path, dim=24).eval()
    assert torch.equal(network.projection.weight, projection)
    assert torch.equal(
        network.encoder.model.embeddings.word_embeddings.weight, model.embeddings.word_embeddings.weight
    )
    assert start("late", tmp_path, dim=12).projection.weight.shape == (12, 64)
