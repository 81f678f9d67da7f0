"""Masked language model and next sentences."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training_models import quiet, toy_network, toy_recipe, toy_run, toy_sources, toy_texts, train_quietly
from whyrank.core import WhyrankError
from whyrank.training import Trainer, new_network
from whyrank.training.pretraining import IGNORED, STATE, _Model, halves, hide_tokens, pretrain

SETTINGS = {"collection": "toy", "epochs": 6, "batch": 10, "rate": 3e-3, "checkpoint_every": 2}
CORPUS = tuple(toy_texts(40)[1])


@given(st.integers(0, 1000))
def test_hidden_tokens_are_ordinary_ones_and_nothing_else_changes(seed):
    random = np.random.default_rng(seed)
    ids = random.integers(5, 50, (8, 30))
    ordinary = random.random(ids.shape) < 0.8
    shown, wanted = hide_tokens(ids, ordinary, 50, 4, random)
    chosen = wanted != IGNORED
    assert not (chosen & ~ordinary).any()
    np.testing.assert_array_equal(shown[~chosen], ids[~chosen])
    np.testing.assert_array_equal(wanted[chosen], ids[chosen])


def test_halves_belong_together_where_they_say_so():
    rows = [np.array([i * 10 + j for j in range(4 + i % 3)]) for i in range(60)]
    first, second, apart = halves(rows, np.random.default_rng(0))
    for i, row in enumerate(rows):
        own = np.array_equal(np.concatenate([first[i], second[i]]), row)
        assert own == (apart[i] == 0)
    assert 15 < apart.sum() < 45


def test_a_stopped_run_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    whole = toy_network()
    expected = pretrain(whole, CORPUS, SETTINGS, 0, say=quiet)
    forward, calls = _Model.forward, []

    def failing(self, batch):
        calls.append(1)
        if len(calls) == stop:
            raise KeyboardInterrupt
        return forward(self, batch)

    monkeypatch.setattr(_Model, "forward", failing)
    for stop in (1, 5, 24):
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            pretrain(toy_network(), CORPUS, SETTINGS, 0, say=quiet, folder=tmp_path / str(stop))
        again = toy_network()
        assert pretrain(again, CORPUS, SETTINGS, 0, say=quiet, folder=tmp_path / str(stop)) == expected
        assert len(calls) == stop + 24 - (stop - 1) // 2 * 2
        assert all(torch.equal(tensor, whole.state_dict()[name]) for name, tensor in again.state_dict().items())


def test_a_finished_pretraining_is_taken_up_after_a_stop(tmp_path, monkeypatch):
    made = toy_run(corpus=CORPUS, pretraining=SETTINGS)
    whole = train_quietly(made, tmp_path / "whole")
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "run", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train_quietly(made, tmp_path / "stopped")
    assert (tmp_path / "stopped" / "unfinished" / STATE).exists()
    monkeypatch.setattr(_Model, "forward", lambda *given: 1 / 0)
    history = train_quietly(made, tmp_path / "stopped")
    assert (history.losses, history.validations) == (whole.losses, whole.validations)
    assert not (tmp_path / "stopped" / "unfinished").exists()
    assert whole.losses != train_quietly(toy_run(), tmp_path / "plain").losses


def test_a_corpus_without_texts_is_one_clear_line():
    with pytest.raises(WhyrankError, match="no text of four tokens"):
        pretrain(toy_network(), ["", "balan"], SETTINGS, 0, say=quiet)


def test_an_encoder_that_reads_from_left_to_right_is_refused():
    encoder = {"model_type": "gpt2", "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 48}
    with pytest.raises(WhyrankError, match="hidden tokens are found from both sides, not by an encoder of type gpt2"):
        pretrain(new_network(toy_recipe(encoder=encoder), 0, toy_sources()), CORPUS, SETTINGS, 0, say=quiet)
