"""The contract of a ranker."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence

import numpy as np

from whyrank.core import Floats, Ranker, WhyrankError, parse_call
from whyrank.rankers import Setting, as_ranker, open_ranker, rankers
from whyrank.testing.examples import PAIRS, sample

_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")


class RankerContract:
    """What the engine relies on when it batches, caches and distributes the work of a ranker.

    Override `make`; where your ranker cannot score just any text, override `pairs` too.

        class TestOverlap(RankerContract):
            def make(self):
                return Overlap(lower=True)

    Attributes:
        tolerance: how far two scores of one pair may lie apart, absolutely and relative to the score; neural
            rankers depend a little on what else is in the batch.
    """

    tolerance = 1e-6

    def make(self) -> Ranker:
        """Make the ranker, anew each time."""
        raise NotImplementedError("override make() so that it returns your ranker")

    def setting(self) -> Setting:
        """What the ranker's call string is opened in; the bundled sample by default."""
        return Setting(sample())

    def pairs(self) -> Sequence[tuple[str, str]]:
        """Pairs of query and text to try it on."""
        return PAIRS

    def test_it_is_a_ranker_with_a_name(self) -> None:
        """`score` is there, and a name for the columns of tables."""
        ranker = self.make()
        assert isinstance(ranker, Ranker), "a ranker needs a name and a method score(queries, docs)"
        assert isinstance(ranker.name, str), f"name is {ranker.name!r}, not a string"
        assert ranker.name.strip(), "name is empty"

    def test_its_repr_is_its_identity(self) -> None:
        """Scores are kept under the repr: equal rankers have equal ones, in every process."""
        first, second = repr(self.make()), repr(self.make())
        assert first == second, f"two equal rankers have different reprs, {first} and {second}"
        assert not _ADDRESS.search(first), f"the repr has a memory address, so no score is ever found again: {first}"

    def test_one_finite_number_per_pair(self) -> None:
        """Scores are aligned with the pairs; an empty batch is fine."""
        for pairs in (self.pairs(), ()):
            found = _scores(self.make(), pairs)
            assert found.shape == (len(pairs),), f"{len(pairs)} pairs gave an array of shape {found.shape}"
            odd = [(pair, float(score)) for pair, score in zip(pairs, found, strict=True) if not np.isfinite(score)]
            assert not odd, f"not a finite score: {odd[0]}"

    def test_scoring_twice_gives_the_same(self) -> None:
        """Scoring leaves no trace."""
        ranker, pairs = self.make(), self.pairs()
        self._same(_scores(ranker, pairs), _scores(ranker, pairs), "the second call")
        self._same(_scores(ranker, pairs), _scores(self.make(), pairs), "another ranker made the same way")

    def test_neither_order_nor_batches_matter(self) -> None:
        """The engine sorts pairs and cuts batches as it likes."""
        ranker, pairs = self.make(), list(self.pairs())
        whole = _scores(ranker, pairs)
        self._same(whole, _scores(ranker, pairs[::-1])[::-1], "the reversed order")
        for size in (1, 3, 7):
            parts = [_scores(ranker, pairs[i : i + size]) for i in range(0, len(pairs), size)]
            self._same(whole, np.concatenate(parts), f"batches of {size}")

    def test_it_can_be_pickled(self) -> None:
        """Worker processes get a copy."""
        ranker, pairs = self.make(), self.pairs()
        copy = pickle.loads(pickle.dumps(ranker))
        assert repr(copy) == repr(ranker), f"the copy is {copy!r}, not {ranker!r}"
        self._same(_scores(ranker, pairs), _scores(copy, pairs), "the pickled copy")

    def test_its_name_makes_it_again(self) -> None:
        """The name of a registered ranker is its call string."""
        ranker = self.make()
        if _registered(ranker.name):
            again = open_ranker(ranker.name, self.setting())
            assert again.name == ranker.name, f"{ranker.name} makes a ranker called {again.name}"
            assert repr(again) == repr(ranker), f"{ranker.name} makes {again!r}, not {ranker!r}"

    def _same(self, expected: Floats, found: Floats, what: str) -> None:
        same = np.isclose(found, expected, rtol=self.tolerance, atol=self.tolerance, equal_nan=True)
        with np.errstate(invalid="ignore"):
            worst = float(np.max(np.abs(found - expected), initial=0.0, where=~same))
        assert same.all(), f"{what}: {int((~same).sum())} of {len(same)} scores differ, by up to {worst:g}"


def _registered(name: str) -> bool:
    try:
        return parse_call(name).name in rankers
    except WhyrankError:
        return False


def _scores(ranker: Ranker, pairs: Sequence[tuple[str, str]]) -> Floats:
    scorer = as_ranker(ranker)
    return np.asarray(scorer.score([query for query, _ in pairs], [text for _, text in pairs]), dtype=np.float64)
