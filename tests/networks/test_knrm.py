"""K-NRM and Conv-KNRM against their definitions in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import DOCS, QUERIES, WORDS, scores, small, states

from whyrank.core import WhyrankError
from whyrank.networks import load, save, start
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


def test_the_narrow_kernel_counts_the_same_word_known_or_not(tmp_path):
    network = small("knrm", tmp_path)
    network.outer.weight.data.zero_()
    network.outer.bias.data.zero_()
    network.outer.weight.data[0, -1] = 1
    found = scores(network, ["unheard"] * 3, ["unheard thing", "unheard unheard", "thing"])
    np.testing.assert_allclose(found, np.log([1 + 1e-6, 2 + 1e-6, 1e-6]), atol=1e-6)


def test_kernels_are_trained_only_when_asked(tmp_path):
    assert not small("knrm", tmp_path).kernels.mus.requires_grad
    network = small("conv-knrm", tmp_path, trainable=True)
    assert network.kernels.mus.requires_grad
    save(network, tmp_path / "saved")
    assert load(tmp_path / "saved").kernels.mus.requires_grad


def test_a_network_starts_from_a_file_of_vectors(tmp_path):
    lines = [f"{word} {i}.5 {i % 7} 1" for i, word in enumerate(WORDS)]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n")
    network = start("knrm", tmp_path / "vectors.txt", most=100, buckets=10, max_doc=20)
    assert isinstance(network, KnrmNetwork)
    assert len(network.tokenizer) == len(network.encoder.vectors.weight) == 1 + 100 + 10
    assert network.encoder.vectors.weight[3].tolist() == [2.5, 2.0, 1.0]
    assert not network.encoder.vectors.weight[0].any()
    assert network.max_doc == 20


def test_vectors_of_unknown_words_depend_on_the_seed_alone():
    vectors = np.eye(3)
    one, two, other = (
        KnrmNetwork.over(["a", "b", "c"], vectors, 5, seed=s).encoder.vectors.weight[-5:] for s in (1, 1, 2)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_the_encoder_s_rate_is_that_of_the_vectors(tmp_path):
    network = small("conv-knrm", tmp_path)
    heads = {id(p) for p in network.heads()}
    assert id(network.encoder.vectors.weight) not in heads
    assert {id(p) for p in network.filters.parameters()} <= heads


def test_what_cannot_be_is_one_clear_line(tmp_path):
    with pytest.raises(WhyrankError, match="2 words need as many vectors"):
        KnrmNetwork.over(["a", "b"], np.ones((3, 2)))
    with pytest.raises(WhyrankError, match="word vectors, which have none"):
        start("conv-knrm", tmp_path, layers=[0])


def masks(sizes):
    q, d = (torch.tensor(column) for column in zip(*sizes, strict=True))
    return torch.arange(4) < q[:, None], torch.arange(6) < d[:, None]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=4), st.integers(0, 10**6))
def test_pooling_is_the_definition_and_forgets_padding(sizes, seed):
    random = np.random.default_rng(seed)
    similarity = np.round(random.uniform(-1, 1, (len(sizes), 2, 4, 6)), 1).astype(np.float32)
    found = KernelPooling()(torch.from_numpy(similarity), *masks(sizes))
    expected = [
        [soft_counts(channel[:q, :d]) for channel in pair] for pair, (q, d) in zip(similarity, sizes, strict=True)
    ]
    np.testing.assert_allclose(found, np.array(expected).reshape(len(sizes), 2, 11), rtol=1e-4, atol=1e-4)
    single = KernelPooling()(torch.from_numpy(similarity[:, 1]), *masks(sizes))
    np.testing.assert_allclose(single, found[:, 1], rtol=1e-5, atol=1e-5)


def test_cosines_are_the_definition_and_zero_at_padding():
    torch.manual_seed(0)
    a, b = torch.randn(3, 4, 8), torch.randn(3, 6, 8)
    a[0, 1] = 0
    sizes = [(4, 6), (2, 3), (0, 0)]
    found = cosine_matrix(a, b, *masks(sizes)).numpy()
    for n, (q, d) in enumerate(sizes):
        for i in range(4):
            for j in range(6):
                x, y = a[n, i].double().numpy(), b[n, j].double().numpy()
                real = x @ y / ((np.linalg.norm(x) + 1e-9) * (np.linalg.norm(y) + 1e-9))
                assert found[n, i, j] == pytest.approx(real if i < q and j < d else 0.0, abs=1e-6)


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


@pytest.mark.parametrize(("mus", "sigmas"), [((0.1, 0.2), (0.1,)), ((), ()), ((0.1,), (0.0,))])
def test_wrong_kernels_are_refused(mus, sigmas):
    with pytest.raises(WhyrankError, match="one positive width for each position"):
        KernelPooling(mus, sigmas)
