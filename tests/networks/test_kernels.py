import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.networks.knrm import MUS, SIGMAS, KernelPooling, cosine_matrix

torch.set_num_threads(1)
SIZES = st.tuples(st.integers(0, 4), st.integers(0, 6))


def soft_counts(similarity, q, d):
    """The features of one pair, from the definition."""
    found = []
    for mu, sigma in zip(MUS, SIGMAS, strict=True):
        rows = [sum(math.exp(-((similarity[i][j] - mu) ** 2) / (2 * sigma**2)) for j in range(d)) for i in range(q)]
        found.append(sum(math.log(row + 1e-6) for row in rows))
    return found


def masks(sizes):
    q, d = (torch.tensor(column) for column in zip(*sizes, strict=True))
    return torch.arange(4) < q[:, None], torch.arange(6) < d[:, None]


@settings(max_examples=40)
@given(st.lists(SIZES, min_size=1, max_size=4), st.integers(0, 10**6))
def test_pooling_is_the_definition_and_forgets_padding(sizes, seed):
    random = np.random.default_rng(seed)
    similarity = np.round(random.uniform(-1, 1, (len(sizes), 2, 4, 6)), 1).astype(np.float32)
    found = KernelPooling()(torch.from_numpy(similarity), *masks(sizes))
    expected = [
        [soft_counts(channel.tolist(), q, d) for channel in pair]
        for pair, (q, d) in zip(similarity, sizes, strict=True)
    ]
    np.testing.assert_allclose(found, np.array(expected).reshape(len(sizes), 2, 11), rtol=1e-4, atol=1e-4)
    single = KernelPooling()(torch.from_numpy(similarity[:, 1]), *masks(sizes))
    np.testing.assert_allclose(single, found[:, 1], rtol=1e-5, atol=1e-5)


def test_cosines_are_the_definition_and_zero_at_padding():
    torch.manual_seed(0)
    a, b = torch.randn(3, 4, 8), torch.randn(3, 6, 8)
    a[0, 1] = 0
    sizes = [(4, 6), (2, 3), (0, 0)]
    found = cosine_matrix(a, b, *masks(sizes)).numpy()
    for n, (q, d) in enumerate(sizes):
        for i in range(4):
            for j in range(6):
                x, y = a[n, i].double().numpy(), b[n, j].double().numpy()
                real = x @ y / ((np.linalg.norm(x) + 1e-9) * (np.linalg.norm(y) + 1e-9))
                assert found[n, i, j] == pytest.approx(real if i < q and j < d else 0.0, abs=1e-6)


def test_mixed_precision_does_not_lose_exact_matches():
    torch.manual_seed(0)
    states = torch.randn(2, 4, 64)
    real = torch.ones(2, 4)
    pooling = KernelPooling()
    plain = pooling(cosine_matrix(states, states, real, real), real, real)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = pooling(cosine_matrix(states, states, real, real), real, real)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, plain)
    torch.testing.assert_close(plain[:, -1], torch.zeros(2), atol=1e-4, rtol=0)  # one exact match per token: log 1


def test_a_width_that_training_brings_to_zero_stays_finite():
    pooling = KernelPooling(trainable=True)
    with torch.no_grad():
        pooling.sigmas[-1] = 0.0
    found = pooling(torch.ones(1, 2, 3), torch.ones(1, 2), torch.ones(1, 3))
    found.sum().backward()
    assert torch.isfinite(found).all()
    assert all(torch.isfinite(p.grad).all() for p in pooling.parameters())


def test_only_trainable_kernels_learn():
    assert all(p.requires_grad for p in KernelPooling(trainable=True).parameters())
    assert not any(p.requires_grad for p in KernelPooling().parameters())


@pytest.mark.parametrize(("mus", "sigmas"), [((0.1, 0.2), (0.1,)), ((), ()), ((0.1,), (0.0,))])
def test_wrong_kernels_are_refused(mus, sigmas):
    with pytest.raises(WhyrankError, match="one positive width for each place"):
        KernelPooling(mus, sigmas)
