"""BM25 and query likelihood against bm25s and plain-Python oracles."""

from __future__ import annotations

import math
from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.rankers import Background, Setting, open_ranker, rankers
from whyrank.rankers.lexical import LexicalIndex
from whyrank.text import analyzers

WORDS = st.sampled_from(["cat", "dog", "bird", "the", "of", "sat", "sits", "Über", "1989", "wall"])
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)


def collection_of(texts: list[str]) -> Collection:
    return Collection.of({f"d{i}": text for i, text in enumerate(texts)}, {"q": "x"})


@pytest.mark.parametrize("name", ["cranfield", "vaswani"])
@pytest.mark.parametrize("variant", ["lucene", "atire", "robertson"])
def test_equals_bm25s(data_folder, name, variant):
    collection = open_collection(str(data_folder / name))
    ranker = open_ranker(f"bm25(k1=1.2,b=0.75,variant={variant})", Setting(collection))
    corpus = [ranker.analyzer.terms(text) for text in collection.docs.values()]
    peer = bm25s.BM25(k1=1.2, b=0.75, method=variant, dtype="float64")
    peer.index(corpus, show_progress=False)
    texts = list(collection.docs.values())
    for query in list(collection.queries.values())[:40]:
        terms = [t for t in ranker.analyzer.query_terms(query) if t in peer.vocab_dict]
        expected = peer.get_scores(terms)
        found = ranker.score([query] * len(texts), texts)
        assert np.abs(found - expected).max() < 1e-5


def oracle_idf(variant, n, df):
    odds = (n - df + 0.5) / (df + 0.5)
    if variant == "lucene":
        return math.log(1 + odds)
    if variant == "robertson":
        return max(0.0, math.log(odds))
    return math.log(n / max(df, 1)) if variant == "atire" else math.log2(odds)


def oracle_bm25(variant, k1, b, k3, query, doc, docs):
    """BM25 of one pair, written out from the table in the docstring."""
    n, average = len(docs), sum(map(len, docs)) / len(docs) if sum(map(len, docs)) else 1.0
    counts, total = Counter(doc), 0.0
    for term, asked in Counter(query).items():
        df, tf = sum(term in d for d in docs), counts[term]
        idf = oracle_idf(variant, n, df)
        part = tf / (tf + k1 * (1 - b + b * len(doc) / average)) if tf else 0.0
        scale = k1 + 1 if variant in ("atire", "terrier") else 1.0
        weight = (k3 + 1) * asked / (k3 + asked) if variant == "terrier" else asked
        total += idf * part * scale * weight
    return total


@pytest.mark.parametrize("variant", ["lucene", "atire", "robertson", "terrier"])
@given(docs=st.lists(TEXTS, min_size=1, max_size=8), query=TEXTS, other=TEXTS)
@settings(max_examples=40, deadline=None)
def test_variants_equal_the_written_out_formula(variant, docs, query, other):
    """Also for a text that is not in the collection."""
    setting = Setting(collection_of(docs), analyzer="whitespace")
    ranker = open_ranker(f"bm25(k1=1.1,b=0.6,k3=5.0,variant={variant})", setting)
    split = [d.split() for d in docs]
    for doc in (*docs, other):
        expected = oracle_bm25(variant, 1.1, 0.6, 5.0, query.split(), doc.split(), split)
        assert ranker.score([query], [doc])[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("smoothing", ["dirichlet", "jm"])
@given(docs=st.lists(TEXTS, min_size=1, max_size=8), query=TEXTS, other=TEXTS)
@settings(max_examples=40, deadline=None)
def test_query_likelihood_equals_the_written_out_formula(smoothing, docs, query, other):
    ranker = open_ranker(f"ql(mu=50.0,lam=0.3,smoothing={smoothing})", Setting(collection_of(docs), "whitespace"))
    everything = Counter(" ".join(docs).split())
    tokens = max(sum(everything.values()), 1)
    for doc in (*docs, other):
        words, total = doc.split(), 0.0
        for term in query.split():
            prior = max(everything[term], 0.5) / tokens
            if smoothing == "dirichlet":
                total += math.log((words.count(term) + 50 * prior) / (len(words) + 50))
            else:
                share = words.count(term) / len(words) if words else 0.0
                total += math.log(0.7 * share + 0.3 * prior)
        assert ranker.score([query], [doc])[0] == pytest.approx(total, abs=1e-9)


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=10), queries=st.lists(TEXTS, min_size=1, max_size=4), data=st.data()
)
@settings(max_examples=40, deadline=None)
def test_scores_do_not_depend_on_order_or_batch(texts, queries, data):
    """Bit for bit: one pair at a time, all at once, in any order."""
    pairs = [(q, d) for q in queries for d in texts]
    mixed = data.draw(st.permutations(pairs))
    for spec in ("bm25", "ql"):
        ranker = open_ranker(spec, Setting(collection_of(texts), "whitespace"))
        one = {(q, d): ranker.score([q], [d])[0] for q, d in pairs}
        together = ranker.score([q for q, _ in mixed], [d for _, d in mixed])
        assert [one[pair] for pair in mixed] == together.tolist()


@given(texts=st.lists(TEXTS, min_size=1, max_size=12), query=TEXTS, k=st.integers(1, 12))
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("spec", ["bm25", "bm25(variant=terrier)", "bm25(variant=robertson)", "bm25(variant=atire)"])
def test_index_agrees_with_scoring_texts(spec, texts, query, k):
    """Re-scoring gives the same bits; retrieval finds the best k among the documents with a query term."""
    collection = collection_of(texts)
    ranker = open_ranker(spec, Setting(collection, "whitespace"))
    index = LexicalIndex.of(ranker, collection.docs)
    direct = ranker.score([query] * len(texts), texts)
    assert index.rescore(query, np.arange(len(texts), dtype=np.int32)).tolist() == direct.tolist()
    hits = {
        f"d{i}": s for i, (t, s) in enumerate(zip(texts, direct, strict=True)) if set(t.split()) & set(query.split())
    }
    best = sorted(sorted(hits, reverse=True), key=lambda d: -hits[d])[:k]
    assert list(index.search({"q": query}, k)["q"].items()) == [(d, hits[d]) for d in best]


def test_both_ways_to_count_candidates_agree(data_folder):
    collection = open_collection(str(data_folder / "cranfield"))
    ranker = open_ranker("bm25", Setting(collection))
    index = LexicalIndex.of(ranker, collection.docs)
    for query in list(collection.queries.values())[:30]:
        every = np.arange(len(collection.docs), dtype=np.int32)
        few = every[:7]
        assert index.rescore(query, every)[:7].tolist() == index.rescore(query, few).tolist()


def test_search_agrees_with_full_scoring_on_real_text(data_folder):
    collection = open_collection(str(data_folder / "cranfield"))
    ranker = open_ranker("bm25", Setting(collection))
    queries = dict(list(collection.queries.items())[:20])
    run = LexicalIndex.of(ranker, collection.docs).search(queries, 50)
    ids = np.array(list(collection.docs))
    for query_id, text in queries.items():
        scores = ranker.score([text] * len(ids), list(collection.docs.values()))
        top = sorted(scores.tolist(), reverse=True)[:50]
        assert list(run[query_id].values()) == top


@pytest.mark.parametrize(
    "spec", ["bm25", "bm25(k1=1.2,b=0.75)", "bm25(k3=1.0,variant=terrier)", "ql(mu=10.0)", "ql(smoothing=jm)"]
)
def test_call_strings_parse_back(spec):
    made = rankers.create(spec)
    assert rankers.create(made.id) == made
    assert made.id == spec


@pytest.mark.parametrize(
    "spec", ["bm25(k1=-1)", "bm25(b=2)", "bm25(variant=okapi)", "ql(mu=0)", "ql(lam=1.0)", "ql(smoothing=x)"]
)
def test_wrong_parameters_are_refused(spec):
    with pytest.raises(WhyrankError):
        rankers.create(spec)


class TestBackground:
    def test_counts(self):
        background = Background.of({"a": "x x y", "b": "x z", "c": ""}, analyzers.create("whitespace"))
        df, cf = background.frequencies(["x", "y", "unknown"])
        assert (df.tolist(), cf.tolist()) == ([2, 1, 0], [3, 1, 0])
        assert (background.n_docs, background.n_tokens) == (3, 5)

    @given(texts=st.lists(TEXTS, max_size=10))
    @settings(max_examples=30, deadline=None)
    def test_round_trip(self, texts, tmp_path_factory):
        path = tmp_path_factory.mktemp("stats") / "s.parquet"
        analyzer = analyzers.create("whitespace")
        made = Background.of({str(i): t for i, t in enumerate(texts)}, analyzer)
        made.save(path)
        assert Background.load(path, analyzer).digest == made.digest

    def test_does_not_depend_on_what_was_analysed_before(self):
        analyzer = analyzers.create("whitespace")
        before = Background.of({"a": "p q", "b": "q"}, analyzer)
        analyzer.docs(["entirely other words"])
        assert Background.of({"b": "q", "a": "p q"}, analyzer).digest == before.digest

    def test_another_analyzer_is_refused(self, tmp_path):
        Background.of({"a": "p"}, analyzers.create("whitespace")).save(tmp_path / "s.parquet")
        with pytest.raises(WhyrankError, match="counted with analyzer whitespace"):
            open_ranker("bm25", Setting(None, "lucene", str(tmp_path / "s.parquet")))

    def test_another_file_is_refused(self, tmp_path):
        (tmp_path / "s.parquet").write_text("no")
        with pytest.raises(WhyrankError, match="not a statistics file"):
            open_ranker("bm25", Setting(None, "lucene", str(tmp_path / "s.parquet")))

    def test_statistics_can_come_from_elsewhere(self, tmp_path):
        own, other = collection_of(["wall"] * 3), collection_of(["wall", "cat", "dog"])
        Background.of(other.docs, analyzers.create("whitespace")).save(tmp_path / "s.parquet")
        ranker = open_ranker("bm25", Setting(own, "whitespace", str(tmp_path / "s.parquet")))
        assert (
            ranker.score(["wall"], ["wall"])[0]
            == open_ranker("bm25", Setting(other, "whitespace")).score(["wall"], ["wall"])[0]
        )


class TestIdentity:
    def test_names_everything_that_changes_scores(self, tmp_path):
        stop = tmp_path / "stop.txt"
        stop.write_text("the\n")
        collection, spec = collection_of(["the wall", "cat"]), f"terrier(stopwords={stop})"
        first = repr(open_ranker("bm25", Setting(collection, spec)))
        stop.write_text("the\nof\n")
        assert repr(open_ranker("bm25", Setting(collection, spec))) != first
        assert repr(open_ranker("bm25(k1=1.0)", Setting(collection))) != repr(
            open_ranker("bm25", Setting(collection))
        )
        assert repr(open_ranker("bm25", Setting(collection_of(["x"])))) != repr(
            open_ranker("bm25", Setting(collection))
        )

    def test_has_no_address(self):
        assert "0x" not in repr(open_ranker("ql", Setting(collection_of(["a"]))))
