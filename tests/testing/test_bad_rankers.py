"""Each test of the ranker contract fails on a ranker that breaks it, and a good one passes them all."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest
from contract_failures import failures, names_in

from whyrank.testing import RankerContract


@dataclass(frozen=True)
class Overlap:
    """A ranker that keeps the contract."""

    name: str = "not registered"

    def score(self, queries, docs):
        pairs = zip(queries, docs, strict=True)
        return np.array([len({*q.split()} & {*d.split()}) for q, d in pairs], dtype=float)


class Forgetful(Overlap):
    def __repr__(self):
        return object.__repr__(self)


class Fickle(Overlap):
    def __repr__(self, numbers=count()):  # noqa: B008
        return str(next(numbers))


class Changed(Overlap):
    """An overlap whose scores are changed as a whole."""

    def score(self, queries, docs):
        return self.change(super().score(queries, docs))


class Empty(Changed):
    def change(self, scores):
        return scores if len(scores) else None


class Column(Changed):
    def change(self, scores):
        return scores[:, None]


class TooFew(Changed):
    def change(self, scores):
        return scores[1:]


class Infinite(Changed):
    def change(self, scores):
        return np.where(scores > 0, scores, -np.inf)


class Scaled(Changed):
    def change(self, scores):
        return scores / max(1, len(scores))


class Ranks(Changed):
    def change(self, scores):
        return scores + np.arange(len(scores))


class Random(Changed):
    def change(self, scores):
        return scores + np.random.default_rng().random(len(scores))


class Counting(Changed):
    calls = 0

    def change(self, scores):
        object.__setattr__(self, "calls", self.calls + 1)
        return scores + self.calls


class Unpicklable(Overlap):
    def __reduce__(self):
        raise TypeError("a closure cannot be pickled")


class Restored(Changed):
    def __reduce__(self):
        return Scaled, (self.name,)

    def change(self, scores):
        return scores


BAD_RANKERS = {
    "test_it_has_the_attributes_of_a_ranker": [object],
    "test_its_name_is_a_text": [lambda: Overlap(" "), lambda: Overlap(3)],
    "test_its_repr_is_its_identity": [Forgetful, Fickle],
    "test_no_pairs_give_no_scores": [Empty, Column],
    "test_one_finite_number_per_pair": [Column, TooFew, Infinite],
    "test_asking_twice_gives_the_same": [Random, Counting],
    "test_the_order_of_pairs_does_not_matter": [Ranks],
    "test_the_size_of_batches_does_not_matter": [Scaled, Ranks, TooFew],
    "test_it_can_be_pickled": [Unpicklable, Restored],
    "test_its_name_makes_it_again": [lambda: Overlap("bm25"), lambda: Overlap("bm25(k9=1)")],
}


def test_a_good_ranker_passes():
    assert failures(RankerContract, Overlap) == set()
    assert set(BAD_RANKERS) == names_in(RankerContract)


@pytest.mark.parametrize(("name", "make"), [(name, bad) for name, all_bad in BAD_RANKERS.items() for bad in all_bad])
def test_a_bad_ranker_fails(name, make):
    assert name in failures(RankerContract, make)


def test_a_failure_says_what_is_wrong():
    case = type("Bad", (RankerContract,), {"make": staticmethod(Scaled)})()
    with pytest.raises(AssertionError, match=r"batches of 1: \d+ of 48 scores differ, by up to 1"):
        case.test_the_size_of_batches_does_not_matter()


def test_the_tolerance_is_the_author_s_to_choose():
    case = type("Neural", (RankerContract,), {"make": staticmethod(Scaled), "tolerance": 2.0})()
    case.test_the_size_of_batches_does_not_matter()
