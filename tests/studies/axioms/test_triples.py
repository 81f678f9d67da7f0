"""TFC2 against nested loops over its definition, and in bounded memory."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest
from count_oracles import COLLECTIONS, CUTS, LENGTHS, crowd, found_by, made, near, pools, real
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.studies.axioms.triples import TFC2
from whyrank.studies.findings import differences


def oracle(axiom, collection):
    """All triples (D1, D2, D3) of all queries."""
    found = []
    for query_id, facts, docs in pools(axiom, collection):
        total = {d: sum(doc.count[q] for q in facts.terms) for d, doc in docs.items()}
        similar = {(i, j): near(docs[i].length, docs[j].length, axiom.length) for i in docs for j in docs}
        for i in docs:
            for j in docs:
                if not (1 <= total[i] < total[j] and similar[i, j]):
                    continue
                for k in docs:
                    if not (total[j] < total[k] and similar[i, k] and similar[j, k]):
                        continue
                    one, two, three = docs[i].count, docs[j].count, docs[k].count
                    if all(two[q] - one[q] == three[q] - two[q] for q in facts.terms):
                        found.append((query_id, (i, j, k)))
    return sorted(found)


@pytest.mark.parametrize("compat", [None, "camara-hauff"])
@given(collection=COLLECTIONS, cut=CUTS, length=LENGTHS)
@settings(max_examples=100)
def test_equals_nested_loops(compat, collection, cut, length):
    """Same triples in the same order, each once."""
    axiom = TFC2(analyzer="whitespace", max_tokens=cut, length=length, compat=compat)
    assert found_by(axiom, collection) == oracle(axiom, collection)


@pytest.mark.parametrize("length", [0, 1, 10, "20%"])
def test_a_crowd_of_documents(length):
    """Here there are instances, and contrasts carry the texts and grades of their ids in the order D1, D2, D3."""
    axiom, collection = TFC2(analyzer="whitespace", length=length), crowd()
    found = axiom.contrasts(collection)
    ids = found.labels["doc_ids"].values().tolist()
    assert found_by(axiom, collection) == oracle(axiom, collection) != []
    assert [[found.docs[d] for d in row] for row in found.doc] == [[collection.docs[d] for d in row] for row in ids]
    assert found.labels["relevance"].tolist() == [[int(d[1:]) % 3 for d in row] for row in ids]


@pytest.mark.parametrize("name", ["cranfield", "msmarco_dl19"])
def test_real_collections(name, data_folder):
    axiom, collection = TFC2(max_tokens=60), real(data_folder / name, size=40)
    assert found_by(axiom, collection) == oracle(axiom, collection) != []


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=12))
@settings(max_examples=60)
def test_steps_in_several_terms(counts):
    """Vectors of three terms, some of which fall while their sum grows."""
    docs = [" ".join(t for t, n in zip("abc", row, strict=True) for _ in range(n)) for row in counts]
    axiom, collection = TFC2(analyzer="whitespace"), made(docs, ["a b c a"])
    assert found_by(axiom, collection) == oracle(axiom, collection)


def test_a_saturating_score_obeys_and_a_square_one_does_not():
    """The order D1, D2, D3 is the one that the differences of three scores expect."""
    found = TFC2(analyzer="whitespace").contrasts(made(["a x x", "a a x", "a a a"], ["a"]))
    counts = np.array([[found.docs[d].split().count("a") for d in row] for row in found.doc], dtype=float)
    assert counts.tolist() == [[1, 2, 3]]
    assert (differences(np.sqrt(counts)) > 0).all()
    assert (differences(counts**2) < 0).all()


@given(
    start=st.integers(0, 30),
    step=st.integers(1, 30),
    unit=st.sampled_from([0.1, 1 / 3, 1 / 7, 0.7, 1e-9, 123.4]),
    bend=st.integers(-3, 3),
)
def test_a_score_that_counts_ties_in_any_unit(start, step, unit, bend):
    """0.3 - 0.2 is not 0.2 - 0.1 in floating point; a step that is larger by one unit is seen all the same."""
    scores = np.array([[start, start + step, start + 2 * step - bend]]) * unit
    assert np.sign(differences(scores)).tolist() == [np.sign(bend)]


@pytest.mark.parametrize(
    ("third", "why"),
    [
        ("a a a " + "x " * 12, "length"),
        ("a a a a", "unequal steps"),
        ("a a a b", "a step in another term"),
        ("x", "none"),
    ],
)
def test_preconditions_exclude(third, why):
    axiom = TFC2(analyzer="whitespace")
    assert found_by(axiom, made(["a", "a a", "a a a"], ["a b"])) == [("q0", ("d0", "d1", "d2"))]
    assert found_by(axiom, made(["a", "a a", third], ["a b"])) == [], why


def test_a_text_without_query_terms_is_no_first_one():
    assert found_by(TFC2(analyzer="whitespace"), made(["x", "a", "a a"], ["a"])) == []


def test_two_texts_are_an_error():
    axiom = TFC2(analyzer="whitespace")
    [view, *_] = axiom.views(crowd())
    pair = np.zeros(1, np.int32), np.ones(1, np.int32)
    for ask in (lambda: axiom.preference("a", "a", "b"), lambda: axiom.wins(view, *pair), lambda: axiom.matrix(view)):
        with pytest.raises(WhyrankError, match="TFC2 compares three texts"):
            ask()


def test_many_alike_documents_stay_in_bounded_memory():
    """Two thousand documents of few count vectors: millions of triples, of which a sample is held."""
    draw = random.Random(0)
    docs = [f"{'a ' * (i % 6)}{'x ' * draw.randint(0, 20)}" for i in range(2000)]
    collection, axiom = made(docs, ["a"]), TFC2(analyzer="whitespace", length=3, most=50_000)
    expected = count_of_triples(docs, 3)
    for view in axiom.views(collection):
        assert view.counts.shape == (2000, 1)
    tracemalloc.start()
    found = axiom.contrasts(collection)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 10_000 < len(found) <= 50_000 < expected
    assert len(found) + sum(found.dropped.values()) == expected
    assert peak < 80 << 20 < expected * 12  # bytes; all rows would take more


def count_of_triples(docs, tolerance):
    """How many there are, by counting documents per number of `a` and length."""
    size = max(len(text.split()) for text in docs) + 1
    table = np.zeros((6, size), np.int64)
    for text in docs:
        table[text.split().count("a"), len(text.split())] += 1
    found = 0
    for one, two, three in [(1, 2, 3), (2, 3, 4), (3, 4, 5), (1, 3, 5)]:
        for i in range(size):
            for j in range(max(0, i - tolerance), min(size, i + tolerance + 1)):
                low, high = max(0, max(i, j) - tolerance), min(i, j) + tolerance + 1
                found += table[one, i] * table[two, j] * table[three, low:high].sum()
    return int(found)
