"""Every loss against its formula in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from whyrank.core import WhyrankError
from whyrank.networks.sparse import flops
from whyrank.training.losses import losses

LISTS = arrays(np.float64, (3, 4), elements=st.floats(-5, 5, width=32))


def softmax(x):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def margin(scores, targets, margin=1.0):
    rows = [max(0.0, margin - row[0] + other) for row in scores for other in row[1:]]
    return sum(rows) / len(rows)


def cross_entropy(scores, targets, temperature=1.0):
    return -np.mean([np.log(row[0]) for row in softmax(scores / temperature)])


def margin_mse(scores, targets, scale=1.0):
    pairs = [(s, t, j) for s, t in zip(scores, targets, strict=True) for j in range(1, len(s))]
    return np.mean([((s[0] - s[j]) - scale * (t[0] - t[j])) ** 2 for s, t, j in pairs])


def divergence(scores, targets, temperature=0.05, gold=0.0):
    ours, theirs = softmax(scores), softmax(targets / temperature)
    terms = np.where(theirs > 0, theirs * (np.log(np.maximum(theirs, 1e-300)) - np.log(ours)), 0.0)
    return terms.sum() / len(scores) + gold * cross_entropy(scores, targets)


def pearson(scores, targets):
    return 1 - np.mean([correlation(*rows) for rows in zip(scores, targets, strict=True)])


def correlation(scores, targets):
    """With a little added to both variances; targets in the unit of their largest deviation, 0 where that is rounding."""
    ours, theirs = scores - scores.mean(), targets - targets.mean()
    unit = np.abs(theirs).max()
    if unit <= 1e-6 * np.abs(targets).max():
        return 0.0
    theirs = theirs / unit
    return ours @ theirs / np.sqrt((ours @ ours + 1e-6) * (theirs @ theirs + 1e-6))


CASES = {
    "margin": (margin, {}), "margin(margin=0.3)": (margin, {"margin": 0.3}),
    "cross-entropy": (cross_entropy, {}), "cross-entropy(temperature=0.5)": (cross_entropy, {"temperature": 0.5}),
    "margin-mse": (margin_mse, {}), "margin-mse(scale=2.0)": (margin_mse, {"scale": 2.0}),
    "kl(temperature=1.0)": (divergence, {"temperature": 1.0}),
    "kl(temperature=0.5,gold=0.2)": (divergence, {"temperature": 0.5, "gold": 0.2}), "pearson": (pearson, {}),
}  # fmt: skip


@pytest.mark.parametrize("call", CASES)
@settings(max_examples=40)
@given(scores=LISTS, targets=LISTS)
def test_a_loss_is_its_formula(call, scores, targets):
    formula, arguments = CASES[call]
    found = losses.create(call)(torch.from_numpy(scores), torch.from_numpy(targets))
    assert found.shape == ()
    assert found.item() == pytest.approx(formula(scores, targets, **arguments), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    "call",
    ["margin(margin=-1)", "margin(margin=x)", "cross-entropy(temperature=0)", "hinge", "margin(temperature=1)"],
)
def test_wrong_arguments_are_one_clear_line(call):
    with pytest.raises(WhyrankError, match=r"^[^\n]+$"):
        losses.create(call)


@given(arrays(np.float64, (4, 6), elements=st.floats(-3, 3, width=32)))
def test_flops_is_the_sum_of_squared_mean_activations(weights):
    expected = sum(np.mean([abs(row[v]) for row in weights]) ** 2 for v in range(6))
    assert flops(torch.from_numpy(weights)).item() == pytest.approx(expected, abs=1e-9)
