"""Axioms on counts by nested loops over words, straight from their definitions, and collections to try them on."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from whyrank.data import Collection, open_collection
from whyrank.text import analyzers, cut_texts

WORD = st.sampled_from(["a", "b", "c", "x", "y"])
QUERY = st.lists(st.sampled_from(["a", "b", "c", "unseen"]), max_size=4).map(" ".join)
DOCS = st.lists(st.lists(WORD, max_size=6).map(" ".join), min_size=1, max_size=8)
CUTS = st.sampled_from([None, 3, 5])
LENGTHS = st.sampled_from([0, 1, 2, 10, "0%", "25%", "60%", "150%"])


def made(docs, queries, order=None):
    """A collection in which all documents are judged for all queries, in a given order."""
    texts = {f"d{i}": text for i, text in enumerate(docs)}
    asked = {f"q{i}": text for i, text in enumerate(queries)}
    judged = [f"d{i}" for i in (order or range(len(docs)))]
    return Collection.of(texts, asked, {q: {d: int(d[1:]) % 3 for d in judged} for q in asked})


COLLECTIONS = st.builds(made, DOCS, st.lists(QUERY, min_size=1, max_size=2))


def crowd(size=45, longest=9, seed=0):
    """Enough documents of few words for each axiom to have instances."""
    draw = random.Random(seed)
    docs = [" ".join(draw.choices("aabbcxyz", k=draw.randint(0, longest))) for _ in range(size)]
    return made(docs, ["a b", "a b c b", "c b a"])


def real(folder, size=50):
    """Ten queries of a real collection with so many documents each: the judged ones, then those of other queries."""
    collection = open_collection(str(folder))
    queries = {q: collection.queries[q] for q in list(collection.qrels)[:10]}
    every = [d for q in queries for d in collection.qrels[q] if d in collection.docs]
    qrels = {
        q: {d: 0 for d in list(dict.fromkeys([*collection.qrels[q], *every])) if d in collection.docs}
        for q in queries
    }
    qrels = {q: dict(list(docs.items())[:size]) for q, docs in qrels.items()}
    return Collection.of({d: collection.docs[d] for docs in qrels.values() for d in docs}, queries, qrels)


class Doc(NamedTuple):
    count: Counter
    length: int


class Facts(NamedTuple):
    """A query, and how common words are."""

    asked: list
    terms: list
    df: Counter
    cf: Counter
    n_docs: int

    def idf(self, term):
        return math.log((self.n_docs + 1) / max(self.df[term], 1))


def near(one, two, tolerance):
    if tolerance is None:
        return True
    if str(tolerance).endswith("%"):
        return abs(one - two) <= float(tolerance[:-1]) / 100 * max(one, two)
    return abs(one - two) <= tolerance


def pools(axiom, collection):
    """For each query its id, the facts and the judged documents, as the analyzer (or `split`) cuts and splits them."""
    analyzer = analyzers.create(axiom.analyzer)
    plain = axiom.analyzer == "whitespace"
    docs = collection.docs
    whole = {d: text.split() if plain else analyzer.terms(text) for d, text in docs.items()}
    short = dict(zip(docs, cut_texts(analyzer, list(docs.values()), axiom.max_tokens), strict=True))
    cut = {d: whole[d][: axiom.max_tokens] if plain else analyzer.terms(short[d]) for d in docs}
    df, cf = Counter(t for words in whole.values() for t in set(words)), Counter(t for w in whole.values() for t in w)
    for query_id, judged in collection.qrels.items():
        text = collection.queries[query_id]
        asked = text.split() if plain else analyzer.query_terms(text)
        yield (
            query_id,
            Facts(asked, sorted(set(asked)), df, cf, len(docs)),
            {d: Doc(Counter(cut[d]), len(cut[d])) for d in judged},
        )


def oracle(axiom, collection, rule):
    """All instances: `rule(facts, one, two)` says whether the first document must win."""
    found = []
    for query_id, facts, docs in pools(axiom, collection):
        for i, j in combinations(docs, 2):
            first, second = rule(facts, docs[i], docs[j]), rule(facts, docs[j], docs[i])
            found += [(query_id, (i, j))] * (first and (both_ways(axiom) or not second))
            found += [(query_id, (j, i))] * (second and (both_ways(axiom) or not first))
    return sorted(found)


def both_ways(axiom):
    return axiom.compat is not None and axiom.name in ("M-TDC", "LNC1")


def found_by(axiom, collection):
    """What the axiom finds: query ids and document ids, sorted."""
    return rows_of(axiom.contrasts(collection))


def rows_of(contrasts):
    ids = contrasts.labels["doc_ids"].values().tolist()
    return sorted(zip(contrasts.labels["query_id"].values().tolist(), map(tuple, ids), strict=True))


def shuffled(collection, draw):
    """The same collection, its judgements in another order."""
    qrels = {q: list(judged.items()) for q, judged in collection.qrels.items()}
    for judged in qrels.values():
        draw.shuffle(judged)
    queries = list(qrels)
    draw.shuffle(queries)
    return Collection.of(collection.docs, collection.queries, {q: dict(qrels[q]) for q in queries})


def check_signs(axiom, collection, rule):
    """Who wins is as the rule says, antisymmetric (no text beats itself), and the same for two texts alone."""
    for view, (_, facts, docs) in zip(axiom.views(collection), pools(axiom, collection), strict=True):
        a, b = (grid.ravel().astype(np.int32) for grid in np.indices((len(view), len(view))))
        asked = np.logical_and.reduce([a >= 0, *(met(view, a, b) for met in axiom.preconditions())])
        wins = [rule(facts, docs[f"d{i}"], docs[f"d{j}"]) for i, j in zip(a[asked], b[asked], strict=True)]
        assert axiom.wins(view, a[asked], b[asked]).tolist() == wins
        signs = axiom.preferences(view, a, b).reshape(len(view), len(view))
        assert (signs == -signs.T).all()
        assert (signs == axiom.matrix(view)).all()
        for i, j in list(permutations(range(len(view)), 2))[:6]:
            texts = collection.docs[f"d{i}"], collection.docs[f"d{j}"]
            assert axiom.preference(view.pool.query, *texts, collection) == signs[i, j]


def check_order(axiom, collection, seed=0):
    """The instances do not depend on the order of judgements."""
    other = shuffled(collection, random.Random(seed))
    assert axiom.contrasts(other).fingerprint == axiom.contrasts(collection).fingerprint
    assert found_by(axiom, other) == found_by(axiom, collection)
