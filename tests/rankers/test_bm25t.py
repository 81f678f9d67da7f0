"""BM25T and QLT over a term table, against the formulas in loops over dictionaries."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thesaurus_oracle import TERMS, WORDS, bm25t, qlt, random_table, related

from whyrank.core import BadInput, WhyrankError, executor, parse_call
from whyrank.data import Collection, open_collection
from whyrank.evaluation import without_ranges
from whyrank.evaluation.tuning import DEFAULT_GRIDS
from whyrank.rankers import Background, Setting, open_ranker, query_scale, rankers
from whyrank.scoring import Engine
from whyrank.tables import TermTable
from whyrank.testing import RankerContract
from whyrank.text import analyzers

texts = st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join)
DOCS = ["t1 t2 t2 t3", "t4", "", "t5 t1 unknown t9 t9 t9 t0", "t7 t8 t6 t6"]
SETTING = Setting(Collection.of({str(i): d for i, d in enumerate(DOCS)}, {"q": "t1"}), "whitespace")
SPLIT = [doc.split() for doc in DOCS]
MATCHES = ["first", "max-tf", "sum"]
FORMS = ["parm", "lucene", "robertson", "atire", "terrier"]


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


class TestFormula:
    @given(
        seed=st.integers(0, 4), match=st.sampled_from(MATCHES), pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=4),
        k1=st.sampled_from([0, 0.9, 3]), b=st.sampled_from([0, 0.4, 1]), k2=st.sampled_from([0, 1.5, 100]),
    )  # fmt: skip
    def test_bm25t(self, folder, seed, match, pairs, k1, b, k2):
        ranker = opened("bm25t", folder / f"{seed}.arrow", match=match, k1=k1, b=b, k2=k2)
        entries = related(ranker.table)
        expected = [bm25t(entries, SPLIT, q.split(), d.split(), match, k1, b, k2) for q, d in pairs]
        np.testing.assert_allclose(ranker.score(*zip(*pairs, strict=True)), expected, rtol=0, atol=1e-5)

    @given(
        seed=st.integers(0, 4), pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=4),
        mu=st.sampled_from([0.1, 100, 2500]), lam=st.sampled_from([None, 0.1, 0.9]),
    )  # fmt: skip
    def test_qlt(self, folder, seed, pairs, mu, lam):
        how = {"mu": mu} if lam is None else {"lam": lam, "smoothing": "jm"}
        ranker = opened("qlt", folder / f"{seed}.arrow", **how)
        entries = related(ranker.table)
        expected = [qlt(entries, SPLIT, q.split(), d.split(), mu, lam) for q, d in pairs]
        np.testing.assert_allclose(ranker.score(*zip(*pairs, strict=True)), expected, rtol=0, atol=1e-5)

    @given(
        query=texts,
        text=texts,
        variant=st.sampled_from(FORMS),
        match=st.sampled_from(MATCHES),
        b=st.sampled_from([0, 0.7]),
    )
    def test_an_empty_table_is_bm25_to_the_bit(self, folder, query, text, variant, match, b):
        found = opened("bm25t", folder / "empty.parquet", match=match, variant=variant, b=b)
        plain = open_ranker(f"bm25(variant={variant},b={b})", SETTING)
        assert found.score([query], [text]).tolist() == plain.score([query], [text]).tolist()

    @given(
        query=texts,
        text=texts,
        variant=st.sampled_from(["plain", "parm"]),
        smoothing=st.sampled_from(["jm", "dirichlet"]),
    )
    def test_an_empty_table_is_ql_to_the_bit(self, folder, query, text, variant, smoothing):
        found = opened("qlt", folder / "empty.parquet", variant=variant, smoothing=smoothing)
        plain = open_ranker(f"ql(variant={variant},smoothing={smoothing})", SETTING)
        assert found.score([query], [text]).tolist() == plain.score([query], [text]).tolist()

    @given(query=texts, text=texts)
    def test_without_a_table_the_parm_forms_are_the_specified_ones(self, query, text):
        found = open_ranker("bm25(variant=parm,k1=1.2,b=0.3,k2=7)", SETTING).score([query], [text])
        assert found == pytest.approx([bm25t({}, SPLIT, query.split(), text.split(), "first", 1.2, 0.3, 7)], abs=1e-9)
        found = open_ranker("ql(variant=parm,mu=30)", SETTING).score([query], [text])
        assert found == pytest.approx([qlt({}, SPLIT, query.split(), text.split(), 30)], abs=1e-9)

    def test_long_texts_and_queries(self, folder):
        rng = np.random.default_rng(0)
        words = [*WORDS, *(f"more{i}" for i in range(30))]
        query, text = (" ".join(rng.choice(words, n)) for n in (60, 5_000))
        for match in MATCHES:
            ranker = opened("bm25t", folder / "4.arrow", match=match)
            expected = bm25t(related(ranker.table), SPLIT, query.split(), text.split(), match)
            assert ranker.score([query], [text]) == pytest.approx([expected], abs=1e-5)

    def test_a_hand_made_case(self, tmp_path):
        TermTable.from_triples(["car", "car", "fast"], ["auto", "bus", "quick"], [0.5, 0.25, 0.75]).save(
            tmp_path / "t.tsv"
        )
        docs = {"a": "auto bus bus auto red", "b": "car quick stop", "c": "other words"}
        setting = Setting(Collection.of(docs, {"q": "car"}), "whitespace")
        idf, k = math.log(1 + 2.5 / 1.5), 0.9 * (0.6 + 0.4 * 5 / (10 / 3))
        for match, f in (("first", 0.5), ("max-tf", 1.0), ("sum", 1.5)):
            found = opened("bm25t", tmp_path / "t.tsv", setting, match=match).score(["car"], [docs["a"]])
            assert found == pytest.approx([idf * 1.9 * f / (f + k)])
        found = opened("qlt", tmp_path / "t.tsv", setting, mu=10).score(["car car"], [docs["a"]])
        assert found == pytest.approx([math.log((1.5 + 10 * 0.1) / 15)])


class TestLimits:
    @pytest.mark.parametrize("match", MATCHES)
    def test_without_words(self, folder, match):
        ranker = opened("bm25t", folder / "1.arrow", match=match)
        assert ranker.score(["", "  ", "t5", "unknown"], ["t1", "", "", "t1 t2"]).tolist() == [0, 0, 0, 0]

    @pytest.mark.parametrize("spec", ["bm25t", "qlt"])
    def test_entries_of_a_term_for_itself_are_left_out(self, tmp_path, spec):
        rows = [("t1", "t1", 0.9), ("t1", "t2", 0.5), ("t3", "t3", 5.0)]
        for name, kept in (("with", rows), ("without", rows[1:2])):
            TermTable.from_triples(*zip(*kept, strict=True)).save(tmp_path / f"{name}.tsv")
        how = [{"match": match} for match in MATCHES] if spec == "bm25t" else [{}]
        for given_ in how:
            one, two = (opened(spec, tmp_path / f"{name}.tsv", **given_) for name in ("with", "without"))
            asked = ["t1 t3"] * 3, ["t1 t1 t2", "t2 t3", "t3 t3 t1"]
            assert one.score(*asked).tolist() == two.score(*asked).tolist()

    def test_a_partner_helps_only_where_the_term_is_missing(self, tmp_path):
        TermTable.from_triples(["t1"], ["t2"], [0.4]).save(tmp_path / "t.tsv")
        ranker = opened("bm25t", tmp_path / "t.tsv")
        exact, both, partner, often, neither = ranker.score(["t1"] * 5, ["t1 x", "t1 t2", "t2 x", "t2 t2", "x x"])
        assert exact == both > partner == often > neither == 0

    @pytest.mark.parametrize("spec", ["bm25t", "qlt"])
    def test_words_that_are_met_later(self, tmp_path, spec):
        TermTable.from_triples(["early"], [f"late{spec}"], [0.5], analyzer="whitespace").save(tmp_path / "t.tsv")
        ranker = open_ranker(f"{spec}:{tmp_path / 't.tsv'}")
        before, after = (float(ranker.score(["early"], [text])[0]) for text in ("other words", f"late{spec} words"))
        assert after > before


class TestFusing:
    def test_scales_of_queries(self, folder):
        setting = Setting(Collection.of({"a": "t1 t2", "b": "t3"}, {"q": "t1"}), "whitespace")
        for one, two in (("bm25t", "bm25"), ("qlt", "ql(variant=parm)")):
            given_ = opened(one, folder / "empty.parquet", setting), open_ranker(two, setting)
            assert query_scale(given_[0], "t1 t1 t3") == query_scale(given_[1], "t1 t1 t3")
        assert query_scale(given_[0], "t1 t1 t3") == 2 != query_scale(open_ranker("ql", setting), "t1 t1 t3")

    def test_a_part_of_a_fuse(self, folder):
        spec = f"bm25t:{folder / '1.arrow'}(match=sum)"
        fused = open_ranker(f"fuse(of=['bm25','{spec}'],weights=[0.5,2])", SETTING)
        parts = [open_ranker(each, SETTING).score(["t1 t4"], ["t2 t4"])[0] for each in ("bm25", spec)]
        assert fused.score(["t1 t4"], ["t2 t4"]) == pytest.approx([0.5 * parts[0] + 2 * parts[1]])

    def test_ranges(self):
        call, ranges = without_ranges(parse_call("bm25t:t.tsv(k1=0.5:1.5:0.5,match=sum)"))
        assert (str(call), ranges) == ("bm25t:t.tsv(match=sum)", {"k1": [0.5, 1.0, 1.5]})
        assert set(DEFAULT_GRIDS["bm25t"]) == {"k1", "b"}
        assert list(DEFAULT_GRIDS["qlt"]["mu"]) == [10, 100, 500, 2000]


class TestIdentity:
    @pytest.mark.parametrize(
        "spec", ["bm25t:t.tsv", "bm25t:t.tsv(match=max-tf,k1=1.2,b=0.75,k2=7.0)", "bm25t:t.tsv(k3=2.0,variant=terrier)",
                 "qlt:t.tsv(mu=10.0)", "qlt:t.tsv(lam=0.35,smoothing=jm,variant=plain)", "bm25(variant=parm,k2=3.0)", "ql(variant=parm)"],
    )  # fmt: skip
    def test_call_strings_parse_back(self, spec):
        made = rankers.create(spec)
        assert rankers.create(made.id) == made
        assert made.id == spec

    def test_it_follows_table_analyzer_statistics_and_arguments(self, folder, tmp_path):
        random_table(1, 0.2 + 1 / 8).save(tmp_path / "same.tsv")
        here = repr(opened("bm25t", folder / "1.arrow"))
        assert (
            here
            == repr(opened("bm25t", tmp_path / "same.tsv"))
            == repr(opened("bm25t", tmp_path / "same.tsv", k2=100))
        )
        others = [repr(opened("bm25t", folder / "1.arrow", **how)) for how in ({"match": "sum"}, {"k1": 1.0}, {"b": 0.1}, {"k2": 1},
                  {"variant": "lucene"}, {"analyzer": "lucene"})]  # fmt: skip
        others += [repr(opened("bm25t", folder / "2.arrow")), repr(opened("qlt", folder / "1.arrow"))]
        others += [
            repr(opened("qlt", folder / "1.arrow", **how))
            for how in ({"mu": 1}, {"smoothing": "jm"}, {"variant": "plain"})
        ]
        others.append(
            repr(opened("bm25t", folder / "1.arrow", Setting(Collection.of({"a": "t1"}, {}), "whitespace")))
        )
        assert len({here, *others}) == 13

    def test_identities_of_other_forms_stay(self):
        assert "bm25(k1=0.9,b=0.4,k3=8.0,variant=lucene)" in repr(open_ranker("bm25"))
        assert "bm25(k1=0.9,b=0.4,k2=100.0,variant=parm)" in repr(open_ranker("bm25(variant=parm)"))
        assert "ql(mu=1000.0,lam=0.1,smoothing=dirichlet) " in repr(open_ranker("ql"))

    def test_the_table_does_not_travel(self, tmp_path):
        many = [f"w{i}" for i in range(2_000)]
        TermTable.from_triples(many, many[::-1], np.ones(2_000)).save(tmp_path / "t.arrow")
        sent = pickle.dumps(open_ranker(f"bm25t:{tmp_path / 't.arrow'}"))
        assert len(sent) < 1500
        TermTable.from_triples(many, many[::-1], np.full(2_000, 2)).save(tmp_path / "t.arrow")
        with pytest.raises(WhyrankError, match="has changed meanwhile"):
            pickle.loads(sent)

    def test_other_processes_give_the_same(self, folder):
        codes = np.arange(4, dtype=np.int32)
        asked = ["t5 t6", "t2", "t9 t9", "t1"], ["t1 t2 t3", "t2 t2", "unknown", "t3 t9"], codes, codes
        for ranker in (opened("bm25t", folder / "3.arrow", match="sum"), opened("qlt", folder / "3.arrow")):
            apart = Engine(executor=executor("processes(workers=1)"), batch_size=2).score(ranker, *asked).values
            assert apart.tolist() == Engine().score(ranker, *asked).values.tolist()

    @given(
        pairs=st.lists(st.tuples(texts, texts), min_size=2, max_size=10),
        seed=st.integers(0, 99),
        match=st.sampled_from(MATCHES),
    )
    @settings(max_examples=50)
    def test_order_and_batches_do_not_matter_to_the_bit(self, folder, pairs, seed, match):
        ranker, order = (
            opened("bm25t", folder / "4.arrow", match=match),
            np.random.default_rng(seed).permutation(len(pairs)),
        )
        whole = ranker.score(*zip(*pairs, strict=True))
        assert [float(ranker.score([q], [d])[0]) for q, d in pairs] == whole.tolist()
        assert ranker.score(*zip(*[pairs[i] for i in order], strict=True)).tolist() == whole[order].tolist()


class TestRefusals:
    @pytest.mark.parametrize(
        ("spec", "words"),
        [("bm25t:T(match=best)", "match"), ("bm25t:T(k1=-1)", "k1 must be"), ("bm25t:T(k2=-1)", "k2 must be"), ("bm25t:T(variant=okapi)", "variant"),
         ("bm25t:T(k3=1)", "k3 is for variant=terrier"), ("bm25t:T(variant=lucene,k2=3)", "k2 is for variant=parm"), ("bm25(k2=100)", "k2 is for variant=parm"),
         ("bm25(variant=parm,k3=1)", "k3 is for variant=terrier"), ("bm25(variant=parm,k2=x)", "k2 must be"), ("qlt:T(mu=0)", "mu must be"), ("qlt:T(smoothing=x)", "smoothing"),
         ("qlt:T(variant=x)", "variant"), ("ql(variant=x)", "variant"), ("qlt:T(match=sum)", "match"), ("bm25t", "needs 'resource'"), ("qlt", "needs 'resource'")],
    )  # fmt: skip
    def test_wrong_arguments(self, spec, words):
        with pytest.raises(WhyrankError, match=words) as refused:
            rankers.create(spec)
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize("spec", ["bm25t", "qlt"])
    def test_files_that_are_no_tables(self, tmp_path, spec):
        random_table(0).save(tmp_path / "t.parquet")
        cut = tmp_path / "cut.parquet"
        cut.write_bytes((tmp_path / "t.parquet").read_bytes()[:-20])
        for wrong in (cut, tmp_path / "none.parquet"):
            with pytest.raises(BadInput) as refused:
                open_ranker(f"{spec}:{wrong}")
            assert "\n" not in str(refused.value)

    def test_a_table_that_does_not_fit(self, tmp_path, caplog):
        sample = Setting(open_collection("sample"))
        TermTable.from_triples(["xx"], ["zz"], [0.5]).save(tmp_path / "none.tsv")
        with pytest.raises(
            WhyrankError,
            match=r"none\.tsv is looked up with lucene; it knows 0% of the words of the .* of sample; "
            r"the statistics know 0% of its words",
        ):
            open_ranker(f"bm25t:{tmp_path / 'none.tsv'}", sample)
        stems = sorted(
            {w for text in sample.collection.docs.values() for w in analyzers.create("lucene").terms(text)}
        )
        odd = [stem for stem in stems if stem.endswith("i")][:20]
        TermTable.from_triples(odd, odd[::-1], np.ones(len(odd)), analyzer="lucene").save(tmp_path / "few.tsv")
        open_ranker(f"bm25t:{tmp_path / 'few.tsv'}", sample)
        assert not caplog.records
        with pytest.raises(WhyrankError, match="learned with lucene and is looked up with whitespace"):
            open_ranker(f"qlt:{tmp_path / 'few.tsv'}(analyzer=whitespace)", sample)
        TermTable.from_triples(stems[:1], ["zz"], [1.0]).save(tmp_path / "half.tsv")
        many = [f"zz{i}" for i in range(9)]
        TermTable.from_triples(stems[:1] * 9, many, np.ones(9)).save(tmp_path / "tenth.tsv")
        open_ranker(f"bm25t:{tmp_path / 'half.tsv'}", sample)
        assert not caplog.records
        open_ranker(f"bm25t:{tmp_path / 'tenth.tsv'}", sample)
        assert "the statistics know 10% of its words" in caplog.text

    def test_an_empty_table_is_fine(self, folder, caplog):
        open_ranker(f"bm25t:{folder / 'empty.parquet'}", Setting(open_collection("sample")))
        assert not caplog.records


class TestSources:
    def test_a_file_of_statistics(self, folder, tmp_path):
        Background.of(dict(enumerate(DOCS)), analyzers.create("whitespace")).save(tmp_path / "s.parquet")
        one = open_ranker(f"bm25t:{folder / '1.arrow'}(stats={tmp_path / 's.parquet'})")
        asked = ["t5 t1"], ["t5 t2"]
        assert one.score(*asked).tolist() == opened("bm25t", folder / "1.arrow").score(*asked).tolist()
        assert one.score(*asked).tolist() != open_ranker(f"bm25t:{folder / '1.arrow'}").score(*asked).tolist()

    def test_the_table_names_the_analyzer(self, folder):
        assert open_ranker(f"bm25t:{folder / '1.arrow'}", Setting(None, "lucene")).analyzer.id == "whitespace"
        assert open_ranker(f"qlt:{folder / 'empty.parquet'}", Setting(None, "lucene")).analyzer.id == "lucene"


class Contract(RankerContract):
    tolerance = 0.0
    spec = ""

    @pytest.fixture(autouse=True)
    def _table(self, tmp_path_factory):
        words = [
            w for text in open_collection("sample").docs.values() for w in analyzers.create("lucene").terms(text)
        ]
        stems, rng = sorted(set(words)), np.random.default_rng(1)
        self.path = tmp_path_factory.mktemp("contract") / "t.arrow"
        TermTable.from_triples(
            stems, rng.permutation(stems).tolist(), rng.random(len(stems)), analyzer="lucene"
        ).save(self.path)

    def make(self):
        return open_ranker(self.spec.replace("TABLE", str(self.path)), self.setting())


class TestBM25T(Contract):
    spec = "bm25t:TABLE"


class TestMaxTf(Contract):
    spec = "bm25t:TABLE(match=max-tf,variant=terrier)"


class TestSum(Contract):
    spec = "bm25t:TABLE(match=sum,variant=lucene)"


class TestQLT(Contract):
    spec = "qlt:TABLE"


class TestParm(Contract):
    spec = "bm25(variant=parm)"


def test_tables_for_tests_have_what_they_promise():
    weights = [w for seed in range(5) for w in random_table(seed, 0.5, 3.0).weights.tolist()]
    assert min(weights) == 0
    assert max(weights) > 1
    assert any(q == d for q, d, _ in random_table(2, 0.5).rows())
    assert set(random_table(2).doc_terms) <= set(TERMS)
