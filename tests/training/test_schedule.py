"""Rates over time, and which parameters have which."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from training_models import toy_network
from whyrank.core import WhyrankError
from whyrank.training.schedule import Schedule, optimiser


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
    assert [Schedule(warmup=0.0).share(step, 4) for step in range(4)] == [
        1,
        1,
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
    ]


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
