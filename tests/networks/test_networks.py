"""What holds for all networks: scores that no batch changes, folders, learning; and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from small_networks import (
    ALL,
    CHUNKED,
    DOCS,
    QUERIES,
    SEPARATE,
    encoded,
    long_pairs,
    puzzle,
    scores,
    small,
    words,
)

from pair_models import saved
from whyrank.core import BadInput, WhyrankError
from whyrank.networks import digest, load, save, take, tensors
from whyrank.networks.network import dequantise, quantise
from whyrank.networks.tokens import Words, open_tokenizer
from whyrank.rankers import open_ranker

PAIRS = [[q for q in QUERIES for _ in DOCS], list(DOCS) * len(QUERIES)]


@pytest.fixture(params=ALL)
def network(request, tmp_path):
    return small(request.param, tmp_path)


@pytest.fixture(params=SEPARATE)
def separate(request, tmp_path):
    return small(request.param, tmp_path)


@pytest.fixture(params=CHUNKED)
def chunked(request, tmp_path):
    return small(request.param, tmp_path)


def pairs_of(network):
    return long_pairs() if network.architecture in CHUNKED else PAIRS


def test_neither_padding_nor_the_rest_of_a_batch_changes_a_score(network):
    queries, docs = pairs_of(network)
    alone = np.array([scores(network, [q], [d])[0] for q, d in zip(queries, docs, strict=True)])
    assert np.ptp(alone) > 1e-3
    assert np.isfinite(alone).all()
    np.testing.assert_allclose(scores(network, queries, docs), alone, atol=1e-5, rtol=1e-5)
    rows = np.random.default_rng(0).permutation(len(docs))[:6]
    found = scores(network, [queries[i] for i in rows], [docs[i] for i in rows])
    np.testing.assert_allclose(found, alone[rows], atol=1e-5, rtol=1e-5)


def test_empty_and_very_long_texts_have_scores(network):
    long = " ".join(f"w{i % 100}" for i in range(2000))
    assert np.isfinite(scores(network, ["", "w1", "", long], ["", "", "w1", long])).all()
    assert np.isfinite(scores(network, [""], [""])).all()


def test_a_saved_network_scores_the_same(network, tmp_path):
    save(network, tmp_path / "saved")
    again, pairs = load(tmp_path / "saved"), pairs_of(network)
    assert type(again) is type(network)
    assert again.settings == network.settings
    assert np.array_equal(scores(again, *pairs), scores(network, *pairs))
    save(again, tmp_path / "again")
    assert digest(tmp_path / "again") == digest(tmp_path / "saved")


def test_mixed_precision_is_near(network):
    with torch.autocast("cpu", torch.bfloat16):
        found = scores(network, *pairs_of(network))
    assert found.dtype in (np.float32, np.float64)
    expected = scores(network, *pairs_of(network))
    if network.architecture in SEPARATE:
        np.testing.assert_allclose(found, expected, rtol=0.1, atol=0.1 * np.abs(found).max())
    assert np.corrcoef(found, expected)[0, 1] > 0.95


# Networks that read queries and texts apart


def test_the_loss_reaches_every_parameter(separate):
    separate.train()
    queries, docs = puzzle(n=6)
    batch = tensors(separate.arrays(separate.query_ids(queries), separate.doc_ids(docs)))
    (separate(batch) * torch.arange(6)).sum().backward()
    missed = [n for n, p in separate.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    assert missed == []


def test_texts_that_are_encoded_once_give_the_scores_of_pairs(separate):
    with torch.inference_mode():
        queries, docs = encoded(separate, "query", QUERIES), encoded(separate, "doc", DOCS)
        rows = torch.tensor([(q, d) for q in range(len(QUERIES)) for d in range(len(DOCS))])
        found = separate.interact(take(queries, rows[:, 0]), take(docs, rows[:, 1])).numpy()
    np.testing.assert_allclose(found, scores(separate, *PAIRS), atol=1e-5, rtol=1e-5)


# Networks over chunks


def test_one_chunk_is_the_short_form_and_nothing_counts_behind_the_last(chunked, tmp_path):
    short, text = small(chunked.architecture, tmp_path, chunks=1), words(np.random.default_rng(0), 36)
    first, changed = " ".join(text.split()[:12]), text.rsplit(" ", 6)[0] + " w1 w2 w3 w4 w5 w6"
    whole, longer, other, alone = scores(chunked, ["w1 w2"] * 4, [text, text + " w1 w2" * 40, changed, first])
    assert whole == pytest.approx(longer, abs=1e-5)
    assert whole != pytest.approx(other, abs=1e-3)
    np.testing.assert_allclose(scores(short, ["w1 w2"] * 2, [text, first]), alone, atol=1e-5)
    assert abs(alone - whole) > 1e-3


# Folders


@pytest.fixture
def folder(tmp_path):
    return saved(tmp_path)


@pytest.mark.parametrize(("name", "content"), [
    ("model.safetensors", b""), ("model.safetensors", b"\xff" * 64), ("tokenizer.json", b"{"),
    ("config.json", b'{"kind": "whyrank network", "architecture": "parm", "encoder": {}}'),
])  # fmt: skip
def test_a_damaged_folder_is_named(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(BadInput, match=rf"{name}: is damaged: .+; train or copy the network again"):
        open_ranker(f"parm:{folder}").score(["a"], ["b"])
    (folder / "checksums.json").unlink()  # as older versions left it
    with pytest.raises(BadInput, match=r"parm: holds no whole network \(.+; train or copy the network again"):
        open_ranker(f"parm:{folder}").score(["a"], ["b"])


def test_weights_of_another_shape_a_strange_setting_and_a_missing_file_are_named(folder):
    (folder / "checksums.json").unlink()
    state, config = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    config["settings"]["colour"] = "red"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="colour"):
        load(folder)
    del config["settings"]["colour"]
    (folder / "config.json").write_text(json.dumps(config))
    save_file({name: tensor for name, tensor in state.items() if "outer" not in name}, folder / "model.safetensors")
    with pytest.raises(BadInput, match="holds no whole network"):
        load(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(BadInput, match=r"model\.safetensors"):
        load(folder)


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**31), st.floats(1e-3, 1e3))
def test_eight_bits_round_by_at_most_half_a_step_of_a_row(rows, columns, seed, size):
    matrix = torch.from_numpy(
        (np.random.default_rng(seed).standard_normal((rows, columns)) * size).astype(np.float32)
    )
    back = dequantise(quantise({"w": matrix}))["w"]
    step = matrix.abs().amax(dim=1, keepdim=True) / 127
    assert ((back - matrix).abs() <= step * 0.5001 + 1e-12).all()


# Whole words as tokens

KNOWN = Words(["cat", "dog", "cat", "über"], buckets=8)


def test_words_are_numbers_and_unknown_ones_fall_into_buckets(tmp_path):
    assert KNOWN.ids(["Cat, DOG; über_cat"], 10)[0].tolist() == [1, 2, 4, 1]
    assert KNOWN.ids(["cat \ud800 dog"], 5)[0].tolist() == [1, 2]
    assert KNOWN.special == {"pad": 0}
    assert KNOWN.numbers(["dog", "cow", "cat"]) == [2, 1]
    assert KNOWN.spell([0, 1, 4, 5, 12]) == ["[PAD]", "cat", "über", "[0]", "[7]"]
    row = KNOWN.ids(["cow cat COW"], 10)[0].tolist()
    assert row[0] == row[2]
    assert 5 <= row[0] < len(KNOWN) == 13
    assert Words(["cat"], buckets=0).ids(["cow cat"], 10)[0].tolist() == [1]
    assert Words([], buckets=1000).ids(["zymurgy"], 1)[0].tolist() == [1 + 0x900A6786 % 1000]
    (tmp_path / "tokenizer.json").write_bytes(KNOWN.content)
    assert open_tokenizer(tmp_path).content == KNOWN.content


@pytest.mark.parametrize(("architecture", "wrong", "what"), [
    ("neural-model1", {"variant": "dot"}, "unknown value of neural-model1: variant"), ("neural-model1", {"p_self": 2}, "p_self"),
    ("neural-model1", {"widths": [1, 2]}, "widths must be three"), ("neural-model1", {"dims": 0}, "dims"),
    ("vanilla", {"chunks": 0}, "chunks"), ("epic", {"top": 0}, "top"), ("conv-knrm", {"ngrams": 0}, "ngrams"),
    ("parm", {"head": "deeper"}, "did you mean 'deep'"), ("cross", {"dropout": "x"}, "dropout must be a number"),
])  # fmt: skip
def test_wrong_settings_are_refused(tmp_path, architecture, wrong, what):
    with pytest.raises(WhyrankError, match=what):
        small(architecture, tmp_path, **wrong)
