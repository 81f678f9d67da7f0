"""Weights of a fuse: the measures that are climbed are those of ir-measures, and what is fitted is what is used."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.evaluation import Runner, Split, evaluate, parse_grid, split_queries, tune
from whyrank.evaluation.effectiveness import measure_of
from whyrank.evaluation.fusion.ascent import fit
from whyrank.evaluation.fusion.fitting import EQUAL, FITTED, fit_fusion
from whyrank.evaluation.fusion.objectives import (
    ByMeasure,
    CandidateMatrix,
    is_exact,
    objective_of,
    pool_of,
    ties_ascend,
)
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine

EXACT = [
    "nDCG@3",
    "nDCG",
    "nDCG(dcg='log2')@5",
    "RR@3",
    "RR(rel=2)@10",
    "RR",
    "P@3",
    "P(rel=2)@2",
    "R@3",
    "Success@2",
]


def toy(seed, ties=False):
    """Random judgements and scores; some relevant texts are no candidates, and one judged query has none at all."""
    rng = np.random.default_rng(seed)
    ids = [f"d{i}" for i in range(12)]
    qrels = {f"q{q}": {d: int(rng.integers(0, 4)) for d in rng.permutation(ids)[:8]} for q in range(5)}
    collection = Collection.of({d: d for d in ids}, {q: q for q in qrels}, qrels, name="toy")
    rows = [sorted(rng.permutation(ids)[: rng.integers(1, 10)].tolist(), reverse=True) for _ in range(4)]
    matrix = rng.normal(size=(sum(map(len, rows)), 3))
    return collection, CandidateMatrix(list(qrels)[:4], rows, np.round(matrix) if ties else matrix)


@given(st.integers(0, 10**6), st.sampled_from(EXACT), st.booleans())
@settings(max_examples=25)
def test_exact_measures_are_those_of_ir_measures(seed, name, ties):
    collection, pool = toy(seed, ties)
    measure = measure_of(name)
    if ties_ascend(measure):
        ids = [list(reversed(each)) for each in pool.doc_ids]
        pool = CandidateMatrix(pool.query_ids, ids, pool.matrix)
    assert is_exact(measure)
    weights = (0.25, 0.5, 0.25)
    scores = pool.matrix @ np.array(weights)
    expected = evaluate({"x": pool.run(weights)}, collection, [name])[0].mean
    assert objective_of(measure, collection, pool).value(scores) == pytest.approx(expected, abs=1e-9)


def test_the_sampled_search_finds_what_the_exact_one_finds():
    """A measure that is exact, climbed both ways: few crossings, so that all stretches are tried."""
    collection, pool = toy(7)
    measure = measure_of("P@2")
    both = [
        fit(pool.matrix[:, :2], objective, restarts=3).value
        for objective in (objective_of(measure, collection, pool), ByMeasure(measure, collection, pool))
    ]
    assert both[0] == pytest.approx(both[1])


def sample_runner(depth=20, candidates=None):
    sample = open_collection("sample")
    return sample, Runner(Engine(), Setting(sample), candidates, depth)


def test_a_pool_is_what_the_parts_say(tmp_path):
    sample, runner = sample_runner()
    ranker = open_ranker("fuse(of=['bm25','ql'],weights=[0.3,0.7],normalise=query)", Setting(sample))
    pool = pool_of(ranker, sample, sample.runs["bm25"], runner.engine, 5)
    run = pool.run(ranker.weights)
    assert len(run) == 40
    for query_id, docs in list(run.items())[:5]:
        assert len(docs) == 5
        texts = [sample.docs[d] for d in docs]
        assert list(docs.values()) == pytest.approx(ranker.score([sample.queries[query_id]] * 5, texts))


def test_candidates_without_a_score_are_left_out(tmp_path):
    module = tmp_path / "mine.py"
    module.write_text(
        "def holes(queries, docs):\n    return [float('nan') if len(d) % 2 else len(d) for d in docs]\n"
    )
    sample, runner = sample_runner()
    ranker = open_ranker(f"fuse(of=['bm25','python:{module}:holes'])", Setting(sample))
    pool = pool_of(ranker, sample, sample.runs["bm25"], runner.engine, 5)
    assert all(len(sample.docs[d]) % 2 == 0 for ids in pool.doc_ids for d in ids)
    module.write_text("def holes(queries, docs):\n    return [float('nan')] * len(docs)\n")
    none = open_ranker(f"fuse(of=['bm25','python:{module}:holes(version=2)'])", Setting(sample))
    with pytest.raises(WhyrankError):
        pool_of(none, sample, sample.runs["bm25"], runner.engine, 5)


def test_fitted_weights_are_used_as_they_were_measured(tmp_path):
    """The value that the search reports is that of the run which the ranker with these weights makes."""
    sample, runner = sample_runner(candidates=open_collection("sample").runs["bm25"])
    split = split_queries(sample, 0.5, 3)
    found = fit_fusion("fuse(of=['bm25','ql'],normalise=query)", split, "nDCG@10", runner, restarts=3)
    rows = {row.name: row for row in found.rows}
    assert list(rows) == ["bm25", "ql", EQUAL, FITTED]
    assert rows[FITTED].dev >= max(row.dev for row in found.rows) - 1e-12
    assert rows[FITTED].dev == pytest.approx(found.fitted.value)
    spec = found.save(str(tmp_path / "w.json"))
    assert str(tmp_path) in spec
    best = {q: dict(sorted(docs.items(), key=lambda x: -x[1])[:20]) for q, docs in sample.runs["bm25"].items()}
    for part, value in ((split.dev, rows[FITTED].dev), (split.test, rows[FITTED].test)):
        for each in (spec, found.spec):
            run = Runner(Engine(), Setting(sample), best, 20).run(each, part)
            assert evaluate({"x": run}, part, ["nDCG@10"])[0].mean == pytest.approx(value)
    facts = json.loads((tmp_path / "w.json").read_text())
    assert facts["weights"] == list(found.fitted.weights)
    assert (facts["depth"], facts["restarts"], len(facts["ascents"])) == (20, 3, 3)


def test_the_file_of_weights_knows_the_scales_they_are_for(tmp_path):
    sample, runner = sample_runner(candidates=open_collection("sample").runs["bm25"])
    split, path = split_queries(sample, 1, 0), str(tmp_path / "w.json")
    found = fit_fusion("fuse(of=['bm25','ql'],scales=[1,50])", split, "nDCG@10", runner, restarts=1)
    assert open_ranker(found.save(path), Setting(sample)).weights == found.fitted.weights
    with pytest.raises(WhyrankError, match="was fitted with scales="):
        open_ranker(f"fuse(of=['bm25','ql'],weights={path!r})", Setting(sample))


def test_any_ranker_with_parameters_can_be_tuned(tmp_path):
    sample, runner = sample_runner(depth=50)
    grid = dict([parse_grid("mu=100:300:100")])
    trials = tune("ql(smoothing=dirichlet)", grid, Split(sample, None), "nDCG@10", runner)
    assert sorted(t.parameters["mu"] for t in trials) == [100, 200, 300]
    module = tmp_path / "mine.py"
    module.write_text("def shorter(queries, docs):\n    return [-len(d) for d in docs]\n")
    both = tune(f"python:{module}:shorter", {"version": [1, 2]}, Split(sample, None), "nDCG@10", runner)
    assert {t.ranker for t in both} == {f"python:{module}:shorter(version={v})" for v in (1, 2)}
