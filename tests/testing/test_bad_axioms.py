"""Each test of the axiom contract fails on an axiom that breaks it, and a good one passes them all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar
from unittest import SkipTest

import numpy as np
import pytest
from contract_failures import failures, names_in

from whyrank.studies.axioms import Axiom, axioms
from whyrank.studies.axioms.axiom import SimilarLength
from whyrank.testing import AxiomContract, StudyContract


@dataclass(frozen=True, kw_only=True)
class Short(Axiom):
    """Of two texts of similar length, the shorter one wins.

    Original: none.
    Adapted: none.
    Formula: |D1| < |D2| <= |D1| + 5.
    Conclusion: S(Q, D1) > S(Q, D2).
    Paper: none.
    """

    name: ClassVar[str] = "own-short"
    favours: ClassVar[str] = "the shorter text"

    def preconditions(self):
        return (SimilarLength(5),)

    def wins(self, view, a, b):
        return view.lengths[a] < view.lengths[b]


@pytest.fixture
def short():
    """The registry of axioms with `Short` in it."""
    axioms.register("axiom/own-short")(Short)
    yield
    axioms.forget("axiom/own-short")


class Proud(Short):
    def preferences(self, view, a, b):
        return np.where(view.lengths[a] <= view.lengths[b], 1, -1).astype(np.int8)


class Double(Short):
    def preferences(self, view, a, b):
        return super().preferences(view, a, b) * 2


class Column(Short):
    def preferences(self, view, a, b):
        return super().preferences(view, a, b)[:, None]


class Placed(Short):
    """The document that comes first in the list wins."""

    def wins(self, view, a, b):
        return a < b


class Relative(Short):
    """What wins depends on what else there is."""

    def wins(self, view, a, b):
        usual = view.lengths.sum() / max(len(view), 1)
        return (view.lengths[a] < usual) & (view.lengths[b] >= usual)


class Deaf(Short):
    def preference(self, query, first, second, collection=None):
        return 0


class Blank(Short):
    def matrix(self, view):
        return np.zeros_like(super().matrix(view))


class Turned(Short):
    def matrix(self, view):
        return super().matrix(view).T


class Flat(Short):
    def matrix(self, view):
        return super().matrix(view).ravel()


class Twice(Short):
    def instances(self, view):
        yield from super().instances(view)
        yield from super().instances(view)


class BothOrders(Short):
    def instances(self, view):
        for rows in super().instances(view):
            yield np.concatenate([rows, rows[:, ::-1]])


class LoserFirst(Short):
    def instances(self, view):
        for rows in super().instances(view):
            yield rows[:, ::-1]


class Few(Short):
    def contrasts(self, collection):
        return super().contrasts(collection).take(slice(10))


class Careless(Short):
    """Preconditions are forgotten."""

    def preferences(self, view, a, b):
        return np.sign(view.lengths[b] - view.lengths[a]).astype(np.int8)


class CarelessInstances(Short):
    def instances(self, view):
        return replace(Everything(), most=self.most).instances(view)


class Everything(Short):
    def preconditions(self):
        return ()


class OneWay(Short):
    def preconditions(self):
        return (lambda view, a, b: view.lengths[a] <= view.lengths[b],)


class FirstBlock(Short):
    def instances(self, view):
        yield next(super().instances(view))


class Boundless(Short):
    def contrasts(self, collection):
        return (
            super().contrasts(collection) if self.most > 10_000 else replace(self, most=1 << 30).contrasts(collection)
        )


class Silent(Short):
    def contrasts(self, collection):
        return replace(super().contrasts(collection), dropped={})


class Elsewhere(Short):
    """A sample of other instances."""

    def instances(self, view):
        reverse = self.most < 10_000
        for rows in super().instances(view):
            yield rows[:, ::-1] if reverse else rows


class Perhaps(Short):
    @property
    def concludes(self):
        return "perhaps"


class Stubborn(Short):
    @property
    def concludes(self):
        return "strict"


def documented(docstring):
    return type("Documented", (Short,), {"__doc__": docstring})


BAD_AXIOMS = {
    "test_preferences_are_antisymmetric": [Proud, Double, Column],
    "test_no_document_beats_itself": [Proud, lambda: Placed(max_tokens=1)],
    "test_the_matrix_holds_the_preferences": [Blank, Turned, Flat],
    "test_one_pair_at_a_time_gives_the_same": [Deaf, Relative],
    "test_each_pair_is_an_instance_at_most_once": [Twice, BothOrders],
    "test_the_instances_are_the_preferences": [LoserFirst, BothOrders, CarelessInstances],
    "test_the_contrasts_are_the_instances": [Few, Twice],
    "test_preconditions_are_respected": [Careless, CarelessInstances, OneWay],
    "test_the_order_of_documents_does_not_matter": [Placed],
    "test_the_order_of_judgements_does_not_matter": [Placed],
    "test_the_size_of_blocks_does_not_matter": [FirstBlock],
    "test_most_draws_a_sample_and_says_so": [Boundless, Silent, Elsewhere],
    "test_its_conclusion_is_strict_or_weak": [Perhaps, Stubborn],
    "test_its_docstring_states_it": [
        documented(None),
        documented(Short.__doc__.replace("Paper:", "See:")),
        documented(Short.__doc__.replace("    Formula: |D1| < |D2| <= |D1| + 5.\n", "    Formula:\n")),
        documented(Short.__doc__.replace("the shorter one wins.", "the shorter one wins")),
    ],
}


@pytest.mark.usefixtures("short")
def test_a_good_axiom_passes():
    assert failures(AxiomContract, Short) == set()
    assert set(BAD_AXIOMS) == names_in(AxiomContract) - names_in(StudyContract)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(("name", "make"), [(name, bad) for name, all_bad in BAD_AXIOMS.items() for bad in all_bad])
def test_a_bad_axiom_fails(name, make):
    assert name in failures(AxiomContract, make)


def case(make, **attributes):
    return type("Case", (AxiomContract,), {"make": staticmethod(make), **attributes})()


def test_a_failure_names_query_and_documents():
    with pytest.raises(
        AssertionError, match=r"query q01: \(\S+, \S+\) fails a precondition, but one wins \(\d+ of 144"
    ):
        case(Careless).test_preconditions_are_respected()


def test_both_orders_are_allowed_where_the_author_says_so():
    case(BothOrders, both_orders=True).test_each_pair_is_an_instance_at_most_once()
    with pytest.raises(AssertionError, match="an instance twice"):
        case(Twice, both_orders=True).test_each_pair_is_an_instance_at_most_once()


def test_an_axiom_of_other_texts_skips_what_concerns_pairs():
    with pytest.raises(SkipTest, match="does not compare two documents"):
        case(Short, pairwise=False).test_preferences_are_antisymmetric()
    case(Short, pairwise=False).test_most_draws_a_sample_and_says_so()
