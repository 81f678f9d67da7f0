"""The contracts of a study (a probe, an axiom, a bias study) and of a characteristic that matched probes compare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from whyrank.core import Codes, Floats, Registry, Study
from whyrank.data import Collection
from whyrank.studies import Categories, Contrasts, Pool, Pools, Source
from whyrank.studies.probes import Characteristic, probes
from whyrank.testing.examples import sample, take


class StudyContract:
    """What makes a study's findings readable, repeatable and comparable.

    Override `make`; a study that finds nothing in the bundled sample overrides `collection` too.

        class TestExclamation(StudyContract):
            def make(self):
                return Exclamation(mark="!")

    Attributes:
        fewest: contrasts that there must be at least; without any, most of this contract is empty.
    """

    fewest = 1

    def make(self) -> Study:
        """Make the study, anew each time."""
        raise NotImplementedError("override make() so that it returns your study")

    def collection(self) -> Collection:
        """The collection that the contrasts are built from; the bundled sample by default."""
        return sample()

    def registry(self) -> Registry[Any]:
        """Where the study's id is registered: the probes by default."""
        return probes

    def test_it_says_what_it_asks(self) -> None:
        """Its attributes are there; the report prints `positive` after the ranker's name."""
        study = self.make()
        assert isinstance(study, Study), "a study needs id, positive, symmetric and contrasts(collection)"
        words = study.positive
        assert isinstance(words, str), f"positive is {words!r}, not a string"
        assert len(words.split()) >= 3, f"positive is {words!r}, not a sentence"
        assert words == words.strip(), f"positive has blanks around it: {words!r}"
        assert len(words.splitlines()) == 1, f"positive has more than one line: {words!r}"
        assert isinstance(study.symmetric, bool), f"symmetric is {study.symmetric!r}, neither True nor False"

    def test_its_id_makes_it_again(self) -> None:
        """The id is the call string of an equal study."""
        study = self.make()
        again = self.registry().create(study.id)
        assert again == study, f"{study.id} makes {again!r}, not {study!r}"
        assert again.id == study.id, f"{study.id} makes a study with the id {again.id}"

    def test_it_finds_contrasts(self) -> None:
        """The other tests need some to look at."""
        found = len(self._contrasts())
        assert found >= self.fewest, f"{found} contrasts, fewer than {self.fewest}; try it on another collection"

    def test_the_contrasts_are_the_same_each_time(self) -> None:
        """Randomness comes from a declared seed only."""
        first, second = self._contrasts(), self._contrasts()
        assert len(first) == len(second), f"{len(first)} contrasts, then {len(second)}"
        assert first.fingerprint == second.fingerprint, "the same study gave other contrasts the second time"

    def test_every_text_is_held_once(self) -> None:
        """What is held once is scored once; every index points at a text."""
        found = self._contrasts()
        for what, codes, texts in (("query", found.query, found.queries), ("doc", found.doc, found.docs)):
            assert _within(codes, len(texts)), f"an index in {what!r} points at none of the {len(texts)} texts"
            assert len(set(texts)) == len(texts), f"a {what} text is held twice; use Contrasts.from_pairs"

    def test_the_texts_of_a_contrast_differ(self) -> None:
        """A text against itself asks nothing."""
        found = self._contrasts()
        for row, texts in enumerate(found.doc):
            assert len({found.docs[i] for i in texts}) == found.size, f"contrast {row} has one text twice"

    def test_the_labels_are_aligned(self) -> None:
        """One value per contrast, or one per contrast and text."""
        found = self._contrasts()
        for name, column in found.labels.items():
            values, names = column if isinstance(column, Categories) else (np.asarray(column), None)
            assert values.shape in ((len(found),), (len(found), found.size)), f"label {name!r} is {values.shape}"
            assert names is None or _within(values, len(names)), f"label {name!r} has a code without a name"

    def _contrasts(self) -> Contrasts:
        return self.make().contrasts(self.collection())


def _within(codes: Codes, size: int) -> bool:
    return bool(np.all((codes >= 0) & (codes < size)))


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
            shape = _measure(self.make(), pool).shape
            assert len(shape) in (1, 2), f"query {pool.query_id}: an array of shape {shape}"
            assert shape[0] == len(pool.doc_ids), f"query {pool.query_id}: {shape} for {len(pool.doc_ids)} documents"

    def test_values_are_numbers_or_nan(self) -> None:
        """NaN says: not measurable; infinity is never equal to anything, and without any value nothing is paired."""
        values = [_measure(self.make(), pool).ravel() for pool in self._pools()]
        assert not np.isinf(np.concatenate(values)).any(), "a value is infinite"
        seen = np.isfinite(np.concatenate(values)).any()
        assert seen, "no document of the collection has a value; try it on another collection"

    def test_measuring_twice_gives_the_same(self) -> None:
        """Also in pools that were made anew."""
        for pool, fresh in zip(self._pools(), Pools(self.collection(), Source()), strict=False):
            _same(_measure(self.make(), pool), _measure(self.make(), pool), pool, "the second time")
            _same(_measure(self.make(), pool), _measure(self.make(), fresh), pool, "in a new pool")

    def test_the_order_of_documents_does_not_matter(self) -> None:
        """A document's value goes where the document goes."""
        for pool in self._pools():
            order = np.arange(len(pool.doc_ids))[::-1]
            _same(_measure(self.make(), pool)[order], _measure(self.make(), take(pool, order)), pool, "reversed")

    def test_its_docstring_says_what_a_higher_value_is(self) -> None:
        """Reports say: prefers the text with ..."""
        assert (self.make().__doc__ or "").strip(), "the docstring is missing: what is a higher value, in words?"

    def _pools(self) -> Iterator[Pool]:
        pools = list(Pools.of(self.collection(), Source()))
        assert pools, "the collection has no judged documents"
        yield from pools
        for size in (1, 0):  # a query may have one document, or none that exists
            yield take(pools[0], np.arange(size))


def _measure(characteristic: Characteristic, pool: Pool) -> Floats:
    return np.asarray(characteristic(pool), dtype=np.float64)


def _same(expected: Floats, found: Floats, pool: Pool, what: str) -> None:
    same = expected.shape == found.shape and np.array_equal(expected, found, equal_nan=True)
    assert same, f"query {pool.query_id}: another value {what}"
