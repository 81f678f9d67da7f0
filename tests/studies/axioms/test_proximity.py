"""Axioms on proximity against nested loops over token lists, on made-up and on real collections."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.data import Collection, open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.studies.axioms import proximity
from whyrank.text import analyzers

NAMES = ["TP", "PROX1", "PROX2", "PROX3", "PROX4", "PROX5", "QPHRA"]
WORDS = ["a", "b", "c", "x", "y"]  # queries have a, b and c; x is in some, y in none
TEXTS = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
QUERIES = st.lists(st.sampled_from(["a", "b", "c", "x"]), max_size=4).map(" ".join)


def collection_of(texts, queries, grades=None):
    docs = {f"d{i}": text for i, text in enumerate(texts)}
    judged = dict(zip(docs, grades or [0] * len(docs), strict=True))
    return Collection.of(
        docs, {f"q{i}": q for i, q in enumerate(queries)}, {f"q{i}": judged for i in range(len(queries))}
    )


COLLECTIONS = st.builds(
    collection_of, st.lists(TEXTS, min_size=1, max_size=8), st.lists(QUERIES, min_size=1, max_size=3)
)


# The definitions, document by document. Each takes the query and the two texts as tuples of tokens and says whether
# the first must win; none of them shares anything with the code under test.


def places(term, doc):
    return [i for i, token in enumerate(doc) if token == term]


@cache
def gap(query, doc):
    found = []
    for q, r in permutations(set(query), 2):
        for i in places(q, doc):
            for j in places(r, doc):
                found.append(abs(i - j))
    return min(found, default=None)


def tp(query, one, two):
    distances = gap(query, one), gap(query, two)
    return None not in distances and distances[0] < distances[1]


def prox1(query, one, two):
    shared = set(query) & set(one) & set(two)
    sums = []
    for doc in (one, two):
        sums.append(sum(abs(doc.index(q) - doc.index(r)) - 1 for q, r in combinations(shared, 2)))
    return len(shared) >= 2 and sums[0] < sums[1]


def prox2(query, one, two):
    shared = set(query) & set(one) & set(two)
    return len(shared) >= 1 and sum(one.index(q) for q in shared) < sum(two.index(q) for q in shared)


@cache
def phrase(query, doc):
    for i in range(len(doc)):
        if doc[i : i + len(query)] == query:
            return i
    return float("inf")


def prox3(query, one, two):
    return len(query) >= 2 and phrase(query, one) < phrase(query, two)


def qphra(query, one, two):
    return len(query) >= 2 and phrase(query, one) < float("inf") and phrase(query, two) == float("inf")


@cache
def complete(query, doc):
    """All windows (first, last) with all query terms."""
    ends = [(i, j) for i in range(len(doc)) for j in range(i, len(doc))]
    return {(i, j) for i, j in ends if set(query) <= set(doc[i : j + 1])}


@cache
def grouping(query, doc):
    """Other tokens in the tightest minimal window, and minus how many windows are as tight: smaller is better."""
    windows = complete(query, doc)
    minimal = [(i, j) for i, j in windows if not {(i + 1, j), (i, j - 1)} & windows]
    others = [sum(token not in query for token in doc[i : j + 1]) for i, j in minimal]
    return min(others), -others.count(min(others))


@cache
def mean_span(query, doc):
    windows = complete(query, doc)
    hits = [i for i, token in enumerate(doc) if token in query]
    return Fraction(sum(min(j - i + 1 for i, j in windows if i <= k <= j) for k in hits), len(hits))


def with_all(query, one, two):
    return len(set(query)) >= 2 and set(query) <= set(one) and set(query) <= set(two)


def prox4(query, one, two):
    return with_all(query, one, two) and grouping(query, one) < grouping(query, two)


def prox5(query, one, two):
    return with_all(query, one, two) and mean_span(query, one) < mean_span(query, two)


ORACLES = {"TP": tp, "PROX1": prox1, "PROX2": prox2, "PROX3": prox3, "PROX4": prox4, "PROX5": prox5, "QPHRA": qphra}


def oracle(name, collection, terms, query_terms):
    """All instances by nested loops: (query id, (winner, loser)); queries are those that are judged."""
    found = []
    for query_id, judged in collection.qrels.items():
        query = tuple(query_terms(collection.queries[query_id]))
        docs = {d: tuple(terms(collection.docs[d])) for d in judged}
        for one, two in permutations(docs, 2):
            if ORACLES[name](query, docs[one], docs[two]):
                found.append((query_id, (one, two)))
    return sorted(found)


def instances(contrasts):
    ids = map(tuple, contrasts.labels["doc_ids"].values().tolist())
    return sorted(zip(contrasts.labels["query_id"].values().tolist(), ids, strict=True))


def create(name, **given):
    return getattr(proximity, name)(**{"analyzer": "whitespace", **given})


@pytest.mark.parametrize("name", NAMES)
@given(collection=COLLECTIONS)
@settings(max_examples=60)
def test_equals_brute_force(name, collection):
    found = create(name, max_tokens=None).contrasts(collection)
    assert instances(found) == oracle(name, collection, str.split, str.split)
    pairs = Counter((q, frozenset(docs)) for q, docs in instances(found))
    assert all(n == 1 for n in pairs.values())
    texts = [[found.docs[i] for i in row] for row in found.doc.tolist()]
    assert texts == [[collection.docs[d] for d in docs] for docs in found.labels["doc_ids"].values().tolist()]


@pytest.mark.parametrize("name", NAMES)
def test_random_long_texts(name):
    """Long texts over few words: many windows that overlap."""
    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(["a", "b", "c", "d", "x", "y", "z"], n)) for n in rng.integers(5, 45, 24)]
    collection = collection_of(texts, ["a b", "a b c", "a b c d a"])
    found = create(name).contrasts(collection)
    assert instances(found) == oracle(name, collection, str.split, str.split)
    assert len(found)


def ten_queries(collection):
    """The collection with its ten shortest queries, of which texts most often have all terms."""
    queries = sorted(collection.qrels, key=lambda q: (len(collection.queries[q].split()), q))[:10]
    return Collection.of(collection.docs, collection.queries, {q: collection.qrels[q] for q in queries})


@pytest.fixture(scope="module")
def real(data_folder):
    return {name: ten_queries(open_collection(str(data_folder / name))) for name in ("cranfield", "msmarco_dl19")}


@pytest.mark.parametrize(
    ("source", "analyzer"), [("cranfield", "whitespace"), ("cranfield", "lucene"), ("msmarco_dl19", "lucene")]
)
@pytest.mark.parametrize("name", NAMES)
def test_equals_brute_force_on_real_queries(name, source, analyzer, real):
    collection, made = real[source], analyzers.create(analyzer)
    found = create(name, analyzer=analyzer, max_tokens=None).contrasts(collection)
    assert instances(found) == oracle(name, collection, made.terms, made.query_terms)
    assert len(found) or analyzer == "whitespace"


# (query, text, text): both ways round nothing is said, though the features alone would decide.
EXCLUDED = {
    "TP": ("a b", "a b", "a x a"),  # the second has one query term
    "PROX1": ("a b c", "a b", "a x x c"),  # one term in both
    "PROX2": ("a b", "a x", "x b"),  # no term in both
    "PROX3": ("a", "a x", "x a"),  # a query of one token
    "PROX4": ("a b", "a b", "a x a"),  # the second lacks b
    "PROX5": ("a b", "a b", "a x a"),
    "QPHRA": ("a", "a x", "x x"),
}
DECIDED = {
    "TP": ("a b", "a b", "a x b"),
    "PROX1": ("a b c", "a b", "a x x b c"),
    "PROX2": ("a b", "a x b", "x a b"),
    "PROX3": ("a a", "a a x", "x a a"),  # repeated tokens are a phrase of two
    "PROX4": ("a b", "a b x a b", "a b x x x"),  # as tight, and more often
    "PROX5": ("a b", "a b a", "a b x a"),
    "QPHRA": ("b a", "x b a", "a b x"),
}


@pytest.mark.parametrize("name", NAMES)
def test_preconditions(name):
    axiom = create(name)
    query, one, two = EXCLUDED[name]
    assert [axiom.preference(query, one, two), axiom.preference(query, two, one)] == [0, 0]
    query, one, two = DECIDED[name]
    assert [axiom.preference(query, one, two), axiom.preference(query, two, one)] == [1, -1]


@pytest.mark.parametrize("name", NAMES)
def test_length_is_a_precondition_where_it_is_asked_for(name):
    query, one, two = DECIDED[name]
    longer = two + " y" * 3
    assert create(name).preference(query, one, longer) == 1
    assert create(name, length=len(longer.split()) - len(one.split()) - 1).preference(query, one, longer) == 0
    assert create(name, length="100%").preference(query, one, longer) == 1


@given(collection=COLLECTIONS)
@settings(max_examples=30)
def test_compat_is_the_reverse(collection):
    released = create("TP", compat="camara-hauff")
    reverse = [(q, docs[::-1]) for q, docs in instances(create("TP").contrasts(collection))]
    assert instances(released.contrasts(collection)) == sorted(reverse)


def test_compat_says_what_it_favours():
    assert "farther" in create("TP", compat="camara-hauff").positive
    assert "closest" in create("TP").positive


SHUFFLES = st.lists(st.sampled_from(WORDS), min_size=2, max_size=12).flatmap(
    lambda words: st.lists(st.permutations(words).map(" ".join), min_size=2, max_size=6)
)


@pytest.mark.parametrize("ranker", ["bm25", "ql"])
@given(texts=SHUFFLES, query=QUERIES.filter(bool))
@settings(max_examples=40)
def test_a_bag_of_words_ties(ranker, texts, query):
    """Where all texts have the same words, every contrast is an exact tie."""
    collection = collection_of(texts, [query])
    scorer = open_ranker(ranker, Setting(collection, "whitespace"))
    assert len(set(scorer.score([query] * len(texts), texts).tolist())) == 1
    for name in NAMES:
        found = create(name).contrasts(collection)
        queries = [found.queries[i] for i in found.query]
        scores = [scorer.score(queries, [found.docs[i] for i in side]) for side in found.doc.T]
        assert np.array_equal(*scores)


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_cut(name):
    """What lies behind `max_tokens` decides nothing."""
    query, one, two = DECIDED[name]
    behind = "x " * 8
    collection = collection_of([behind + one, behind + two], [query])
    assert len(create(name).contrasts(collection)) == 1
    assert not len(create(name, max_tokens=8).contrasts(collection))


def test_nothing_to_compare():
    """Empty documents, an empty query, and a query without documents."""
    collection = Collection.of(
        {"d0": "", "d1": "a b", "d2": ""}, {"q0": "", "q1": "a b"}, {"q0": {"d0": 0, "d1": 1}, "q1": {}}
    )
    for name in NAMES:
        assert not len(create(name).contrasts(collection))
