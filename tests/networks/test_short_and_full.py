"""The short form of a chunked network against the full one: the same weights, one chunk against three."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from chunked_models import small_network, small_pieces, words
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch.set_num_threads(1)
SIZE = 12  # tokens of a chunk
KINDS = ("vanilla", "bert-model1", "cedr-knrm")


@pytest.fixture(scope="module", params=KINDS)
def forms(request, tmp_path_factory):
    """Short and full with equal weights."""
    tokenizer = small_pieces(tmp_path_factory.mktemp("forms"))
    return [small_network(request.param, tokenizer, chunks=chunks) for chunks in (1, 3)]


def score(network, query, text):
    with torch.inference_mode():
        return float(network.score_texts([query], [text])[0])


def test_weights_are_equal(forms):
    short, full = (network.state_dict() for network in forms)
    assert all(torch.equal(short[name], full[name]) for name in full)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1000), length=st.integers(0, 4 * SIZE))
def test_what_each_form_reads(forms, seed, length):
    """Short reads the first chunk, full the first three; nothing behind these counts."""
    random = np.random.default_rng(seed)
    query, text = words(random, 4), words(random, length).split()
    for network, most in zip(forms, (1, 3), strict=True):
        read = " ".join(text[: most * SIZE])
        assert score(network, query, " ".join(text)) == pytest.approx(score(network, query, read), abs=1e-5)
    short, full = (score(network, query, " ".join(text)) for network in forms)
    assert (abs(short - full) < 1e-5) or length > SIZE


def test_a_second_chunk_changes_the_full_form_alone(forms):
    random = np.random.default_rng(0)
    query, first, second = words(random, 4), words(random, SIZE), words(random, SIZE)
    short, full = ([score(network, query, text) for text in (first, f"{first} {second}")] for network in forms)
    assert short[0] == pytest.approx(short[1], abs=1e-6)
    assert abs(full[0] - full[1]) > 1e-4
    assert full[0] == pytest.approx(short[0], abs=1e-6)


def test_full_finds_what_stands_in_the_second_chunk(tmp_path):
    """With p_self, a query word that only the second chunk has makes the text more probable, for the full form."""
    tokenizer = small_pieces(tmp_path / "tokens")
    short, full = (small_network("bert-model1", tokenizer, chunks=chunks, start=-20.0) for chunks in (1, 3))
    for layer in (short.layer, full.layer):
        layer.third.weight.data.zero_()  # T is p_self for a token and itself, and next to nothing otherwise
    first, hit, miss = "w1 w2 w3 w4 " * 3, "w5 w6 w7 w8 " * 3, "w11 w12 w13 w14 " * 3
    with_it, without = (f"{first} {second}" for second in (hit, miss))
    assert score(short, "w6", with_it) == pytest.approx(score(short, "w6", without), abs=1e-6)
    assert score(full, "w6", with_it) == pytest.approx(np.log(0.3 * 3 / 24), abs=1e-3)
    assert score(full, "w6", without) < score(full, "w6", with_it) - 5
