"""The first position alone is what the whole encoder gives there, padded or end to end."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from chunked_models import ENCODER, small_network, small_pairs, small_pieces

from whyrank.networks.batches import packed_pairs, pair_arrays, tensors
from whyrank.networks.encoder import Encoder, new_encoder
from whyrank.networks.first import is_plain
from whyrank.networks.network import load, save


@pytest.fixture
def network(tmp_path):
    return small_network("cross", small_pieces(tmp_path))


def ids_of(network):
    queries, docs = small_pairs()
    return network.query_ids(queries), network.doc_ids(docs)


@torch.inference_mode()
def test_the_first_position_is_that_of_the_whole_encoder(network):
    batch = tensors(network.arrays(*ids_of(network)))
    whole = network.encoder.last(batch)[:, 0]
    torch.testing.assert_close(network.encoder.first(batch), whole, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_pairs_end_to_end_give_the_scores_of_padded_ones(network):
    padded, packed = (tensors(arrays(*ids_of(network))) for arrays in (network.arrays, network.packed))
    assert packed["ids"].numel() == int(padded["mask"].sum())
    torch.testing.assert_close(network(packed), network(padded), atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_pairs_end_to_end_in_mixed_precision_are_near(network):
    ids = ids_of(network)
    exact = network(tensors(network.arrays(*ids)))
    with torch.autocast("cpu", torch.bfloat16):
        found = network(tensors(network.packed(*ids)))
    assert found.dtype == torch.float32
    assert 0 < float((found - exact).abs().max()) < 0.1 * float(exact.std())


def test_gradients_are_the_same_padded_and_end_to_end(network):
    ids, found = ids_of(network), []
    for arrays in (network.arrays, network.packed):
        network.zero_grad()
        (network(tensors(arrays(*ids))) * torch.linspace(-1, 1, 10)).sum().backward()
        found.append({name: p.grad.clone() for name, p in network.named_parameters()})
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, atol=1e-5, rtol=1e-4, msg=name)


def test_packed_arrays_are_the_padded_ones_without_padding(network):
    queries, docs = ids_of(network)
    padded, packed = (make(queries, docs, network.pieces.special) for make in (pair_arrays, packed_pairs))
    real = padded["mask"].astype(bool)
    for name in ("ids", "types"):
        np.testing.assert_array_equal(packed[name], padded[name][real])
    np.testing.assert_array_equal(np.diff(packed["ends"]), real.sum(axis=1))
    np.testing.assert_array_equal(packed["places"], np.nonzero(real)[1])


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
    torch.testing.assert_close(encoder.first(batch), encoder.last(batch)[:, 0], atol=1e-5, rtol=1e-5)
    assert is_plain(encoder.model) == (kind in ("bert", "electra"))


def test_a_saved_network_scores_the_same(network, tmp_path):
    save(network, tmp_path / "kept")
    again = load(tmp_path / "kept")
    with torch.inference_mode():
        found = [one.score_texts(*small_pairs()) for one in (again, network)]
    torch.testing.assert_close(*found, atol=0, rtol=0)
