"""K-NRM and Conv-KNRM against their definitions in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from small_networks import DOCS, QUERIES, scores, small, states

from whyrank.core import WhyrankError
from whyrank.networks.knrm import KernelPooling, KnrmNetwork, cosine_matrix

KERNELS = [(-0.9 + 0.2 * k, 0.1) for k in range(10)] + [(1.0, 0.001)]


def cosine(a, b):
    size = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return float(np.dot(a, b)) / size if size else 0.0


def soft_counts(similarity):
    """The features of one pair, from the definition."""
    found = []
    for mu, sigma in KERNELS:
        sums = [sum(math.exp(-((float(s) - mu) ** 2) / (2 * sigma**2)) for s in row) for row in similarity]
        found.append(sum(math.log(total + 1e-6) for total in sums))
    return found


def cosines(query, doc):
    return [[cosine(q, d) for d in doc] for q in query]


def words_of(network, side, text):
    """The vectors of the words of a text; none for an empty one, which is padded to one position."""
    ids = (network.query_ids if side == "query" else network.doc_ids)([text])[0]
    return states(network, side, text)[: len(ids)]


def grams(network, vectors):
    """For each n, the n-grams of a text, with zeros past its end."""
    found = []
    for n, conv in enumerate(network.filters, 1):
        weight, bias = conv.weight.detach().double().numpy(), conv.bias.detach().double().numpy()
        wide = np.concatenate([vectors, np.zeros((n, vectors.shape[1]))])
        windows = [sum(weight[:, :, k] @ wide[i + k] for k in range(n)) for i in range(len(vectors))]
        found.append([np.maximum(window + bias, 0) for window in windows])
    return found


def linear(network, features):
    return float(np.dot(network.outer.weight.detach().double().numpy()[0], features) + network.outer.bias.item())


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("doc", DOCS)
def test_knrm_is_a_linear_layer_over_soft_counts(query, doc, tmp_path):
    network = small("knrm", tmp_path)
    counts = soft_counts(cosines(words_of(network, "query", query), words_of(network, "doc", doc)))
    assert scores(network, [query], [doc])[0] == pytest.approx(linear(network, counts), abs=1e-3, rel=1e-5)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("doc", DOCS[:4])
def test_conv_knrm_matches_every_length_with_every_other(query, doc, tmp_path):
    network = small("conv-knrm", tmp_path, filters=6)
    of_query, of_doc = (grams(network, words_of(network, s, t)) for s, t in (("query", query), ("doc", doc)))
    features = [x for q in of_query for d in of_doc for x in soft_counts(cosines(q, d))]
    assert scores(network, [query], [doc])[0] == pytest.approx(linear(network, features), abs=1e-3, rel=1e-5)


def test_what_cannot_be_is_one_clear_line(tmp_path):
    with pytest.raises(WhyrankError, match="2 words need as many vectors"):
        KnrmNetwork.over(["a", "b"], np.ones((3, 2)))


def test_mixed_precision_does_not_lose_exact_matches():
    torch.manual_seed(0)
    states = torch.randn(2, 4, 64)
    real = torch.ones(2, 4)
    pooling = KernelPooling()
    plain = pooling(cosine_matrix(states, states, real, real), real, real)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = pooling(cosine_matrix(states, states, real, real), real, real)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, plain)
    torch.testing.assert_close(plain[:, -1], torch.zeros(2), atol=1e-4, rtol=0)  # one exact match per token: log 1


def test_a_width_that_training_brings_to_zero_stays_finite():
    pooling = KernelPooling(trainable=True)
    with torch.no_grad():
        pooling.sigmas[-1] = 0.0
    found = pooling(torch.ones(1, 2, 3), torch.ones(1, 2), torch.ones(1, 3))
    found.sum().backward()
    assert torch.isfinite(found).all()
    assert all(torch.isfinite(p.grad).all() for p in pooling.parameters())
