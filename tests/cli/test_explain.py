"""`whyrank explain`."""

from __future__ import annotations

import io
import json
import sys

import pytest
from small_collections import write_collection

from whyrank.data import open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.tables import TermTable


@pytest.fixture
def table(tmp_path):
    words = ["mercury", "melting", "melts", "temperature", "scale", "of", "the", "at", "point", "a", "in", "and",
             "is"]  # fmt: skip
    pairs = [(q, d, (i + 1) / 200) for i, (q, d) in enumerate((q, d) for q in words for d in words)]
    TermTable.from_triples(*zip(*pairs, strict=True), analyzer="whitespace").save(tmp_path / "t.arrow")
    return str(tmp_path / "t.arrow")


@pytest.fixture
def collection(tmp_path):
    """A collection of which the table knows most words."""
    docs = {"d1": "mercury melts at a point", "d2": "the scale of temperature"}
    return write_collection(tmp_path / "c", docs, {"q1": "melting mercury"}, "q1 0 d1 1\nq1 0 d2 0\n")


def cells(out):
    return [line.split() for line in out.splitlines()]


def test_an_additive_ranker(whyrank):
    query, text = "mercury melting zork", "Mercury melts at a point. Mercury!"
    code, out, err = whyrank("explain", query, text, "-r", "bm25")
    [score] = open_ranker("bm25", Setting(open_collection("sample"))).score([query], [text])
    assert code == 0
    assert err == f"score {score:.6g} by bm25; collection sample\n"
    rows = {row[0]: row for row in cells(out) if row}
    assert [rows[term][2] for term in ("mercuri", "melt")] == ["mercuri", "melt"]
    assert rows["zork"] == ["zork", "nothing"]
    assert float(rows["mercuri"][1]) + float(rows["melt"][1]) == pytest.approx(score, abs=2e-4)


def test_a_log_ranker(whyrank, table, collection):
    spec = f"model1:{table}(background=collection)"
    texts = ("melting mercury", "the melts temperature mercury zork")
    code, out, err = whyrank("explain", "-r", spec, "-c", collection, "--top", "2", *texts)
    assert code == 0
    row = next(row for row in cells(out) if row[:1] == ["melting"])
    shares = [float(cell.strip("<%,")) for cell in row if cell.strip(",").endswith("%")]
    assert [row[6], row[8], len(shares)] == ["rest", "background", 4]
    assert sum(shares) == pytest.approx(100, abs=0.3)
    assert "note: not in the table, of the text: zork\n" in err


def test_json_gives_the_score_back(whyrank, table, collection):
    given = ("-r", f"model1:{table}", "-c", collection, "--query-id", "q1", "--doc-id", "d1", "--json")
    code, out, _ = whyrank("explain", *given)
    found = json.loads(out)
    assert (code, found["ranker"]) == (0, f"model1:{table}")
    terms = found["query_terms"]
    assert [each["query_term"] for each in terms] == ["melting", "mercury"]
    assert sum(each["adds"] for each in terms) == pytest.approx(found["score"], abs=1e-6)
    for each in terms:
        assert {given["document_term"] for given in each["document_terms"]} == {
            "mercury",
            "melts",
            "at",
            "a",
            "point",
        }
        assert each["background"] + sum(given["gives"] for given in each["document_terms"]) == pytest.approx(1)


def test_ids_and_typed_texts_mix(whyrank, collection, monkeypatch):
    query, text = "melting mercury", "mercury melts at a point"
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    ways = (
        ["--query-id", "q1", "--doc-id", "d1"],
        ["--query-id", "q1", text],
        [query, "--doc-id", "d1"],
        [query, "-"],
    )
    found = [whyrank("explain", "-c", collection, *way, "--json") for way in ways]
    assert found[0][0] == 0
    assert found == [found[0]] * 4


def test_typed_texts_are_explained_whatever_the_collection(whyrank, tmp_path):
    heart = TermTable.from_triples(["heart", "attack"], ["qcardiac", "qinfarct"], [0.5, 0.6], analyzer="whitespace")
    heart.save(tmp_path / "heart.tsv")
    spec = f"model1:{tmp_path}/heart.tsv(lam=0)"
    code, out, err = whyrank("explain", "-r", spec, "heart attack", "qcardiac arrest", "--json")
    given = [[each["document_term"] for each in row["document_terms"]] for row in json.loads(out)["query_terms"]]
    assert (code, given, "knows" in err) == (0, [["qcardiac"], []], False)


def test_odd_terms_stay_as_they_are(whyrank):
    odd = "[CLS] a[bold]b x\x1b[31m"
    code, out, _ = whyrank("explain", odd, odd, "--analyzer", "whitespace", "--ranker", "ql")
    assert code == 0
    assert out.lower().count("[cls]") >= 2
    assert out.count("a[bold]b") == 2
    assert "\x1b[31m" not in out


BOX = ("-r", "python:box.py:score")


@pytest.fixture
def box(tmp_path, monkeypatch):
    """A ranker that counts words, in the current folder."""
    monkeypatch.chdir(tmp_path)
    lines = ["def score(queries, docs):", "    return [3 * d.count('mercury') + d.count('point') for d in docs]"]
    (tmp_path / "box.py").write_text("\n".join(lines) + "\n")


@pytest.mark.usefixtures("box")
def test_any_ranker_by_leaving_words_out(whyrank, collection):
    code, out, err = whyrank("explain", *BOX, "-c", collection, "--query", "q1", "--doc", "d1")
    assert code == 0
    rows = [row for row in cells(out) if row and row[0][0] in "+-"]
    assert rows[:2] == [["+3", "mercury", "+" * 16], ["+1", "point", "+" * 5]]
    assert "melting mercury" in out
    assert max(map(len, out.splitlines())) <= 80
    assert err == "score 4 by python:box.py:score; collection c\n"


@pytest.mark.usefixtures("box")
def test_two_texts_as_json_and_as_a_page(whyrank, collection, tmp_path):
    given = (
        *BOX,
        "-c",
        collection,
        "--query",
        "<b>",
        "--doc",
        "d1",
        "--doc",
        "<i> one point",
        "--json",
        "--calls",
        "60",
    )
    code, out, _ = whyrank("explain", *given, "-o", "page.html")
    found = json.loads(out)["explanation"]
    assert (code, found["scores"], found["docs"][1]) == (0, [4, 1], "<i> one point")
    assert sum(part["share"] for part in found["parts"]) + found["rest"] == pytest.approx(3)
    assert found["counterfactual"]["words_changed"] == 2
    assert found["calls"] <= 60
    page = (tmp_path / "page.html").read_text()
    assert "&lt;i&gt; one" in page
    assert "<i>" not in page
    assert "<b>:" not in page


def test_two_texts_of_a_lexical_ranker(whyrank):
    code, out, err = whyrank("explain", "--query", "q01", "--doc", "d013", "--doc", "d040")
    assert code == 0
    assert "The shares are exact" in out
    assert err.startswith("scores 6.45534 and ")


def test_a_mistyped_id_is_noted(whyrank, collection):
    code, _, err = whyrank("explain", "-c", collection, "--query", "q7", "--doc", "d1")
    assert code == 0
    assert "note: 'q7' is no query of c: it is taken as a text" in err
