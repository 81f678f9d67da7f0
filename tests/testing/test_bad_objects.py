"""Each test of a contract fails on an object that breaks it, and a good object passes them all."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar
from unittest import SkipTest

import numpy as np
import pytest

from whyrank.studies import Categories, Contrasts, Pair
from whyrank.studies.axioms import Axiom, axioms
from whyrank.studies.axioms.axiom import similar_length
from whyrank.studies.probes import probes
from whyrank.testing import AnalyzerContract, AxiomContract, CharacteristicContract, RankerContract, StudyContract
from whyrank.text import Analyzer, analyzers

numbers = count()


def names_in(contract):
    return {name for name in dir(contract) if name.startswith("test_")}


def failures(contract, make, *only):
    """Names of the tests of a contract, or of some of them, that an object fails."""

    def passes(test):
        try:
            test()
        except Exception:
            return False
        return True

    tried = case(contract, make)
    return {name for name in only or names_in(contract) if not passes(getattr(tried, name))}


def case(contract, make, **attributes):
    return type("Case", (contract,), {"make": staticmethod(make), **attributes})()


def like(base, **members):
    """An object like a good one, but for some members."""
    return type("Bad", (base,), members)


@dataclass(frozen=True)
class Overlap:
    """A ranker that keeps the contract."""

    name: str = "not registered"

    def score(self, queries, docs):
        pairs = zip(queries, docs, strict=True)
        return np.array([len({*q.split()} & {*d.split()}) for q, d in pairs], dtype=float)


def changed(change):
    """An overlap whose scores are changed as a whole."""
    return like(Overlap, score=lambda self, queries, docs: change(Overlap.score(self, queries, docs)))


def refuse(self):
    raise TypeError("a closure cannot be pickled")


Column, TooFew = changed(lambda scores: scores[:, None]), changed(lambda scores: scores[1:])
Scaled, Ranks = changed(lambda scores: scores / max(1, len(scores))), changed(lambda s: s + np.arange(len(s)))
BAD_RANKERS = {
    "test_it_is_a_ranker_with_a_name": [object, lambda: Overlap(" "), lambda: Overlap(3)],
    "test_its_repr_is_its_identity": [
        like(Overlap, __repr__=object.__repr__),
        like(Overlap, __repr__=lambda self: str(next(numbers))),
    ],
    "test_one_finite_number_per_pair": [
        Column,
        TooFew,
        changed(lambda scores: np.where(scores > 0, scores, -np.inf)),
        changed(lambda scores: scores if len(scores) else None),
    ],
    "test_scoring_twice_gives_the_same": [
        changed(lambda scores: scores + np.random.default_rng().random(len(scores))),
    ],
    "test_neither_order_nor_batches_matter": [Scaled, Ranks, TooFew],
    "test_it_can_be_pickled": [
        like(Overlap, __reduce__=refuse),
        like(Overlap, __reduce__=lambda self: (Overlap, ("another",))),
    ],
    "test_its_name_makes_it_again": [lambda: Overlap("bm25"), lambda: Overlap("bm25(k9=1)")],
}


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


def paired(change):
    """A cut whose pairs are changed."""
    return like(Cut, pairs=lambda self, collection: change(list(Cut.pairs(self, collection))))


def spoilt(spoil):
    """A cut whose contrasts are spoilt afterwards."""

    def contrasts(self, collection):
        found = Cut.contrasts(self, collection)
        kept = {name: getattr(found, name) for name in ("queries", "docs", "query", "doc", "labels")}
        return Contrasts(**{**kept, **spoil(found)})

    return like(Cut, contrasts=contrasts)


BAD_STUDIES = {
    "test_it_says_what_it_asks": [
        object,
        lambda: Cut(positive="longer"),
        lambda: Cut(positive="prefers the\nwhole text"),
        lambda: Cut(positive=1),
        lambda: Cut(symmetric=0),
    ],
    "test_its_id_makes_it_again": [lambda: Cut("nowhere"), lambda: Cut(symmetric=True)],
    "test_it_finds_contrasts": [paired(lambda pairs: [])],
    "test_the_contrasts_are_the_same_each_time": [
        paired(lambda pairs: random.SystemRandom().sample(pairs, 5)),
    ],
    "test_every_text_is_held_once": [
        spoilt(lambda found: {"doc": found.doc + 1}),
        spoilt(lambda found: {"docs": [*found.docs, found.docs[0]]}),
    ],
    "test_the_texts_of_a_contrast_differ": [
        paired(lambda pairs: [Pair(pair.query, (pair.docs[0], pair.docs[0])) for pair in pairs])
    ],
    "test_the_labels_are_aligned": [
        spoilt(lambda found: {"labels": {"x": np.zeros((len(found), 5))}}),
        spoilt(lambda found: {"labels": {"x": Categories(found.query + 1, ["one"])}}),
    ],
}


def digits(pool):
    """More digits"""
    return np.array([sum(c.isdigit() for c in text) for text in pool.texts], dtype=float)


def measuring(measure, doc="More of it"):
    measure.__doc__ = doc
    return lambda: measure


BAD_CHARACTERISTICS = {
    "test_one_row_per_document": [measuring(lambda pool: np.array([float(len(pool.query))]))],
    "test_values_are_numbers_or_nan": [
        measuring(lambda pool: np.where(digits(pool) > 0, digits(pool), -np.inf)),
        measuring(lambda pool: np.full(len(pool.doc_ids), np.nan)),
    ],
    "test_measuring_twice_gives_the_same": [measuring(lambda p: np.random.default_rng().random(len(p.doc_ids)))],
    "test_the_order_of_documents_does_not_matter": [measuring(lambda pool: np.arange(len(pool.doc_ids)))],
    "test_its_docstring_says_what_a_higher_value_is": [measuring(lambda pool: digits(pool) + 0, None)],
}


@dataclass(frozen=True, kw_only=True)
class Short(Axiom):
    """Of two texts of similar length, the shorter one wins."""

    name: ClassVar[str] = "own-short"
    favours: ClassVar[str] = "the shorter text"

    conditions: ClassVar[tuple] = similar_length(5)

    def wins(self, view, a, b):
        return view.lengths[a] < view.lengths[b]


def short_with(method, change):
    """A short one of which the result of a method is changed."""
    return like(Short, **{method: lambda self, *given: change(getattr(Short, method)(self, *given))})


def instances(change):
    return short_with("instances", lambda blocks: map(change, blocks))


def relative(self, view, a, b):
    """What wins depends on what else there is."""
    usual = view.lengths.sum() / max(len(view), 1)
    return (view.lengths[a] < usual) & (view.lengths[b] >= usual)


def boundless(self, collection):
    return Short.contrasts(self if self.most > 10_000 else replace(self, most=1 << 30), collection)


def elsewhere(self, view):
    """A sample of other instances."""
    return (rows[:, ::-1] if self.most < 10_000 else rows for rows in Short.instances(self, view))


Proud = like(Short, preferences=lambda self, v, a, b: np.where(v.lengths[a] <= v.lengths[b], 1, -1).astype(np.int8))
Positioned = like(Short, wins=lambda self, view, a, b: a < b)  # the document that comes first in the list wins
Twice = short_with("instances", lambda blocks: [*(found := list(blocks)), *found])
BothOrders = instances(lambda rows: np.concatenate([rows, rows[:, ::-1]]))
Careless = like(Short, preferences=lambda self, v, a, b: np.sign(v.lengths[b] - v.lengths[a]).astype(np.int8))
Everything = like(Short, preconditions=lambda self: ())
CarelessInstances = like(Short, instances=lambda self, view: replace(Everything(), most=self.most).instances(view))
OneWay = like(Short, preconditions=lambda self: (lambda view, a, b: view.lengths[a] <= view.lengths[b],))
BAD_AXIOMS = {
    "test_preferences_are_antisymmetric": [
        Proud,
        short_with("preferences", lambda signs: signs * 2),
        lambda: Positioned(max_tokens=1),
    ],
    "test_the_matrix_holds_the_preferences": [short_with("matrix", np.transpose)],
    "test_one_pair_at_a_time_gives_the_same": [
        like(Short, preference=lambda self, query, first, second, collection=None: 0),
        like(Short, wins=relative),
    ],
    "test_the_instances_are_the_preferences": [
        Twice,
        BothOrders,
        CarelessInstances,
        instances(lambda rows: rows[:, ::-1]),
    ],
    "test_the_contrasts_are_the_instances": [short_with("contrasts", lambda found: found.take(slice(10))), Twice],
    "test_preconditions_are_respected": [Careless, CarelessInstances, OneWay],
    "test_the_order_of_input_does_not_matter": [Positioned],
    "test_the_size_of_blocks_does_not_matter": [short_with("instances", lambda blocks: iter([next(blocks)]))],
    "test_most_draws_a_sample_and_says_so": [
        like(Short, contrasts=boundless),
        short_with("contrasts", lambda found: replace(found, dropped={})),
        like(Short, instances=elsewhere),
    ],
    "test_it_states_its_conclusion": [
        like(Short, concludes=property(lambda self: "perhaps")),
        like(Short, concludes=property(lambda self: "strict")),
        like(Short, __doc__="The shorter one wins"),
    ],
}


@pytest.fixture
def own_objects():
    """The registries with a good study and a good axiom in them."""
    probes.register("cut")(Cut)
    axioms.register("axiom/own-short")(Short)
    yield
    probes.forget("cut")
    axioms.forget("axiom/own-short")


GOOD = [
    (RankerContract, Overlap, BAD_RANKERS),
    (StudyContract, Cut, BAD_STUDIES),
    (CharacteristicContract, lambda: digits, BAD_CHARACTERISTICS),
    (AxiomContract, Short, BAD_AXIOMS),
]


@pytest.mark.usefixtures("own_objects")
@pytest.mark.parametrize(("contract", "make", "bad"), GOOD)
def test_a_good_object_passes(contract, make, bad):
    assert failures(contract, make) == set()
    inherited = names_in(StudyContract) if contract is AxiomContract else set()
    assert set(bad) == names_in(contract) - inherited


@pytest.mark.usefixtures("own_objects")
@pytest.mark.parametrize(
    ("contract", "name", "make"),
    [(contract, name, make) for contract, _, bad in GOOD for name, makers in bad.items() for make in makers],
)
def test_a_bad_object_fails(contract, name, make):
    assert name in failures(contract, make, name)


def test_a_failure_says_what_is_wrong():
    with pytest.raises(
        AssertionError, match=r"query q01: \(\S+, \S+\) fails a precondition, but one wins \(\d+ of 144"
    ):
        case(AxiomContract, Careless).test_preconditions_are_respected()


def test_what_the_author_may_choose():
    """The tolerance of a neural ranker, instances in both orders, and an axiom of other texts."""
    case(RankerContract, Scaled, tolerance=2.0).test_neither_order_nor_batches_matter()
    with pytest.raises(AssertionError, match="an instance twice"):
        case(AxiomContract, Twice, both_orders=True).test_the_instances_are_the_preferences()
    with pytest.raises(SkipTest, match="does not compare two documents"):
        case(AxiomContract, Short, pairwise=False).test_preferences_are_antisymmetric()
    case(AxiomContract, Short, pairwise=False).test_most_draws_a_sample_and_says_so()


# Analyzers: an own one is registered for each case.


def analyzer_of(tokenise, **parts):
    """A factory of an analyzer whose tokeniser sees whole batches, under an id of its own."""

    def own(mark=next(numbers)):  # noqa: B008
        return Analyzer.of_batches(f"own(mark={mark})", tokenise, **parts)

    return own


def split(texts):
    return [text.split() for text in texts]


def first_in_batch(texts):
    return [[*text.split(), "first"] if i == 0 and text else text.split() for i, text in enumerate(texts)]


def unregistered():
    return Analyzer.of("not-registered", str.split)


def other_data():
    return Analyzer.of("lucene", str.split, digests=["other"])


BAD_ANALYZERS = {
    "test_texts_do_not_depend_on_each_other": [
        analyzer_of(lambda texts: [[*text.split(), str(len(texts))] if text else [] for text in texts]),
        analyzer_of(first_in_batch),
    ],
    "test_terms_are_texts_that_are_not_empty": [
        analyzer_of(split, steps=[lambda token: (token,)]),
        analyzer_of(lambda texts: [["<s>", *text.split()] for text in texts]),
    ],
    "test_its_id_makes_it_again": [unregistered, other_data],
    "test_it_can_be_pickled": [unregistered, other_data],
}
BAD_TOKENS = [
    lambda ids, offsets: (ids.astype(np.int64), offsets),
    lambda ids, offsets: (ids, offsets.astype(np.int32)),
    lambda ids, offsets: (ids, offsets[1:]),
    lambda ids, offsets: (ids, offsets + 1),
    lambda ids, offsets: (ids + 1_000_000, offsets),
    lambda ids, offsets: (ids - 1_000_000, offsets),
]


@pytest.fixture
def own_analyzer(request):
    """A registered analyzer; the parameter is its factory."""
    analyzers.register("own")(request.param)
    yield request.param
    analyzers.forget("own")


@pytest.mark.parametrize("own_analyzer", [analyzer_of(split)], indirect=True)
def test_a_good_analyzer_passes_and_bad_tokens_fail(own_analyzer, monkeypatch):
    assert failures(AnalyzerContract, own_analyzer) == set()
    assert set(BAD_ANALYZERS) | {"test_tokens_are_arrays_of_term_ids"} == names_in(AnalyzerContract)
    docs = Analyzer.docs
    for spoil in BAD_TOKENS:
        monkeypatch.setattr(Analyzer, "docs", lambda self, texts, spoil=spoil: spoil(*docs(self, texts)))
        assert failures(AnalyzerContract, own_analyzer, "test_tokens_are_arrays_of_term_ids")


@pytest.mark.parametrize(
    ("name", "own_analyzer"),
    [(name, bad) for name, makers in BAD_ANALYZERS.items() for bad in makers],
    indirect=["own_analyzer"],
)
def test_a_bad_analyzer_fails(name, own_analyzer):
    assert name in failures(AnalyzerContract, own_analyzer, name)
