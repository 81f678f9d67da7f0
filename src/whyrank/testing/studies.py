"""The contract of a study: a probe, an axiom, a bias study."""

from __future__ import annotations

from typing import Any

import numpy as np

from whyrank.core import Codes, Registry, Study
from whyrank.data import Collection
from whyrank.studies import Categories, Contrasts
from whyrank.studies.probes import probes
from whyrank.testing.examples import sample


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

    def test_it_has_the_attributes_of_a_study(self) -> None:
        """`id`, `positive`, `symmetric` and `contrasts` are there."""
        assert isinstance(self.make(), Study), "a study needs id, positive, symmetric and contrasts(collection)"

    def test_its_id_makes_it_again(self) -> None:
        """The id is the call string of an equal study."""
        study = self.make()
        again = self.registry().create(study.id)
        assert again == study, f"{study.id} makes {again!r}, not {study!r}"
        assert again.id == study.id, f"{study.id} makes a study with the id {again.id}"

    def test_it_says_in_words_what_positive_means(self) -> None:
        """The report prints it after the ranker's name."""
        words = self.make().positive
        assert isinstance(words, str), f"positive is {words!r}, not a string"
        assert len(words.split()) >= 3, f"positive is {words!r}, not a sentence"
        assert words == words.strip(), f"positive has blanks around it: {words!r}"
        assert len(words.splitlines()) == 1, f"positive has more than one line: {words!r}"

    def test_symmetric_is_yes_or_no(self) -> None:
        """It says whether the order of the texts is without meaning."""
        found = self.make().symmetric
        assert isinstance(found, bool), f"symmetric is {found!r}, neither True nor False"

    def test_it_finds_contrasts(self) -> None:
        """The other tests need some to look at."""
        found = len(self._contrasts())
        assert found >= self.fewest, f"{found} contrasts, fewer than {self.fewest}; try it on another collection"

    def test_the_contrasts_are_the_same_each_time(self) -> None:
        """Randomness comes from a declared seed only."""
        first, second = self._contrasts(), self._contrasts()
        assert len(first) == len(second), f"{len(first)} contrasts, then {len(second)}"
        assert first.fingerprint == second.fingerprint, "the same study gave other contrasts the second time"

    def test_the_indices_point_at_texts(self) -> None:
        """Every contrast has a query and its texts."""
        found = self._contrasts()
        for what, codes, texts in (("query", found.query, found.queries), ("doc", found.doc, found.docs)):
            assert _within(codes, len(texts)), f"an index in {what!r} points at none of the {len(texts)} texts"

    def test_every_text_is_held_once(self) -> None:
        """What is held once is scored once."""
        found = self._contrasts()
        for what, texts in (("queries", found.queries), ("docs", found.docs)):
            assert len(set(texts)) == len(texts), f"{what} holds a text twice; use Contrasts.from_pairs"

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
