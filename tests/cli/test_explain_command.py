"""`whyrank explain`."""

from __future__ import annotations

import io
import json
import sys

import pytest

import whyrank as package
from refusals import one_line
from whyrank.data import open_collection
from whyrank.rankers import Setting
from whyrank.tables import TermTable


@pytest.fixture
def table(tmp_path):
    words = [
        "mercury",
        "melting",
        "melts",
        "temperature",
        "scale",
        "of",
        "the",
        "at",
        "point",
        "a",
        "in",
        "and",
        "is",
    ]
    pairs = [(q, d, (i + 1) / 200) for i, (q, d) in enumerate((q, d) for q in words for d in words)]
    TermTable.from_triples(*zip(*pairs, strict=True), analyzer="whitespace").save(tmp_path / "t.arrow")
    return str(tmp_path / "t.arrow")


@pytest.fixture
def collection(tmp_path):
    """A collection of which the table knows most words."""
    (tmp_path / "c").mkdir()
    docs = {"d1": "mercury melts at a point", "d2": "the scale of temperature"}
    lines = "".join(json.dumps({"_id": i, "text": text}) + "\n" for i, text in docs.items())
    (tmp_path / "c" / "corpus.jsonl").write_text(lines)
    (tmp_path / "c" / "queries.tsv").write_text("q1\tmelting mercury\n")
    return str(tmp_path / "c")


def cells(out):
    return [line.split() for line in out.splitlines()]


def test_an_additive_ranker(whyrank):
    code, out, err = whyrank("explain", "mercury melting", "Mercury melts at a point. Mercury!", "-r", "bm25")
    setting = Setting(open_collection("sample"))
    [score] = package.open_ranker("bm25", setting).score(["mercury melting"], ["Mercury melts at a point. Mercury!"])
    assert code == 0
    assert f"score {score:.6g}: the sum of all cells" in out
    assert err == f"score {score:.6g} by bm25; collection sample\n"
    rows = {row[0]: row for row in cells(out) if row}
    assert ["query", "term", "mercuri", "melt", "sum"] in cells(out)
    assert float(rows["mercuri"][-1]) + float(rows["melt"][-1]) == pytest.approx(score, abs=2e-4)
    assert "2 document terms shown, 1 without effect left out" in out


def test_a_log_ranker(whyrank, table, collection):
    spec = f"model1:{table}(background=collection)"
    asked = (
        "explain",
        "-r",
        spec,
        "-c",
        collection,
        "--top",
        "2",
        "melting mercury",
        "the melts temperature mercury zork",
    )
    code, out, err = whyrank(*asked)
    assert code == 0
    assert "2 document terms shown, 2 weaker ones summed up (--top)" in out
    header = next(row for row in cells(out) if row[:2] == ["query", "term"])
    assert header[-5:] == ["2", "more", "background", "P(q|D)", "adds"]
    row = next(row for row in cells(out) if row[:1] == ["melting"])
    shares = [float(cell.strip("<%")) for cell in row if cell.endswith("%")]
    assert len(shares) == 4
    assert sum(shares) == pytest.approx(100, abs=0.3)
    assert "note: not in the table, of the text: zork\n" in err


def test_json_gives_the_score_back(whyrank, table, collection):
    code, out, _ = whyrank(
        "explain", "-r", f"model1:{table}", "-c", collection, "--query-id", "q1", "--doc-id", "d1", "--json"
    )
    found = json.loads(out)
    assert code == 0
    assert found["ranker"] == f"model1:{table}"
    assert found["query_terms"] == ["melting", "mercury"]
    assert found["document_terms"] == ["mercury", "melts", "at", "a", "point"]
    assert sum(found["parts"]) == pytest.approx(found["score"], abs=1e-6)
    totals = [start + sum(row) for start, row in zip(found["background"], found["cells"], strict=True)]
    assert totals == pytest.approx(found["totals"])


def test_ids_and_typed_texts_mix(whyrank, collection, monkeypatch):
    by_ids = whyrank("explain", "-c", collection, "--query-id", "q1", "--doc-id", "d1", "--json")
    assert whyrank("explain", "-c", collection, "--query-id", "q1", "mercury melts at a point", "--json") == by_ids
    assert whyrank("explain", "-c", collection, "melting mercury", "--doc-id", "d1", "--json") == by_ids
    monkeypatch.setattr(sys, "stdin", io.StringIO("mercury melts at a point"))
    assert whyrank("explain", "-c", collection, "melting mercury", "-", "--json") == by_ids


def test_odd_terms_stay_as_they_are(whyrank):
    code, out, _ = whyrank(
        "explain",
        "[CLS] a[bold]b x\x1b[31m",
        "[CLS] a[bold]b x\x1b[31m",
        "--analyzer",
        "whitespace",
        "--ranker",
        "ql",
    )
    assert code == 0
    assert out.count("[CLS]".lower()) + out.count("[CLS]") >= 2
    assert out.count("a[bold]b") == 2
    assert "\x1b[31m" not in out


@pytest.mark.parametrize("empty", [("", "a text"), ("a query", ""), ("", "")])
def test_nothing_to_explain_is_no_error(whyrank, empty):
    for spec in ("bm25", "ql"):
        assert whyrank("explain", "-r", spec, *empty)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["a"], "explain takes QUERY and TEXT"), ([], "explain takes QUERY and TEXT"), (["a", "b", "c"], "3 texts given"),
     (["a", "b", "--doc-id", "p001"], "explain takes QUERY, in quotes; 2 texts given"), (["a", "--doc-id", "nothing"], "unknown document of sample 'nothing'"),
     (["a", "--query-id", "nothing"], "unknown query of sample 'nothing'"), (["a", "b", "-r", "model1:none.arrow"], "none.arrow"),
     (["a", "b", "-r", "model1"], "needs 'resource'"), (["a", "b", "--top", "0"], "--top"), (["a", "b", "-r", ""], "--ranker is empty")],
)  # fmt: skip
def test_requests_that_are_wrong(whyrank, arguments, words):
    assert words in one_line(whyrank("explain", *arguments))


def test_a_ranker_that_cannot_explain(whyrank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def score(queries, docs):\n    return [0.0] * len(docs)\n")
    said = one_line(whyrank("explain", "a", "b", "-r", "python:mine.py:score"))
    assert "does not explain its scores term by term; rankers that do: " in said
    assert all(name in said for name in ("bm25", "ql", "model1"))


def test_model1_ranks_probes_and_audits(whyrank, table, collection, tmp_path):
    spec = f"model1:{table}"
    code, out, _ = whyrank("rank", "-r", spec, "-c", collection)
    assert code == 0
    assert [line.split()[2] for line in out.splitlines()][:1] == ["d1"]
    (tmp_path / "c" / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    asked = ("-r", spec, "-c", collection, "--delta", "0", "--json")
    code, out, _ = whyrank("audit", "matched/relevance|*", *asked)
    assert code == 0
    assert {finding["ranker"] for finding in json.loads(out)} == {spec}
