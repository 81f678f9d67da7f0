"""Bitext against the walk over tokens that defines it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.learners.em import bitext, bitext_of, make_bitext

WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=25)
COLLECTIONS = st.tuples(
    st.lists(st.lists(st.sampled_from("abcxyz"), max_size=6), min_size=1, max_size=4),
    st.lists(WORDS, min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=12),
)


def walked(query, text, ratio):
    """The published rule as a loop: before each token, is the chunk long enough?"""
    chunks, chunk = [], []
    for token in text if query else []:
        if len(chunk) / len(query) >= ratio:
            chunks.append(chunk)
            chunk = []
        chunk.append(token)
    return chunks + [chunk] * bool(chunk)


def plain_bitext(collection, ratio, fertility, symmetrise, known=None):
    pairs = []
    for query_id, query in collection.queries.items():
        terms = [w for w in query.split() if known is None or w in known]
        for doc_id, grade in collection.qrels.get(query_id, {}).items():
            text = [w for w in collection.docs[doc_id].split() if known is None or w in known]
            for chunk in walked(terms, text, ratio) if grade >= 1 else []:
                if len(chunk) <= fertility * len(terms) and len(terms) <= fertility * len(chunk):
                    pairs += [(chunk, terms), (terms, chunk)] if symmetrise else [(chunk, terms)]
    return pairs


def made(drawn):
    queries, docs, judged = drawn
    qrels = {}
    for q, d, grade in judged:
        if q < len(queries) and d < len(docs):
            qrels.setdefault(f"q{q}", {})[f"d{d}"] = grade
    return Collection(
        "made",
        {f"d{i}": " ".join(words) for i, words in enumerate(docs)},
        {f"q{i}": " ".join(words) for i, words in enumerate(queries)},
        qrels,
    )


@given(COLLECTIONS, st.sampled_from([0.1, 0.5, 1.0, 1.5, 7 / 3, 4.0]), st.sampled_from([1, 2, 9]), st.booleans())
def test_it_is_the_walk(drawn, ratio, fertility, symmetrise):
    collection = made(drawn)
    expected = plain_bitext(collection, ratio, fertility, symmetrise)
    how = {"ratio": ratio, "fertility": fertility, "symmetrise": symmetrise}
    if not expected:
        with pytest.raises(WhyrankError):
            make_bitext(collection, "whitespace", **how)
        return
    bitext = make_bitext(collection, "whitespace", **how)
    assert [bitext.pair(i) for i in range(len(bitext))] == expected
    assert bitext.links == sum(len(source) * len(target) for source, target in expected)
    for side, terms, counts in (
        (0, bitext.source_terms, bitext.source_counts),
        (1, bitext.target_terms, bitext.target_counts),
    ):
        tally = Counter(word for pair in expected for word in pair[side])
        assert dict(zip(terms, counts.tolist(), strict=True)) == tally
        assert list(terms) == sorted(tally, key=lambda word: (-tally[word], word))


@given(COLLECTIONS, st.integers(1, 6))
def test_words_beyond_the_most_frequent_are_skipped(drawn, most):
    collection = made(drawn)
    used = {
        d for q, grades in collection.qrels.items() for d, g in grades.items() if g >= 1 and collection.queries[q]
    }
    tally = Counter(word for d in used for word in collection.docs[d].split())
    known = sorted(tally, key=lambda word: (-tally[word], word))[:most]
    expected = plain_bitext(collection, 1.5, 9, True, known)
    if expected:
        bitext = make_bitext(collection, "whitespace", most=most)
        assert [bitext.pair(i) for i in range(len(bitext))] == expected


def test_the_sample_is_a_seeded_share_of_the_pairs():
    collection = made(
        ([list("ab")] * 4, [list("abcdefgh") * 40] * 4, [(q, d, 1) for q in range(4) for d in range(4)])
    )
    whole = make_bitext(collection, "whitespace", symmetrise=False)
    drawn = [make_bitext(collection, "whitespace", symmetrise=False, sample=0.3, seed=seed) for seed in (0, 0, 1)]
    assert 0.25 < len(drawn[0]) / len(whole) < 0.35
    assert np.array_equal(drawn[0].source, drawn[1].source)
    assert not np.array_equal(drawn[0].source_offsets, drawn[2].source_offsets) or not np.array_equal(
        drawn[0].group, drawn[2].group
    )
    turned = make_bitext(collection, "whitespace", sample=0.3)
    assert [turned.pair(i) for i in range(0, len(turned), 2)] == [drawn[0].pair(i) for i in range(len(drawn[0]))]


def test_on_disk_is_the_same(monkeypatch):
    collection = made(([list("ab"), list("cde")], [list("abcdefgh") * 9] * 2, [(0, 0, 1), (1, 1, 2), (1, 0, 1)]))
    one = make_bitext(collection, "whitespace")
    monkeypatch.setattr(bitext, "HELD", 0)
    other = make_bitext(collection, "whitespace")
    assert isinstance(other.source.base, np.memmap)
    for name in ("source", "source_offsets", "target", "target_offsets", "group", "source_counts"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert one.source_terms == other.source_terms


def test_pairs_of_texts_as_they_are():
    bitext = bitext_of([("b a b", "x"), ("", "y"), ("c", ""), ("c", "y x")], "whitespace")
    assert [bitext.pair(i) for i in range(len(bitext))] == [(["b", "a", "b"], ["x"]), (["c"], ["y", "x"])]
    assert bitext.group.tolist() == [0, 3]


DOCS = {"d": "some words of text"}


@pytest.mark.parametrize(("docs", "query", "judged", "analyzer", "said"), [
    (DOCS, "a word", {}, "whitespace", "no judgements"),
    (DOCS, "the of", {"d": 1}, "lucene", "no query of c has a word under lucene"),
    (DOCS, "a word", {"d": 0}, "whitespace", "no text of grade 1 or more"),
    (DOCS, "a word", {"other": 1}, "whitespace", "no text of grade 1 or more"),
    ({"d": "of the"}, "word", {"d": 1}, "lucene", "the bitext of c is empty"),
])  # fmt: skip
def test_nothing_to_learn_from(docs, query, judged, analyzer, said):
    with pytest.raises(WhyrankError, match=said):
        make_bitext(Collection("c", docs, {"q": query}, {"q": judged} if judged else {}), analyzer)
