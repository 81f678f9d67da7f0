"""Encoders: the state that has seen the whole text, padded or end to end, over transformers of any kind."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_networks import ENCODER, WORDS, long_pairs, scores, small, tokenizer_file
from tokenizers import Tokenizer, models, pre_tokenizers

from pair_models import forward
from whyrank.core import BadInput, WhyrankError
from whyrank.networks import Encoder, ModelTokenizer, is_plain, load, make, new_encoder, save, tensors
from whyrank.training import Packer


def small_tokenizer(folder):
    return ModelTokenizer(tokenizer_file(folder))


@pytest.fixture
def network(tmp_path):
    return small("cross", tmp_path)


def batches(network):
    """The same pairs padded and end to end."""
    queries, docs = long_pairs()
    ids = network.query_ids(queries), network.doc_ids(docs)
    rows = np.arange(len(queries))
    return tensors(network.arrays(*ids)), Packer(*ids, network.tokenizer.special, "cpu")(rows, rows)


@torch.inference_mode()
def test_pairs_end_to_end_in_mixed_precision_are_near(network):
    padded, packed = batches(network)
    exact = network(padded)
    with torch.autocast("cpu", torch.bfloat16):
        found = network(packed)
    assert found.dtype == torch.float32
    assert 0 < float((found - exact).abs().max()) < 0.1 * float(exact.std())


def test_scores_and_gradients_are_the_same_padded_and_end_to_end(network):
    scores, gradients = [], []
    for batch in batches(network):
        network.zero_grad()
        scores.append(network(batch))
        (scores[-1] * torch.linspace(-1, 1, 10)).sum().backward()
        gradients.append({name: p.grad.clone() for name, p in network.named_parameters()})
    torch.testing.assert_close(*scores, atol=1e-5, rtol=1e-5)
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("kind", ["bert", "electra", "roberta", "mpnet", "distilbert"])
@torch.inference_mode()
def test_any_encoder_has_a_first_position(kind):
    torch.manual_seed(0)
    shape = {name: value for name, value in ENCODER.items() if name != "model_type"}
    if kind == "distilbert":
        shape = {"vocab_size": shape["vocab_size"], "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128}
    narrow = {"embedding_size": 64} if kind == "electra" else {}  # else it projects its embeddings
    encoder: Encoder = new_encoder({"model_type": kind, **shape, **narrow}).eval()
    ids = torch.randint(5, 60, (3, 9))
    mask = torch.tensor([[1] * 9, [1] * 4 + [0] * 5, [1] + [0] * 8])
    batch = {"ids": ids, "mask": mask, "types": torch.zeros_like(ids)}
    torch.testing.assert_close(encoder.pooled(batch), encoder.last(batch)[:, 0], atol=1e-5, rtol=1e-5)
    assert is_plain(encoder.model) == (kind in ("bert", "electra"))


_STACK = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
OTHERS = {
    "gpt2": {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "qwen2": {"model_type": "qwen2", **_STACK, "num_key_value_heads": 2},
    "decoder": {"model_type": "bert", "is_decoder": True, **_STACK},
    "t5": {"model_type": "t5", "d_model": 64, "num_layers": 2, "num_heads": 4, "d_kv": 16, "d_ff": 128},
    "bart": {
        "model_type": "bart", "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "max_position_embeddings": 64,
    },
}  # fmt: skip
CAUSAL = ("gpt2", "qwen2", "decoder")


def encoder_of(kind):
    torch.manual_seed(0)
    return new_encoder({**OTHERS[kind], "vocab_size": ENCODER["vocab_size"]}).eval()


@pytest.mark.parametrize("kind", OTHERS)
@torch.inference_mode()
def test_the_pooled_state_is_of_the_position_that_has_seen_all_wherever_the_padding_is(kind):
    encoder = encoder_of(kind)
    assert encoder.causal == (kind in CAUSAL)
    row = torch.randint(5, 60, (1, 6))
    alone = encoder.last({"ids": row, "mask": torch.ones_like(row), "types": torch.zeros_like(row)})[0]
    wide = torch.cat([row, torch.zeros(1, 3, dtype=torch.long)], dim=1)
    batch = {"ids": wide, "mask": (torch.arange(9) < 6).long()[None], "types": torch.zeros_like(wide)}
    expected = alone[-1 if encoder.causal else 0]
    torch.testing.assert_close(encoder.pooled(batch)[0], expected, atol=1e-5, rtol=1e-5)
    if encoder.causal:  # whatever the states are, padding on the left is not taken for the text
        left = {"mask": batch["mask"].flip(1)}
        torch.testing.assert_close(encoder.pool(encoder.last(batch).flip(1), left)[0], encoder.last(batch)[0, 0])


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("architecture", ["cross", "vanilla", "parm", "cedr-knrm", "cedr-drmm", "cedr-pacrr"])
def test_scores_over_any_encoder_depend_on_all_of_the_text_and_on_nothing_beside_it(tmp_path, kind, architecture):
    """The state that the head reads: with its cosines alone, CEDR would tell most texts apart."""
    network = make(architecture, encoder_of(kind), small_tokenizer(tmp_path), max_query=8, max_doc=12).eval()
    if architecture.startswith("cedr"):
        network.head = lambda first, *_: first @ torch.linspace(-1, 1, 64)
    docs = [" ".join([*WORDS[:5], last]) for last in WORDS[10:16]] + ["w1"]
    with torch.inference_mode():
        found = forward(network, ["w1 w2"] * len(docs), docs)
        alone = torch.cat([forward(network, ["w1 w2"], [doc]) for doc in docs])
        queries = forward(network, WORDS[20:26], [docs[0]] * 6)
    assert len(set(found.round(decimals=6).tolist())) == len(docs)
    assert len(set(queries.round(decimals=6).tolist())) == 6
    torch.testing.assert_close(found, alone, atol=1e-4, rtol=1e-4)


def test_a_saved_network_over_any_encoder_scores_the_same(tmp_path):
    for kind in OTHERS:
        network = make("cross", encoder_of(kind), small_tokenizer(tmp_path), max_query=8, max_doc=12).eval()
        save(network, tmp_path / kind)
        assert np.array_equal(scores(load(tmp_path / kind), *long_pairs()), scores(network, *long_pairs()))


def test_a_model_that_reads_no_texts_is_refused():
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    with pytest.raises(WhyrankError, match=r"encoder: a model of type vit does not read texts .*give a BERT-like"):
        new_encoder({"model_type": "vit", **shape, "image_size": 16, "patch_size": 8})


def test_a_tokenizer_without_cls_has_its_own_token_for_beginnings_and_ends(tmp_path):
    vocabulary = {word: i for i, word in enumerate(["<|endoftext|>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    network = make("cross", encoder_of("gpt2"), ModelTokenizer(tmp_path), max_query=8, max_doc=12)
    found = network.arrays(network.query_ids(["w1"]), network.doc_ids(["w2 w3"]))
    assert found["ids"].tolist() == [[0, 2, 0, 3, 4, 0]]
    with pytest.raises(BadInput, match=r"the tokenizer has no token \[MASK\]; give a BERT-like model"):
        network.tokenizer.special["mask"]
