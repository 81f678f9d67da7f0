"""Seeds: they depend on the declared seed and on what it is for, and on nothing else."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from whyrank.core import generator, seed_for

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x1f"))


def test_known_values_hold_forever():
    assert seed_for(0) == 0x5FECEB66FFC86F38  # sha256sum of "0"
    assert seed_for(7, "sample", "abc") == 0x7E7F59EAA6DE61D8  # of "7", "sample", "abc", joined by unit separators
    assert generator(7, "sample", "abc").integers(1000, size=4).tolist() == [770, 87, 130, 360]


@given(st.integers(), st.lists(words, max_size=3), st.integers(), st.lists(words, max_size=3))
def test_different_seeds_or_purposes_give_different_seeds(seed, purpose, other_seed, other_purpose):
    assume((seed, purpose) != (other_seed, other_purpose))
    assert seed_for(seed, *purpose) != seed_for(other_seed, *other_purpose)


def test_the_order_of_use_does_not_matter():
    first = [generator(1, name).random() for name in ("a", "b")]
    second = [generator(1, name).random() for name in ("b", "a")]
    assert first == second[::-1]
    assert all(a != b for a, b in combinations(first, 2))


def test_the_global_generators_are_left_alone():
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    generator(1, "x").random(10)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
