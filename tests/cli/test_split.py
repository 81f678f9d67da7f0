"""`whyrank data split` as a user types it: parts in a folder that opens."""

from __future__ import annotations

import json

from small_collections import write_collection

from whyrank.data import open_collection


def test_a_folder_that_refers_to_the_corpus(whyrank, tmp_path):
    qrels = "".join(f"q{i} 0 d{i % 5} {1 + i % 2}\nq{i} 0 d{(i + 1) % 5} 0\n" for i in range(20))
    docs, queries = {f"d{i}": f"some words {i}" for i in range(5)}, {f"q{i}": f"what is {i}" for i in range(20)}
    folder, out = write_collection(tmp_path / "all", docs, queries, qrels), tmp_path / "parts"
    code, table, err = whyrank("data", "split", folder, "--parts", "a=0.5,b=0.5", "--seed", 3, "--out", out)
    assert code == 0, err
    rows = [line.split()[:4] for line in table.splitlines() if line.strip()[:2] in ("a ", "b ")]
    assert rows == [["a", "10", "20", "10"], ["b", "10", "20", "10"]]
    assert "corpus: ../all/corpus.jsonl" in (out / "collection.yaml").read_text()
    assert not (out / "corpus.jsonl").exists()
    whole, one, two = open_collection(str(folder)), *(open_collection(f"{out}:{part}") for part in "ab")
    assert one.docs == two.docs == whole.docs
    assert {**one.queries, **two.queries} == whole.queries
    assert {**one.qrels, **two.qrels} == whole.qrels
    assert (one.name, one.grades) == ("all:a", whole.grades)
    assert json.loads((out / "splits.json").read_text())["seed"] == 3
    (tmp_path / "elsewhere").mkdir()
    for path in (folder, out):
        path.rename(tmp_path / "elsewhere" / path.name)
    moved = tmp_path / "elsewhere"
    assert open_collection(f"{moved / 'parts'}:a").docs == whole.docs
    (moved / "all" / "corpus.jsonl").unlink()
    code, _, err = whyrank("rank", "-c", f"{moved / 'parts'}:a")
    assert code == 2
    assert "collection.yaml: corpus: there is no file ../all/corpus.jsonl" in err.splitlines()[-1]


def test_the_sample_is_copied_and_a_split_can_be_split(whyrank, tmp_path):
    out, parts = tmp_path / "parts", "modelling=0.6,fusion=0.2,dev=0.1,test=0.1"
    code, text, _ = whyrank("data", "split", "sample", "--parts", parts, "--out", out, "--json")
    assert code == 0
    rows = {row["part"]: row for row in json.loads(text)["statistics"]}
    assert [row["queries"] for row in rows.values()] == [24, 8, 4, 4]
    sample, dev = open_collection("sample"), open_collection(f"{out}:dev")
    assert (dict(dev.docs), dict(dev.titles), dev.grades) == (dict(sample.docs), dict(sample.titles), sample.grades)
    assert rows["dev"]["relevant"] == sum(g >= 2 for q in dev.queries for g in sample.qrels[q].values())
    code, _, err = whyrank("data", "split", f"{out}:modelling", "--parts", "x=0.5,y=0.5", "--out", tmp_path / "again")
    assert code == 0, err
    assert len(open_collection(f"{tmp_path / 'again'}:x").queries) == 12


def test_the_statistics_are_counted_by_hand(whyrank, tmp_path):
    docs, queries = {"a": "red fox ran", "b": "cat"}, {"1": "red fox", "2": "black cat sat here"}
    path = write_collection(tmp_path / "c", docs, queries, "1 0 a 1\n1 0 b 1\n2 0 b 2\n2 0 a 0\n")
    given = ("--parts", "x=0.5,y=0.5", "--analyzer", "whitespace", "--out", tmp_path / "o", "--json")
    code, text, _ = whyrank("data", "split", path, *given)
    assert code == 0
    rows = sorted(json.loads(text)["statistics"], key=lambda row: row["query_length"])
    names = ("queries", "judged", "relevant", "relevant_per_query", "query_length", "relevant_length", "shared")
    assert [[row[name] for name in names] for row in rows] == [
        [1, 2, 2, 2.0, 2.0, 2.0, 1],
        [1, 2, 1, 1.0, 4.0, 1.0, 1],
    ]
