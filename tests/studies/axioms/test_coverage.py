"""Coverage axioms against nested loops: all query terms, more of them, less overlap."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from axiom_contracts import FromRegistry
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.studies.axioms.counts import AND, DIV, M_AND
from whyrank.studies.files import pairs_of
from whyrank.text import analyzers

KINDS = [AND, M_AND, DIV]
LENGTHS = [None, 0, 2, "25%"]
WORD = st.sampled_from(["wall", "berlin", "fall", "cat", "a"])
TEXT = st.lists(WORD, max_size=7).map(" ".join)
QUERY = st.lists(WORD, max_size=4).map(" ".join)


def judged_for_all(docs, queries):
    named = {f"d{i}": text for i, text in enumerate(docs)}
    asked = {f"q{i}": query for i, query in enumerate(queries)}
    return Collection.of(named, asked, {q: {d: i % 3 for i, d in enumerate(named)} for q in asked})


COLLECTIONS = st.builds(
    judged_for_all, st.lists(TEXT, min_size=1, max_size=8), st.lists(QUERY, min_size=1, max_size=2)
)


def jaccard(asked, words):
    return Fraction(len(asked & words), len(asked | words)) if asked | words else Fraction(0)


def beats(kind, asked, one, two):
    """The definition: must a text with the words `one` beat a text with the words `two`?"""
    if kind is DIV:
        return jaccard(asked, one) < jaccard(asked, two)
    if len(asked) < 2:
        return False
    if kind is AND:
        return all(q in one for q in asked) and not all(q in two for q in asked)
    return sum(q in one for q in asked) > sum(q in two for q in asked)


def near(length, one, two):
    share = isinstance(length, str)
    allowed = Fraction(length.rstrip("%")) / 100 * max(one, two) if share else length
    return length is None or abs(one - two) <= allowed


def oracle(kind, collection, length=None, terms=str.split):
    found = []
    for q, judged in collection.qrels.items():
        asked = set(terms(collection.queries[q]))
        words = {d: terms(collection.docs[d]) for d in judged}
        sets, sizes = {d: set(words[d]) for d in judged}, {d: len(words[d]) for d in judged}
        for x, y in permutations(judged, 2):
            if near(length, sizes[x], sizes[y]) and beats(kind, asked, sets[x], sets[y]):
                found.append((q, (x, y), (collection.docs[x], collection.docs[y])))
    return sorted(found)


def asked_of(found):
    queries, ids = (found.labels[name].values().tolist() for name in ("query_id", "doc_ids"))
    texts = [pair.docs for pair in pairs_of(found)]
    return sorted(zip(queries, map(tuple, ids), texts, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@given(collection=COLLECTIONS, length=st.sampled_from(LENGTHS))
@settings(max_examples=60)
def test_equals_brute_force(kind, collection, length):
    study = kind(analyzer="whitespace", length=length)
    found = study.contrasts(collection)
    assert asked_of(found) == oracle(kind, collection, length)
    assert [pair.query for pair in pairs_of(found)] == [
        collection.queries[q] for q in found.labels["query_id"].values().tolist()
    ]


def ten_queries(folder, name):
    """The ten shortest queries, of which some document has all terms, with up to 60 judged documents each."""
    whole = open_collection(str(folder / name))
    shortest = sorted(whole.qrels, key=lambda q: len(whole.queries[q].split()))[:10]
    qrels = {q: dict(list(whole.qrels[q].items())[:60]) for q in shortest}
    docs = {d: whole.docs[d] for judged in qrels.values() for d in judged}
    return Collection.of(docs, {q: whole.queries[q] for q in qrels}, qrels)


@pytest.mark.parametrize("name", ["cranfield", "msmarco_dl19"])
def test_equals_brute_force_on_real_texts(data_folder, name):
    collection = ten_queries(data_folder, name)
    texts = (*collection.docs.values(), *collection.queries.values())
    known = {text: analyzers.create("lucene").terms(text) for text in texts}
    for kind in KINDS:
        found = asked_of(kind(max_tokens=None).contrasts(collection))
        assert found == oracle(kind, collection, terms=known.__getitem__)
        assert found


@pytest.mark.parametrize("kind", KINDS)
@given(collection=COLLECTIONS, length=st.sampled_from(LENGTHS))
@settings(max_examples=30)
def test_antisymmetric_and_scalar_equals_batch(kind, collection, length):
    study = kind(analyzer="whitespace", length=length)
    for view in study.views(collection):
        a, b = (part.astype(np.int32) for part in np.divmod(np.arange(len(view) ** 2), len(view)))
        there, back = study.preferences(view, a, b), study.preferences(view, b, a)
        assert (there == -back).all()
        assert not (study.wins(view, a, b) & study.wins(view, b, a)).any()
        assert (study.matrix(view).ravel() == there).all()
        for x, y, batch in list(zip(a.tolist(), b.tolist(), there.tolist(), strict=True))[:6]:
            texts = view.pool.texts[x], view.pool.texts[y]
            assert study.preference(view.pool.query, *texts, collection) == batch


@pytest.mark.parametrize("kind", KINDS)
@given(collection=COLLECTIONS, random=st.randoms())
@settings(max_examples=25)
def test_order_of_judgements_does_not_matter(kind, collection, random):
    mixed = {q: dict(random.sample(list(judged.items()), len(judged))) for q, judged in collection.qrels.items()}
    other = Collection.of(collection.docs, collection.queries, mixed)
    study = kind(analyzer="whitespace")
    assert study.contrasts(other).fingerprint == study.contrasts(collection).fingerprint
    assert asked_of(study.contrasts(other)) == asked_of(study.contrasts(collection))


@pytest.mark.parametrize(
    ("kind", "query", "first", "second", "length", "wanted"),
    [
        (AND, "berlin wall", "wall berlin", "wall wall", None, 1),
        (AND, "berlin wall", "wall berlin a a a", "wall wall", 2, 0),  # 5 and 2 tokens
        (AND, "wall wall", "wall", "cat", None, 0),  # one distinct term
        (AND, "berlin wall", "wall", "cat", None, 0),  # neither has all
        (M_AND, "berlin wall fall", "wall fall", "berlin berlin", None, 1),
        (M_AND, "wall", "wall", "cat", None, 0),
        (M_AND, "berlin wall", "wall berlin a a a", "wall", "50%", 0),
        (DIV, "wall", "wall a cat", "wall a", None, 1),
        (DIV, "wall", "wall a a a", "wall a", None, 0),  # sets, not counts
        (DIV, "wall", "", "wall", None, 1),
        (DIV, "wall", "wall a cat", "wall a", 0, 0),
        (DIV, "", "", "", None, 0),
    ],
)
def test_small_cases(kind, query, first, second, length, wanted):
    study = kind(analyzer="whitespace", length=length)
    assert study.preference(query, first, second) == wanted
    assert study.preference(query, second, first) == -wanted


def test_close_fractions_are_told_apart():
    """13,333 / 40,000 is less than 13,334 / 40,003, but not by a billionth."""
    words = [f"w{i}" for i in range(40_000)]
    first, second = words[:13_333], [*words[:13_334], "x", "y", "z"]
    study = DIV(analyzer="whitespace", max_tokens=None)
    assert study.preference(*map(" ".join, (words, first, second))) == 1


def test_max_tokens_hides_the_rest():
    study = AND(analyzer="whitespace", max_tokens=2)
    assert study.preference("berlin wall", "a berlin wall", "a cat") == 0
    assert study.preference("berlin wall", "berlin wall", "a cat") == 1


def test_wrong_arguments_are_one_line():
    with pytest.raises(WhyrankError, match="length 'long': give a number"):
        DIV(length="long")
    with pytest.raises(WhyrankError, match="axiom AND is none of the nine with a compat mode"):
        AND(compat="camara-hauff")


class TestAND(FromRegistry):
    spec = "axiom/AND"


class TestModifiedAND(FromRegistry):
    spec = "axiom/M-AND(length=10%)"


class TestDIV(FromRegistry):
    spec = "axiom/DIV(analyzer=whitespace,length=5)"
