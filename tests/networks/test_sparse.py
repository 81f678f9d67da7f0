"""Learned sparse vectors against their definition, their penalty, and heads of real masked language models."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_networks import DOCS, QUERIES, encoded, scores, small, states, tokenizer_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

from pair_models import forward
from whyrank.networks import ModelTokenizer, load, save, start, tensors

SIZES = {"vocab_size": 130, "max_position_embeddings": 64, "pad_token_id": 0}
BERT = BertConfig(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128, initializer_range=0.2, **SIZES
)
MODELS = {
    "bert": lambda: BertForMaskedLM(BERT),
    "distilbert": lambda: DistilBertForMaskedLM(
        DistilBertConfig(dim=64, n_layers=2, n_heads=2, hidden_dim=128, initializer_range=0.2, **SIZES)
    ),
    "roberta": lambda: RobertaForMaskedLM(
        RobertaConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128, initializer_range=0.2, **SIZES)
    ),
}  # fmt: skip


def vector(network, side, text):
    """max over positions of log(1 + relu(logit)), position by position."""
    words = network.encoder.model.get_input_embeddings().weight.detach().double().numpy()
    found = np.zeros(len(words))
    for state in states(network, side, text):
        logits = words @ state + network.head.bias.detach().double().numpy()
        found = np.maximum(found, np.log(1 + np.maximum(logits, 0)))
    return found


def test_the_score_is_the_product_of_two_sparse_vectors(tmp_path):
    network = small("sparse", tmp_path)
    torch.nn.init.normal_(network.head.bias)
    for query in QUERIES:
        for doc in DOCS:
            expected = vector(network, "query", query) @ vector(network, "doc", doc)
            assert scores(network, [query], [doc])[0] == pytest.approx(expected, rel=1e-4), (query, doc)


@pytest.mark.parametrize("kind", MODELS)
def test_the_head_of_a_masked_language_model_is_taken_over(kind, tmp_path):
    torch.manual_seed(0)
    model, tokenizer = MODELS[kind]().eval(), ModelTokenizer(tokenizer_file(tmp_path))
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or "norm" in name.lower():
            torch.nn.init.normal_(parameter)
    model.save_pretrained(tmp_path)
    network = start("sparse", tmp_path).eval()
    assert network.settings["transform"]
    found = encoded(network, "doc", DOCS)["weights"]
    for row, doc in zip(found, DOCS, strict=True):
        batch = tensors(network.doc_arrays(tokenizer.ids([doc], 60)))
        logits = model(input_ids=batch["ids"], attention_mask=batch["mask"]).logits[0]
        torch.testing.assert_close(row, torch.log1p(torch.relu(logits)).amax(dim=0), rtol=1e-4, atol=1e-4)
    save(network, tmp_path / "saved")
    assert np.array_equal(scores(load(tmp_path / "saved"), ["w1"], ["w2"]), scores(network, ["w1"], ["w2"]))


def test_old_names_of_norms_are_understood_and_plain_encoders_have_no_head(tmp_path):
    from safetensors.torch import load_file, save_file

    tokenizer_file(tmp_path)
    model = MODELS["bert"]()
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    old = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
        for n, t in load_file(file).items()
    }
    save_file(old, file, {"format": "pt"})
    found = start("epic", tmp_path)
    assert torch.equal(found.head.norm.weight, model.cls.predictions.transform.LayerNorm.weight)
    model.bert.save_pretrained(tmp_path)
    plain = start("epic", tmp_path)
    assert plain.head.inner is None
    assert not plain.head.bias.any()
    assert start("sparse", tmp_path, bias=-3.0).head.bias.unique().tolist() == [-3.0]
    assert start("sparse", tmp_path).settings["transform"] is False


def test_the_penalty_weighs_queries_and_texts(tmp_path):
    network = small("sparse", tmp_path, query_weight=0.5, doc_weight=0.25)
    forward(network, ["w1"], ["w2"])
    assert network.penalty() is None
    network.train()
    forward(network, ["w1", "w1", "w3"], ["w2", "w4", "w2"])
    means = [
        np.mean([vector(network, side, t) for t in texts], axis=0)
        for side, texts in (("query", ("w1", "w3")), ("doc", ("w2", "w4")))
    ]
    expected = 0.5 * (means[0] ** 2).sum() + 0.25 * (means[1] ** 2).sum()
    assert network.penalty().item() == pytest.approx(expected, rel=1e-4)
    assert network.penalty() is None


def test_the_penalty_grows_as_the_square_of_time(tmp_path):
    network = small("sparse", tmp_path, ramp=4).train()
    found = []
    for _ in range(6):
        forward(network, ["w1"], ["w2"])
        found.append(network.penalty().item())
    np.testing.assert_allclose(np.array(found) / found[-1], [1 / 16, 4 / 16, 9 / 16, 1, 1, 1], rtol=1e-5)
