"""The contract of a characteristic."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from whyrank.core import Floats
from whyrank.data import Collection
from whyrank.studies import Pool, Pools, Source
from whyrank.studies.probes import Characteristic
from whyrank.testing.examples import sample, taken


class CharacteristicContract:
    """What matched probes rely on when they compare the documents of a query.

    Override `make`; a characteristic that needs more than the bundled sample has overrides `collection` too.

        class TestDigits(CharacteristicContract):
            def make(self):
                return digits
    """

    def make(self) -> Characteristic:
        """The characteristic: a function of a pool."""
        raise NotImplementedError("override make() so that it returns your characteristic")

    def collection(self) -> Collection:
        """The collection whose judged documents are measured; the bundled sample by default."""
        return sample()

    def test_one_row_per_document(self) -> None:
        """A number for each document, or a row of numbers."""
        for pool in self._pools():
            shape = _measured(self.make(), pool).shape
            assert len(shape) in (1, 2), f"query {pool.query_id}: an array of shape {shape}"
            assert shape[0] == len(pool.doc_ids), f"query {pool.query_id}: {shape} for {len(pool.doc_ids)} documents"

    def test_values_are_numbers_or_nan(self) -> None:
        """NaN says: not measurable; infinity is never equal to anything."""
        for pool in self._pools():
            assert not np.isinf(_measured(self.make(), pool)).any(), f"query {pool.query_id}: a value is infinite"

    def test_something_can_be_measured(self) -> None:
        """Otherwise nothing is ever paired."""
        seen = [np.isfinite(_measured(self.make(), pool)).any() for pool in self._pools()]
        assert any(seen), "no document of the collection has a value; try it on another collection"

    def test_measuring_twice_gives_the_same(self) -> None:
        """Also in pools that were made anew."""
        for pool, fresh in zip(self._pools(), Pools(self.collection(), Source()), strict=False):
            _same(_measured(self.make(), pool), _measured(self.make(), pool), pool, "the second time")
            _same(_measured(self.make(), pool), _measured(self.make(), fresh), pool, "in a new pool")

    def test_the_order_of_documents_does_not_matter(self) -> None:
        """A document's value goes where the document goes."""
        for pool in self._pools():
            order = np.arange(len(pool.doc_ids))[::-1]
            _same(_measured(self.make(), pool)[order], _measured(self.make(), taken(pool, order)), pool, "reversed")

    def test_its_docstring_says_what_a_higher_value_is(self) -> None:
        """Reports say: prefers the text with ..."""
        assert (self.make().__doc__ or "").strip(), "the docstring is missing: what is a higher value, in words?"

    def _pools(self) -> Iterator[Pool]:
        pools = list(Pools.of(self.collection(), Source()))
        assert pools, "the collection has no judged documents"
        yield from pools
        for size in (1, 0):  # a query may have one document, or none that exists
            yield taken(pools[0], np.arange(size))


def _measured(characteristic: Characteristic, pool: Pool) -> Floats:
    return np.asarray(characteristic(pool), dtype=np.float64)


def _same(expected: Floats, found: Floats, pool: Pool, what: str) -> None:
    same = expected.shape == found.shape and np.array_equal(expected, found, equal_nan=True)
    assert same, f"query {pool.query_id}: another value {what}"
