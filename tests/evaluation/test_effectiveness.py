"""Measures against ir-measures, comparisons and hypotheses against plain computation, tuning against brute force."""

from __future__ import annotations

import shutil

import ir_measures
import numpy as np
import pytest
import scipy.stats

from whyrank.core import WhyrankError, parse_call
from whyrank.data import Collection, open_collection
from whyrank.evaluation import (
    Hypothesis,
    Runner,
    evaluate,
    judge,
    parse_grid,
    read_hypotheses,
    split_queries,
    tune,
)
from whyrank.rankers import Setting
from whyrank.scoring import Engine
from whyrank.tables import TermTable


@pytest.mark.parametrize("measure", ["nDCG@10", "RR(rel=2)", "RR@10", "AP(rel=2)@100"])
def test_means_equal_ir_measures(data_folder, measure):
    collection = open_collection(str(data_folder / "msmarco_dl19"))
    found = {row.run: row for row in evaluate(dict(collection.runs), collection, [measure])}
    parsed = ir_measures.parse_measure(measure)
    for name, run in collection.runs.items():
        expected = ir_measures.calc_aggregate([parsed], collection.qrels, run)[parsed]
        assert found[name].mean == pytest.approx(expected, abs=1e-12)
        assert len(found[name].per_query) == 43


def test_published_effectiveness(data_folder):
    collection = open_collection(str(data_folder / "msmarco_dl19"))
    found = {row.run: round(row.mean, 4) for row in evaluate(dict(collection.runs), collection, ["nDCG@10"])}
    expected = {"bm25.top100": 0.5058, "bm25_rm3.top100": 0.5216, "tasb.top100": 0.7210, "openai_ada2.top100": 0.7035,
                "spladepp.top100": 0.7308}  # fmt: skip
    assert {name: found[name] for name in expected} == expected


QRELS = {f"q{i}": {"a": i % 2, "b": (i + 1) % 2, "c": 2} for i in range(12)}
TOY = Collection.of({d: d for d in "abc"}, {q: q for q in QRELS}, QRELS, name="toy")
GOOD = {q: {"c": 3.0, "a": 2.0, "b": 1.0} for q in QRELS}
BAD = {q: {"c": 1.0, "a": 2.0, "b": 3.0 if q != "q3" else 0.5} for q in QRELS}


def test_comparison_with_a_baseline():
    rows = {row.run: row for row in evaluate({"bad": BAD, "good": GOOD}, TOY, ["nDCG@10"], baseline="bad")}
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
    row = evaluate({"half": half}, TOY, ["nDCG@10"])[0]
    assert row.n_queries == len(QRELS)
    assert row.per_query["q7"] == 0.0


@pytest.mark.parametrize(("collection", "measure", "baseline", "said"), [
    (TOY, "nDGC@10", None, "nDCG@10"), (TOY, "nDCG@@", None, "nDCG@10"), (TOY, "(((", None, "nDCG@10"),
    (TOY, "nDCG@10", "x", "baseline"), (Collection.of({}, {"q": "x"}, name="bare"), "nDCG@10", None, "judgements"),
])  # fmt: skip
def test_refusals(collection, measure, baseline, said):
    with pytest.raises(WhyrankError, match=said):
        evaluate({"good": GOOD}, collection, [measure], baseline)


QUERIES = [f"q{i}" for i in range(12)]
JUDGED = {q: {"a": 2, "b": 0, "c": 1} for q in QUERIES}
TOYS = Collection.of({d: d for d in "abc"}, {q: q for q in QUERIES}, JUDGED, name="toy")


def run(seed, skill):
    rng = np.random.default_rng(seed)
    return {q: {d: rng.normal() + skill * JUDGED[q][d] for d in "abc"} for q in QUERIES}


RUNS = {"a1": run(1, 2), "a2": run(2, 2), "a3": run(3, 2), "b1": run(4, -2), "b2": run(5, -2), "plain": run(6, 0)}
GROUPS = {"A": ["a1", "a2", "a3"], "B": ["b1", "b2"]}


def test_a_group_is_the_mean_per_query():
    single = {row.run: row for row in evaluate(RUNS, TOYS, ["nDCG@10"])}
    rows = {row.run: row for row in evaluate(RUNS, TOYS, ["nDCG@10"], groups=GROUPS)}
    assert list(rows) == ["plain", "A", "B"]
    for q in QUERIES:
        assert rows["A"].per_query[q] == pytest.approx(sum(single[n].per_query[q] for n in GROUPS["A"]) / 3)
    means = [single[n].mean for n in GROUPS["A"]]
    assert rows["A"].mean == pytest.approx(sum(means) / 3)
    assert rows["A"].deviation == pytest.approx(np.std(means, ddof=1))
    assert (rows["A"].runs, rows["plain"].runs, rows["plain"].deviation) == (3, 1, None)


def test_hypotheses_are_corrected_together():
    rows = evaluate(RUNS, TOYS, ["nDCG@10", "RR@10"], groups=GROUPS)
    claims = [Hypothesis("H1", "A", "B"), Hypothesis("H2", "B", "plain"), Hypothesis("H3", "plain", "A")]
    found = judge(rows, claims, "holm")
    assert [(each.hypothesis, each.measure) for each in found] == [
        (h, m) for h in ("H1", "H2", "H3") for m in ("nDCG@10", "RR@10")
    ]
    order = sorted(found, key=lambda each: each.p_value)
    steps = np.maximum.accumulate([each.p_value * (6 - i) for i, each in enumerate(order)])
    assert [each.p_adjusted for each in order] == pytest.approx(np.minimum(1, steps).tolist())
    assert found[0].verdict(0.05) == "holds"
    assert found[4].verdict(0.05) == "reversed"
    assert found[0].verdict(0.0) == "open"
    assert found[0].difference == pytest.approx(found[0].mean - found[0].other)


def test_claims_from_a_file(tmp_path):
    file = tmp_path / "h.yaml"
    file.write_text("H1: 'A > B'\nsmaller: B < A\n2: runs/x.txt > bm25\n")
    assert read_hypotheses(str(file)) == [
        Hypothesis("H1", "A", "B"), Hypothesis("smaller", "A", "B"), Hypothesis("2", "runs/x.txt", "bm25"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *(
            (text, "h.yaml")
            for text in ("", "- A > B\n", "H: A\n", "H: A > \n", "H: A > A\n", "H: A > B > C\n", "H: 3\n", "H: [\n")
        ),
        ("x: A > B\ny: B > plain\nx: plain > A\n", "h.yaml:3: there are two hypotheses with the name 'x'; give each"),
        ("1: A > B\n2: B > C\n'1': B > A\n", "h.yaml:3: there are two hypotheses with the name '1'; give each"),
    ],
)
def test_wrong_claims(tmp_path, text, says):
    (tmp_path / "h.yaml").write_text(text)
    with pytest.raises(WhyrankError) as caught:
        read_hypotheses(str(tmp_path / "h.yaml"))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def numbered(grade, name="{}"):
    """A collection whose one query is named after a number."""
    return Collection.of({"a": "a", "b": "b"}, {name.format(1): "a"}, {name.format(1): {"a": grade}}, name="toy")


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a program in Perl")
@pytest.mark.parametrize("measure", ["ERR@10", "nDCG(dcg='exp-log2')@10"])
def test_what_gdeval_cannot_read_is_one_clear_line(measure, capfd):
    """ERR with the relevant text second: (2^3 - 1) / 2^4 / 2."""
    found = evaluate({"run": {"1": {"b": 2.0, "a": 1.0}}}, numbered(3), [measure])
    assert found[0].mean == pytest.approx(7 / 32 if measure == "ERR@10" else 1 / np.log2(3), abs=1e-4)
    for grade, name in ((5, "{}"), (3, "q{}"), (3, "t-{}")):
        with pytest.raises(WhyrankError, match="gdeval, which takes query ids that are numbers and grades up to 4"):
            evaluate({"run": {name.format(1): {"a": 1.0}}}, numbered(grade, name), [measure])
    assert capfd.readouterr() == ("", "")


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
            fresh[trial.ranker] = evaluate({"x": run}, sample, ["nDCG@10"])[0].mean
        assert {t.ranker: pytest.approx(t.dev) for t in trials} == fresh
        assert [t.dev for t in trials] == sorted(fresh.values(), reverse=True)
        assert trials[0].test is None

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
