"""EPIC against its definition over dense vectors of the vocabulary, in plain numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from small_networks import DOCS, QUERIES, layer, scores, small, states

from whyrank.networks import tensors
from whyrank.networks.epic import log_softplus


def a(x):
    return np.log(1 + np.log(1 + np.exp(x)))


def query_vector(network, text):
    ids, found = network.query_ids([text])[0], np.zeros(len(network.tokenizer))
    importance = a(layer(network.query_importance, states(network, "query", text)))[:, 0]
    for position, number in enumerate(ids, 1):
        found[number] += importance[position]
    return found


def doc_vector(network, text):
    n, seen = len(network.doc_ids([text])[0]), states(network, "doc", text)
    words = network.encoder.model.get_input_embeddings().weight.detach().double().numpy()
    importance = a(layer(network.doc_importance, seen))[:, 0]
    quality = 1 / (1 + math.exp(-layer(network.quality, seen[0])[0]))
    expanded = a(seen @ words.T + network.head.bias.detach().double().numpy())
    rows = [importance[j] * expanded[j] for j in range(1, n + 1)]
    return quality * np.max(rows, axis=0) if rows else np.zeros(len(words))


@pytest.fixture
def network(tmp_path):
    made = small("epic", tmp_path)
    torch.nn.init.normal_(made.head.bias)
    return made


def test_the_score_is_the_product_of_two_vectors_over_the_vocabulary(network):
    for query in QUERIES:
        for doc in DOCS:
            expected = query_vector(network, query) @ doc_vector(network, doc)
            assert scores(network, [query], [doc])[0] == pytest.approx(expected, rel=1e-4, abs=1e-5), (query, doc)


def test_pruning_keeps_the_largest_values(network):
    whole = doc_vector(network, DOCS[0])
    network.top = 5
    with torch.inference_mode():
        arrays = network.doc_arrays(network.doc_ids([DOCS[0]]))
        found = network.encode_docs(tensors(arrays))["weights"][0].numpy()
    kept = np.flatnonzero(found)
    assert set(kept) == set(np.argsort(-whole)[:5])
    np.testing.assert_allclose(found[kept], whole[kept], rtol=1e-4)


def test_the_gradient_is_that_of_the_plain_maximum(network):
    network.train()
    network.dropout.p = 0.0
    batch = tensors(network.doc_arrays(network.doc_ids([DOCS[0], DOCS[4], DOCS[1]])))
    parameters = [p for p in network.parameters() if p.requires_grad]

    def gradients(found):
        chosen = torch.linspace(-1, 1, found.numel()).reshape(found.shape)
        return torch.autograd.grad((found * chosen).sum(), parameters, allow_unused=True)

    seen = network.encoder.last(batch)
    importance = log_softplus(network.doc_importance(seen))
    logits = seen @ network.encoder.model.get_input_embeddings().weight.T + network.head.bias
    plain = (log_softplus(logits) * importance * batch["own"].unsqueeze(2)).amax(dim=1)
    plain = plain * torch.sigmoid(network.quality(seen[:, 0]))
    for ours, theirs in zip(gradients(network.encode_docs(batch)["weights"]), gradients(plain), strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
