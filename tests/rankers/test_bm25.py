"""BM25 and query likelihood against bm25s and plain-Python oracles; background statistics; the index."""

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
WHITESPACE = analyzers.create("whitespace")


def collection_of(texts: list[str]) -> Collection:
    return Collection.of({f"d{i}": text for i, text in enumerate(texts)}, {"q": "x"})


@pytest.mark.parametrize("variant", ["lucene", "atire", "robertson"])
def test_equals_bm25s(data_folder, variant):
    collection = open_collection(str(data_folder / "cranfield"))
    ranker = open_ranker(f"bm25(k1=1.2,b=0.75,variant={variant})", Setting(collection))
    texts = list(collection.docs.values())
    peer = bm25s.BM25(k1=1.2, b=0.75, method=variant, dtype="float64")
    peer.index([ranker.analyzer.terms(text) for text in texts], show_progress=False)
    for query in list(collection.queries.values())[:40]:
        expected = peer.get_scores([t for t in ranker.analyzer.query_terms(query) if t in peer.vocab_dict])
        assert np.abs(ranker.score([query] * len(texts), texts) - expected).max() < 1e-5


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
    for term, qtf in Counter(query).items():
        df, tf = sum(term in d for d in docs), counts[term]
        part = tf / (tf + k1 * (1 - b + b * len(doc) / average)) if tf else 0.0
        scale = k1 + 1 if variant in ("atire", "terrier") else 1.0
        weight = (k3 + 1) * qtf / (k3 + qtf) if variant == "terrier" else qtf
        total += oracle_idf(variant, n, df) * part * scale * weight
    return total


def oracle_ql(smoothing, mu, lam, query, doc, docs):
    everything, total = Counter(word for each in docs for word in each), 0.0
    for term in query:
        prior = max(everything[term], 0.5) / max(everything.total(), 1)
        if smoothing == "dirichlet":
            total += math.log((doc.count(term) + mu * prior) / (len(doc) + mu))
        else:
            total += math.log((1 - lam) * (doc.count(term) / len(doc) if doc else 0.0) + lam * prior)
    return total


@pytest.mark.parametrize("form", ["lucene", "atire", "robertson", "terrier", "dirichlet", "jm"])
@given(docs=st.lists(TEXTS, min_size=1, max_size=8), query=TEXTS, other=TEXTS)
@settings(max_examples=40)
def test_scores_equal_the_written_out_formula(form, docs, query, other):
    """Also for a text that is not in the collection."""
    likelihood = form in ("dirichlet", "jm")
    spec = f"ql(mu=50.0,lam=0.3,smoothing={form})" if likelihood else f"bm25(k1=1.1,b=0.6,k3=5.0,variant={form})"
    oracle, numbers = (oracle_ql, (50, 0.3)) if likelihood else (oracle_bm25, (1.1, 0.6, 5.0))
    ranker, split = open_ranker(spec, Setting(collection_of(docs), "whitespace")), [d.split() for d in docs]
    for doc in (*docs, other):
        expected = oracle(form, *numbers, query.split(), doc.split(), split)
        assert ranker.score([query], [doc])[0] == pytest.approx(expected, abs=1e-9)


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=10), queries=st.lists(TEXTS, min_size=1, max_size=4), data=st.data()
)
@settings(max_examples=30)
def test_scores_do_not_depend_on_order_or_batch(texts, queries, data):
    """Bit for bit: one pair at a time, all at once, in any order."""
    pairs = [(q, d) for q in queries for d in texts]
    mixed = data.draw(st.permutations(pairs))
    for spec in ("bm25", "ql"):
        ranker = open_ranker(spec, Setting(collection_of(texts), "whitespace"))
        one = {(q, d): ranker.score([q], [d])[0] for q, d in pairs}
        together = ranker.score([q for q, _ in mixed], [d for _, d in mixed])
        assert [one[pair] for pair in mixed] == together.tolist()


class TestIndex:
    @given(texts=st.lists(TEXTS, min_size=1, max_size=12), query=TEXTS, k=st.integers(1, 12))
    @settings(max_examples=40)
    @pytest.mark.parametrize("variant", ["lucene", "terrier", "robertson", "atire"])
    def test_it_agrees_with_scoring_texts(self, variant, texts, query, k):
        """Re-scoring gives the same bits; retrieval finds the best k among the documents with a query term."""
        collection = collection_of(texts)
        ranker = open_ranker(f"bm25(variant={variant})", Setting(collection, "whitespace"))
        index, direct = LexicalIndex.of(ranker, collection.docs), ranker.score([query] * len(texts), texts)
        assert index.rescore(query, np.arange(len(texts), dtype=np.int32)).tolist() == direct.tolist()
        scores = zip(texts, direct, strict=True)
        hits = {f"d{i}": s for i, (t, s) in enumerate(scores) if set(t.split()) & set(query.split())}
        best = sorted(sorted(hits, reverse=True), key=lambda d: -hits[d])[:k]
        assert list(index.search({"q": query}, k)["q"].items()) == [(d, hits[d]) for d in best]

    def test_real_text(self, data_folder):
        """Both ways to count candidates agree, and the best are those of scoring all documents."""
        collection = open_collection(str(data_folder / "cranfield"))
        ranker = open_ranker("bm25", Setting(collection))
        index, every = LexicalIndex.of(ranker, collection.docs), np.arange(len(collection.docs), dtype=np.int32)
        queries = dict(list(collection.queries.items())[:20])
        run = index.search(queries, 50)
        for query_id, text in queries.items():
            scores = ranker.score([text] * len(every), list(collection.docs.values()))
            assert list(run[query_id].values()) == sorted(scores.tolist(), reverse=True)[:50]
            assert index.rescore(text, every)[:7].tolist() == index.rescore(text, every[:7]).tolist()


@pytest.mark.parametrize("spec", [
    "bm25", "bm25(k1=1.2,b=0.75)", "bm25(k3=1.0,variant=terrier)", "bm25(variant=parm,k2=3.0)", "ql(smoothing=jm)",
    "ql(variant=parm)", "bm25t:t.tsv(k3=2.0,variant=terrier)", "bm25t:t.tsv(match=max-tf,k1=1.2,b=0.75,k2=7.0)",
    "qlt:t.tsv(lam=0.35,smoothing=jm,variant=plain)",
])  # fmt: skip
def test_call_strings_parse_back(spec):
    made = rankers.create(spec)
    assert rankers.create(made.name) == made
    assert made.name == spec


@pytest.mark.parametrize(
    ("spec", "what"),
    [("bm25(k1=-1)", "k1"), ("bm25(b=2)", "b must"), ("bm25(variant=okapi)", "variant"), ("bm25(k2=100)", "k2 is for variant=parm"),
     ("bm25(variant=parm,k3=1)", "k3 is for variant=terrier"), ("bm25(variant=parm,k2=x)", "k2 must be"),
     ("ql(mu=0)", "mu"), ("ql(lam=1.0)", "lam"), ("ql(smoothing=x)", "smoothing"), ("ql(variant=x)", "variant"),
     ("bm25t:T(match=best)", "match"), ("bm25t:T(k1=-1)", "k1 must be"), ("bm25t:T(k2=-1)", "k2 must be"),
     ("bm25t:T(variant=okapi)", "variant"), ("bm25t:T(k3=1)", "k3 is for variant=terrier"), ("bm25t", "needs 'resource'"),
     ("bm25t:T(variant=lucene,k2=3)", "k2 is for variant=parm"), ("qlt:T(mu=0)", "mu must be"), ("qlt", "needs 'resource'"),
     ("qlt:T(smoothing=x)", "smoothing"), ("qlt:T(variant=x)", "variant"), ("qlt:T(match=sum)", "match")],
)  # fmt: skip
def test_refusals(spec, what):
    with pytest.raises(WhyrankError, match=what) as refused:
        rankers.create(spec)
    assert "\n" not in str(refused.value)


class TestBackground:
    def test_counts(self):
        background = Background.of({"a": "x x y", "b": "x z", "c": ""}, WHITESPACE)
        df, cf = background.frequencies(["x", "y", "unknown"])
        assert (df.tolist(), cf.tolist()) == ([2, 1, 0], [3, 1, 0])
        assert (background.n_docs, background.n_tokens) == (3, 5)

    @given(texts=st.lists(TEXTS, max_size=10))
    @settings(max_examples=20)
    def test_round_trip(self, texts, tmp_path_factory):
        path = tmp_path_factory.mktemp("stats") / "s.parquet"
        made = Background.of({str(i): t for i, t in enumerate(texts)}, WHITESPACE)
        made.save(path)
        assert Background.load(path, WHITESPACE).digest == made.digest

    def test_it_does_not_depend_on_what_was_analysed_before(self):
        before = Background.of({"a": "p q", "b": "q"}, WHITESPACE)
        WHITESPACE.docs(["entirely other words"])
        assert Background.of({"b": "q", "a": "p q"}, WHITESPACE).digest == before.digest

    def test_a_file_must_fit(self, tmp_path):
        (tmp_path / "no.parquet").write_text("no")
        Background.of({"a": "p"}, WHITESPACE).save(tmp_path / "s.parquet")
        for name, what in (("s", "counted with analyzer whitespace"), ("no", "not a statistics file")):
            with pytest.raises(WhyrankError, match=what):
                open_ranker("bm25", Setting(None, "lucene", str(tmp_path / f"{name}.parquet")))

    def test_statistics_can_come_from_elsewhere(self, tmp_path):
        own, other = collection_of(["wall"] * 3), collection_of(["wall", "cat", "dog"])
        Background.of(other.docs, WHITESPACE).save(tmp_path / "s.parquet")
        settings = Setting(own, "whitespace", str(tmp_path / "s.parquet")), Setting(other, "whitespace")
        one, two = (open_ranker("bm25", setting).score(["wall"], ["wall"])[0] for setting in settings)
        assert one == two


def test_the_identity_names_everything_that_changes_scores(tmp_path):
    stop = tmp_path / "stop.txt"
    stop.write_text("the\n")
    collection, spec = collection_of(["the wall", "cat"]), f"terrier(stopwords={stop})"
    first = repr(open_ranker("bm25", Setting(collection, spec)))
    stop.write_text("the\nof\n")
    assert repr(open_ranker("bm25", Setting(collection, spec))) != first
    given_ = [("bm25", collection), ("bm25(k1=1.0)", collection), ("bm25", collection_of(["x"]))]
    found = [repr(open_ranker(spec, Setting(each))) for spec, each in given_]
    assert len(set(found)) == 3
    assert "0x" not in " ".join(found)
    assert "bm25(k1=0.9,b=0.4,k3=8.0,variant=lucene)" in found[0]
    assert "bm25(k1=0.9,b=0.4,k2=100.0,variant=parm)" in repr(open_ranker("bm25(variant=parm)"))
    assert "ql(mu=1000.0,lam=0.1,smoothing=dirichlet) " in repr(open_ranker("ql"))
