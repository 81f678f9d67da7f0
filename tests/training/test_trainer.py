"""One trainer for every network."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
import torch

from training_models import quiet, toy_data, toy_network, toy_validation
from whyrank.core import WhyrankError
from whyrank.networks import tensors
from whyrank.training import Trainer, TrainingSet
from whyrank.training.data import Judged
from whyrank.training.losses import CrossEntropy, Margin
from whyrank.training.schedule import Schedule
from whyrank.training.trainer import Bar


def trained(network, schedule, negatives=1, loss=None, **more):
    return Trainer(network, toy_data(negatives=negatives), loss or Margin(), schedule, **({"say": quiet} | more))


def weights(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


@pytest.mark.parametrize("negatives", [1, 3])
@pytest.mark.parametrize("accumulate", [2, 5])
def test_an_accumulated_batch_is_one_big_batch(negatives, accumulate):
    found = []
    for parts in (1, accumulate):
        schedule = Schedule(epochs=2, batch=8, accumulate=parts, rate=1e-3, head_rate=1e-3)
        found.append(trained(toy_network(dropout=0.0), schedule, negatives, CrossEntropy()).run().losses)
    np.testing.assert_allclose(*found, rtol=0, atol=1e-6)


def test_the_gradient_of_an_accumulated_batch_is_that_of_one_big_batch():
    gradients = []
    for parts in (1, 3):
        network = toy_network(dropout=0.0).train()
        trainer = trained(network, Schedule(batch=20, accumulate=parts), 2)
        trainer._learned(trainer.data.sampler.epoch(0, 0))
        gradients.append([p.grad.clone() for p in network.parameters() if p.grad is not None])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_parts_of_like_length_change_neither_scores_nor_order(monkeypatch):
    network = toy_network(dropout=0.0)
    trainer = trained(network, Schedule())
    examples = trainer.data.sampler.epoch(0, 0)
    query, doc = examples.query, examples.doc[:, 0]
    queries, docs = [trainer._queries[q] for q in query.tolist()], [trainer._docs[d] for d in doc.tolist()]
    monkeypatch.setattr("whyrank.training.trainer.PART", 3)
    with torch.inference_mode():
        network.eval()
        found = trainer._scored(query, doc)
        plain = network(tensors(network.arrays(queries, docs)))
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-5)


def test_training_lowers_the_loss_and_finds_the_texts():
    network, check = toy_network(dropout=0.0), toy_validation(measure="RR@10")
    schedule = Schedule(epochs=25, batch=5, rate=2e-3, head_rate=2e-3, validate_every=50)
    history = trained(network, schedule, 7, CrossEntropy(), validate=check).run()
    assert np.mean(history.losses[-10:]) < 0.3 * np.mean(history.losses[:10])
    assert history.best[1] > 0.8
    assert history.pairs == 25 * 20 * 8
    assert len(history.losses) == 100
    assert [step for step, _ in history.validations] == [50, 100]


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


def test_mixed_precision_runs_on_a_cpu():
    network = toy_network()
    history = trained(network, Schedule(epochs=2, batch=5, precision="bf16"), 3, CrossEntropy()).run()
    assert all(map(math.isfinite, history.losses))
    assert all(p.dtype == torch.float32 for p in network.parameters())
    plain = trained(toy_network(), Schedule(epochs=2, batch=5), 3, CrossEntropy()).run()
    np.testing.assert_allclose(history.losses, plain.losses, rtol=0.1)
    assert history.losses != plain.losses


def test_a_seed_gives_the_same_losses_and_another_one_others():
    runs = [trained(toy_network(), Schedule(epochs=2, batch=5, seed=seed)).run().losses for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_a_loss_that_is_not_finite_stops_training():
    def broken(scores, targets):
        return scores.sum() * math.nan

    with pytest.raises(WhyrankError, match="not finite at step 1"):
        trained(toy_network(), Schedule(epochs=1, batch=5), loss=broken).run()


def test_without_examples_there_is_nothing_to_train():
    nothing = TrainingSet(["q"], ["d"], Judged([np.array([0])], [np.array([], np.int32)]))
    with pytest.raises(WhyrankError, match="not one query"):
        Trainer(toy_network(), nothing, Margin(), Schedule(), say=quiet).run()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_pairs_per_second(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(Bar.__init__, "__defaults__", (None, None, 0.0, ""))
    monkeypatch.setattr(
        "whyrank.training.trainer.Bar.step",
        lambda self, n: (setattr(self, "_next", 0.0), Bar.__base__.step(self, n)),
    )
    trained(
        toy_network(), Schedule(epochs=2, batch=5), validate=lambda network: 0.5, say=lambda t: print(t, file=screen)
    ).run()
    shown = screen.getvalue()
    assert "training: pairs:  12% 10/80 (" in shown
    assert "/s, 0:0" in shown
    before = shown[: shown.index("step 4:")]
    assert before.rstrip("\r").endswith("\x1b[2K"), "the progress line is cleared before a line is said"
    assert "\x1b[2K" in shown[shown.rindex("training: pairs:") :], "the last progress line is cleared"


def test_without_a_terminal_nothing_is_shown(capsys):
    trained(toy_network(), Schedule(epochs=1, batch=5)).run()
    assert capsys.readouterr() == ("", "")
