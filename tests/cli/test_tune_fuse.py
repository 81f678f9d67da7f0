"""`whyrank tune` for the weights of a fuse, as a user types it."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from whyrank.rankers.lexical import Background
from whyrank.testing.examples import sample
from whyrank.text import analyzers

FUSE = "fuse(of=['bm25','ql'],normalise=query)"


def test_weights_are_fitted_saved_and_used(whyrank, tmp_path):
    file = tmp_path / "w.json"
    options = ["-m", "RR@10", "--restarts", 3, "--candidates", "bm25", "--dev-share", "0.5", "--seed", 1]
    code, out, err = whyrank("tune", "-r", FUSE, *options, "--out", file)
    assert code == 0, err
    lines = [line.split() for line in out.splitlines() if "0." in line]
    assert [line[:2] for line in lines] == [["1", "bm25"], ["2", "ql"], ["equal", "weights"], ["fitted", lines[3][1]]]
    assert float(lines[3][-2]) >= max(float(line[-2]) for line in lines)
    assert f"weights={file}" in err.splitlines()[-1]
    spec = err.splitlines()[-1].partition(": ")[2]
    code, _, err = whyrank("rank", "-r", spec, "--candidates", "bm25", "--out", tmp_path / "r.txt")
    assert code == 0, err
    assert json.loads(file.read_text())["queries"] == 20


def test_json_and_the_same_seed(whyrank):
    outs = [
        whyrank("tune", "-r", FUSE, "-m", "nDCG@10", "--restarts", 2, "--depth", 10, "--json")[1] for _ in range(2)
    ]
    assert outs[0] == outs[1]
    found = json.loads(outs[0])
    assert found["depth"] == 10
    assert sum(map(abs, found["choices"][-1]["weights"])) == pytest.approx(1)
    assert found["choices"][-1]["dev"] == found["dev"]


def test_a_grid_in_the_call_string_and_a_file_of_trials(whyrank, tmp_path):
    code, _, err = whyrank("tune", "-r", "bm25(k1=0.6:1.2:0.6,b=0.4)", "--depth", 20, "--out", tmp_path / "t.json")
    assert code == 0, err
    trials = json.loads((tmp_path / "t.json").read_text())
    assert {trial["ranker"] for trial in trials} == {"bm25(b=0.4,k1=0.6)", "bm25(b=0.4,k1=1.2)"}
    assert trials[0]["ranker"] in err


def test_what_is_tuned_is_what_is_ranked_under_other_statistics(whyrank, tmp_path):
    """Both retrieve with BM25 under the statistics that are given, and so re-rank the same documents."""
    file, run, texts = tmp_path / "s.parquet", tmp_path / "r.txt", dict(islice(sample().docs.items(), 30))
    Background.of(texts, analyzers.create("lucene")).save(file)
    options = ["--depth", 5, "--stats", file]
    code, out, err = whyrank("tune", "-r", "ql", "--grid", "mu=1000", *options, "--json")
    assert code == 0, err
    assert whyrank("rank", "-r", "ql(mu=1000)", *options, "--out", run)[0] == 0
    measured = json.loads(whyrank("evaluate", "--run", run, "-m", "nDCG@10", "--json")[1])
    assert json.loads(out)[0]["dev"] == measured[0]["mean"]
    assert whyrank("rank", "-r", "ql(mu=1000)", "--depth", 5, "--out", run)[0] == 0
    plain = json.loads(whyrank("evaluate", "--run", run, "-m", "nDCG@10", "--json")[1])
    assert plain[0]["mean"] != measured[0]["mean"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-r", "bm25", "--restarts", "2"], "--restarts is for the weights of a fuse"),
        (["-r", FUSE, "--grid", "k=10,60", "--tolerance", "0.1"], "--tolerance is for the weights of a fuse"),
        (["-r", FUSE, "--restarts", "0"], "--restarts"),
        (["-r", FUSE, "-m", "nDGC"], "nDCG@10"),
        (["-r", "fuse(of=['bm25'])"], "two or more rankers"),
        (["-r", FUSE, "--out", ""], "--out is empty"),
    ],
)
def test_one_clear_line(whyrank, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, out, err = whyrank("tune", *arguments)
    assert (code, out) == (2, "")
    assert says in err.splitlines()[-1]
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
