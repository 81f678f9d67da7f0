"""`whyrank evaluate --by overlap` as a user types it."""

from __future__ import annotations

import csv
import json
from xml.etree import ElementTree

import pytest

from whyrank.data import open_collection, write_run
from whyrank.evaluation import overlap_split


@pytest.fixture
def reversed_run(tmp_path):
    run = open_collection("sample").runs["bm25"]
    path = tmp_path / "reversed.txt"
    write_run(path, {q: {d: -s for d, s in docs.items()} for q, docs in run.items()})
    return str(path)


def test_a_table(whyrank, reversed_run):
    code, out, err = whyrank("evaluate", "--by", "overlap", "--run", "bm25", "--run", reversed_run)
    assert code == 0, err
    lines = [line.split() for line in out.splitlines() if "nDCG@10" in line]
    assert [line[:3] for line in lines] == [
        [run, "nDCG@10", kind] for kind in ("all", "retrieved") for run in ("bm25", reversed_run)
    ]
    sample = open_collection("sample")
    expected = overlap_split(sample, {"bm25": sample.runs["bm25"]}, sample.runs["bm25"])
    assert lines[0][3::3] == [f"{row.mean:.3f}" for row in expected[:3]]
    assert "group 3: " in out
    assert "queries per group: all 14, 13, 13; retrieved" in out
    assert "the relevant document is in bm25" in err


def test_json_is_the_rows(whyrank, reversed_run):
    options = [
        "--groups",
        "2",
        "--relevant",
        "max",
        "--analyzer",
        "whitespace",
        "--seed",
        "3",
        "-m",
        "RR@10",
        "-m",
        "P@5",
    ]
    code, out, _ = whyrank(
        "evaluate", "--by", "overlap", "--run", reversed_run, "--baseline", "bm25", *options, "--json"
    )
    assert code == 0
    found = json.loads(out)
    assert [(r["run"], r["measure"]) for r in found[::4]] == [
        ("bm25", "RR@10"), ("bm25", "P@5"), (reversed_run, "RR@10"), (reversed_run, "P@5"),
    ]  # fmt: skip
    assert [r["group"] for r in found[:4]] == [1, 2, 1, 2]
    assert found[0]["difference"] is None
    assert found[-4]["baseline"] == "bm25"
    assert found[-4]["difference"] == pytest.approx(found[-4]["mean"] - found[4]["mean"])


def test_differences_from_the_baseline_are_printed(whyrank, reversed_run):
    _, out, _ = whyrank("evaluate", "--by", "overlap", "--run", reversed_run, "--baseline", "bm25")
    after = out.partition("difference from bm25")[2]
    assert [line.split()[:3] for line in after.splitlines() if "nDCG@10" in line] == [
        [reversed_run, "nDCG@10", "all"], [reversed_run, "nDCG@10", "retrieved"],
    ]  # fmt: skip
    assert " -0." in after


def test_files(whyrank, tmp_path):
    for name in ("o.csv", "o.json", "o.svg"):
        code, _, err = whyrank("evaluate", "--by", "overlap", "--out", str(tmp_path / name))
        assert code == 0, err
        assert err.rstrip().endswith(str(tmp_path / name))
    rows, objects = list(csv.DictReader((tmp_path / "o.csv").open())), json.loads((tmp_path / "o.json").read_text())
    assert [(r["queries"], int(r["group"]), float(r["mean"])) for r in rows] == [
        (r["queries"], r["group"], r["mean"]) for r in objects
    ]
    assert ElementTree.parse(tmp_path / "o.svg").getroot().tag.endswith("svg")


def test_another_first_stage(whyrank, tmp_path):
    run = open_collection("sample").runs["bm25"]
    write_run(tmp_path / "top1.txt", {q: {max(docs, key=docs.get): 1.0} for q, docs in run.items()})
    _, out, _ = whyrank("evaluate", "--by", "overlap", "--candidates", str(tmp_path / "top1.txt"), "--json")
    _, usual, _ = whyrank("evaluate", "--by", "overlap", "--json")
    few, many = (sum(r["n"] for r in json.loads(text) if r["queries"] == "retrieved") for text in (out, usual))
    assert few < many


def folder(path, runs=True):
    """A collection whose third query has no relevant document."""
    path.mkdir()
    (path / "corpus.jsonl").write_text(
        "".join(f'{{"id": "{d}", "text": "{t}"}}\n' for d, t in (("a", "red fox"), ("b", "cat")))
    )
    (path / "queries.tsv").write_text("1\tred fox\n2\tred cat\n3\tdog\n")
    (path / "qrels.txt").write_text("1 0 a 1\n2 0 b 1\n3 0 a 0\n")
    if runs:
        (path / "runs").mkdir()
        (path / "runs" / "one.txt").write_text("1 Q0 a 1 2.0 x\n2 Q0 a 1 2.0 x\n3 Q0 a 1 2.0 x\n")
    return str(path)


def test_queries_without_a_relevant_document_are_left_out_and_counted(whyrank, tmp_path):
    code, out, err = whyrank("evaluate", "--by", "overlap", "--groups", "2", "-c", folder(tmp_path / "c"), "--json")
    rows = json.loads(out)
    assert code == 0
    assert "1 judged query without terms or relevant text left out" in err
    assert [(r["queries"], r["share_low"], r["n"], r["mean"]) for r in rows] == [
        ("all", 0.5, 1, 0.0), ("all", 1.0, 1, 1.0), ("retrieved", 0.5, 0, None), ("retrieved", 1.0, 1, 1.0),
    ]  # fmt: skip
    assert rows[0]["ci_low"] is None, "one query has no interval"


def test_no_first_stage(whyrank, tmp_path):
    where, run = folder(tmp_path / "c", runs=False), tmp_path / "r.txt"
    run.write_text("1 Q0 a 1 2.0 x\n2 Q0 b 1 2.0 x\n3 Q0 a 1 2.0 x\n")
    code, out, err = whyrank("evaluate", "--by", "overlap", "--groups", "2", "-c", where, "--run", str(run), "--json")
    assert code == 0
    assert {row["queries"] for row in json.loads(out)} == {"all"}
    assert "give it with --candidates RUN" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--by", "overlp"], "did you mean 'overlap'"),
        (["--by", "overlap", "--out", "o.png"], "o.png: the overlap split cannot be written so; end the name in .csv, .json, .svg"),
        (["--by", "overlap", "--groups", "0"], "--groups"),
        (["--by", "overlap", "--groups", "41"], "only 40 of the judged queries"),
        (["--by", "overlap", "--relevant", "min"], "did you mean 'mean'"),
        (["--by", "overlap", "--candidates", "no.txt"], "no.txt"),
        (["--by", "overlap", "-m", "nDGC"], "nDCG@10"),
        (["--by", "overlap", "--analyzer", "lucen"], "lucene"),
    ],
)  # fmt: skip
def test_one_clear_line(whyrank, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    code, out, err = whyrank("evaluate", *arguments)
    assert (code, out) == (2, "")
    assert says in err.splitlines()[-1]
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_evaluate_without_a_split_is_as_before(whyrank, tmp_path):
    code, out, _ = whyrank("evaluate", "-m", "nDCG@10", "--json", "--out", str(tmp_path / "v.csv"))
    assert code == 0
    assert json.loads(out)[0]["n_queries"] == 40
    assert len(list(csv.DictReader((tmp_path / "v.csv").open()))) == 40
