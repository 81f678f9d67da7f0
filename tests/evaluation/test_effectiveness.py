"""Measures against ir-measures, comparisons against plain computation, tuning against brute force."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
import scipy.stats

from whyrank.core import WhyrankError, parse_call
from whyrank.data import Collection, open_collection
from whyrank.evaluation import Runner, default_measures, evaluate, parse_grid, split_queries, tune
from whyrank.rankers import Setting
from whyrank.scoring import Engine
from whyrank.tables import TermTable


@pytest.mark.parametrize("measure", ["nDCG@10", "RR(rel=2)", "RR@10", "AP(rel=2)@100"])
def test_means_equal_ir_measures(data_folder, measure):
    collection = open_collection(str(data_folder / "msmarco_dl19"))
    found = {row.run: row for row in evaluate(collection, dict(collection.runs), [measure])}
    parsed = ir_measures.parse_measure(measure)
    for name, run in collection.runs.items():
        expected = ir_measures.calc_aggregate([parsed], collection.qrels, run)[parsed]
        assert found[name].mean == pytest.approx(expected, abs=1e-12)
        assert len(found[name].per_query) == 43


def test_published_effectiveness(data_folder):
    collection = open_collection(str(data_folder / "msmarco_dl19"))
    found = {row.run: round(row.mean, 4) for row in evaluate(collection, dict(collection.runs), ["nDCG@10"])}
    expected = {"bm25.top100": 0.5058, "bm25_rm3.top100": 0.5216, "tasb.top100": 0.7210, "openai_ada2.top100": 0.7035,
                "spladepp.top100": 0.7308}  # fmt: skip
    assert {name: found[name] for name in expected} == expected


QRELS = {f"q{i}": {"a": i % 2, "b": (i + 1) % 2, "c": 2} for i in range(12)}
TOY = Collection.of({d: d for d in "abc"}, {q: q for q in QRELS}, QRELS, name="toy")
GOOD = {q: {"c": 3.0, "a": 2.0, "b": 1.0} for q in QRELS}
BAD = {q: {"c": 1.0, "a": 2.0, "b": 3.0 if q != "q3" else 0.5} for q in QRELS}


def test_comparison_with_a_baseline():
    rows = {row.run: row for row in evaluate(TOY, {"bad": BAD, "good": GOOD}, ["nDCG@10"], baseline="bad")}
    good, bad = rows["good"], rows["bad"]
    diffs = np.array([good.per_query[q] - bad.per_query[q] for q in QRELS])
    assert good.difference == pytest.approx(diffs.mean())
    assert good.p_t == pytest.approx(
        scipy.stats.ttest_rel(list(good.per_query.values()), list(bad.per_query.values())).pvalue
    )
    assert good.ci_low < good.difference < good.ci_high
    assert bad.p_value is None
    assert good.p_adjusted == good.p_value


def test_missing_queries_count_as_zero():
    half = {q: docs for q, docs in GOOD.items() if q < "q5"}
    row = evaluate(TOY, {"half": half}, ["nDCG@10"])[0]
    assert row.n_queries == len(QRELS)
    assert row.per_query["q7"] == 0.0


def test_default_measures_know_the_grades():
    assert default_measures(open_collection("sample")) == ["nDCG@10", "RR(rel=2)@10", "AP(rel=2)@100"]


@pytest.mark.parametrize(("collection", "measure", "baseline", "said"), [
    (TOY, "nDGC@10", None, "nDCG@10"), (TOY, "nDCG@@", None, "nDCG@10"), (TOY, "(((", None, "nDCG@10"),
    (TOY, "nDCG@10", "x", "baseline"), (Collection.of({}, {"q": "x"}, name="bare"), "nDCG@10", None, "judgements"),
])  # fmt: skip
def test_refusals(collection, measure, baseline, said):
    with pytest.raises(WhyrankError, match=said):
        evaluate(collection, {"good": GOOD}, [measure], baseline)


class TestTuning:
    def test_finds_the_best_of_the_grid(self):
        sample = open_collection("sample")
        runner = Runner(Engine(), Setting(sample), None, 100)
        grid = {"k1": [0.2, 2.0], "b": [0.1, 0.9]}
        trials = tune("bm25", grid, split_queries(sample, 1.0, 0), "nDCG@10", runner)
        assert len(trials) == 4
        fresh = {}
        for trial in trials:
            run = Runner(Engine(), Setting(sample), None, 100).run(trial.ranker, sample)
            fresh[trial.ranker] = evaluate(sample, {"x": run}, ["nDCG@10"])[0].mean
        assert {t.ranker: pytest.approx(t.dev) for t in trials} == fresh
        assert [t.dev for t in trials] == sorted(fresh.values(), reverse=True)
        assert trials[0].test is None

    def test_re_ranks_candidates_with_query_likelihood(self):
        sample = open_collection("sample")
        candidates = {q: dict.fromkeys(judged, 1.0) for q, judged in sample.qrels.items()}
        trials = tune(
            "ql", {}, split_queries(sample, 0.5, 1), "nDCG@10", Runner(Engine(), Setting(sample), candidates, 10)
        )
        assert {t.parameters["mu"] for t in trials} == {100.0, 250.0, 500.0, 1000.0, 1500.0, 2500.0}
        assert all(t.test is not None and 0 < t.test < 1 for t in trials)

    def test_any_ranker_over_bm25_candidates(self, tmp_path):
        module = tmp_path / "mine.py"
        module.write_text("def shorter(queries, docs):\n    return [-len(d) for d in docs]\n")
        sample = open_collection("sample")
        trials = tune(
            f"python:{module}:shorter",
            {"version": [1, 2]},
            split_queries(sample, 1.0, 0),
            "nDCG@10",
            Runner(Engine(), Setting(sample), None, 20),
        )
        assert len(trials) == 2

    def test_split_is_disjoint_and_seeded(self):
        sample = open_collection("sample")
        one, two = split_queries(sample, 0.5, 7), split_queries(sample, 0.5, 7)
        assert set(one.dev.queries) == set(two.dev.queries)
        assert set(one.dev.queries) | set(one.test.queries) == set(sample.qrels)
        assert not set(one.dev.queries) & set(one.test.queries)
        assert set(split_queries(sample, 0.5, 8).dev.queries) != set(one.dev.queries)

    @pytest.mark.parametrize(
        ("text", "grid"),
        [("k1=0.5,1", ("k1", [0.5, 1.0])), ("b=0:0.3:0.1", ("b", [0.0, 0.1, 0.2, 0.3])), ("mu=100", ("mu", [100.0]))],
    )
    def test_grids(self, text, grid):
        assert parse_grid(text) == grid

    @pytest.mark.parametrize("text", ["k1", "k1=", "=1", "k1=a,b", "k1=0:1", "k1=0:1:0", "k1=0:1:-1"])
    def test_wrong_grids(self, text):
        with pytest.raises(WhyrankError, match="--grid"):
            parse_grid(text)

    def test_no_default_grid(self):
        sample = open_collection("sample")
        with pytest.raises(WhyrankError, match="--grid"):
            tune(
                "python:x:y", {}, split_queries(sample, 1.0, 0), "nDCG@10", Runner(Engine(), Setting(sample), None, 5)
            )

    def test_the_default_grid_begins_with_what_a_table_says_of_itself(self, tmp_path):
        docs, found = {"a": "ice", "b": "frozen water"}, {}
        toy = Collection.of(docs, {"1": "ice"}, {"1": {"b": 1}}, name="toy")
        runner = Runner(Engine(), Setting(toy, "whitespace"), {"1": {"a": 1.0, "b": 0.5}}, 2)
        for name, facts in (("export", {"p_self": 0.3, "lam": 0.0}), ("learned", {})):
            words = ["ice", "ice", "water"], ["ice", "frozen", "water"]
            TermTable.from_triples(*words, [0.3, 0.2, 0.3], analyzer="whitespace", **facts).save(
                tmp_path / f"{name}.tsv"
            )
            spec = f"model1:{tmp_path}/{name}.tsv(background=collection)"
            found[name] = tune(spec, {}, split_queries(toy, 1.0, 0), "nDCG@10", runner)
        own = [trial for trial in found["export"] if not trial.parameters]
        assert [parse_call(trial.ranker).arguments for trial in own] == [{"background": "collection"}]
        assert [set(trial.parameters) for trial in found["export"]].count({"lam"}) == len(found["export"]) - 1 == 8
        assert all(set(trial.parameters) == {"p_self", "lam"} for trial in found["learned"])
        assert len(found["learned"]) == 96

    @pytest.mark.parametrize("share", [0, -1, 1.5])
    def test_wrong_share(self, share):
        with pytest.raises(WhyrankError, match="share"):
            split_queries(TOY, share, 0)
