"""Weights in eight bits: sizes, rounding, and networks that still score nearly the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from whyrank.networks import restored  # noqa: E402
from whyrank.networks.quantised import quantised  # noqa: E402


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**31), st.floats(1e-3, 1e3))
def test_rounding_is_at_most_half_a_step_of_its_row(rows, columns, seed, size):
    matrix = torch.from_numpy(
        (np.random.default_rng(seed).standard_normal((rows, columns)) * size).astype(np.float32)
    )
    back = restored(quantised({"w": matrix}))["w"]
    step = matrix.abs().amax(dim=1, keepdim=True) / 127
    assert ((back - matrix).abs() <= step * 0.5001 + 1e-12).all()


def test_matrices_take_a_byte_per_number_and_the_rest_stays():
    state = {"w": torch.randn(30, 40), "b": torch.randn(40), "n": torch.arange(3)}
    small = quantised(state)
    assert small["w"].dtype == torch.int8
    assert set(small) == {"w", "w.scale", "b", "n"}
    back = restored(small)
    assert set(back) == set(state)
    assert torch.equal(back["n"], state["n"])
    assert torch.allclose(back["b"], state["b"], atol=1e-2)


def test_other_states_come_back_as_they_were():
    state = {"w": torch.randn(3, 4), "scale": torch.ones(2), "x.scale": torch.ones(2)}
    back = restored(state)
    assert all(torch.equal(back[name], state[name]) for name in state)
    assert set(back) == set(state)


def test_a_row_of_zeros_stays_zero():
    assert torch.equal(restored(quantised({"w": torch.zeros(2, 3)}))["w"], torch.zeros(2, 3))
