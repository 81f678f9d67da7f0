"""One trainer for every network: steps, rates, validation, batches end to end, what a terminal shows."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from training_models import quiet, toy_data, toy_network, toy_validation
from whyrank.core import WhyrankError
from whyrank.networks import pair_arrays, tensors
from whyrank.training import Packer, Trainer, TrainingSet
from whyrank.training.data import Judged
from whyrank.training.losses import CrossEntropy, Margin
from whyrank.training.schedule import Schedule, optimiser
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
        trainer._learn(trainer.data.sampler.epoch(0, 0))
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


def test_rates_grow_to_their_full_size_and_fall_to_zero():
    schedule = Schedule(warmup=0.2)
    found = [schedule.share(step, 20) for step in range(20)]
    assert found[:4] == [0.25, 0.5, 0.75, 1.0]
    assert found[4:] == [pytest.approx((20 - step) / 16) for step in range(4, 20)]


def test_without_decay_rates_stay():
    schedule = Schedule(warmup=0.5, decay=False)
    assert [schedule.share(step, 8) for step in range(8)] == [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]


def test_rates_fall_by_a_factor_after_each_epoch():
    schedule = Schedule(warmup=0.25, decay=False, epoch_factor=0.5)
    found = [schedule.share(step, 8, epoch=3) for step in range(8)]
    assert found == [0.5, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]
    assert [schedule.share(step, 8) for step in range(8)] == [0.5, 1, 1, 1, 1, 1, 1, 1]


def test_without_warm_up_the_first_rate_is_the_full_one():
    found = [Schedule(warmup=0.0).share(step, 4) for step in range(4)]
    assert found == pytest.approx([1, 1, 2 / 3, 1 / 3])


@given(st.floats(0, 1), st.integers(1, 200), st.booleans())
def test_a_rate_is_never_zero_nor_larger_than_the_full_one(warmup, steps, decay):
    found = [Schedule(warmup=warmup, decay=decay).share(step, steps) for step in range(steps)]
    assert all(0 < share <= 1 for share in found)
    top = found.index(max(found))
    assert found[: top + 1] == sorted(found[: top + 1])
    assert found[top:] == sorted(found[top:], reverse=True)


def test_the_encoder_and_the_head_have_rates_of_their_own():
    network = toy_network()
    made = optimiser(network, Schedule(rate=1e-4, head_rate=3e-3, weight_decay=0.02))
    inside = {id(p) for p in network.encoder.parameters()}
    seen = set()
    for group in made.param_groups:
        for parameter in group["params"]:
            assert group["lr"] == (1e-4 if id(parameter) in inside else 3e-3)
            assert group["weight_decay"] == (0.02 if parameter.ndim > 1 else 0.0)
            seen.add(id(parameter))
    assert seen == {id(p) for p in network.parameters()}


def test_all_parameters_may_decay_and_steps_are_those_of_the_formula():
    """AdamW written out in numpy: every parameter decays, norms and biases too."""
    network = toy_network(dropout=0.0)
    made = optimiser(network, Schedule(rate=1e-3, head_rate=1e-3, weight_decay=0.1, decay_all=True, epsilon=1e-3))
    expected = {name: p.detach().numpy().astype(np.float64) for name, p in network.named_parameters()}
    mean, square = ({name: np.zeros_like(p) for name, p in expected.items()} for _ in range(2))
    for step in range(1, 4):
        network.zero_grad()
        network.score_texts(["balan cemer", "dinis"], ["balan dinis", "cemer"]).square().sum().backward()
        for name, p in network.named_parameters():
            if p.grad is None:
                continue
            slope = p.grad.numpy().astype(np.float64)
            mean[name] = 0.9 * mean[name] + 0.1 * slope
            square[name] = 0.999 * square[name] + 0.001 * slope**2
            size = np.sqrt(square[name] / (1 - 0.999**step)) + 1e-3
            expected[name] -= 1e-3 * (0.1 * expected[name] + mean[name] / (1 - 0.9**step) / size)
        made.step()
    assert any(p.ndim == 1 and np.abs(p).max() > 0.9 for p in expected.values())
    for name, p in network.named_parameters():
        np.testing.assert_allclose(p.detach().numpy(), expected[name], atol=2e-6, err_msg=name)


@pytest.mark.parametrize(("rate", "head_rate"), [(0.0, 0.1), (0.1, 0.0)])
def test_a_rate_of_zero_leaves_its_part_alone(rate, head_rate):
    network = toy_network(dropout=0.0)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    made = optimiser(network, Schedule(rate=rate, head_rate=head_rate))
    network.score_texts(["balan cemer"], ["balan dinis"]).sum().backward()
    made.step()
    for name, parameter in network.named_parameters():
        still = (rate if name.startswith("encoder.") else head_rate) == 0
        moved = parameter.grad is not None and bool(parameter.grad.any()) and not still
        assert torch.equal(parameter, before[name]) != moved, name


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": 0}, {"batch": 1.5}, {"accumulate": True}, {"rate": -1}, {"head_rate": "fast"}, {"warmup": 2},
     {"clip": 0}, {"decay": 1}, {"precision": "fp16"}, {"patience": 0}, {"max_steps": 0}, {"threads": 0},
     {"checkpoint_every": 0}, {"rate": float("nan")}, {"epoch_factor": 1.5}, {"epsilon": 0}, {"decay_all": 1}],
)  # fmt: skip
def test_wrong_values_are_one_clear_line(wrong):
    with pytest.raises(WhyrankError, match=next(iter(wrong))):
        Schedule(**wrong)
