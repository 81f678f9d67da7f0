"""Model 1 over a term table, against the formula in loops over dictionaries."""

from __future__ import annotations

import math
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.rankers import Setting, open_ranker
from whyrank.tables import TermTable, open_table

TERMS = [f"t{i}" for i in range(14)]
COUNTS = np.arange(12) ** 2  # the first document term was never counted
WORDS = [*TERMS, "onlyquery", "unknown", "never"]
texts = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)
arguments = st.fixed_dictionaries(
    {"lam": st.sampled_from([0, 1e-5, 0.1, 0.5, 1]), "p_self": st.sampled_from([0, 0.05, 0.3, 1])},
    optional={
        "keep": st.just("replace"),
        "threshold": st.sampled_from([0.05, 0.2]),
        "threshold_on": st.just("rescaled"),
        "renormalize": st.just(True),
        "normalise": st.just("tokens"),
    },
)


def example(counts=COUNTS):
    """Document terms t0 to t11, query terms t2 to t13 and one that is no document term; some rows are empty."""
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((13, 12)) < 0.4, rng.random((13, 12)) ** 3, 0)
    dense[4] = 0
    dense[0, 2] = dense[1, 3] = 0.4  # t2 and t3 translate to themselves
    dense /= np.maximum(dense.sum(axis=0), 1) * 1.1
    rows, columns = np.nonzero(dense)
    names = [*TERMS[2:], "onlyquery"], TERMS[:12]
    return TermTable.from_codes(*names, rows, columns, dense[rows, columns], {"analyzer": "whitespace"}, counts)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("tables") / "table.arrow"
    example().save(found)
    return found


def call(path, **given):
    return open_ranker(f"model1:{path}({','.join(f'{key}={value}' for key, value in given.items())})")


def translation(table, p_self, keep="add", threshold=0.0, threshold_on="raw", renormalize=False):
    """T' as a dictionary (query term, document term) -> probability."""
    cut = np.float32(threshold)
    raw = {(q, d): w for q, d, w in table.rows() if np.float32(w) >= cut and not (keep == "replace" and q == d)}
    if renormalize:
        whole = Counter()
        for (_, d), weight in raw.items():
            whole[d] += weight
        raw = {(q, d): weight / whole[d] for (q, d), weight in raw.items()}
    found = {(q, d): (1 - p_self) * weight for (q, d), weight in raw.items()}
    for term in {*table.query_terms, *table.doc_terms}:
        found[term, term] = p_self + found.get((term, term), 0)
    return {pair: w for pair, w in found.items() if threshold_on == "raw" or np.float32(w) >= cut}


def naive(table, query, text, lam, priors, normalise="unique", **how):
    """The published formula."""
    known, query_terms, moved = (
        {*table.query_terms, *table.doc_terms},
        Counter(query.split()),
        translation(table, **how),
    )
    doc_terms = Counter(word for word in text.split() if word in known)
    length, score = max(1, doc_terms.total()), 0.0
    for q, n in query_terms.items():
        p = sum(moved.get((q, d), 0.0) * tf / length for d, tf in doc_terms.items())
        if lam > 0:
            c = max(1e-9, priors.get(q, 0.0))
            score += n * (math.log((1 - lam) * p + lam * c) - math.log(lam * c))
        else:
            score += n * math.log(max(1e-8, p))
    return score / max(1, len(query_terms) if normalise == "unique" else query_terms.total())


OWN = {term: count / COUNTS.sum() for term, count in zip(TERMS, COUNTS.tolist(), strict=False)}


class TestFormula:
    @given(pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=5), how=arguments)
    def test_scores_are_those_of_the_loops(self, path, pairs, how):
        found = call(path, **how).score(*zip(*pairs, strict=True))
        table = open_table(path)
        expected = [naive(table, q, d, priors=OWN, **how) for q, d in pairs]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("keep", ["add", "replace"])
    @pytest.mark.parametrize("p_self", [0.05, 0.3])
    def test_the_table_s_own_self_translation_gives_the_same(self, path, tmp_path, p_self, keep):
        open_table(path).with_self(p_self, keep).save(tmp_path / "t.arrow")
        rng = np.random.default_rng(4)
        queries, docs = ([" ".join(rng.choice(WORDS, n)) for _ in range(50)] for n in (4, 15))
        ours = call(path, lam=0.1, p_self=p_self, keep=keep).score(queries, docs)
        assert ours == pytest.approx(call(tmp_path / "t.arrow", lam=0.1).score(queries, docs), abs=1e-6)


class TestLimits:
    @pytest.mark.parametrize("lam", [0, 0.1])
    def test_without_words(self, path, lam):
        ranker, nothing = call(path, lam=lam), 0.0 if lam else pytest.approx(math.log(1e-8))
        assert ranker.score(["", "  "], ["t1 t2", ""]).tolist() == [0, 0]
        assert ranker.score(["t5"], [""]) == nothing
        assert ranker.score(["t5"], ["unknown never"]) == nothing
        assert ranker.score(["unknown"], ["unknown t1"]) == nothing


class TestBackground:
    DOCS = {"a": "t5 t5 t6 unknown", "b": "t1"}

    def test_the_collection_s_counts(self, path):
        setting = Setting(Collection.of(self.DOCS, {"q": "t5"}))
        ranker = open_ranker(f"model1:{path}(lam=0.4,p_self=0.1,background=collection)", setting)
        priors = {"t5": 2 / 5, "t6": 1 / 5, "t1": 1 / 5, "unknown": 1 / 5}
        expected = naive(open_table(path), "t5 t6 t9", "t5 t2 t1", 0.4, priors, p_self=0.1)
        assert ranker.score(["t5 t6 t9"], ["t5 t2 t1"]) == pytest.approx([expected], abs=1e-6)

    def test_a_table_without_counts(self, tmp_path):
        plain = tmp_path / "plain.parquet"
        example(counts=None).save(plain)
        setting = Setting(Collection.of(self.DOCS, {"q": "t5"}))
        by_default = open_ranker(f"model1:{plain}", setting)
        assert repr(by_default) == repr(open_ranker(f"model1:{plain}(background=collection)", setting))
        assert call(plain, lam=0).score(["t5"], ["t5"]).shape == (1,)
        with pytest.raises(WhyrankError, match="give stats=COLLECTION, or lam=0"):
            call(plain)
        with pytest.raises(WhyrankError, match="has no counts of terms"):
            call(plain, background="table")


def test_what_the_table_says_is_the_default(tmp_path):
    table, facts = example(), {"analyzer": "whitespace", "lam": 0, "p_self": 0.3}
    TermTable(*table.__dict__.values()).save(tmp_path / "em.arrow")
    TermTable(*[*list(table.__dict__.values())[:5], facts, COUNTS]).save(tmp_path / "neural.arrow")
    assert "lam=0.1,p_self=0.05" in repr(call(tmp_path / "em.arrow"))
    assert "lam=0.0,p_self=0.0" in repr(call(tmp_path / "neural.arrow"))
    assert "lam=0.2,p_self=0.5" in repr(call(tmp_path / "neural.arrow", lam=0.2, p_self=0.5))


class TestIdentity:
    def test_it_follows_table_analyzer_and_arguments(self, path, tmp_path):
        table = open_table(path)
        table.save(tmp_path / "same.parquet")
        table.renormalise().save(tmp_path / "other.parquet")
        here = repr(call(path))
        assert here == repr(call(tmp_path / "same.parquet"))
        others = [repr(call(path, **how)) for how in ({"lam": 0.2}, {"p_self": 0.1}, {"keep": "replace"}, {"lam": 0},
                  {"threshold": 0.1}, {"threshold_on": "rescaled"}, {"renormalize": True}, {"normalise": "tokens"},
                  {"analyzer": "lucene"})]  # fmt: skip
        assert len({here, repr(call(tmp_path / "other.parquet")), *others}) == 11

    def test_the_table_does_not_travel(self, path, tmp_path):
        ranker = call(path)
        assert len(pickle.dumps(ranker)) < 1500
        example().save(tmp_path / "t.arrow")
        sent = pickle.dumps(call(tmp_path / "t.arrow"))
        example().renormalise().save(tmp_path / "t.arrow")
        with pytest.raises(WhyrankError, match="has changed meanwhile"):
            pickle.loads(sent)


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "words"),
        [({"lam": 2}, "lam must be a number"), ({"p_self": -1}, "p_self must be"), ({"keep": "no"}, "keep"), ({"threshold": -1}, "threshold must be"),
         ({"threshold_on": "x"}, "threshold_on"), ({"renormalize": 1}, "renormalize must be"), ({"normalise": "all"}, "normalise"),
         ({"background": "web"}, "background"), ({"background": "table", "stats": "sample"}, "leave out one"), ({"lambda": 1}, "lam"), ({"stats": 3}, "stats must be text")],
    )  # fmt: skip
    def test_wrong_arguments(self, path, given, words):
        with pytest.raises(WhyrankError, match=words):
            call(path, **given)
