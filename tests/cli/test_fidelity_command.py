"""`whyrank fidelity` as a user types it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.stats

from whyrank.data import open_collection, write_run
from whyrank.evaluation import evaluate
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine, rerank


@pytest.fixture(scope="module")
def sample():
    return open_collection("sample")


@pytest.fixture(scope="module")
def runs(sample):
    names = ("bm25", "ql", "bm25(k1=2)")
    given = sample.runs["bm25"]
    return {name: rerank(Engine(), open_ranker(name, Setting(sample)), sample, given)[0] for name in names}


SURROGATES = ("-s", "bm25", "-s", "bm25(k1=2)")
ARGUMENTS = ("fidelity", "-t", "ql", *SURROGATES, "--candidates", "bm25", "--k", "5", "--store", "none")


def test_json_has_the_figures_of_scipy(whyrank, sample, runs):
    code, out, err = whyrank(*ARGUMENTS, "--json")
    assert code == 0, err
    found = json.loads(out)
    for name in ("bm25", "bm25(k1=2)"):
        expected = []
        for q in runs["ql"]:
            docs = list(runs["ql"][q])
            x, y = ([runs[each][q][d] for d in docs] for each in ("ql", name))
            expected.append(scipy.stats.pearsonr(x, y).statistic)
        [row] = [r for r in found["fidelity"] if (r["surrogate"], r["measure"]) == (name, "pearson")]
        assert row["mean"] == pytest.approx(np.mean(expected), abs=1e-9)
        assert (row["collection"], row["target"], row["n_queries"], row["undefined"]) == ("sample", "ql", 40, 0)
        assert row["ci_low"] < row["mean"] < row["ci_high"]
    assert [(r["surrogate"], r["baseline"], r["measure"]) for r in found["differences"]] == [
        ("bm25(k1=2)", "bm25", m) for m in ("pearson", "kendall", "agreement", "top5")
    ]
    measured = {row.run: row.mean for row in evaluate(runs, sample, ["nDCG@10"])}
    assert {r["run"]: r["mean"] for r in found["effectiveness"]} == pytest.approx(measured)
    assert found["settings"].items() >= {"depth": 1000, "missing": "drop", "k": [5], "candidates": ["bm25"]}.items()


def test_files_have_every_query(whyrank, tmp_path):
    paths = [tmp_path / "f.parquet", tmp_path / "f.json"]
    for path in paths:
        code, _, err = whyrank(*ARGUMENTS, "--out", path)
        assert code == 0, err
        assert err.rstrip().endswith(str(path))
    table = pq.read_table(paths[0])
    whole = json.loads(paths[1].read_text())
    assert table.to_pylist() == whole["per_query"]
    assert table.num_rows == 80
    assert json.loads(table.schema.metadata[b"whyrank.fidelity"])["fidelity"] == whole["fidelity"]
    values = [row["kendall"] for row in whole["per_query"] if row["surrogate"] == "bm25"]
    [mean] = [r["mean"] for r in whole["fidelity"] if (r["surrogate"], r["measure"]) == ("bm25", "kendall")]
    assert np.mean(values) == pytest.approx(mean)


def test_a_run_file_as_target(whyrank, tmp_path, runs):
    part = {q: dict(list(docs.items())[:6]) for q, docs in runs["ql"].items() if q != "q01"}
    write_run(tmp_path / "part.txt", part)
    given = ["fidelity", "-t", f"run:{tmp_path}/part.txt", "-s", "bm25", "--candidates", "bm25", "--store", "none"]
    code, out, err = whyrank(*given, "--json", "-m", "kendall")
    assert code == 0, err
    [row] = json.loads(out)["fidelity"]
    assert (row["n_queries"], row["undefined"]) == (39, 1)
    expected = [
        scipy.stats.kendalltau([docs[d] for d in docs], [runs["bm25"][q][d] for d in docs]).statistic
        for q, docs in part.items()
    ]
    assert row["mean"] == pytest.approx(np.mean(expected))
    assert "scored by one alone, left out: run:" in err
    code, out, err = whyrank(*given, "--json", "-m", "kendall", "--missing", "zero")
    [zero] = json.loads(out)["fidelity"]
    assert zero["mean"] != pytest.approx(row["mean"])
    assert "has scores below 0" in err


def test_a_surrogate_that_lacks_documents_differs_from_the_baseline_over_those_of_both(whyrank, tmp_path, runs):
    rng = np.random.default_rng(0)
    part = {q: {d: docs[d] for d in rng.permutation(list(docs))[:6]} for q, docs in runs["bm25"].items()}
    write_run(tmp_path / "same.txt", part)  # the baseline's own scores
    write_run(tmp_path / "other.txt", {q: {d: runs["bm25(k1=2)"][q][d] for d in docs} for q, docs in part.items()})
    some = [option for name in ("same", "other") for option in ("-s", f"run:{tmp_path}/{name}.txt")]
    given = ["fidelity", "-t", "ql", "-s", "bm25", *some, "--candidates", "bm25", "--store", "none"]
    code, out, err = whyrank(*given, "--json", "-m", "pearson")
    assert code == 0, err
    found = json.loads(out)
    means = [row["mean"] for row in found["fidelity"]]
    assert means[0] != pytest.approx(means[1], abs=1e-3)
    same, other = found["differences"]
    assert (same["difference"], same["p_value"]) == (0.0, 1.0)
    expected = []
    for q, docs in part.items():
        target, base, score = ([runs[name][q][d] for d in docs] for name in ("ql", "bm25", "bm25(k1=2)"))
        if min(map(np.ptp, (target, base, score))) > 0:
            pair = (scipy.stats.pearsonr(target, each).statistic for each in (score, base))
            expected.append(next(pair) - next(pair))
    assert (other["n_queries"], other["difference"]) == (len(expected), pytest.approx(np.mean(expected)))


def test_published_runs_of_dl19(whyrank, data_folder):
    folder = data_folder / "msmarco_dl19"
    code, out, err = whyrank(
        "fidelity", "-c", folder, "-t", "run:tasb.top100", "-t", "run:spladepp.top100", "-s", "run:bm25.top100",
        "--candidates", "tasb.top100", "-m", "pearson", "--json",
    )  # fmt: skip
    assert code == 0, err
    collection = open_collection(str(folder))
    tasb, bm25 = collection.runs["tasb.top100"], collection.runs["bm25.top100"]
    expected = []
    for q in tasb:
        docs = [d for d in tasb[q] if d in bm25[q]]
        if len(docs) > 1:
            expected.append(scipy.stats.pearsonr([tasb[q][d] for d in docs], [bm25[q][d] for d in docs]).statistic)
    found = json.loads(out)
    [row] = [row for row in found["fidelity"] if row["target"] == "run:tasb.top100"]
    assert row["mean"] == pytest.approx(np.nanmean(expected))
    measured = {row["run"]: row["mean"] for row in found["effectiveness"]}
    assert measured["run:tasb.top100"] == pytest.approx(0.7210, abs=5e-5)


@pytest.mark.parametrize("sides", [("-t", "-s"), ("-s", "-t")])
def test_a_ranker_without_scores_ends_with_an_error_after_the_others_results(whyrank, folder, ranker, sides):
    nans = ranker("float('nan')")
    given = ("-c", folder, "--depth", "5", "--store", "none", "--json", "--out", folder / "f.json")
    code, out, err = whyrank("fidelity", sides[0], nans, sides[1], "bm25", *given)
    assert code == 2
    assert err.splitlines()[-1] == f"whyrank: {nans!r} has no finite score for any candidate of tiny"
    assert json.loads(out)["fidelity"][0]["mean"] is None
    assert json.loads((folder / "f.json").read_text())["fidelity"]
