"""`whyrank tables`: show, diff and export."""

from __future__ import annotations

import json
import re

import pyarrow.parquet as pq
import pytest

from whyrank.tables import TermTable, open_table

OURS = [("car", "auto", 0.5), ("car", "car", 0.9), ("car", "bus", 0.25), ("cat", "kitten", 0.125)]
THEIRS = [("car", "auto", 0.75), ("car", "car", 0.9), ("dog", "kitten", 0.5)]


@pytest.fixture
def files(tmp_path):
    """Two tables, the first with a term that has no entry."""
    for name, triples in (("a.parquet", OURS), ("b.arrow", THEIRS)):
        TermTable.from_triples(*zip(*triples, strict=True), learner="by hand").save(tmp_path / name)
    return str(tmp_path / "a.parquet"), str(tmp_path / "b.arrow")


def test_a_whole_table(whyrank, files):
    code, out, err = whyrank("tables", "show", files[0])
    assert code == 0
    assert err == f"4 entries: {files[0]}\n"
    assert "4 (1 of a term with itself)" in out
    assert "by hand" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["car", "auto", "0.5"] in lines
    assert ["car", "car", "0.9"] not in lines
    assert lines.index(["car", "auto", "0.5"]) < lines.index(["car", "bus", "0.25"])


def test_terms_in_both_directions(whyrank, files):
    code, out, err = whyrank("tables", "show", files[0], "car", "kitten")
    assert code == 0
    assert err.startswith("2 terms of ")
    assert "query term 'car'" in out
    assert "document term 'kitten'" in out
    code, out, _ = whyrank("tables", "show", files[0], "car", "kitten", "--json", "--show", "2")
    assert json.loads(out) == {
        "car": {"doc_terms": [["car", 0.9], ["auto", 0.5]], "query_terms": [["car", 0.9]]},
        "kitten": {"doc_terms": [], "query_terms": [["cat", 0.125]]},
    }


def test_odd_terms_stay_on_their_line(whyrank, tmp_path):
    TermTable.from_triples(["a\nb", "[red]x[/red]"], ["c\x1b[31m", "y"], [1, 0.5]).save(tmp_path / "t.tsv")
    _, out, _ = whyrank("tables", "show", tmp_path / "t.tsv")
    assert "'a\\nb'" in out
    assert "\x1b" not in out
    assert "[red]x[/red]" in out


def test_an_unknown_term_of_a_large_table(whyrank, tmp_path):
    many = [f"word{i}" for i in range(6000)]
    TermTable.from_triples(["kitten", *many], ["x"] * 6001, [1.0] * 6001).save(tmp_path / "t.arrow")
    code, _, err = whyrank("tables", "show", tmp_path / "t.arrow", "Kiten")
    assert code == 2
    assert "did you mean 'kitten'?" in err


def test_differences(whyrank, files):
    code, out, err = whyrank("tables", "diff", *files)
    assert code == 0
    assert err == f"4 of 5 associations differ between {files[0]} and {files[1]}\n"
    lines = [line.split() for line in out.splitlines()]
    assert ["car", "auto", "0.5", "0.75", "+0.25"] in lines
    assert ["car", "bus", "0.25", "–", "-0.25"] in lines
    assert ["dog", "kitten", "–", "0.5", "+0.5"] in lines
    assert ["only", "in", "A", "2"] in lines


def test_differences_as_json_and_files(whyrank, files, tmp_path):
    code, out, err = whyrank("tables", "diff", *files, "--json", "--show", "1", "--out", tmp_path / "d.parquet")
    found = json.loads(out)
    assert code == 0
    assert err.endswith(f": {tmp_path / 'd.parquet'}\n")
    assert found["counts"] == {"same": 1, "changed": 1, "only_a": 2, "only_b": 1}
    assert found["only_a"] == [{"query_term": "car", "document_term": "bus", "a": 0.25, "b": None}]
    rows = {(r["query_term"], r["document_term"]): (r["a"], r["b"]) for r in pq.read_table(tmp_path / "d.parquet").to_pylist()}  # fmt: skip
    assert rows["dog", "kitten"] == (None, 0.5)
    assert len(rows) == 5
    whyrank("tables", "diff", *files, "--out", tmp_path / "d.tsv")
    assert "car\tbus\t0.25\t\t-0.25\n" in (tmp_path / "d.tsv").read_text()
    whyrank("tables", "diff", *files, "--out", tmp_path / "d.json")
    assert json.loads((tmp_path / "d.json").read_text())["only_a"][1]["document_term"] == "kitten"


def test_export_of_synonyms(whyrank, files, tmp_path):
    out = tmp_path / "synonyms.txt"
    done = whyrank("tables", "export", files[0], "--out", out, "--as", "synonyms", "--threshold", "0.2")
    assert done == (0, "", f"1 line with 2 associations of {files[0]}: {out}\n")
    assert out.read_text() == "car => car, auto, bus\n"
    whyrank("tables", "export", files[0], "--out", out, "--as", "synonyms", "--top", "1", "--equivalent")
    assert out.read_text() == "car, auto\ncat, kitten\n"
    whyrank("tables", "export", files[0], "--out", out, "--as", "synonyms", "--top", "1", "--replace")
    assert out.read_text() == "car => auto\ncat => kitten\n"


def test_words_of_the_package_and_of_a_collection(whyrank, tmp_path):
    """A table of stems shows words beside them, finds terms by their words, and exports words of the sample."""
    code, out, _ = whyrank("tables", "show", "bundled", "Automobiles", "--show", "1")
    assert code == 0
    assert ["automot", "automotive"] in [line.split()[:2] for line in out.splitlines()]
    code, _, err = whyrank("tables", "show", "bundled", "cheap car")
    assert (code, "unknown term 'cheap car'" in err) == (2, True)
    out = tmp_path / "s.txt"
    code, _, err = whyrank("tables", "export", "bundled", "--as", "synonyms", "--top", "1", "-c", "sample", "-o", out)
    assert code == 0
    assert re.search(r"terms left out that no text of sample has as a word\nnote: .* opposites or names", err)
    assert "car => car, vehicle\n" in out.read_text()
    TermTable.from_triples(["cat"], ["kitti"], [0.5], analyzer="lucene").save(tmp_path / "stems.tsv")
    code, _, err = whyrank("tables", "export", tmp_path / "stems.tsv", "--as", "synonyms", "--top", "1", "-o", out)
    assert code == 2
    assert "an engine needs words; name texts that have them with --collection" in err


def test_export_of_expansions(whyrank, files, tmp_path):
    out = tmp_path / "e.json"
    done = whyrank("tables", "export", files[0], "--out", out, "--as", "expansion", "--top", "2")
    assert done == (0, "", f"2 query terms with 3 associations of {files[0]}: {out}\n")
    assert json.loads(out.read_text()) == {"car": [["car", 0.9], ["auto", 0.5]], "cat": [["kitten", 0.125]]}


@pytest.mark.parametrize("name", ["t.tsv", "t.tsv.gz", "t.parquet", "t.arrow"])
def test_export_to_other_formats(whyrank, files, tmp_path, name):
    code, _, err = whyrank("tables", "export", files[0], "--out", tmp_path / name, "--threshold", "0.25")
    assert (code, err) == (0, f"3 entries of {files[0]}: {tmp_path / name}\n")
    assert open_table(tmp_path / name).digest == open_table(files[0]).prune(0.25).digest
    kind = name.split(".")[1]
    assert whyrank("tables", "export", files[0], "--out", tmp_path / "x", "--as", kind)[0] == 0
    assert open_table(tmp_path / "x").digest == open_table(files[0]).digest


def test_facts_of_a_table_are_one_line_each(tmp_path, whyrank):
    facts = {"certificate": {"recall": 0.99470976, "drawn": 4_000_000, "strata": [{"pairs": 1}, {"pairs": 2}]}}
    table = TermTable.from_triples(["car"], ["vehicle"], [0.5], collections=["one", "two"], top=10, **facts)
    table.save(str(tmp_path / "table.parquet"))
    code, out, _ = whyrank("tables", "show", str(tmp_path / "table.parquet"))
    assert code == 0
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line.strip()}
    assert lines["certificate"] == "recall 0.99471, drawn 4000000, strata [2: see --json]"
    assert (lines["collections"], lines["top"]) == ("one, two", "10")


def test_tables_that_were_made_differently_are_noted(whyrank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["cat", "dog", "sat"]
    TermTable.from_triples(words, words, [0.9, 0.8, 0.7], analyzer="lucene").save("t.tsv")
    TermTable.from_triples(["car"], ["fiat"], [0.5], analyzer="krovetz", threshold=0.1).save("k.tsv")
    assert whyrank("tables", "export", "t.tsv", "--threshold", "0.75", "--top", "1", "-o", "less.tsv")[0] == 0
    assert open_table("less.tsv").facts == {"analyzer": "lucene", "threshold": 0.75, "top_query": 1}
    open_table("t.tsv").renormalise("doc").save("sums.tsv")
    for other, notes in {
        "less.tsv": ["begin at different weights (unknown and 0.75)", "so many entries at most: any number and 1;"],
        "sums.tsv": ["different scales (as learned and with the sum 1 by doc term)"],
        "k.tsv": ["terms are made by lucene in A and by krovetz in B", "different weights (unknown and 0.1)"],
        "t.tsv": [],
    }.items():
        said = whyrank("tables", "diff", "t.tsv", other)[2]
        assert all(note in said for note in notes), said
        assert ("note" in said) == bool(notes)
