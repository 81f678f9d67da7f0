"""The language model against its definition in plain loops."""

from __future__ import annotations

import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.data import Collection
from whyrank.rankers import grouping
from whyrank.rankers.ltr.kneser_ney import KneserNey, language_model
from whyrank.text import analyzers

START = "<start>"
word = st.sampled_from(["a", "b", "c", "d", "e"])
text = st.lists(word, max_size=8).map(" ".join)
asked = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "new", "other"]), max_size=6).map(" ".join)


def model_of(texts):
    return KneserNey.of({str(i): t for i, t in enumerate(texts)}, analyzers.create("whitespace"))


class Plain:
    """The formulas, looked up in dictionaries."""

    def __init__(self, texts):
        self.pairs = Counter()
        for words in map(str.split, texts):
            self.pairs.update(zip([START, *words], words, strict=False))
        self.known = sorted({w for _, w in self.pairs})
        self.before = Counter(w for _, w in self.pairs)

    @staticmethod
    def discount(counts):
        ones, twos = sum(c == 1 for c in counts), sum(c == 2 for c in counts)
        return ones / (ones + 2 * twos) if ones and twos else 0.75

    def single(self, w):
        if not self.pairs:
            return 1.0
        d, n = self.discount(self.before.values()), len(self.pairs)
        return max(self.before[w] - d, 0) / n + d * len(self.known) / n / (len(self.known) + 1)

    def probability(self, v, w):
        followers = [c for (left, _), c in self.pairs.items() if left == v]
        if not followers:
            return self.single(w)
        d = self.discount(self.pairs.values())
        kept = max(self.pairs[v, w] - d, 0) / sum(followers)
        return kept + d * len(followers) / sum(followers) * self.single(w)

    def per_token(self, text):
        words = text.split()
        logs = [math.log(self.probability(v, w)) for v, w in zip([START, *words], words, strict=False)]
        return sum(logs) / len(logs) if logs else 0.0


@settings(max_examples=60)
@given(texts=st.lists(text, max_size=8), queries=st.lists(asked, max_size=5))
def test_it_follows_the_formulas(texts, queries):
    analyzer = analyzers.create("whitespace")
    found = model_of(texts).per_token(analyzer.docs(queries), analyzer.vocabulary.terms)
    assert found.tolist() == pytest.approx([Plain(texts).per_token(q) for q in queries], abs=1e-12)


@settings(max_examples=60)
@given(st.lists(text, max_size=8))
def test_what_may_follow_adds_up_to_one(texts):
    model = model_of(texts)
    every = np.arange(len(model.terms) + 1)  # the last one is any unknown term
    for left in [*every, model.start]:
        following = model.probability(np.full(len(every), left), every)
        assert following.sum() == pytest.approx(1, abs=1e-12)
        assert (following > 0).all()


def test_a_case_by_hand():
    model = model_of(["a b", "a b", "a c"])
    # pairs: start a 3, a b 2, a c 1, so D = 1 / 3; each of a, b, c follows one other term, so E = 0.75
    single = 0.25 / 3 + 0.75 * 3 / 3 / 4
    left, right = model.numbers(["a", "a", "b"]), model.numbers(["b", "z", "a"])
    expected = [(2 - 1 / 3) / 3 + 1 / 3 * 2 / 3 * single, 1 / 3 * 2 / 3 * 0.75 / 4, single]
    assert model.probability(left, right).tolist() == pytest.approx(expected)


def test_parts_do_not_matter(monkeypatch):
    texts = [" ".join("abcde"[(i * j) % 5] for j in range(1, 4 + i % 7)) for i in range(300)]
    whole = model_of(texts)
    monkeypatch.setattr(grouping, "CHUNK", 7)
    parts = model_of(texts)
    assert whole.digest == parts.digest
    assert whole.digest != model_of(texts[:-1]).digest


def test_the_digest_does_not_depend_on_what_was_read_before():
    spec = "chain(tokens=whitespace,max_length=41)"  # an analyzer that nothing else uses
    first = KneserNey.of({"1": "x y z", "2": "z y"}, analyzers.create(spec))
    analyzers.create(spec).terms("z w y v x")
    again = KneserNey.of({"2": "z y", "1": "x y z"}, analyzers.create(spec))
    assert first.digest == again.digest
    assert pickle.loads(pickle.dumps(first)).digest == first.digest


def test_one_model_per_collection_and_analyzer():
    collection, analyzer = Collection.of({"d": "a b"}, {}), analyzers.create("whitespace")
    assert language_model(collection, analyzer) is language_model(collection, analyzer)
    assert language_model(collection, analyzers.create("lucene")) is not language_model(collection, analyzer)


def test_without_a_collection_all_is_equally_usual():
    analyzer = analyzers.create("whitespace")
    found = language_model(None, analyzer).per_token(analyzer.docs(["a b", "", "c"]), analyzer.vocabulary.terms)
    assert found.tolist() == [0.0, 0.0, 0.0]
