"""BM25T and QLT over a term table, against the formulas in loops over dictionaries: scoring and retrieval."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thesaurus_oracle import TERMS, WORDS, bm25t, matches, qlt, random_table, related

from whyrank.core import WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.evaluation import Runner
from whyrank.rankers import Setting, open_ranker
from whyrank.rankers.lexical import LexicalIndex
from whyrank.rankers.lexical import index as module
from whyrank.scoring import Engine, rescore
from whyrank.tables import TermTable
from whyrank.testing import RankerContract
from whyrank.testing.examples import sample
from whyrank.text import analyzers

texts = st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join)
some_pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=4)
DOCS = ["t1 t2 t2 t3", "t4", "", "t5 t1 unknown t9 t9 t9 t0", "t7 t8 t6 t6"]
SETTING = Setting(Collection.of({str(i): d for i, d in enumerate(DOCS)}, {"q": "t1"}), "whitespace")
SPLIT = [doc.split() for doc in DOCS]
MATCHES = ["first", "max-tf", "sum"]
LUCENE = analyzers.create("lucene")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Random tables 0 to 4, those above 2 with weights above 1; and one without entries."""
    made = tmp_path_factory.mktemp("thesauri")
    for seed in range(5):
        random_table(seed, 0.2 + seed / 8, 1.0 if seed < 3 else 3.0).save(made / f"{seed}.arrow")
    TermTable.from_triples([], [], []).save(made / "empty.parquet")
    return made


def opened(spec, path, setting=SETTING, **given):
    return open_ranker(f"{spec}:{path}({','.join(f'{k}={v}' for k, v in given.items())})", setting)


def stems():
    return sorted({word for text in sample().docs.values() for word in LUCENE.terms(text)})


class TestFormula:
    @given(
        seed=st.integers(0, 4), match=st.sampled_from(MATCHES), pairs=some_pairs,
        k1=st.sampled_from([0, 0.9, 3]), b=st.sampled_from([0, 0.4, 1]), k2=st.sampled_from([0, 1.5, 100]),
    )  # fmt: skip
    @settings(max_examples=60)
    def test_bm25t(self, folder, seed, match, pairs, k1, b, k2):
        ranker = opened("bm25t", folder / f"{seed}.arrow", match=match, k1=k1, b=b, k2=k2)
        entries = related(ranker.table)
        expected = [bm25t(entries, SPLIT, q.split(), d.split(), match, k1, b, k2) for q, d in pairs]
        np.testing.assert_allclose(ranker.score(*zip(*pairs, strict=True)), expected, rtol=0, atol=1e-5)

    @given(
        seed=st.integers(0, 4),
        pairs=some_pairs,
        mu=st.sampled_from([0.1, 100, 2500]),
        lam=st.sampled_from([None, 0.1, 0.9]),
    )
    @settings(max_examples=60)
    def test_qlt(self, folder, seed, pairs, mu, lam):
        how = {"mu": mu} if lam is None else {"lam": lam, "smoothing": "jm"}
        ranker = opened("qlt", folder / f"{seed}.arrow", **how)
        entries = related(ranker.table)
        expected = [qlt(entries, SPLIT, q.split(), d.split(), mu, lam) for q, d in pairs]
        np.testing.assert_allclose(ranker.score(*zip(*pairs, strict=True)), expected, rtol=0, atol=1e-5)

    @given(query=texts, text=texts, match=st.sampled_from(MATCHES), b=st.sampled_from([0, 0.7]), data=st.data())
    @settings(max_examples=40)
    def test_an_empty_table_is_the_plain_formula_to_the_bit(self, folder, query, text, match, b, data):
        variant = data.draw(st.sampled_from(["parm", "lucene", "robertson", "atire", "terrier"]))
        form, smoothing = (
            data.draw(st.sampled_from(["plain", "parm"])),
            data.draw(st.sampled_from(["jm", "dirichlet"])),
        )
        found = opened("bm25t", folder / "empty.parquet", match=match, variant=variant, b=b)
        plain = open_ranker(f"bm25(variant={variant},b={b})", SETTING)
        assert found.score([query], [text]).tolist() == plain.score([query], [text]).tolist()
        found = opened("qlt", folder / "empty.parquet", variant=form, smoothing=smoothing)
        plain = open_ranker(f"ql(variant={form},smoothing={smoothing})", SETTING)
        assert found.score([query], [text]).tolist() == plain.score([query], [text]).tolist()

    @given(query=texts, text=texts)
    @settings(max_examples=40)
    def test_without_a_table_the_parm_forms_are_the_specified_ones(self, query, text):
        found = open_ranker("bm25(variant=parm,k1=1.2,b=0.3,k2=7)", SETTING).score([query], [text])
        assert found == pytest.approx([bm25t({}, SPLIT, query.split(), text.split(), "first", 1.2, 0.3, 7)], abs=1e-9)
        found = open_ranker("ql(variant=parm,mu=30)", SETTING).score([query], [text])
        assert found == pytest.approx([qlt({}, SPLIT, query.split(), text.split(), 30)], abs=1e-9)

    @pytest.mark.parametrize(("spec", "how"), [*(("bm25t", {"match": match}) for match in MATCHES), ("qlt", {})])
    def test_entries_of_a_term_for_itself_are_left_out(self, tmp_path, spec, how):
        rows = [("t1", "t1", 0.9), ("t1", "t2", 0.5), ("t3", "t3", 5.0)]
        for name, kept in (("with", rows), ("without", rows[1:2])):
            TermTable.from_triples(*zip(*kept, strict=True)).save(tmp_path / f"{name}.tsv")
        one, two = (opened(spec, tmp_path / f"{name}.tsv", **how) for name in ("with", "without"))
        pairs = ["t1 t3"] * 3, ["t1 t1 t2", "t2 t3", "t3 t3 t1"]
        assert one.score(*pairs).tolist() == two.score(*pairs).tolist()

    @pytest.mark.parametrize("spec", ["bm25t", "qlt"])
    def test_words_that_are_met_later(self, tmp_path, spec):
        TermTable.from_triples(["early"], [f"late{spec}"], [0.5], analyzer="whitespace").save(tmp_path / "t.tsv")
        ranker = open_ranker(f"{spec}:{tmp_path / 't.tsv'}")
        before, after = (float(ranker.score(["early"], [text])[0]) for text in ("other words", f"late{spec} words"))
        assert after > before


class TestUse:
    def test_identity(self, folder, tmp_path):
        random_table(1, 0.2 + 1 / 8).save(tmp_path / "same.tsv")
        here, same = repr(opened("bm25t", folder / "1.arrow")), tmp_path / "same.tsv"
        assert here == repr(opened("bm25t", same)) == repr(opened("bm25t", same, k2=100))
        hows = {"match": "sum"}, {"k1": 1.0}, {"b": 0.1}, {"k2": 1}, {"variant": "lucene"}, {"analyzer": "lucene"}
        others = [repr(opened("bm25t", folder / "1.arrow", **how)) for how in hows]
        hows = {}, {"mu": 1}, {"smoothing": "jm"}, {"variant": "plain"}
        others += [repr(opened("qlt", folder / "1.arrow", **how)) for how in hows]
        elsewhere = Setting(Collection.of({"a": "t1"}, {}), "whitespace")
        others += [repr(opened("bm25t", folder / "2.arrow")), repr(opened("bm25t", folder / "1.arrow", elsewhere))]
        assert len({here, *others}) == 13

    def test_the_table_does_not_travel(self, tmp_path):
        many = [f"w{i}" for i in range(2_000)]
        TermTable.from_triples(many, many[::-1], np.ones(2_000)).save(tmp_path / "t.arrow")
        sent = pickle.dumps(open_ranker(f"bm25t:{tmp_path / 't.arrow'}"))
        assert len(sent) < 1500
        TermTable.from_triples(many, many[::-1], np.full(2_000, 2)).save(tmp_path / "t.arrow")
        with pytest.raises(WhyrankError, match="has changed meanwhile"):
            pickle.loads(sent)


class TestFit:
    def test_a_table_that_does_not_fit(self, folder, tmp_path, caplog):
        setting, known, many = Setting(sample()), stems(), [f"zz{i}" for i in range(9)]
        odd = [stem for stem in known if stem.endswith("i")][:20]
        TermTable.from_triples(["xx"], ["zz"], [0.5]).save(tmp_path / "none.tsv")
        TermTable.from_triples(odd, odd[::-1], np.ones(len(odd)), analyzer="lucene").save(tmp_path / "few.tsv")
        TermTable.from_triples(known[:1], ["zz"], [1.0]).save(tmp_path / "half.tsv")
        TermTable.from_triples(known[:1] * 9, many, np.ones(9)).save(tmp_path / "tenth.tsv")
        unknown = "it knows 0% of the words of the .* of sample; the statistics know 0% of its words"
        with pytest.raises(WhyrankError, match=rf"none\.tsv is looked up with lucene; {unknown}"):
            open_ranker(f"bm25t:{tmp_path / 'none.tsv'}", setting)
        with pytest.raises(WhyrankError, match="learned with lucene and is looked up with whitespace"):
            open_ranker(f"qlt:{tmp_path / 'few.tsv'}(analyzer=whitespace)", setting)
        for fine in (tmp_path / "few.tsv", tmp_path / "half.tsv", folder / "empty.parquet"):
            open_ranker(f"bm25t:{fine}", setting)
        assert not caplog.records
        open_ranker(f"bm25t:{tmp_path / 'tenth.tsv'}", setting)
        assert "the statistics know 10% of its words" in caplog.text


@pytest.fixture(scope="module")
def sample_table(tmp_path_factory):
    words, rng, path = stems(), np.random.default_rng(1), tmp_path_factory.mktemp("contract") / "t.arrow"
    partners = rng.permutation(words).tolist()
    TermTable.from_triples(words, partners, rng.random(len(words)), analyzer="lucene").save(path)
    return path


class Contract(RankerContract):
    tolerance = 0.0
    spec = ""

    @pytest.fixture(autouse=True)
    def _table(self, sample_table):
        self.path = sample_table

    def make(self):
        return open_ranker(self.spec.replace("TABLE", str(self.path)), self.setting())


class TestMaxTf(Contract):
    spec = "bm25t:TABLE(match=max-tf,variant=terrier)"


class TestSum(Contract):
    spec = "bm25t:TABLE(match=sum,variant=lucene)"


class TestQLT(Contract):
    spec = "qlt:TABLE"


class TestModel1(Contract):
    spec = "model1:TABLE"


class TestParm(Contract):
    spec = "bm25(variant=parm)"


# Retrieval finds what scoring every document finds, in the same order and to the bit.

queries = st.lists(st.sampled_from([*TERMS, "onlyquery", "common"]), max_size=6).map(" ".join)
documents = st.lists(st.sampled_from([*TERMS, *TERMS[:3], "common", "common", "other"]), max_size=14).map(" ".join)
SPECS = [
    "bm25t:TABLE", "bm25t:TABLE(match=max-tf)", "bm25t:TABLE(match=sum)", "bm25t:TABLE(variant=terrier)", "bm25t:TABLE(k1=0)",
    "bm25t:TABLE(match=sum,variant=robertson,b=1)", "qlt:TABLE", "qlt:TABLE(mu=0.5)", "qlt:TABLE(smoothing=jm,lam=0.01)", "qlt:TABLE(variant=plain,mu=10)",
]  # fmt: skip


def exhaustive(ranker, docs, query, k):
    """Every document that matches, scored from its text; ties by id, descending."""
    entries = related(ranker.table)
    hits = [d for d, text in docs.items() if matches(entries, query.split(), text.split())]
    found = {d: ranker.score([query], [docs[d]])[0] for d in hits}
    return [(d, found[d]) for d in sorted(sorted(found, reverse=True), key=lambda d: -found[d])[:k]]


def over(spec, table, collection):
    return open_ranker(spec.replace("TABLE", str(table)), Setting(collection, "whitespace"))


class TestRetrieval:
    @pytest.mark.parametrize("spec", SPECS)
    @pytest.mark.parametrize("eager", [0.0, 1.0])  # stop as soon as that is safe, or when it is faster too
    @given(
        seed=st.integers(0, 4), docs=st.lists(documents, min_size=1, max_size=25), query=queries, k=st.integers(1, 6)
    )
    @settings(max_examples=15)
    def test_the_best_are_those_of_scoring_all(self, folder, spec, eager, seed, docs, query, k):
        collection = Collection.of({f"d{i}": text for i, text in enumerate(["t1", *docs])}, {"q": query})
        ranker = over(spec, folder / f"{seed}.arrow", collection)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "POSTINGS_PER_TOKEN", eager)
            found = LexicalIndex.of(ranker, collection.docs).search({"q": query}, k)
        assert list(found["q"].items()) == exhaustive(ranker, collection.docs, query, k)

    def test_lists_that_cannot_matter_are_not_walked(self, tmp_path, monkeypatch):
        docs = {f"d{i:03}": " ".join(["common"] * 3 + ["rare", "word"] * (i < 5) + [f"w{i}"]) for i in range(400)}
        TermTable.from_triples(["rare"], ["word"], [0.5], analyzer="whitespace").save(tmp_path / "t.tsv")
        collection = Collection.of(docs, {"q": "common rare"})
        ranker = over("bm25t:TABLE", tmp_path / "t.tsv", collection)
        index, walked, walk = LexicalIndex.of(ranker, docs), [], module.kernels.walk
        monkeypatch.setattr(module.kernels, "walk", lambda *given: walked.append(given) or walk(*given))
        for k, lists in ((5, 1), (6, 2)):
            walked.clear()
            assert list(index.search(collection.queries, k)["q"].items()) == exhaustive(
                ranker, docs, "common rare", k
            )
            assert len(walked) == lists

    def test_a_term_that_counts_against_a_document(self, tmp_path, monkeypatch):
        """With the variant of Terrier, a term of most documents has a negative weight: what leads may fall behind."""
        monkeypatch.setattr(module, "POSTINGS_PER_TOKEN", 0.0)
        docs = {"a": "rare common", "b": "rare other longer"} | {f"c{i}": "common" for i in range(20)}
        TermTable.from_triples(["other"], ["longer"], [0.5], analyzer="whitespace").save(tmp_path / "t.tsv")
        collection = Collection.of(docs, {"q": "rare common"})
        ranker = over("bm25t:TABLE(variant=terrier)", tmp_path / "t.tsv", collection)
        assert ranker.score(["rare"] * 2, [docs["a"], docs["b"]]).argmax() == 0
        found = LexicalIndex.of(ranker, docs).search(collection.queries, 1)
        assert list(found["q"].items()) == exhaustive(ranker, docs, "rare common", 1)
        assert list(found["q"]) == ["b"]

    @pytest.mark.parametrize("spec", SPECS)
    def test_given_candidates_get_the_scores_of_their_texts(self, folder, spec):
        rng = np.random.default_rng(0)
        docs = {f"d{i}": " ".join(rng.choice([*TERMS, "other"], 8)) for i in range(30)}
        collection = Collection.of(docs, {"q": "t1 t5 t5 onlyquery", "p": "common new"})
        ranker = over(spec, folder / "3.arrow", collection)
        candidates = {query_id: dict.fromkeys(docs, 0.0) for query_id in "qp"}
        found = rescore(LexicalIndex.of(ranker, docs), collection.queries, candidates)
        for query_id, text in collection.queries.items():
            assert list(found[query_id].values()) == ranker.score([text] * 30, list(docs.values())).tolist()

    def test_an_index_serves_other_rankers_in_turn(self, folder):
        docs = {f"d{i}": text for i, text in enumerate(["t1 t2", "t3 t3 t4", "t5", "t6 t1"])}
        collection = Collection.of(docs, {"q": "t1 t3"}, {"q": {"d0": 1}})
        runner = Runner(Engine(), Setting(collection, "whitespace"), None, 3)
        two, three = folder / "2.arrow", folder / "3.arrow"
        for spec in ("bm25", f"bm25t:{two}", f"qlt:{two}", "bm25", f"bm25t:{three}(match=sum)"):
            alone = LexicalIndex.of(over(spec, "", collection), docs).search(collection.queries, 3)
            assert list(runner.run(spec, collection)["q"].items()) == list(alone["q"].items())

    def test_no_documents_and_no_words(self, folder):
        for docs in ({}, {"a": "", "b": "other"}):
            collection = Collection.of(docs, {"q": "t1", "p": "", "r": "never seen"})
            for spec in ("bm25t:TABLE", "qlt:TABLE"):
                ranker = over(spec, folder / "empty.parquet", collection)
                assert LexicalIndex.of(ranker, docs).search(collection.queries, 3) == {"q": {}, "p": {}, "r": {}}

    @pytest.mark.parametrize("spec", ["bm25t:TABLE", "bm25t:TABLE(match=sum)", "qlt:TABLE"])
    def test_real_text(self, data_folder, tmp_path, spec):
        collection, rng = open_collection(str(data_folder / "cranfield")), np.random.default_rng(0)
        words = sorted({w for text in collection.docs.values() for w in LUCENE.terms(text)})
        pairs = sorted({(words[a], words[b]) for a, b in rng.integers(0, len(words), (20_000, 2))})
        table = TermTable.from_triples(*zip(*pairs, strict=True), rng.random(len(pairs)), analyzer="lucene")
        table.save(tmp_path / "t.arrow")
        ranker = open_ranker(spec.replace("TABLE", str(tmp_path / "t.arrow")), Setting(collection))
        some = dict(list(collection.queries.items())[:10])
        run = LexicalIndex.of(ranker, collection.docs).search(some, 20)
        for query_id, text in some.items():
            scores = ranker.score([text] * len(collection.docs), list(collection.docs.values()))
            every = dict(zip(collection.docs, scores.tolist(), strict=True))
            best = sorted(sorted(every, reverse=True), key=lambda d: -every[d])[:20]
            assert list(run[query_id].items()) == [(d, every[d]) for d in best]
