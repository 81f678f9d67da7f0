"""`whyrank data split` as a user types it: parts in a folder that opens."""

from __future__ import annotations

import json

import pytest

from whyrank.data import open_collection

PARTS = "modelling=0.6,fusion=0.2,dev=0.1,test=0.1"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "all"
    path.mkdir()
    (path / "corpus.jsonl").write_text("".join(f'{{"id": "d{i}", "text": "some words {i}"}}\n' for i in range(5)))
    (path / "queries.tsv").write_text("".join(f"q{i}\twhat is {i}\n" for i in range(20)))
    (path / "qrels.txt").write_text(
        "".join(f"q{i} 0 d{i % 5} {1 + i % 2}\nq{i} 0 d{(i + 1) % 5} 0\n" for i in range(20))
    )
    return path


def test_a_folder_that_refers_to_the_corpus(whyrank, folder):
    out = folder.parent / "parts"
    code, table, err = whyrank("data", "split", folder, "--parts", "a=0.5,b=0.5", "--seed", 3, "--out", out)
    assert code == 0, err
    assert [line.split()[:4] for line in table.splitlines() if line.strip()[:2] in ("a ", "b ")] == [
        ["a", "10", "20", "10"], ["b", "10", "20", "10"],
    ]  # fmt: skip
    assert "corpus: ../all/corpus.jsonl" in (out / "collection.yaml").read_text()
    assert not (out / "corpus.jsonl").exists()
    whole, one, two = open_collection(str(folder)), *(open_collection(f"{out}:{part}") for part in "ab")
    assert one.docs == two.docs == whole.docs
    assert {**one.queries, **two.queries} == whole.queries
    assert {**one.qrels, **two.qrels} == whole.qrels
    assert (one.name, one.grades) == ("all:a", whole.grades)
    report = json.loads((out / "splits.json").read_text())
    assert report["seed"] == 3
    moved = folder.parent / "elsewhere"
    moved.mkdir()
    folder.rename(moved / "all")
    out.rename(moved / "parts")
    assert open_collection(f"{moved / 'parts'}:a").docs == whole.docs


def test_a_corpus_that_is_gone_is_one_clear_line(whyrank, folder):
    out = folder.parent / "parts"
    whyrank("data", "split", folder, "--parts", "a=0.5,b=0.5", "--out", out)
    (folder / "corpus.jsonl").unlink()
    code, _, err = whyrank("rank", "-c", f"{out}:a")
    assert code == 2
    assert "collection.yaml: corpus: there is no file ../all/corpus.jsonl" in err.splitlines()[-1]


def test_the_sample_is_copied_and_a_split_can_be_split(whyrank, tmp_path):
    out = tmp_path / "parts"
    code, text, _ = whyrank("data", "split", "sample", "--parts", PARTS, "--out", out, "--json")
    assert code == 0
    rows = {row["part"]: row for row in json.loads(text)["statistics"]}
    assert [row["queries"] for row in rows.values()] == [24, 8, 4, 4]
    sample, dev = open_collection("sample"), open_collection(f"{out}:dev")
    assert dict(dev.docs) == dict(sample.docs)
    assert dict(dev.titles) == dict(sample.titles)
    assert dev.grades == sample.grades
    assert rows["dev"]["relevant"] == sum(g >= 2 for q in dev.queries for g in sample.qrels[q].values())
    code, _, err = whyrank("data", "split", f"{out}:modelling", "--parts", "x=0.5,y=0.5", "--out", tmp_path / "again")
    assert code == 0, err
    assert len(open_collection(f"{tmp_path / 'again'}:x").queries) == 12


def test_the_statistics_are_counted_by_hand(whyrank, tmp_path):
    path = tmp_path / "c"
    path.mkdir()
    (path / "corpus.jsonl").write_text('{"id": "a", "text": "red fox ran"}\n{"id": "b", "text": "cat"}\n')
    (path / "queries.tsv").write_text("1\tred fox\n2\tblack cat sat here\n")
    (path / "qrels.txt").write_text("1 0 a 1\n1 0 b 1\n2 0 b 2\n2 0 a 0\n")
    code, text, _ = whyrank(
        "data", "split", path, "--parts", "x=0.5,y=0.5", "--analyzer", "whitespace", "--out", tmp_path / "o", "--json"
    )
    assert code == 0
    rows = sorted(json.loads(text)["statistics"], key=lambda row: row["query_length"])
    assert [{k: v for k, v in row.items() if k != "part"} for row in rows] == [
        {"queries": 1, "judged": 2, "relevant": 2, "relevant_per_query": 2.0, "query_length": 2.0, "relevant_length": 2.0, "shared": 1},
        {"queries": 1, "judged": 2, "relevant": 1, "relevant_per_query": 1.0, "query_length": 4.0, "relevant_length": 1.0, "shared": 1},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sample"], "--out"),
        (["sample", "--out", "x", "--parts", "dev=2"], "--parts"),
        (["nothing", "--out", "x"], "nothing"),
        (["sample", "--out", "full"], "is there already"),
        (["sample", "--out", "x", "--analyzer", "lucen"], "lucene"),
    ],
)
def test_one_clear_line(whyrank, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    code, out, err = whyrank("data", "split", *arguments)
    assert (code, out) == (2, "")
    assert says in err.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
