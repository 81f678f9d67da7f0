"""Each feature against its definition in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kneser_ney import Plain as Model

from whyrank.core import UnknownName, WhyrankError
from whyrank.data import Collection
from whyrank.rankers import Setting, open_ranker
from whyrank.rankers.ltr import FEATURES, open_features
from whyrank.rankers.ltr.matches import trigrams
from whyrank.testing.examples import PAIRS, sample
from whyrank.text import analyzers

WORDS = ["aa", "b", "cat", "Cat", "dog", "eel", "é"]
texts = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
queries = st.lists(st.sampled_from([*WORDS, "new"]), max_size=5).map(" ".join)
ALL = tuple(FEATURES)


class Plain:
    """What the features say, read off lists of words."""

    def __init__(self, docs, query, text):
        self.docs, self.query, self.text = docs, query, text
        self.asked, self.words = query.split(), text.split()
        self.distinct = set(self.asked)
        self.shared = self.distinct & set(self.words)

    def idf(self, term):
        df = sum(term in doc.split() for doc in self.docs)
        return math.log(1 + (len(self.docs) - df + 0.5) / (df + 0.5))

    def overlap(self):
        return len(self.shared)

    def coverage(self):
        return len(self.shared) / len(self.distinct) if self.distinct else 0

    def idf_coverage(self):
        return sum(map(self.idf, self.shared)) / sum(map(self.idf, self.distinct)) if self.distinct else 0

    def occurrences(self):
        return sum(word in self.distinct for word in self.words)

    def density(self):
        return self.occurrences() / len(self.words) if self.words else 0

    def first(self):
        return next((i for i, word in enumerate(self.words) if word in self.distinct), len(self.words))

    def span(self):
        ends = [(i, j) for i in range(len(self.words)) for j in range(i + 1, len(self.words) + 1)]
        return min((j - i for i, j in ends if self.shared <= set(self.words[i:j])), default=0) if self.shared else 0

    def phrase(self):
        n = len(self.asked)
        return int(n > 0 and any(self.words[i : i + n] == self.asked for i in range(len(self.words))))

    def neighbours(self):
        asked = set(pairwise(self.asked))
        return len(asked & set(pairwise(self.words))) / len(asked) if asked else 0

    def bm25(self):
        average = sum(len(doc.split()) for doc in self.docs) / len(self.docs) if any(map(str.split, self.docs)) else 1
        norm, tf = 0.9 * (0.6 + 0.4 * len(self.words) / average), Counter(self.words)
        return sum(self.idf(t) * tf[t] / (tf[t] + norm) for t in self.asked if tf[t])

    def ql(self):
        cf, tf = Counter(word for doc in self.docs for word in doc.split()), Counter(self.words)
        prior = {t: max(cf[t], 0.5) / max(cf.total(), 1) for t in self.asked}
        return sum(math.log((tf[t] + 1000 * prior[t]) / (len(self.words) + 1000)) for t in self.asked)

    def length(self):
        return len(self.words)

    def query_length(self):
        return len(self.asked)

    def jaccard(self):
        either = self.distinct | set(self.words)
        return len(self.shared) / len(either) if either else 0

    def trigrams(self):
        asked, told = ({s.lower()[i : i + 3] for i in range(len(s) - 2)} for s in (self.query, self.text))
        return len(asked & told) / len(asked) if asked else 0


def features(docs, names=ALL, **setting):
    collection = Collection.of({str(i): doc for i, doc in enumerate(docs)}, {"q": "x"})
    return open_features(names, Setting(collection, "whitespace", **setting))


@settings(max_examples=80)
@given(
    docs=st.lists(texts, min_size=1, max_size=6), asked=st.lists(st.tuples(queries, texts), min_size=1, max_size=6)
)
def test_every_feature_is_what_its_definition_says(docs, asked):
    names = [name for name in ALL if name not in ("language", "query_language")]
    found = features(docs, names).matrix(*zip(*asked, strict=True))
    expected = [[getattr(Plain(docs, *pair), name)() for name in names] for pair in asked]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@given(
    docs=st.lists(texts, min_size=1, max_size=6), asked=st.lists(st.tuples(queries, texts), min_size=1, max_size=6)
)
def test_language_features_are_those_of_the_model(docs, asked):
    found = features(docs, ["language", "query_language"]).matrix(*zip(*asked, strict=True))
    expected = [[Model(docs).per_token(text), Model(docs).per_token(query)] for query, text in asked]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_bm25_and_ql_are_those_rankers_to_the_bit():
    collection = sample()
    asked, docs = list(collection.queries.values())[:8] * 40, list(collection.docs.values())[:320]
    found = open_features(["ql", "bm25"], Setting(collection)).matrix(asked, docs)
    for column, ranker in enumerate(["ql", "bm25"]):
        assert np.array_equal(found[:, column], open_ranker(ranker, Setting(collection)).score(asked, docs))


def test_every_feature_is_finite_for_every_pair():
    for setting in (Setting(sample()), Setting()):
        assert np.isfinite(open_features(ALL, setting).matrix(*zip(*PAIRS, strict=True))).all()


def test_batches_do_not_matter():
    made = open_features(ALL, Setting(sample()))
    whole = made.matrix(*zip(*PAIRS, strict=True))
    parts = [made.matrix([query], [text]) for query, text in PAIRS[::-1]]
    assert np.array_equal(whole, np.concatenate(parts[::-1])), "trees tell the smallest differences apart"


def test_no_pairs():
    assert features(["a b"]).matrix([], []).shape == (0, len(ALL))


def test_queries_keep_the_words_that_documents_lose():
    analyzer = "chain(stop=lucene,keep_query_stops=True)"
    made = open_features(["overlap", "query_length", "length"], Setting(sample(), analyzer))
    assert made.matrix(["the wall"], ["The wall of the town"]).tolist() == [[1, 2, 2]]


@given(st.text(max_size=12))
def test_trigrams_are_as_many_as_there_are(text):
    tidy = " ".join(text.lower().split())
    found = trigrams(text)
    assert len(found) == len({tidy[i : i + 3] for i in range(len(tidy) - 2)})
    mask = (1 << 21) - 1
    spelled = {"".join(chr(n >> shift & mask) for shift in (42, 21, 0)) for n in found.tolist()}
    assert spelled == {tidy[i : i + 3] for i in range(len(tidy) - 2)}


def test_every_feature_says_what_it_is():
    for name, feature in FEATURES.items():
        assert feature.__doc__.strip().endswith("."), name
        assert len(feature.__doc__.splitlines()) == 1, name


class TestStatistics:
    def test_identity_has_what_features_depend_on(self):
        some, other = features(["a b"], ["bm25"]), features(["a b c"], ["bm25"])
        assert some.identity != other.identity
        assert "language=" not in some.identity
        swapped = features(["b a"], ["language"])
        assert swapped.identity != features(["a b"], ["language"]).identity, "the same words in another order"

    def test_pairs_of_terms_are_counted_only_where_asked_for(self, monkeypatch):
        asked = []
        monkeypatch.setattr("whyrank.rankers.ltr.features.language_model", lambda *given: asked.append(given))
        features(["a b"], ["bm25"])
        assert not asked
        features(["a b"], ["bm25", "query_language"])
        assert len(asked) == 1

    def test_another_collection_or_a_file_as_source(self, tmp_path):
        analyzer = analyzers.create("whitespace")
        Setting(sample()).background(analyzer, None).save(tmp_path / "s.parquet")
        from_file = features(["a b"], ["bm25", "language"], stats=str(tmp_path / "s.parquet"))
        from_sample = features(["a b"], ["bm25", "language"], stats="sample")
        assert from_file.statistics.background.digest == from_sample.statistics.background.digest
        assert from_file.statistics.language.terms == ["a", "b"], "a file of statistics has no pairs"
        assert len(from_sample.statistics.language.terms) > 1000


class TestNames:
    def test_unknown(self):
        with pytest.raises(UnknownName, match=r"unknown feature 'bm52'; did you mean 'bm25'\?"):
            features(["a"], ["bm52"])

    @pytest.mark.parametrize("names", [[], ["bm25", "ql", "bm25"]])
    def test_none_or_twice(self, names):
        with pytest.raises(WhyrankError, match="each of them once"):
            features(["a"], names)
