"""One trainer for every network: steps, rates, validation, batches end to end, what a terminal shows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training_models import quiet, toy_data, toy_network
from whyrank.core import WhyrankError
from whyrank.networks import pair_arrays
from whyrank.training import Packer, Trainer
from whyrank.training.losses import CrossEntropy, Margin
from whyrank.training.schedule import Schedule
from whyrank.training.trainer import new_optimiser


def trained(network, schedule, negatives=1, loss=None, **more):
    return Trainer(network, toy_data(negatives=negatives), loss or Margin(), schedule, **({"say": quiet} | more))


def weights(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def test_the_gradient_of_an_accumulated_batch_is_that_of_one_big_batch():
    gradients = []
    for parts in (1, 3):
        network = toy_network(dropout=0.0).train()
        trainer = trained(network, Schedule(batch=20, accumulate=parts), 2)
        trainer._learn(trainer.data.sampler.epoch(0, 0))
        gradients.append([p.grad.clone() for p in network.parameters() if p.grad is not None])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_the_best_weights_are_restored():
    """Validation counts how often it was asked, and likes the second time best."""
    kept, values = [], iter([0.1, 0.9, 0.3, 0.9])

    def validate(network):
        assert not network.training
        kept.append(weights(network))
        return next(values)

    network = toy_network()
    history = trained(network, Schedule(epochs=4, batch=10, rate=1e-3), validate=validate).run()
    assert history.best == (4, 0.9)
    assert [value for _, value in history.validations] == [0.1, 0.9, 0.3, 0.9]
    for name, tensor in network.state_dict().items():
        assert torch.equal(tensor, kept[1][name])
    assert any(not torch.equal(tensor, kept[3][name]) for name, tensor in network.state_dict().items())


def test_patience_stops_training():
    values = iter([0.1, 0.5, 0.4, 0.5, 0.3, 0.9])
    schedule = Schedule(epochs=6, batch=10, patience=3)
    history = trained(toy_network(), schedule, validate=lambda network: next(values)).run()
    assert [step for step, _ in history.validations] == [2, 4, 6, 8, 10]
    assert len(history.losses) == 10
    assert history.stopped == "no better validation since step 4"


def test_max_steps_and_validations_between_epochs():
    said = []
    schedule = Schedule(epochs=3, batch=5, max_steps=7, validate_every=3)
    history = trained(toy_network(), schedule, validate=lambda network: 0.5, say=said.append).run()
    assert len(history.losses) == 7
    assert [step for step, _ in history.validations] == [3, 6, 7]
    assert len(said) == 3
    assert said[0].startswith("step 3: loss ")


def test_a_loss_that_is_not_finite_stops_training():
    def broken(scores, targets):
        return scores.sum() * math.nan

    with pytest.raises(WhyrankError, match="not finite at step 1"):
        trained(toy_network(), Schedule(epochs=1, batch=5), loss=broken).run()


ROW = st.lists(st.integers(5, 40), max_size=7).map(lambda row: np.array(row, np.int32))
TEXTS = st.lists(ROW, min_size=1, max_size=6)
SPECIAL = {"cls": 1, "sep": 2, "pad": 0}


@settings(deadline=None, max_examples=40)
@given(TEXTS, TEXTS, st.data())
def test_packed_batches_are_padded_ones_without_padding(queries, docs, data):
    n = data.draw(st.integers(1, 9))
    query, doc = (
        np.array(data.draw(st.lists(st.integers(0, len(texts) - 1), min_size=n, max_size=n)))
        for texts in (queries, docs)
    )
    found = Packer(queries, docs, SPECIAL, "cpu")(query, doc)
    padded = pair_arrays([queries[q] for q in query], [docs[d] for d in doc], SPECIAL)
    real = padded["mask"].astype(bool)
    for name in ("ids", "types"):
        np.testing.assert_array_equal(found[name].numpy(), padded[name][real], err_msg=name)
    np.testing.assert_array_equal(found["positions"].numpy(), np.nonzero(real)[1])
    np.testing.assert_array_equal(np.diff(found["ends"].numpy()), real.sum(axis=1))


def test_training_is_the_same_padded_and_end_to_end():
    losses = []
    for packed in (False, True):
        network, schedule = toy_network(dropout=0.0), Schedule(epochs=3, batch=5, rate=1e-3)
        trainer = Trainer(network, toy_data(negatives=3), CrossEntropy(), schedule, say=quiet)
        if packed:
            trainer._packer = Packer(trainer._queries, trainer._docs, network.tokenizer.special, "cpu")
        losses.append(trainer.run().losses)
    np.testing.assert_allclose(*losses, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("settings", "epoch", "expected"), [
    ({"warmup": 0.5, "decay": False}, None, [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]),
    ({"warmup": 0.25, "decay": False, "epoch_factor": 0.5}, 3, [0.5, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]),
    ({"warmup": 0.0}, None, [1, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7]),
    ({"warmup": 0.5}, None, [0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25]),
])  # fmt: skip
def test_the_share_of_the_full_rate(settings, epoch, expected):
    assert [Schedule(**settings).share(step, 8, epoch) for step in range(8)] == pytest.approx(expected)


def test_the_encoder_and_the_head_have_rates_of_their_own():
    network = toy_network()
    made = new_optimiser(network, Schedule(rate=1e-4, head_rate=3e-3, weight_decay=0.02))
    inside = {id(p) for p in network.encoder.parameters()}
    seen = set()
    for group in made.param_groups:
        for parameter in group["params"]:
            assert group["lr"] == (1e-4 if id(parameter) in inside else 3e-3)
            assert group["weight_decay"] == (0.02 if parameter.ndim > 1 else 0.0)
            seen.add(id(parameter))
    assert seen == {id(p) for p in network.parameters()}
    every = new_optimiser(network, Schedule(weight_decay=0.02, decay_all=True, epsilon=1e-3)).param_groups
    assert {(group["weight_decay"], group["eps"]) for group in every} == {(0.02, 1e-3)}
