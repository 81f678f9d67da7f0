"""Each test of the characteristic contract fails where it should, and a good characteristic passes them all."""

from __future__ import annotations

import numpy as np
import pytest
from contract_failures import failures, names_in

from whyrank.testing import CharacteristicContract


def digits(pool):
    """More digits"""
    return np.array([sum(c.isdigit() for c in text) for text in pool.texts], dtype=float)


def per_query(pool):
    """More of something that the query alone has"""
    return np.array([float(len(pool.query))])


def cube(pool):
    """More dimensions than two"""
    return np.zeros((len(pool.doc_ids), 1, 1))


def logarithm(pool):
    """A higher logarithm"""
    return np.where(digits(pool) > 0, digits(pool), -np.inf)


def unmeasurable(pool):
    """Nothing that can be known"""
    return np.full(len(pool.doc_ids), np.nan)


def random_values(pool):
    """More luck"""
    return np.random.default_rng().random(len(pool.doc_ids))


def position(pool):
    """A later place in the list"""
    return np.arange(len(pool.doc_ids))


def wordless(pool):
    return digits(pool)


BAD_CHARACTERISTICS = {
    "test_one_row_per_document": [per_query, cube],
    "test_values_are_numbers_or_nan": [logarithm],
    "test_something_can_be_measured": [unmeasurable],
    "test_measuring_twice_gives_the_same": [random_values],
    "test_the_order_of_documents_does_not_matter": [position],
    "test_its_docstring_says_what_a_higher_value_is": [wordless],
}


def test_a_good_characteristic_passes():
    assert failures(CharacteristicContract, lambda: digits) == set()
    assert set(BAD_CHARACTERISTICS) == names_in(CharacteristicContract)


@pytest.mark.parametrize(
    ("name", "bad"), [(name, bad) for name, all_bad in BAD_CHARACTERISTICS.items() for bad in all_bad]
)
def test_a_bad_characteristic_fails(name, bad):
    assert name in failures(CharacteristicContract, lambda: bad)
