"""From every explanation its score is recovered, and its cells are what the formulas say."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.data import Collection
from whyrank.rankers import Setting, open_ranker, rankers
from whyrank.rankers.lexical import Explaining, Explanation
from whyrank.tables import TermTable

DOCS = {"a": "cat dog cat bird", "b": "dog eats bird seed", "c": "fish", "d": "cat fish dog seed seed eats a a"}
WORDS = ["cat", "dog", "bird", "fish", "seed", "eats", "a", "new", "[CLS]"]
SETTING = Setting(Collection.of(DOCS, {"q": "cat fish"}), analyzer="whitespace")
texts = st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join)
bm25 = st.builds(
    "bm25(variant={},k1={},b={},k3={})".format,
    st.sampled_from(["lucene", "robertson", "atire", "terrier"]),
    st.sampled_from([0, 0.9, 1.2, 50]),
    st.sampled_from([0, 0.4, 1]),
    st.sampled_from([0, 8]),
)
ql = st.one_of(
    st.builds("ql(mu={})".format, st.sampled_from([0.001, 10, 1000])),
    st.builds("ql(smoothing=jm,lam={})".format, st.sampled_from([1e-6, 0.1, 0.9])),
)
model1 = st.builds(
    "model1:TABLE(lam={},p_self={},normalise={},threshold={},threshold_on={},keep={},renormalize={})".format,
    st.sampled_from([0, 1e-6, 0.1, 0.7, 1]),
    st.sampled_from([0, 0.1, 0.9]),
    st.sampled_from(["unique", "tokens"]),
    st.sampled_from([0, 0.2]),
    st.sampled_from(["raw", "rescaled"]),
    st.sampled_from(["add", "replace"]),
    st.booleans(),
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng, words = np.random.default_rng(5), WORDS[:-2]
    pairs = [(q, d) for q in words for d in words if rng.random() < 0.6]
    weights = rng.dirichlet(np.ones(len(words)), len(words)).ravel()[: len(pairs)]
    path = tmp_path_factory.mktemp("tables") / "t.arrow"
    TermTable.from_triples(*zip(*pairs, strict=True), weights, analyzer="whitespace").save(path)
    return path


def opened(spec, table):
    return open_ranker(spec.replace("TABLE", str(table)), SETTING)


def by_hand(found):
    """The score of a matrix, from the description of the two kinds alone."""
    if found.kind == "additive":
        return float(found.cells.sum())
    rows = zip(found.cells.tolist(), found.background, found.weights, found.baseline, strict=True)
    return sum(w * (math.log(max(found.floor, sum(cells) + start)) - base) for cells, start, w, base in rows)


class TestScores:
    @given(spec=st.one_of(bm25, ql, model1), query=texts, text=texts)
    def test_every_matrix_gives_its_score_back(self, table, spec, query, text):
        ranker = opened(spec, table)
        found = ranker.explain(query, text)
        assert found.score == ranker.score([query], [text])[0]
        assert found.recomputed == pytest.approx(found.score, rel=0, abs=1e-6)
        assert by_hand(found) == pytest.approx(found.score, rel=0, abs=1e-6)
        assert found.kind == ("additive" if spec.startswith("bm25") else "log")

    @given(spec=st.one_of(bm25, ql, model1), query=texts, text=texts)
    def test_every_term_has_one_row_or_column(self, table, spec, query, text):
        found = opened(spec, table).explain(query, text)
        assert list(found.query_terms) == list(dict.fromkeys(query.split()))
        known = [word for word in dict.fromkeys(text.split()) if word in WORDS[:-2] or "model1" not in spec]
        assert list(found.document_terms) == known
        assert np.isfinite(found.cells).all()
        assert (found.background >= 0).all()

    def test_a_long_text(self, table):
        rng = np.random.default_rng(0)
        query, text = (" ".join(rng.choice(WORDS, n)) for n in (30, 30_000))
        for spec in ("bm25", "ql", "model1:TABLE", "model1:TABLE(lam=0)"):
            found = opened(spec, table).explain(query, text)
            assert found.recomputed == pytest.approx(found.score, rel=0, abs=1e-6)


class TestCells:
    def test_lexical_rankers_match_the_same_word_only(self, table):
        for spec in ("bm25", "ql", "ql(smoothing=jm)"):
            found = opened(spec, table).explain("cat fish cat new", "fish dog cat cat eats")
            same = np.array([[q == d for d in found.document_terms] for q in found.query_terms])
            assert (found.cells[~same] == 0).all()
            assert (found.cells[same] > 0).all()

    def test_a_share_of_query_likelihood(self, table):
        found = opened("ql(mu=10)", table).explain("cat", "cat dog cat")
        assert found.cells.tolist() == [[pytest.approx(2 / 13), 0]]
        assert found.background == pytest.approx([10 * 3 / 17 / 13])  # 3 of the 17 words of the collection

    def test_shares_of_model_1(self, tmp_path):
        path = tmp_path / "t.tsv"
        TermTable.from_codes(["cat"], ["cat", "dog"], [0, 0], [0, 1], [0.5, 0.3], {}, [1, 3]).save(path)
        found = open_ranker(f"model1:{path}(lam=0.2,p_self=0.1,analyzer=whitespace,background=table)").explain(
            "cat", "dog cat dog moth"
        )
        assert list(found.document_terms) == ["dog", "cat"]
        assert found.cells == pytest.approx(np.array([[0.8 * 2 / 3 * 0.27, 0.8 / 3 * 0.55]]))
        assert found.background == pytest.approx([0.2 / 4])
        assert found.notes == ("not in the table, of the text: moth",)

    @given(query=texts, text=texts)
    def test_the_rows_of_model_1_are_probabilities(self, table, query, text):
        found = opened("model1:TABLE(lam=0.3,renormalize=True)", table).explain(query, text)
        assert (found.totals <= 1 + 1e-6).all()

    def test_bm25_counts_repeated_query_terms(self, table):
        once, twice = (opened("bm25", table).explain(q, "cat dog").cells.sum() for q in ("cat", "cat cat"))
        assert twice == pytest.approx(2 * once)


class TestStrongest:
    def test_order_and_what_is_left_out(self):
        cells = np.array([[0.1, -3.0, 0.0, 0.5], [0.2, 1.0, 0.0, 0.5]])
        found = Explanation.additive(["p", "q"], list("abcd"), cells, float(cells.sum()))
        assert found.strongest().tolist() == [1, 3, 0]
        short = found.as_json(top=2)
        assert short["document_terms"] == ["b", "d"]
        assert short["rest"] == pytest.approx([0.1, 0.2])
        assert short["left_out"] == 2
        assert np.sum(short["cells"]) + np.sum(short["rest"]) == pytest.approx(found.score)

    def test_json_holds_all_that_the_score_needs(self, table):
        for spec in ("bm25", "model1:TABLE", "model1:TABLE(lam=0)"):
            told = json.loads(json.dumps(opened(spec, table).explain("cat a new", "cat dog dog").as_json()))
            assert sum(told["parts"]) == pytest.approx(told["score"], abs=1e-6)
            assert "rest" not in told

    def test_wrong_shapes_are_refused(self):
        with pytest.raises(ValueError, match="shape"):
            Explanation.additive(["p"], ["a", "b"], np.zeros((2, 1)), 0.0)
        with pytest.raises(ValueError, match="each of 1"):
            Explanation.log(["p"], ["a"], np.zeros((1, 1)), 0.0, np.zeros(2), np.zeros(1))
        with pytest.raises(ValueError, match="kind"):
            Explanation("other", [], [], np.zeros((0, 0)), 0.0, *[np.zeros(0)] * 3)


def test_rankers_that_say_that_they_explain_do(table):
    able = Counter(name for name in rankers.names() if getattr(rankers.factory(name), "explains", False))
    assert {"bm25", "ql", "model1"} <= set(able)
    for name in ("bm25", "ql", "model1:TABLE"):
        assert isinstance(opened(name, table), Explaining)
