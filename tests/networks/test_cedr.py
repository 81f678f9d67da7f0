"""Scores of the networks over chunks against plain loops: each chunk goes through the encoder alone, without padding."""

import math

import numpy as np
import pytest
import torch
from small_networks import long_pairs, small

from pair_models import forward


def states_of(network, query, chunk):
    """Hidden states of [CLS] query [SEP] chunk [SEP] as float64: [layers, tokens, width]."""
    special = network.tokenizer.special
    ids = [special["cls"], *query, special["sep"], *chunk, special["sep"]]
    types = [0] * (len(query) + 2) + [1] * (len(chunk) + 1)
    given = {"input_ids": torch.tensor([ids]), "token_type_ids": torch.tensor([types])}
    with torch.inference_mode():
        found = network.encoder.model(**given, output_hidden_states=True).hidden_states
    return np.stack([layer[0].numpy().astype(np.float64) for layer in found])


def read(network, query, doc):
    """[CLS] averaged over the chunks, and cosines [layers, q, d] with the query's states of the first chunk."""
    size, q = network.max_doc, len(query)
    chunks = [doc[i : i + size] for i in range(0, len(doc), size)] or [doc]
    states = [states_of(network, query, chunk) for chunk in chunks]
    first = np.mean([layers[-1][0] for layers in states], axis=0)
    of_query = states[0][:, 1 : 1 + q]
    text = np.concatenate([layers[:, q + 2 : -1] for layers in states], axis=1)
    cosines = np.zeros((len(text), q, len(doc)))
    for layer in range(len(text)):
        for i in range(q):
            for j in range(len(doc)):
                a, b = of_query[layer, i], text[layer, j]
                cosines[layer, i, j] = a @ b / ((np.linalg.norm(a) + 1e-9) * (np.linalg.norm(b) + 1e-9))
    return first, cosines


def linear(weights, name, x):
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def vanilla(network, weights, first, cosines):
    return linear(weights, "outer", first)[0]


def cedr_knrm(network, weights, first, cosines):
    features = []
    for channel in cosines:
        for mu, sigma in zip(weights["kernels.mus"], weights["kernels.sigmas"], strict=True):
            rows = [sum(math.exp(-((s - mu) ** 2) / (2 * sigma**2)) for s in row) for row in channel]
            features.append(sum(math.log(row + 1e-6) for row in rows))
    return linear(weights, "outer", np.array([*features, *first]))[0]


def histogram(row):
    counts = [0] * 11
    for s in row:
        counts[math.floor((s + 1.000001) / 2 * 10)] += 1
    return [math.log(c + 1e-5) for c in counts]


def cedr_drmm(network, weights, first, cosines):
    total = 0.0
    for i in range(cosines.shape[1]):
        features = [value for channel in cosines for value in histogram(channel[i])]
        hidden = np.maximum(linear(weights, "inner", np.array([*features, *first])), 0)
        total += linear(weights, "outer", hidden)[0]
    return total


def best_matches(cosines, kernels, biases, n):
    """For each query token, its best two positions: the largest ReLU of any n x n filter there."""
    _, q, d = cosines.shape
    wide = np.pad(cosines, ((0, 0), (0, n - 1), (0, n - 1)))
    found = []
    for i in range(q):
        values = [
            max(max(0.0, (k * wide[:, i : i + n, j : j + n]).sum() + b) for k, b in zip(kernels, biases, strict=True))
            for j in range(d)
        ]
        found.append([*sorted(values, reverse=True), 0.0, 0.0][:2])
    return found


def cedr_pacrr(network, weights, first, cosines):
    by_size = [
        best_matches(cosines, weights[f"filters.{n - 1}.weight"], weights[f"filters.{n - 1}.bias"], n)
        for n in (1, 2, 3)
    ]
    rows = [[value for best in by_size for value in best[i]] for i in range(cosines.shape[1])]
    rows += [[0.0] * 6] * (network.max_query - len(rows))
    x = np.array([*(value for row in rows for value in row), *first])
    for name in ("mlp.0", "mlp.2"):
        x = np.maximum(linear(weights, name, x), 0)
    return linear(weights, "mlp.4", x)[0]


ORACLES = {"vanilla": vanilla, "cedr-knrm": cedr_knrm, "cedr-drmm": cedr_drmm, "cedr-pacrr": cedr_pacrr}


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("architecture", ORACLES)
def test_scores_are_those_of_plain_loops(tmp_path, architecture, chunks):
    network = small(architecture, tmp_path, chunks=chunks)
    with torch.no_grad():
        for conv in getattr(network, "filters", ()):
            conv.bias.sub_(0.5)  # so that at some positions no filter is above zero
    weights = {name: t.numpy().astype(np.float64) for name, t in network.state_dict().items()}
    queries, docs = long_pairs()
    with torch.inference_mode():
        found = forward(network, queries, docs).numpy()
    rows = zip(network.query_ids(queries), network.doc_ids(docs), strict=True)
    expected = [ORACLES[architecture](network, weights, *read(network, q, d)) for q, d in rows]
    assert np.std(expected) > 0.01  # far above what is allowed to differ
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
