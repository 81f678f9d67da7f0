"""`whyrank rank`, `explain` and `tune` with BM25T and QLT."""

from __future__ import annotations

import json

import pytest

from refusals import one_line
from whyrank.data import open_collection, read_run
from whyrank.rankers import Setting, open_ranker
from whyrank.tables import TermTable

ROWS = [
    ("car", "hatchback", 0.6),
    ("car", "skoda", 0.5),
    ("small", "compact", 0.7),
    ("famili", "school", 0.2),
    ("car", "car", 0.9),
]


@pytest.fixture
def table(tmp_path):
    TermTable.from_triples(*zip(*ROWS, strict=True), analyzer="lucene").save(tmp_path / "cars.parquet")
    return str(tmp_path / "cars.parquet")


@pytest.mark.parametrize("name", ["bm25t", "qlt"])
def test_retrieval_finds_texts_without_a_word_of_the_query(whyrank, tmp_path, table, name):
    code, _, _ = whyrank("rank", "-r", f"{name}:{table}", "--out", tmp_path / "run.txt")
    plain, _, _ = whyrank("rank", "-r", "bm25", "--out", tmp_path / "bm25.txt")
    found, exact = read_run(tmp_path / "run.txt")["q31"], read_run(tmp_path / "bm25.txt")["q31"]
    sample = open_collection("sample")
    ranker = open_ranker(f"{name}:{table}", Setting(sample))
    assert (code, plain) == (0, 0)
    assert "d257" in found
    assert "d257" not in exact
    assert exact.keys() < found.keys()
    assert found["d257"] == ranker.score([sample.queries["q31"]], [sample.docs["d257"]])[0]


def test_an_explanation_says_what_the_table_lacks(whyrank, table):
    code, out, err = whyrank("explain", "-r", f"bm25t:{table}", "--query-id", "q31", "--doc-id", "d257")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if "+" in line] == ["small", "famili", "car"]
    assert "note: without an entry in the table: reliabl" in err
    assert "note: entries of a term for itself are left out: car" in err
    code, out, _ = whyrank("explain", "-r", f"qlt:{table}", "--query-id", "q31", "--doc-id", "d257", "--json")
    told = json.loads(out)
    assert sum(told["parts"]) == pytest.approx(told["score"], abs=1e-6)


def test_tuning(whyrank, table):
    code, out, _ = whyrank("tune", "-r", f"bm25t:{table}(k1=0.6:1.2:0.6,match=sum)", "--depth", "10", "--json")
    assert code == 0
    assert sorted(trial["parameters"]["k1"] for trial in json.loads(out)) == [0.6, 1.2]
    code, out, _ = whyrank("tune", "-r", f"qlt:{table}", "--depth", "10", "--json")
    assert sorted(trial["parameters"]["mu"] for trial in json.loads(out)) == [10, 100, 500, 2000]


@pytest.mark.parametrize("name", ["bm25t", "qlt"])
def test_refusals(whyrank, tmp_path, table, name):
    whole = (tmp_path / "cars.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    assert "cut.parquet" in one_line(whyrank("rank", "-r", f"{name}:{tmp_path / 'cut.parquet'}"))
    TermTable.from_triples(["xx"], ["yy"], [0.5], analyzer="krovetz").save(tmp_path / "other.tsv")
    line = one_line(whyrank("rank", "-r", f"{name}:{tmp_path / 'other.tsv'}(analyzer=lucene)"))
    assert "learned with krovetz and is looked up with lucene" in line
    assert "variant" in one_line(whyrank("rank", "-r", f"{name}:{table}(variant=none)"))
