"""`whyrank tables learn local-to-global` as a user types it."""

from __future__ import annotations

import json

import pytest

from refusals import one_line
from whyrank.data import open_collection
from whyrank.learners.local import LocalToGlobal
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine
from whyrank.tables import open_table

LEARN = ("tables", "learn", "local-to-global", "--target", "ql", "--depth", "20", "--top", "3", "--queries", "6")
LONGER = "def longer(queries, docs):\n    return [len(doc) + len(query) for query, doc in zip(queries, docs)]\n"


def test_all_settings_arrive(whyrank, tmp_path):
    out, words = tmp_path / "t.parquet", tmp_path / "w.jsonl"
    options = "--method lime --variant uniform --words 4 --samples 25 --threshold 0.2 --seed 3 --analyzer lucene"
    (tmp_path / "mine.py").write_text(LONGER)
    target = f"python:{tmp_path}/mine.py:longer"
    options += f" --target {target} --store none"
    code, printed, said = whyrank(*LEARN, *options.split(), "--out", out, "--explanations", words)
    assert (code, printed) == (0, ""), said
    sample = open_collection("sample")
    learner = LocalToGlobal(
        target, "lime", "uniform", 20, 3, 4, 25, threshold=0.2, seed=3, analyzer="lucene", queries=6
    )
    expected = learner.explain(sample, open_ranker(target, Setting(sample)), Engine())
    table = open_table(out)
    assert table.digest == expected.table.digest
    assert dict(table.facts) == dict(expected.table.facts)
    lines = [json.loads(line) for line in words.read_text().splitlines()]
    assert [line["query_id"] for line in lines] == [each.query_id for each in expected.explained]
    assert [line["words"] for line in lines] == [each.words for each in expected.explained]
    assert said.splitlines()[-1].endswith(f"of 6 queries, terms by lucene; {len(table):,} entries: {out}")


def test_going_on_from_the_store_gives_the_same(whyrank, tmp_path):
    store = tmp_path / "scores.sqlite"
    for name, method in (("a", "bm25"), ("b", "bm25")):
        assert whyrank(*LEARN, "--method", method, "--out", tmp_path / f"{name}.tsv", "--store", store)[0] == 0
    assert (tmp_path / "a.tsv").read_text() == (tmp_path / "b.tsv").read_text()


@pytest.mark.parametrize(("options", "expected"), [
    (["--out", "t.csv"], "a term table is written as"),
    (["--out", "t.tsv", "--method", "shap"], "method of local explanation"),
    (["--out", "t.tsv", "--variant", "none"], "variant of local-to-global"),
    (["--out", "t.tsv", "--threshold", "3"], "between 0 and 1"),
    (["--out", "t.tsv", "--target", "run:bm25"], "no scores for changed texts"),
    (["--out", "t.tsv", "--candidates", "nowhere.txt"], "nowhere.txt"),
    (["--out", "t.tsv", "--analyzer", "latin"], "analyzer"),
    (["--out", "t.tsv", "--explanations", ""], "--explanations is empty"),
    (["--out", "/proc/t.tsv", "--target", "nobody"], "/proc/t.tsv: cannot be written"),
    (["--out", "t.tsv", "--explanations", "/proc/w.jsonl"], "/proc/w.jsonl: cannot be written"),
    (["--out", "t.tsv", "--explanations", "./t.tsv"], "name one file"),
])  # fmt: skip
def test_wrong_requests_are_one_line(whyrank, tmp_path, monkeypatch, options, expected):
    monkeypatch.chdir(tmp_path)
    assert expected in one_line(whyrank(*LEARN, "--store", "none", *options))
    assert list(tmp_path.iterdir()) == []
