"""K-NRM and Conv-KNRM against their definitions in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from separate_models import DOCS, QUERIES, WORDS, scores, small, states

from whyrank.core import WhyrankError
from whyrank.networks import load, save, start
from whyrank.networks.knrm import ConvKnrm, Knrm

torch.set_num_threads(1)
KERNELS = [(-0.9 + 0.2 * k, 0.1) for k in range(10)] + [(1.0, 0.001)]


def cosine(a, b):
    size = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return float(np.dot(a, b)) / size if size else 0.0


def soft_counts(query, doc):
    found = []
    for mu, sigma in KERNELS:
        sums = [sum(math.exp(-((cosine(q, d) - mu) ** 2) / (2 * sigma**2)) for d in doc) for q in query]
        found.append(sum(math.log(s + 1e-6) for s in sums))
    return found


def words_of(network, side, text):
    """The vectors of the words of a text; none for an empty one, which is padded to one place."""
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
    counts = soft_counts(words_of(network, "query", query), words_of(network, "doc", doc))
    assert scores(network, [query], [doc])[0] == pytest.approx(linear(network, counts), abs=1e-3, rel=1e-5)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("doc", DOCS[:4])
def test_conv_knrm_matches_every_length_with_every_other(query, doc, tmp_path):
    network = small("conv-knrm", tmp_path, filters=6)
    of_query, of_doc = (grams(network, words_of(network, s, t)) for s, t in (("query", query), ("doc", doc)))
    features = [x for q in of_query for d in of_doc for x in soft_counts(q, d)]
    assert scores(network, [query], [doc])[0] == pytest.approx(linear(network, features), abs=1e-3, rel=1e-5)


def test_the_narrow_kernel_counts_the_same_word_known_or_not(tmp_path):
    network = small("knrm", tmp_path)
    network.outer.weight.data.zero_()
    network.outer.bias.data.zero_()
    network.outer.weight.data[0, -1] = 1
    found = scores(network, ["unheard"] * 3, ["unheard thing", "unheard unheard", "thing"])
    np.testing.assert_allclose(found, np.log([1 + 1e-6, 2 + 1e-6, 1e-6]), atol=1e-6)


def test_mixed_precision_keeps_exact_matches_exact(tmp_path):
    network = small("knrm", tmp_path)
    plain = scores(network, ["w1 w2 w3"], ["w1 w2 w3 w4"])
    with torch.autocast("cpu", torch.bfloat16):
        np.testing.assert_allclose(scores(network, ["w1 w2 w3"], ["w1 w2 w3 w4"]), plain, atol=1e-5)


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
    assert isinstance(network, Knrm)
    assert len(network.tokenizer) == len(network.encoder.vectors.weight) == 1 + 100 + 10
    assert network.encoder.vectors.weight[3].tolist() == [2.5, 2.0, 1.0]
    assert not network.encoder.vectors.weight[0].any()
    assert network.max_doc == 20


def test_vectors_of_unknown_words_depend_on_the_seed_alone():
    vectors = np.eye(3)
    one, two, other = (Knrm.over(["a", "b", "c"], vectors, 5, seed=s).encoder.vectors.weight[-5:] for s in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_the_encoder_s_rate_is_that_of_the_vectors(tmp_path):
    network = small("conv-knrm", tmp_path)
    heads = {id(p) for p in network.heads()}
    assert id(network.encoder.vectors.weight) not in heads
    assert {id(p) for p in network.filters.parameters()} <= heads


def test_what_cannot_be_is_one_clear_line(tmp_path):
    with pytest.raises(WhyrankError, match="2 words need as many vectors"):
        Knrm.over(["a", "b"], np.ones((3, 2)))
    with pytest.raises(WhyrankError, match="word vectors, which have none"):
        start("conv-knrm", tmp_path, layers=[0])
    with pytest.raises(WhyrankError, match="ngrams"):
        ConvKnrm.over(["a"], np.ones((1, 2)), ngrams=0)
