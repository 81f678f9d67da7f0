"""Re-ranking by axioms and tables of preferences, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from refusals import one_line
from whyrank.data import open_collection, ranking, read_run
from whyrank.studies.axioms import rerank


@pytest.fixture
def folder(tmp_path) -> Path:
    path = tmp_path / "c"
    path.mkdir()
    texts = {"a": "cats", "b": "cats and dogs", "c": "dogs", "d": "birds"}
    (path / "corpus.jsonl").write_text("".join(f'{{"id": "{d}", "text": "{t}"}}\n' for d, t in texts.items()))
    (path / "queries.tsv").write_text("1\tcats dogs\n")
    (path / "qrels.txt").write_text("1 0 a 1\n1 0 b 2\n1 0 c 0\n")
    (path / "run.txt").write_text("1 Q0 d 1 4 t\n1 Q0 c 2 3 t\n1 Q0 a 3 2 t\n1 Q0 b 4 1 t\n")
    return path


class TestRank:
    @pytest.mark.parametrize("method", ["kwiksort", "tournament"])
    def test_a_run_out(self, whyrank, folder, tmp_path, method):
        out = tmp_path / "out.txt"
        code, _, err = whyrank("rank", "--collection", str(folder), "--axiom", "M-AND | -ORIG", "--candidates", str(folder / "run.txt"),
                               "--method", method, "--out", str(out))  # fmt: skip
        assert code == 0
        assert "4 lines for 1 query by M-AND | -ORIG" in err
        assert ranking(read_run(out)["1"]) == ["b", "a", "c", "d"]
        assert out.read_text().splitlines()[0] == "1 Q0 b 1 4.0 M-AND_|_-ORIG"

    def test_depth(self, whyrank, folder):
        asked = ("rank", "--collection", str(folder), "--axiom", "-ORIG", "--candidates", str(folder / "run.txt"))
        assert [line.split()[2] for line in whyrank(*asked)[1].splitlines()] == ["b", "a", "c", "d"]
        assert [line.split()[2] for line in whyrank(*asked, "--depth", "2")[1].splitlines()] == ["c", "d", "a", "b"]

    def test_the_same_as_from_python(self, whyrank, tmp_path):
        out = tmp_path / "out.txt"
        code, _, _ = whyrank(
            "rank", "--axiom", "2*TFC1 - DIV", "--candidates", "bm25", "--seed", "5", "--out", str(out)
        )
        sample = open_collection("sample")
        assert code == 0
        assert read_run(out) == rerank("2*TFC1 - DIV", sample, sample.runs["bm25"], seed=5)

    def test_the_analyzer_counts(self, whyrank, folder):
        asked = ("rank", "--collection", str(folder), "--axiom", "M-AND", "--candidates", str(folder / "run.txt"))
        (folder / "queries.tsv").write_text("1\tCAT DOG\n")
        assert whyrank(*asked)[1].startswith("1 Q0 b "), "stems are found"
        assert whyrank(*asked, "--analyzer", "whitespace")[1].startswith("1 Q0 d "), "words are not"

    def test_max_tokens(self, whyrank, folder):
        """After two words all that `b` has of the query is `cats`."""
        asked = ("rank", "--collection", str(folder), "--axiom", "M-AND", "--candidates", str(folder / "run.txt"),
                 "--analyzer", "whitespace")  # fmt: skip
        for given, first in (("3", "b"), ("none", "b"), ("2", "c")):
            _, out, _ = whyrank(*asked, "--max-tokens", given)
            assert out.startswith(f"1 Q0 {first} "), given

    def test_one_line_is_no_lines(self, whyrank, folder):
        (folder / "run.txt").write_text("1 Q0 d 1 4 t\n")
        asked = ("rank", "--collection", str(folder), "--axiom", "TFC1", "--candidates", str(folder / "run.txt"))
        assert whyrank(*asked)[2] == "1 line for 1 query by TFC1\n"

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["--max-tokens", "5"], "--max-tokens"),
            (["--axiom", "TFC1", "--candidates", "bm25", "--max-tokens", "0"], "--max-tokens '0'"),
            (["--axiom", "TFC1", "--candidates", "bm25", "--max-tokens", ""], "--max-tokens ''"),
            (["--axiom", "TFC1"], "--candidates"),
            (["--axiom", "TFC1", "--candidates", "bm25", "--ranker", "bm25"], "--ranker"),
            (["--axiom", "TFC1", "--candidates", "bm25", "--store", "none"], "--store"),
            (["--axiom", "TDC", "--candidates", "bm25", "--stats", "no.parquet"], "no.parquet"),
            (["--axiom", "TFC1", "--candidates", "bm25", "--executor", "processes"], "--executor"),
            (["--axiom", "TFC1", "--candidates", "bm25", "--out", ""], "--out is empty"),
            (["--axiom", "TFC1", "--candidates", "bm25", "--method", ""], "--method is empty"),
            (["--axiom", "TFC1(pairs=top:3)", "--candidates", "bm25"], "leave out pairs=top:3"),
            (["--axiom", "TFC1 & (DIV", "--candidates", "bm25"], "not closed"),
            (["--axiom", "STMC1(vectors=no.such)", "--candidates", "bm25"], "no.such: no such file"),
            (["--axiom", "TFC1", "--candidates", "bm25", "--method", "quicksort"], "'kwiksort'"),
            (["--axiom", "TFC4", "--candidates", "bm25"], "TFC1"),
            (["--axiom", "TFC1 &", "--candidates", "bm25"], "no expression"),
            (["--axiom", "TFC2", "--candidates", "bm25"], "TFC2"),
            (["--axiom", "", "--candidates", "bm25"], "no expression"),
            (["--axiom", "TFC1", "--candidates", "no.run"], "no.run"),
            (["--axiom", "TFC1", "--candidates", ""], "--candidates"),
            (["--axiom", "TFC4", "--candidates", "x", "--collection", "no/such"], "TFC4"),
            (["--method", "tournament"], "--axiom"),
            (["--ranker", "bm25", "--ranker", "ql"], "one --ranker"),
        ],
    )
    def test_wrong_requests(self, whyrank, arguments, says):
        assert says in one_line(whyrank("rank", *arguments))


class TestPreferences:
    def test_pairs(self, whyrank, folder, tmp_path):
        out = tmp_path / "p.parquet"
        code, _, err = whyrank(
            "preferences",
            "TFC1",
            "M-AND & -DIV",
            "--collection",
            str(folder),
            "--analyzer",
            "whitespace",
            "--out",
            str(out),
        )
        assert code == 0
        assert "3 pairs by 2 axioms" in err
        table = pq.read_table(out)
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
            (["2*TFC1 + axiom/DIV"], ["2*TFC1 + axiom/DIV"]),
            (["vote(TFC1, DIV)"], ["vote(TFC1, DIV)"]),
        ],
    )
    def test_columns_are_named_as_they_are_written(self, whyrank, folder, tmp_path, given, columns):
        out = tmp_path / "p.parquet"
        code, _, err = whyrank("preferences", *given, "--collection", str(folder), "--out", str(out))
        assert code == 0, err
        assert pq.read_table(out).column_names[3:-2] == columns

    def test_max_tokens(self, whyrank, folder, tmp_path):
        out = tmp_path / "p.parquet"
        asked = ("preferences", "M-AND", "--analyzer", "whitespace", "--collection", str(folder), "--out", str(out))
        for given, expected in (("3", [-1, 0, 1]), ("none", [-1, 0, 1]), ("2", [0, 0, 0])):
            assert whyrank(*asked, "--max-tokens", given)[0] == 0
            assert pq.read_table(out)["M-AND"].to_pylist() == expected, given

    def test_without_judgements_a_run_takes_their_place(self, whyrank, folder, tmp_path):
        (folder / "qrels.txt").unlink()
        out = tmp_path / "p.parquet"
        asked = ("preferences", "M-AND", "M-AND | -DIV", "--collection", str(folder), "--out", str(out))
        _, _, err = whyrank(*asked)
        assert "give --candidates RUN" in err
        assert pq.read_table(out).num_rows == 0
        run = str(folder / "run.txt")
        _, _, err = whyrank(*asked, "--candidates", run)
        assert f"c has no judgements, so axioms pair top:100 of {run}" in err
        assert pq.read_table(out).num_rows == 6
        _, _, err = whyrank(*asked, "--candidates", run, "--pairs", "top:2")
        assert "so axioms pair" not in err
        assert pq.read_table(out).num_rows == 1

    def test_one_is_no_plural(self, whyrank, folder, tmp_path):
        (folder / "qrels.txt").write_text("1 0 a 1\n1 0 b 2\n")
        asked = ("preferences", "M-AND", "--collection", str(folder), "--out", str(tmp_path / "p.parquet"))
        assert "1 pair by 1 axiom: " in whyrank(*asked)[2]

    def test_features_of_candidates(self, whyrank, folder, tmp_path):
        out = tmp_path / "f.parquet"
        code, _, err = whyrank("preferences", "AND", "--features", "--pairs", "top:4", "--candidates", str(folder / "run.txt"),
                               "--collection", str(folder), "--out", str(out))  # fmt: skip
        assert code == 0
        assert "4 documents by 1 axiom" in err
        rows = {row["doc_id"]: row for row in pq.read_table(out).to_pylist()}
        assert rows["b"]["AND mean"] == 1
        assert rows["d"]["AND mean"] == pytest.approx(-1 / 3)
        assert (rows["d"]["AND max"], rows["d"]["AND min"], rows["d"]["relevance"]) == (0, -1, None)

    def test_patterns_leave_out_what_compares_no_pairs(self, whyrank, folder, tmp_path):
        out = tmp_path / "p.parquet"
        code, _, err = whyrank("preferences", "TFC*", "TFC1", "--collection", str(folder), "--out", str(out))
        assert code == 0
        assert "left out: axiom TFC2" in err
        assert pq.read_table(out).column_names[3:-2] == ["TFC1", "TFC3"]

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["TFC1"], "--out"),
            (["TFC1", "--out", "x.csv"], ".parquet"),
            (["TFC4", "--out", "x.parquet"], "'axiom/TFC1'"),
            (["XYZ*", "--out", "x.parquet"], "XYZ*"),
            (["TFC2", "--out", "x.parquet"], "TFC2"),
            (["TFC1 |", "--out", "x.parquet"], "no expression"),
            (["TFC1", "--max-tokens", "0", "--out", "x.parquet"], "--max-tokens '0'"),
            (["TFC1", "--candidates", "no.such", "--out", "x.parquet"], "no.such"),
            (["TFC1", "--candidates", "", "--out", "x.parquet"], "--candidates is empty"),
            (["STMC1(vectors=no.such)", "--out", "x.parquet"], "no.such: no such file"),
            (["TFC1", "--pairs", "top:0", "--out", "x.parquet"], "top:K"),
            (["TFC1", "--collection", "no/such", "--out", "x.parquet"], "no/such"),
        ],
    )
    def test_wrong_requests(self, whyrank, arguments, says, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert says in one_line(whyrank("preferences", *arguments))
        assert list(tmp_path.iterdir()) == []
