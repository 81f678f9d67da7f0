"""How many queries make a block of the exhaustive builder."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from whyrank.learners.parm.pairs import How
from whyrank.learners.parm.pairs.running import BLOCK, paced


class Watch:
    """A clock that scores so many pairs a second."""

    def __init__(self, rate):
        self.rate = rate


@given(
    st.integers(0, 300), st.integers(1, 5000), st.floats(0.0, 1e7), st.sampled_from([None, 1, 700, 1 << 20]),
    st.sampled_from(["cpu", "cuda"]),
)  # fmt: skip
def test_every_query_is_in_one_block_and_blocks_are_bounded(n, docs, rate, block, device):
    numbers = np.arange(n, dtype=np.int32)
    found = list(paced(numbers, docs, Watch(rate), How(device, block=block)))
    assert np.array_equal(np.concatenate([numbers[:0], *found]), numbers)
    most = max(1, (block or BLOCK[device]) // docs)
    assert all(1 <= len(some) <= most for some in found)


def test_a_block_takes_half_a_minute_at_most():
    clock, docs = Watch(0.0), 1000
    sizes = []
    for some in paced(np.arange(200_000, dtype=np.int32), docs, clock, How("cuda")):
        sizes.append(len(some) * docs)
        clock.rate = 365_000.0 if len(sizes) < 4 else 3e6
    assert sizes[0] == (1 << 26) // 8 // docs * docs
    assert sizes[1:4] == [10_950_000] * 3
    assert sizes[4] == (1 << 26) // docs * docs


def test_a_given_block_is_kept():
    sizes = [len(some) for some in paced(np.arange(10, dtype=np.int32), 100, Watch(1e9), How("cpu", block=300))]
    assert sizes == [3, 3, 3, 1]
