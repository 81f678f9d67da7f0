"""Each test of the study contract fails on a study that breaks it, and a good one passes them all."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest
from contract_failures import failures, names_in

from whyrank.studies import Categories, Contrasts, Pair
from whyrank.studies.probes import probes
from whyrank.testing import StudyContract


@dataclass(frozen=True)
class Cut:
    """A study that keeps the contract: each judged text against its first half."""

    id: str = "cut"
    positive: str = "prefers the whole text"
    symmetric: bool = False

    def contrasts(self, collection):
        return Contrasts.from_pairs(self.pairs(collection))

    def pairs(self, collection):
        for query_id, grades in list(collection.qrels.items())[:3]:
            for text in (collection.docs[doc_id] for doc_id in grades):
                yield Pair(collection.queries[query_id], (text, text[: len(text) // 2]), {"query_id": query_id})


@pytest.fixture
def cut():
    """The registry of studies with `Cut` in it."""
    probes.register("cut")(Cut)
    yield
    probes.forget("cut")


class Nothing(Cut):
    def contrasts(self, collection):
        return Contrasts.from_pairs([])


class Same(Cut):
    def pairs(self, collection):
        return [Pair(pair.query, (pair.docs[0], pair.docs[0])) for pair in super().pairs(collection)]


class Shuffled(Cut):
    def pairs(self, collection):
        return random.SystemRandom().sample(list(super().pairs(collection)), 5)


class Growing(Cut):
    def pairs(self, collection, sizes=count(1)):  # noqa: B008
        return list(super().pairs(collection))[: next(sizes)]


class Edited(Cut):
    """A cut whose contrasts are spoilt afterwards."""

    def contrasts(self, collection):
        found = super().contrasts(collection)
        return Contrasts(**{**vars_of(found), **self.spoil(found)})


def vars_of(found: Contrasts) -> dict:
    return {name: getattr(found, name) for name in ("queries", "docs", "query", "doc", "labels")}


class Outside(Edited):
    def spoil(self, found):
        return {"doc": found.doc + 1}


class Negative(Edited):
    def spoil(self, found):
        return {"query": found.query - 1}


class Twice(Edited):
    def spoil(self, found):
        return {"docs": [*found.docs, found.docs[0]]}


class Wide(Edited):
    def spoil(self, found):
        return {"labels": {"x": np.zeros((len(found), 5))}}


class Nameless(Edited):
    def spoil(self, found):
        return {"labels": {"x": Categories(found.query + 1, ["one"])}}


BAD_STUDIES = {
    "test_it_has_the_attributes_of_a_study": [object],
    "test_its_id_makes_it_again": [lambda: Cut("nowhere"), lambda: Cut(symmetric=True)],
    "test_it_says_in_words_what_positive_means": [
        lambda: Cut(positive=""),
        lambda: Cut(positive="longer"),
        lambda: Cut(positive="prefers the\nwhole text"),
        lambda: Cut(positive="prefers the whole text "),
        lambda: Cut(positive=1),
    ],
    "test_symmetric_is_yes_or_no": [lambda: Cut(symmetric=0), lambda: Cut(symmetric=None)],
    "test_it_finds_contrasts": [Nothing],
    "test_the_contrasts_are_the_same_each_time": [Shuffled, Growing],
    "test_the_indices_point_at_texts": [Outside, Negative],
    "test_every_text_is_held_once": [Twice],
    "test_the_texts_of_a_contrast_differ": [Same],
    "test_the_labels_are_aligned": [Wide, Nameless],
}


@pytest.mark.usefixtures("cut")
def test_a_good_study_passes():
    assert failures(StudyContract, Cut) == set()
    assert set(BAD_STUDIES) == names_in(StudyContract)


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize(("name", "make"), [(name, bad) for name, all_bad in BAD_STUDIES.items() for bad in all_bad])
def test_a_bad_study_fails(name, make):
    assert name in failures(StudyContract, make)
