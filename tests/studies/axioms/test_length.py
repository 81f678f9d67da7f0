"""LNC1, in both variants and as released, against nested loops over its definition."""

from __future__ import annotations

from functools import partial

import pytest
from count_oracles import COLLECTIONS, CUTS, check_signs, crowd, found_by, made, oracle, real
from hypothesis import given, settings

from whyrank.data import Collection
from whyrank.studies.axioms.length import LNC1

COMPAT = {"compat": "camara-hauff"}
every_mode = pytest.mark.parametrize("mode", [{}, {"variant": "length"}, COMPAT], ids=["strict", "length", "compat"])


def lnc1(axiom, facts, one, two):
    same = all(one.count[q] == two.count[q] for q in facts.terms)
    others = [t for t in two.count if t not in facts.terms]
    if axiom.compat:
        return any(one.count[t] >= 1 and two.count[t] == one.count[t] + 1 for t in others)
    if axiom.variant == "length":
        return same and two.length > one.length
    return same and any(two.count[t] == one.count[t] + 1 for t in others)


def expected(axiom, collection):
    return oracle(axiom, collection, partial(lnc1, axiom))


@every_mode
@given(collection=COLLECTIONS, cut=CUTS)
@settings(max_examples=100)
def test_equals_nested_loops(mode, collection, cut):
    """Same instances, same winners, each once; under compat in both directions."""
    axiom = LNC1(analyzer="whitespace", max_tokens=cut, **mode)
    assert found_by(axiom, collection) == expected(axiom, collection)


@every_mode
def test_a_crowd_of_documents(mode):
    """Here there are instances, and contrasts carry the texts of their ids."""
    axiom, collection = LNC1(analyzer="whitespace", **mode), crowd(longest=14)
    found = axiom.contrasts(collection)
    ids = found.labels["doc_ids"].values().tolist()
    assert found_by(axiom, collection) == expected(axiom, collection) != []
    check_signs(axiom, collection, partial(lnc1, axiom))
    assert [[found.docs[d] for d in row] for row in found.doc] == [[collection.docs[d] for d in row] for row in ids]


def with_shortened(collection):
    """The collection, and the first documents of each query again without their last words."""
    qrels = {q: {**docs, **{f"{d}-": 0 for d in list(docs)[:8]}} for q, docs in collection.qrels.items()}
    shorter = {f"{d}-": " ".join(text.split()[:-2]) for d, text in collection.docs.items()}
    return Collection.of({**collection.docs, **shorter}, collection.queries, qrels)


@pytest.fixture(scope="module")
def collections(data_folder):
    opened = {}
    return lambda name: opened.get(name) or opened.setdefault(name, with_shortened(real(data_folder / name, 40)))


@every_mode
@pytest.mark.parametrize("name", ["cranfield", "msmarco_dl19"])
def test_real_collections(mode, name, collections):
    axiom = LNC1(**mode)
    assert found_by(axiom, collections(name)) == expected(axiom, collections(name)) != []


@pytest.mark.parametrize(
    ("first", "second", "strict", "length", "compat"),
    [
        ("a x", "a x x", 1, 1, [(0, 1)]),  # one more of a word that both have
        ("a x", "a x y", 1, 1, []),  # of a word that the first lacks
        ("a x", "a x y y", 0, 1, []),  # two more
        ("a x y y", "a x x y", 0, 0, [(0, 1), (1, 0)]),  # one more on either side
        ("a x", "a a x x", 0, 0, [(0, 1)]),  # other counts of a query term
        ("a x", "a b x", 0, 0, []),  # one more of a query term
        ("x", "x x", 1, 1, [(0, 1)]),  # no query term at all
        ("a x", "a x", 0, 0, []),
        ("", "x", 1, 1, []),
    ],
)
def test_small_cases(first, second, strict, length, compat):
    """What the precondition on query terms and each mode make of a pair."""
    assert LNC1(analyzer="whitespace").preference("a b", first, second) == strict
    assert LNC1(analyzer="whitespace", variant="length").preference("a b", first, second) == length
    found = found_by(LNC1(analyzer="whitespace", **COMPAT), made([first, second], ["a b"]))
    assert found == [("q0", (f"d{i}", f"d{j}")) for i, j in compat]


def test_views_asked_in_turns_keep_their_own_words():
    """The words of the last view only are kept; those of another query are other words."""
    axiom, collection = LNC1(analyzer="whitespace"), crowd()
    views = list(axiom.views(collection))
    alone = [axiom.matrix(view).tolist() for view in views]
    rows = [[list(map(list, block)) for block in axiom.instances(view)] for view in views]
    assert [axiom.matrix(view).tolist() for view in reversed(views)] == alone[::-1]
    assert alone[0] != alone[1]
    assert [[list(map(list, block)) for block in axiom.instances(view)] for view in views] == rows


def test_compat_does_not_speak_of_equal_query_terms():
    assert "equal query terms" in LNC1().positive
    assert "equal" not in LNC1(compat="camara-hauff").positive
