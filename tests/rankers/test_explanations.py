"""From every explanation its score is recovered, and its cells are what the formulas say."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thesaurus_oracle import random_table, related

from whyrank.data import Collection
from whyrank.rankers import Setting, open_ranker, rankers
from whyrank.rankers.lexical import Explaining, ScoreMatrix
from whyrank.tables import TermTable

DOCS = {"a": "t1 t2 t1 t3", "b": "t2 t4 t3 t5", "c": "t6", "d": "t1 t6 t2 t5 t5 t4 t7 t7"}
WORDS = [*(f"t{i}" for i in range(10)), "new", "[CLS]"]
SETTING = Setting(Collection.of(DOCS, {"q": "t1 t6"}), analyzer="whitespace")
texts = st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join)


def forms(pattern, *choices):
    return st.builds(pattern.format, *map(st.sampled_from, choices))


bm25 = forms(
    "bm25(variant={},k1={},b={},k3={})",
    ["lucene", "robertson", "atire", "terrier"], [0, 0.9, 50], [0, 0.4, 1], [0, 8],
)  # fmt: skip
ql = st.one_of(forms("ql(mu={})", [0.001, 10, 1000]), forms("ql(smoothing=jm,lam={})", [1e-6, 0.1, 0.9]))
model1 = forms(
    "model1:TABLE(lam={},p_self={},normalise={},threshold={},threshold_on={},keep={},renormalize={})",
    [0, 1e-6, 0.1, 0.7, 1], [0, 0.1, 0.9], ["unique", "tokens"], [0, 0.2], ["raw", "rescaled"], ["add", "replace"],
    [True, False],
)  # fmt: skip
bm25t = forms(
    "bm25t:TABLE(match={},variant={},k1={},b={})",
    ["first", "max-tf", "sum"], ["parm", "lucene", "terrier"], [0, 0.9, 5], [0, 0.4, 1],
)  # fmt: skip
qlt = forms("qlt:TABLE(smoothing={},variant={},mu={})", ["dirichlet", "jm"], ["parm", "plain"], [0.1, 1000])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A translation table, and random thesauri 0 to 3, the last two with weights above 1."""
    made, rng, words = tmp_path_factory.mktemp("tables"), np.random.default_rng(5), WORDS[:8]
    pairs = [(q, d) for q in words for d in words if rng.random() < 0.6]
    weights = rng.dirichlet(np.ones(len(words)), len(words)).ravel()[: len(pairs)]
    TermTable.from_triples(*zip(*pairs, strict=True), weights, analyzer="whitespace").save(made / "t.arrow")
    for seed in range(4):
        random_table(seed, 0.4, 1.0 if seed < 2 else 3.0).save(made / f"{seed}.arrow")
    return made


def opened(spec, folder, seed=0):
    name = "t" if spec.startswith("model1") else str(seed)
    return open_ranker(spec.replace("TABLE", str(folder / f"{name}.arrow")), SETTING)


def by_hand(found):
    """The score of a matrix, from the description of the two kinds alone."""
    if found.kind == "additive":
        return float(found.cells.sum())
    rows = zip(found.cells.tolist(), found.background, found.weights, found.baseline, strict=True)
    return sum(w * (math.log(max(found.floor, sum(cells) + start)) - base) for cells, start, w, base in rows)


class TestScores:
    @given(spec=st.one_of(bm25, ql, model1, bm25t, qlt), seed=st.integers(0, 3), query=texts, text=texts)
    @settings(max_examples=200)
    def test_every_matrix_gives_its_score_back(self, folder, spec, seed, query, text):
        ranker = opened(spec, folder, seed)
        found = ranker.explain(query, text)
        assert found.score == ranker.score([query], [text])[0]
        assert found.recomputed == pytest.approx(found.score, rel=0, abs=1e-6)
        assert by_hand(found) == pytest.approx(found.score, rel=0, abs=1e-6)
        assert found.kind == ("additive" if spec.startswith("bm25") else "log")
        assert list(found.query_terms) == list(dict.fromkeys(query.split()))
        known = [word for word in dict.fromkeys(text.split()) if word in WORDS[:8] or "model1" not in spec]
        assert list(found.document_terms) == known
        assert np.isfinite(found.cells).all()
        assert (found.background >= 0).all()


class TestCells:
    def test_lexical_rankers_match_the_same_word_only(self, folder):
        for spec in ("bm25", "ql", "ql(smoothing=jm)"):
            found = opened(spec, folder).explain("t1 t6 t1 new", "t6 t2 t1 t1 t4")
            same = np.array([[q == d for d in found.document_terms] for q in found.query_terms])
            assert (found.cells[~same] == 0).all()
            assert (found.cells[same] > 0).all()
        once, twice = (opened("bm25", folder).explain(query, "t1 t2").cells.sum() for query in ("t1", "t1 t1"))
        assert twice == pytest.approx(2 * once)

    def test_shares_of_model_1(self, tmp_path):
        path = tmp_path / "t.tsv"
        TermTable.from_codes(["t1"], ["t1", "t2"], [0, 0], [0, 1], [0.5, 0.3], {}, [1, 3]).save(path)
        ranker = open_ranker(f"model1:{path}(lam=0.2,p_self=0.1,analyzer=whitespace,background=table)")
        found = ranker.explain("t1", "t2 t1 t2 moth")
        assert list(found.document_terms) == ["t2", "t1"]
        assert found.cells == pytest.approx(np.array([[0.8 * 2 / 3 * 0.27, 0.8 / 3 * 0.55]]))
        assert found.background == pytest.approx([0.2 / 4])
        assert found.notes == ("not in the table, of the text: moth",)

    @given(seed=st.integers(0, 3), query=texts, text=texts, match=st.sampled_from(["first", "max-tf", "sum"]))
    def test_a_thesaurus_fills_cells_where_a_term_or_a_partner_is(self, folder, seed, query, text, match):
        ranker = opened(f"bm25t:TABLE(match={match})", folder, seed)
        entries, found = related(ranker.table), ranker.explain(query, text)
        words = list(found.document_terms)
        for term, row in zip(found.query_terms, found.cells, strict=True):
            filled = [words[i] for i in np.flatnonzero(row)]
            possible = [word for word in words if word == term or (term, word) in entries]
            assert filled == possible if match == "sum" else len(filled) == bool(possible)
            assert set(filled) <= set(possible)
            if match == "first" and term in words:
                assert filled == [term]
            elif match == "first" and filled:
                assert entries[term, filled[0]] == max(entries[term, word] for word in possible)

    def test_the_shares_of_a_thesaurus(self, tmp_path):
        table = TermTable.from_triples(["t1"] * 3 + ["t4"], ["t2", "t3", "t1", "t5"], [0.5, 0.25, 0.9, 1.0])
        table.save(tmp_path / "t.tsv")
        found = open_ranker(f"bm25t:{tmp_path / 't.tsv'}(match=sum)", SETTING).explain("t1 t6", "t1 t2 t2 t3 t9")
        assert found.cells[0, :3] / found.cells[0].sum() == pytest.approx([1 / 2.25, 1 / 2.25, 0.25 / 2.25])
        assert not found.cells[0, 3]
        assert found.notes == ("without an entry in the table: t6", "entries of a term for itself are left out: t1")
        found = open_ranker(f"qlt:{tmp_path / 't.tsv'}(mu=10)", SETTING).explain("t1", "t1 t2 t2 t9")
        assert found.cells == pytest.approx(np.array([[1 / 14, 1 / 14, 0]]))
        assert found.background == pytest.approx([10 * 3 / 17 / 14])

    def test_of_equal_partners_the_first_and_of_equal_counts_the_term_itself(self, tmp_path):
        TermTable.from_triples(["t1", "t1", "t4"], ["t2", "t3", "t5"], [0.5, 0.5, 1.0]).save(tmp_path / "t.tsv")
        first = open_ranker(f"bm25t:{tmp_path / 't.tsv'}", SETTING).explain("t1", "t9 t3 t2")
        same = open_ranker(f"bm25t:{tmp_path / 't.tsv'}(match=max-tf)", SETTING).explain("t4", "t5 t4")
        assert np.flatnonzero(first.cells[0]).tolist() == np.flatnonzero(same.cells[0]).tolist() == [1]


class TestPartners:
    def test_the_strongest_terms_and_the_rest(self):
        cells = np.array([[0.1, -3.0, 0.0, 0.5], [0.2, 1.0, 0.0, 0.5]])
        p, q = ScoreMatrix.additive(["p", "q"], list("abcd"), cells, float(cells.sum())).partners(top=2)
        assert [each["document_term"] for each in p["document_terms"]] == ["b", "d"]
        assert (p["adds"], p["rest"], q["adds"], q["rest"]) == pytest.approx((-2.4, 0.1, 1.7, 0.2))
        assert [each["gives"] for each in q["document_terms"]] == [1.0, 0.5]

    def test_of_logarithms_they_are_shares(self, folder):
        for spec in ("ql", "model1:TABLE", "model1:TABLE(lam=0)"):
            made = opened(spec, folder).explain("t1 t7 new", "t1 t2 t2")
            found = json.loads(json.dumps(made.partners()))
            assert sum(each["adds"] for each in found) == pytest.approx(made.score, abs=1e-6)
            for row, total in zip(found, made.totals, strict=True):
                whole = row["background"] + row["rest"] + sum(each["gives"] for each in row["document_terms"])
                assert whole == pytest.approx(1 if total else 0)


@pytest.mark.parametrize("spec", ["bm25", "ql", "model1:TABLE", "bm25t:TABLE", "qlt:TABLE"])
def test_rankers_that_say_that_they_explain_do(folder, spec):
    assert rankers.factory(spec.partition(":")[0]).explains
    assert isinstance(opened(spec, folder), Explaining)
