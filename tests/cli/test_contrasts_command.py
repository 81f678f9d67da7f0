"""`whyrank contrasts`: the contrasts of a study, and the preferences of axioms, as data sets."""

from __future__ import annotations

import json
import re

import pyarrow.parquet as pq
import pytest
import yaml
from small_collections import write_collection

from refusals import one_line
from whyrank.data import open_collection
from whyrank.studies.probes import probes


def read_rows(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_contrasts_of_a_probe(whyrank, tmp_path, suffix):
    path = tmp_path / f"c{suffix}"
    code, _, err = whyrank("contrasts", "matched/length|tf", "--out", path)
    assert code == 0
    rows = read_rows(path)
    assert f"{len(rows):,} contrasts" in err
    collection = open_collection("sample")
    made = probes.create("matched/length|tf(tolerance=10%)").contrasts(collection)
    assert made.fingerprint[:16] in err
    assert all([collection.docs[d] for d in row["doc_ids"]] == row["docs"] for row in rows)


def test_a_folder_is_a_data_set_with_a_card(whyrank, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="pip install 'whyrank[datasets]' to run this test")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    given = ("contrasts", "edited/typos", "--limit", 20, "-r", "bm25", "--out", tmp_path / "typos")
    for _ in range(2):  # made, then replaced
        code, _, err = whyrank(*given)
        assert code == 0, err
    found = datasets.load_dataset(str(tmp_path / "typos"), split="train", cache_dir=str(tmp_path / "cache"))
    assert found.to_list() == pq.read_table(tmp_path / "typos" / "contrasts.parquet").to_pylist()
    _, front, card = (tmp_path / "typos" / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(front)["configs"] == [{"config_name": "default", "data_files": "contrasts.parquet"}]
    assert f"fingerprint: `{re.search(r'[0-9a-f]{16}', err)[0]}" in card
    assert "prefers the text with spelling mistakes" in card
    assert all(f"| `{name}` |" in card for name in found.column_names)


def test_a_folder_of_something_else_is_left_alone(whyrank, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    assert "is not empty" in one_line(whyrank("contrasts", "edited/typos", "--out", tmp_path))
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize("study", ["matched/length|tf", "axiom/TFC1"])
def test_with_a_ranker(whyrank, tmp_path, study):
    delta = ("--delta", "0") if study.startswith("matched") else ()
    whyrank("contrasts", study, "--ranker", "bm25", *delta, "--out", tmp_path / "c.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert list(rows[0])[:4] == ["query_id", "doc_ids", "query", "docs"]
    for row in rows:
        assert row["diff"] == pytest.approx(row["scores"][0] - row["scores"][1])
        assert row["effect"] == (row["diff"] > 0) - (row["diff"] < 0)


@pytest.mark.parametrize(
    ("given", "full", "n"),
    [
        ("TFC1", "axiom/TFC1", 2),
        ("TFC1(length=0)", "axiom/TFC1(length=0)", 2),
        ("TFC1 & -DIV", "axiom/expression(of='TFC1 & -DIV')", 2),
        ("TFC1 & DIV", "axiom/expression(of='TFC1 & DIV')", 0),
        ("2*TFC1 | axiom/DIV", "axiom/expression(of='2*TFC1 | axiom/DIV')", 2),
        ("TFC[1]", "axiom/TFC1", 2),
        ("*/length|tf", "matched/length|tf", 0),
        ("matched/length|tf(tolerance=1)", "matched/length|tf(tolerance=1)", 0),
    ],
)
def test_short_names_and_expressions(whyrank, folder, given, full, n):
    out = f"{folder}/x.parquet"
    code, _, err = whyrank("contrasts", given, "-c", folder, "--analyzer", "whitespace", "--out", out)
    assert code == 0, err
    assert f"{n} contrast{'s' * (n != 1)} of {given}" in err
    assert json.loads(pq.read_schema(out).metadata[b"whyrank.contrasts"])["study"] == full


def test_a_limit_of_a_bias_study_is_one_of_templates(whyrank, tmp_path):
    for options in ((), ("-r", "bm25")):
        code, _, err = whyrank("contrasts", "bias/car-brand", "--limit", 3, *options, "--out", tmp_path / "c.jsonl")
        rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
        assert code == 0, err
        assert len({row["template"] for row in rows}) == 3
        assert len(rows) == 3 * 29 * 28 / 2  # every two of 29 values


def test_texts_that_a_ranker_chooses(whyrank, folder, tmp_path, ranker):
    """Where texts are chosen by scores, the contrasts are those of the audit, and of one ranker."""
    study = "bias/substitution(values=dogs+cows+pigs,templates=found,head=cats,filters='relevant(above=0)')"
    given = ("contrasts", study, "-c", folder, "--delta", 0)
    low, high = ranker("-1.0", name="low"), ranker("1.0", name="high")
    for spec, n in ((low, 0), (high, 1)):
        code, _, err = whyrank(*given, "-r", spec, "--out", tmp_path / "c.jsonl")
        assert code == 0, err
        assert ((tmp_path / "c.jsonl").stat().st_size > 0) == bool(n)
    code, _, err = whyrank(*given, "-r", low, "-r", high, "--out", tmp_path / "d.jsonl")
    assert (code, (tmp_path / "d.jsonl").exists()) == (2, False)
    assert "give one --ranker" in err


class TestPreferences:
    @pytest.fixture
    def pets(self, tmp_path):
        docs = {"a": "cats", "b": "cats and dogs", "c": "dogs", "d": "birds"}
        run = "".join(f"1 Q0 {d} {rank} {5 - rank} t\n" for rank, d in enumerate("dcab", 1))
        return write_collection(tmp_path / "c", docs, {"1": "cats dogs"}, "1 0 a 1\n1 0 b 2\n1 0 c 0\n", run)

    @pytest.fixture
    def preferences(self, whyrank, pets):
        """The table of preferences that the command writes, and what it says."""

        def run(*arguments):
            code, _, err = whyrank("contrasts", *arguments, "-c", pets, "--out", pets / "p.parquet")
            assert code == 0, err
            return pq.read_table(pets / "p.parquet"), err

        return run

    def test_pairs(self, preferences):
        table, err = preferences("TFC1", "M-AND & -DIV", "--analyzer", "whitespace")
        assert "3 pairs by 2 axioms" in err
        assert table.column_names[3:5] == ["TFC1", "M-AND & -DIV"]
        assert json.loads(table.schema.metadata[b"whyrank.axioms"]) == {
            "TFC1": "axiom/TFC1(analyzer=whitespace)",
            "M-AND & -DIV": "axiom/and(analyzer=whitespace,of=('M-AND', \"not(of=('DIV',))\"))",
        }
        assert [(row["doc_a"], row["doc_b"]) for row in table.to_pylist()] == [("a", "b"), ("a", "c"), ("b", "c")]

    @pytest.mark.parametrize(
        ("given", "columns"),
        [
            (["TFC1&M-AND", "TFC1 & M-AND"], ["TFC1&M-AND"]),
            (["axiom/TFC1", "TFC?"], ["TFC1", "TFC3"]),
            ([" TFC1(length=10) ", "TFC1"], ["TFC1(length=10)"]),
            (["2*TFC1 + axiom/DIV", "AND"], ["2*TFC1 + axiom/DIV", "AND"]),
            (["vote(TFC1, DIV)", "AND"], ["vote(TFC1, DIV)", "AND"]),
            (["TFC*", "TFC1"], ["TFC1", "TFC3"]),
        ],
    )
    def test_columns_are_named_as_they_are_written(self, preferences, given, columns):
        """Patterns leave out what compares no pairs."""
        table, err = preferences(*given)
        assert table.column_names[3:-2] == columns
        assert ("left out: axiom TFC2" in err) == ("TFC?" in given or "TFC*" in given)

    def test_without_judgements_a_run_takes_their_place(self, preferences, pets):
        (pets / "qrels.txt").unlink()
        given, run = ("M-AND", "M-AND | -DIV"), ("--candidates", pets / "run.txt")
        table, err = preferences(*given)
        assert ("give --candidates RUN" in err, table.num_rows) == (True, 0)
        table, err = preferences(*given, *run)
        assert f"c has no judgements, so axioms and probes take top:100 of {pets / 'run.txt'}" in err
        assert table.num_rows == 6
        table, err = preferences(*given, *run, "--pairs", "top:2")
        assert ("so axioms and probes take" in err, table.num_rows) == (False, 1)

    def test_features_of_candidates(self, preferences, pets):
        table, err = preferences("AND", "--features", "--pairs", "top:4", "--candidates", pets / "run.txt")
        assert "4 documents by 1 axiom" in err
        rows = {row["doc_id"]: row for row in table.to_pylist()}
        assert rows["b"]["AND mean"] == 1
        assert rows["d"]["AND mean"] == pytest.approx(-1 / 3)
        assert (rows["d"]["AND max"], rows["d"]["AND min"], rows["d"]["relevance"]) == (0, -1, None)
