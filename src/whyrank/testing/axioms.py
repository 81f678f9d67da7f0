"""The contract of an axiom."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any
from unittest import SkipTest
from unittest.mock import patch

import numpy as np

from whyrank.core import Codes, Flags, Registry
from whyrank.data import Collection
from whyrank.studies import Contrasts
from whyrank.studies.axioms import Axiom, Signs, View, axioms
from whyrank.studies.axioms import axiom as running
from whyrank.testing.examples import take
from whyrank.testing.studies import StudyContract

_RATE = re.compile(r"not drawn \(rate 1/\d+, seed \d+\)")


class AxiomContract(StudyContract):
    """What makes the preferences of an axiom the same for one pair and for all, in any order.

    Override `make`; an axiom that finds nothing in the bundled sample overrides `collection` too.

        class TestShort(AxiomContract):
            def make(self):
                return Short(length="20%")

    Attributes:
        pairwise: whether the axiom compares two documents as they are; False for one that compares three, or texts
            that it makes, and then what concerns pairs is skipped.
        both_orders: whether a pair may be an instance in both orders, as some published instances are.
        scalars: how many pairs are asked for one at a time.
    """

    pairwise = True
    both_orders = False
    scalars = 60

    def make(self) -> Axiom:
        """Make the axiom, anew each time."""
        raise NotImplementedError("override make() so that it returns your axiom")

    def registry(self) -> Registry[Any]:
        """Where the axiom's id is registered."""
        return axioms

    def test_preferences_are_antisymmetric(self) -> None:
        """If one document must beat another, the other must lose to it; none beats its own text."""
        for view in self._views():
            a, b = _all_pairs(view)
            there, back = self.make().preferences(view, a, b), self.make().preferences(view, b, a)
            assert there.shape == a.shape, f"{_query(view)}: {len(a)} pairs gave an array of shape {there.shape}"
            assert np.isin(there, (-1, 0, 1)).all(), f"{_query(view)}: a preference is none of -1, 0 and 1"
            _none(there != -back, view, a, b, "has not the reverse preference when reversed")
            same = view.pool.rows[a] == view.pool.rows[b]
            _none(same & (there != 0), view, a, b, "is one text, but one must win")

    def test_the_matrix_holds_the_preferences(self) -> None:
        """All at once, or pair by pair in arrays."""
        for view in self._views():
            a, b = _all_pairs(view)
            matrix = self.make().matrix(view)
            assert matrix.shape == (len(view), len(view)), f"{_query(view)}: a matrix of shape {matrix.shape}"
            _none(matrix[a, b] != self.make().preferences(view, a, b), view, a, b, "differs in the matrix")

    def test_one_pair_at_a_time_gives_the_same(self) -> None:
        """`preference` of two texts is a cell of the matrix."""
        cases = [(view, a, b, sign) for view in self._views() for a, b, sign in _telling(self.make().matrix(view))]
        for view, a, b, sign in cases[:: len(cases) // self.scalars + 1]:
            texts = view.pool.texts[a], view.pool.texts[b]
            found = self.make().preference(view.pool.query, *texts, collection=self.collection())
            assert found == sign, f"{_query(view)}: {_names(view, a, b)} alone: {found}, among others: {sign}"

    def test_the_instances_are_the_preferences(self) -> None:
        """The winner comes first, and each pair at most once."""
        for view in self._views():
            matrix, rows = self.make().matrix(view), self._instances(view)
            distinct = rows if self.both_orders else np.sort(rows, axis=1)
            assert len(np.unique(distinct, axis=0)) == len(rows), f"{_query(view)}: a pair is an instance twice"
            found = np.zeros(matrix.shape, bool)
            found[rows[:, 0], rows[:, 1]] = True
            neither = found & found.T if self.both_orders else np.zeros(matrix.shape, bool)
            a, b = _all_pairs(view)
            _none(((matrix > 0) != (found & ~neither))[a, b], view, a, b, "is an instance, or a preference, not both")

    def test_the_contrasts_are_the_instances(self) -> None:
        """By query and documents."""
        views = self._views()
        expected = {(v.pool.query_id, *(v.pool.doc_ids[i] for i in row)) for v in views for row in self._instances(v)}
        found = self._contrasts()
        assert _ids(found) == expected, "the contrasts are not the instances of all queries"
        assert len(found) == len(expected), f"{len(expected)} instances, {len(found)} contrasts"

    def test_preconditions_are_respected(self) -> None:
        """A pair that fails one has no preference and is no instance."""
        for view in self._views():
            a, b = _all_pairs(view)
            meets = self._meets(view, a, b)
            _none(meets != self._meets(view, b, a), view, a, b, "meets the preconditions in one order only")
            _none(
                ~meets & (self.make().preferences(view, a, b) != 0), view, a, b, "fails a precondition, but one wins"
            )
            rows = self._instances(view)
            fails = ~self._meets(view, rows[:, 0], rows[:, 1])
            _none(fails, view, rows[:, 0], rows[:, 1], "fails a precondition and is an instance")

    def test_the_order_of_input_does_not_matter(self) -> None:
        """Neither that of queries and judgements, nor that of documents, whose preferences go where they go."""
        found, other = self._contrasts(), self.make().contrasts(_reverse(self.collection()))
        assert found.fingerprint == other.fingerprint, "other contrasts when the judgements come in another order"
        for view in self._views():
            order = np.random.default_rng(0).permutation(len(view)).astype(np.int32)
            turned = View(take(view.pool, order), view.views)
            matrix, other_matrix = self.make().matrix(view), self.make().matrix(turned)
            a, b = _all_pairs(view)
            differs = (matrix[np.ix_(order, order)] != other_matrix)[a, b]
            _none(differs, view, order[a], order[b], "differs in another order")

    def test_the_size_of_blocks_does_not_matter(self) -> None:
        """Memory is bounded by blocks; nothing else is."""
        whole = self._contrasts()
        for size in (1, 50):
            own = sys.modules[type(self.make()).__module__]
            with patch.object(running, "BLOCK", size), patch.object(own, "BLOCK", size, create=True):
                found = self._contrasts()
            assert (len(found), found.fingerprint) == (len(whole), whole.fingerprint), f"others in blocks of {size}"

    def test_most_draws_a_sample_and_says_so(self) -> None:
        """A part of all instances, with its rate."""
        whole = self._contrasts()
        for most in (1, max(1, len(whole) // 3)):
            part = replace(self.make(), most=most).contrasts(self.collection())
            assert len(part) <= most, f"{len(part)} contrasts with most={most}"
            assert _ids(part) <= _ids(whole), f"most={most} gave contrasts that are not among all"
            assert _accounted(part) == _accounted(whole), f"most={most}: those not drawn are not all in `dropped`"
            every = not any(map(_RATE.fullmatch, part.dropped))  # of what is drawn, some may still give no contrast
            assert every or _accounted(part) > most, f"most={most}: not all are drawn of {_accounted(part)}"
            assert len(part) == len(whole) or not every, f"most={most}: the rate is not said in {[*part.dropped]}"

    def test_it_states_its_conclusion(self) -> None:
        """Strict or weak, where the user's choice comes first; and in words, in its docstring's first line."""
        axiom = self.make()
        assert axiom.concludes in ("strict", "weak"), f"concludes is {axiom.concludes!r}, neither strict nor weak"
        for choice in ("strict", "weak"):
            found = replace(axiom, conclusion=choice).concludes
            assert found == choice, f"with conclusion={choice} it concludes {found!r}"
        line = (type(axiom).__doc__ or "").partition("\n")[0]
        assert line.endswith("."), "the first line of the docstring is no whole sentence"

    def _views(self) -> Iterator[View]:
        if not self.pairwise:
            raise SkipTest("this axiom does not compare two documents as they are")
        views = list(self.make().views(self.collection()))
        assert views, "the collection has no documents for any query; try it on another collection"
        yield from views
        for size in (1, 0):  # a query may have one document, or none that exists
            yield View(take(views[0].pool, np.arange(size, dtype=np.int32)), views[0].views)

    def _instances(self, view: View) -> Codes:
        axiom = self.make()
        return np.concatenate([np.empty((0, axiom.size), np.int32), *axiom.instances(view)])

    def _meets(self, view: View, a: Codes, b: Codes) -> Flags:
        flags = [precondition(view, a, b) for precondition in self.make().preconditions()]
        return np.asarray(np.logical_and.reduce([np.ones(len(a), bool), *flags]), dtype=bool)


@lru_cache(maxsize=1)
def _reverse(collection: Collection) -> Collection:
    """The collection with its judgements in reverse; one is kept, with all that is computed for it once."""
    judged = {query: dict(reversed(docs.items())) for query, docs in reversed(collection.qrels.items())}
    return replace(collection, qrels=judged)


def _all_pairs(view: View) -> tuple[Codes, Codes]:
    """Every ordered pair of documents, each with itself included."""
    a, b = np.indices((len(view), len(view)), dtype=np.int32).reshape(2, -1)
    return a, b


def _telling(matrix: Signs) -> Iterator[tuple[int, int, int]]:
    """The first pair of different documents of each sign."""
    apart = ~np.eye(len(matrix), dtype=bool)
    for sign in (1, 0, -1):
        for a, b in np.argwhere((matrix == sign) & apart)[:1].tolist():
            yield a, b, sign


def _none(wrong: Flags, view: View, a: Codes, b: Codes, what: str) -> None:
    """Assert that no pair is wrong; the message names the first that is."""
    at = np.flatnonzero(wrong)
    assert not len(at), f"{_query(view)}: {_names(view, a[at[0]], b[at[0]])} {what} ({len(at)} of {len(a)} pairs)"


def _query(view: View) -> str:
    return f"query {view.pool.query_id}"


def _names(view: View, a: Any, b: Any) -> str:
    return f"({view.pool.doc_ids[a]}, {view.pool.doc_ids[b]})"


def _ids(found: Contrasts) -> set[tuple[str, ...]]:
    """Each contrast as the ids of its query and texts."""
    ids = found.ids if len(found) else []
    assert ids is not None, "the labels 'query_id' and 'doc_ids' are missing"
    return set(ids)


def _accounted(found: Contrasts) -> int:
    return len(found) + sum(found.dropped.values())
