"""`whyrank evaluate` and `whyrank tune` as a user types them."""

from __future__ import annotations

import csv
import json
import statistics
from itertools import islice
from xml.etree import ElementTree

import numpy as np
import pytest
from small_collections import write_collection

from whyrank.data import open_collection, write_run
from whyrank.evaluation import overlap_split
from whyrank.rankers.lexical import Background
from whyrank.text import analyzers

FUSE = "fuse(of=['bm25','ql'],normalise=query)"


@pytest.fixture
def runs(tmp_path):
    """Three runs of the sample that differ a little from its own, and one turned upside down."""
    given = open_collection("sample").runs["bm25"]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        noisy = {q: {d: s + rng.normal() for d, s in docs.items()} for q, docs in given.items()}
        write_run(tmp_path / f"s{seed}.txt", noisy)
    write_run(tmp_path / "down.txt", {q: {d: -s for d, s in docs.items()} for q, docs in given.items()})
    return tmp_path


def test_values_of_every_query(whyrank, tmp_path):
    code, out, _ = whyrank("evaluate", "--out", tmp_path / "v.csv", "-m", "RR@10", "--json")
    rows = list(csv.DictReader((tmp_path / "v.csv").open()))
    assert code == 0
    assert {row["measure"] for row in rows} == {"RR@10"}
    assert len(rows) == json.loads(out)[0]["n_queries"] == 40
    assert json.loads(out)[0]["mean"] == pytest.approx(statistics.mean(float(row["value"]) for row in rows))


def test_query_ids_are_no_formulas_in_csv(whyrank, tmp_path):
    texts = {"a": "cats purr", "b": "cats and dogs"}
    path = write_collection(tmp_path / "c", texts, {"=1+1": "cats"}, "=1+1 0 a 1\n=1+1 0 b 0\n")
    (tmp_path / "@run.txt").write_text("=1+1 Q0 a 1 2.0 x\n")
    given = ("--out", tmp_path / "v.csv", "-m", "RR@10", "-c", path, "--run", tmp_path / "@run.txt")
    assert whyrank("evaluate", *given)[0] == 0
    [row] = csv.DictReader((tmp_path / "v.csv").open())
    assert (row["query_id"], float(row["value"])) == ("'=1+1", 1.0)


def test_a_run_that_lacks_queries_and_documents(whyrank, tmp_path):
    (tmp_path / "r.txt").write_text("q01 Q0 d001 1 2.0 x\nq01 Q0 gone 2 1.0 x\n")
    code, _, err = whyrank("evaluate", "--run", tmp_path / "r.txt")
    assert code == 0
    assert "gone" in err
    assert "39 judged queries missing" in err


def test_groups_and_hypotheses(whyrank, runs):
    down = str(runs / "down.txt")
    (runs / "h.yaml").write_text(f"seeds: S > {down}\nown: bm25 < {down}\n")
    given = ("--mean-of", f"S={runs}/s*.txt", "--hypotheses", runs / "h.yaml", "-m", "nDCG@10")
    code, out, err = whyrank("evaluate", *given, "--out", runs / "v.csv")
    assert code == 0, err
    verdicts = [line.split()[-1] for line in out.splitlines() if line.split()[:1] in (["seeds"], ["own"])]
    assert verdicts == ["holds", "reversed"]
    assert "sd: standard deviation" in out
    assert len((runs / "v.csv").read_text().splitlines()) == 1 + 3 * 40
    found = json.loads(whyrank("evaluate", *given, "--json")[1])
    assert {row["run"]: row["runs"] for row in found["runs"]} == {"bm25": 1, down: 1, "S": 3}
    assert [each["verdict"] for each in found["hypotheses"]] == verdicts


class TestOverlap:
    def test_a_table(self, whyrank, runs):
        down = str(runs / "down.txt")
        code, out, err = whyrank("evaluate", "--overlap", "--run", "bm25", "--run", down, "--baseline", "bm25")
        assert code == 0, err
        means, _, differences = out.partition("difference from bm25")
        rows, others = (
            [line.split() for line in text.splitlines() if "nDCG@10" in line] for text in (means, differences)
        )
        kinds = ("all", "retrieved")
        assert [row[:3] for row in rows] == [[run, "nDCG@10", kind] for kind in kinds for run in ("bm25", down)]
        assert [row[:3] for row in others] == [[down, "nDCG@10", kind] for kind in kinds]
        assert " -0." in differences
        sample = open_collection("sample")
        expected = overlap_split(sample, {"bm25": sample.runs["bm25"]}, sample.runs["bm25"])
        assert rows[0][3::3] == [f"{row.mean:.3f}" for row in expected[:3]]
        assert "group 3: " in out
        assert "queries per group: all 14, 13, 13; retrieved" in out
        assert "the relevant document is in bm25" in err

    def test_files(self, whyrank, tmp_path):
        for name in ("o.csv", "o.json", "o.svg"):
            code, _, err = whyrank("evaluate", "--overlap", "--out", tmp_path / name)
            assert (code, err.rstrip().endswith(str(tmp_path / name))) == (0, True), err
        rows = list(csv.DictReader((tmp_path / "o.csv").open()))
        assert [(r["queries"], int(r["group"]), float(r["mean"])) for r in rows] == [
            (r["queries"], r["group"], r["mean"]) for r in json.loads((tmp_path / "o.json").read_text())
        ]
        assert ElementTree.parse(tmp_path / "o.svg").getroot().tag.endswith("svg")

    def test_the_first_stage_and_queries_without_a_relevant_document(self, whyrank, tmp_path):
        """The third query has no relevant document; the relevant document of the second is not retrieved."""
        path = write_collection(
            tmp_path / "c", {"a": "red fox", "b": "cat"}, {"1": "red fox", "2": "red cat", "3": "dog"},
            "1 0 a 1\n2 0 b 1\n3 0 a 0\n", "".join(f"{q} Q0 a 1 2.0 x\n" for q in (1, 2, 3)),
        )  # fmt: skip
        given = ("evaluate", "--overlap", "--groups", "2", "-c", path, "--run", path / "run.txt", "--json")
        code, out, err = whyrank(*given)
        assert code == 0
        assert {row["queries"] for row in json.loads(out)} == {"all"}
        assert "give it with --candidates RUN" in err
        _, out, err = whyrank(*given, "--candidates", path / "run.txt")
        assert "1 judged query without terms or relevant text left out" in err
        assert [(r["queries"], r["share_low"], r["n"], r["mean"]) for r in json.loads(out)] == [
            ("all", 0.5, 1, 0.0), ("all", 1.0, 1, 1.0), ("retrieved", 0.5, 0, None), ("retrieved", 1.0, 1, 1.0),
        ]  # fmt: skip
        assert json.loads(out)[0]["ci_low"] is None, "one query has no interval"


class TestTune:
    def test_a_grid(self, whyrank, tmp_path):
        given = ("--grid", "k1=0.9,1.2", "--grid", "b=0.4", "--dev-share", "0.5", "--out", tmp_path / "t.json")
        code, out, err = whyrank("tune", *given, "--json")
        assert code == 0
        assert {t["ranker"] for t in json.loads(out)} == {"bm25(k1=0.9,b=0.4)", "bm25(k1=1.2,b=0.4)"}
        assert json.loads((tmp_path / "t.json").read_text()) == json.loads(out)
        assert "best of 2 settings on 20 queries" in err
        code, _, err = whyrank("tune", "-r", "bm25(b=0.4)", "--grid", "k1=0.6:1.2:0.6", "--depth", 20)
        assert (code, "bm25(b=0.4,k1=" in err) == (0, True)

    def test_weights_are_fitted_saved_and_used(self, whyrank, tmp_path):
        file = tmp_path / "w.json"
        options = ["-m", "RR@10", "--restarts", 3, "--candidates", "bm25", "--dev-share", "0.5", "--seed", 1]
        code, out, err = whyrank("tune", "-r", FUSE, *options, "--out", file)
        assert code == 0, err
        rows = [line.split() for line in out.splitlines() if "0." in line]
        assert [row[:2] for row in rows] == [["1", "bm25"], ["2", "ql"], ["equal", "weights"], ["fitted", rows[3][1]]]
        assert float(rows[3][-2]) >= max(float(row[-2]) for row in rows)
        spec = err.splitlines()[-1].partition(": ")[2]
        assert f"weights={file}" in spec
        assert json.loads(file.read_text())["queries"] == 20
        assert whyrank("rank", "-r", spec, "--candidates", "bm25", "--out", tmp_path / "r.txt")[0] == 0

    def test_what_is_tuned_is_what_is_ranked_under_other_statistics(self, whyrank, tmp_path):
        """Both retrieve with BM25 under the statistics that are given, and so re-rank the same documents."""
        file, run = tmp_path / "s.parquet", tmp_path / "r.txt"
        texts = dict(islice(open_collection("sample").docs.items(), 30))
        Background.of(texts, analyzers.create("lucene")).save(file)
        [trial] = json.loads(
            whyrank("tune", "-r", "ql", "--grid", "mu=1000", "--depth", 5, "--stats", file, "--json")[1]
        )
        means = []
        for options in (["--stats", file], []):
            assert whyrank("rank", "-r", "ql(mu=1000)", "--depth", 5, *options, "--out", run)[0] == 0
            [row] = json.loads(whyrank("evaluate", "--run", run, "-m", "nDCG@10", "--json")[1])
            means.append(row["mean"])
        assert means[0] == trial["dev"] != means[1]
