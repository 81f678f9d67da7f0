"""`whyrank data check`: what is there, what is odd, and which studies it allows."""

import json

import pytest
from small_collections import write_collection


@pytest.fixture
def odd(tmp_path):
    docs = {
        "a": "cats chase mice", "b": "cats chase mice", "c": "<p><b><i><u></u></i></b></p> x", "d": "word " * 11_000,
        "e": "", "f": "mice \x1b[31m",
    }  # fmt: skip
    return write_collection(
        tmp_path / "odd", docs, {"1": "cats", "2": " CATS ", "3": "mice"}, "1 0 a 1\n1 0 z 1\n2 0 b 1\n"
    )


def test_what_is_there_and_what_is_odd(whyrank, odd):
    code, out, err = whyrank("data", "check", odd, "--json")
    assert code == 0, err
    found = json.loads(out)
    counts = [found[name] for name in ("documents", "words", "queries", "judgements", "judged_queries", "grades")]
    assert counts == [6, {"least": 0, "median": 2.5, "most": 11_000}, 3, 3, 2, {"1": 3}]
    told = "\n".join(found["odd"])
    for line in (
        "corpus.jsonl: documents with an empty text: 1 (e)",
        "qrels.txt: documents that the collection does not have: 1 (z)",
        "documents with the text of another document: 1 (b)",
        "documents of more than 10,000 words, which most models cut: 1 (d)",
        "documents that are mostly markup: 1 (c)",
        "queries with the text of another query: 1 (2)",
        "queries without judgements: 1 (3)",
        "all judgements have the grade 1: studies that compare grades have nothing to compare",
    ):
        assert line in told
    assert "edited/repeat-document" in found["studies"]
    assert "one grade" in found["without_contrasts"]["matched/relevance|length"]
    assert not set(found["studies"]) & set(found["without_contrasts"])


def test_in_words_without_judgements(whyrank, odd):
    (odd / "qrels.txt").unlink()
    code, out, err = whyrank("data", "check", odd)
    assert code == 0, err
    assert "  6 documents of 0 to 11,000 words (median 2.5)\n" in out
    assert "  3 queries of 1 word\n" in out
    assert "no judgements: evaluation, and studies that compare grades, are not possible" in out
    assert "no runs: BM25 retrieves candidates" in out
    assert "edited/*" in out
    assert "\x1b" not in out


def test_what_cannot_be_read(whyrank, tmp_path):
    code, _, err = whyrank("data", "check", tmp_path / "nowhere")
    assert (code, "no folder" in err) == (2, True)
    (tmp_path / "shop.csv").write_text("id,text\n1,red shoe\n")
    code, _, err = whyrank("data", "check", tmp_path / "shop.csv")
    assert (code, "give it as --docs, with --queries" in err) == (2, True)


def test_runs_are_read_and_a_header_is_seen(whyrank, odd):
    (odd / "runs").mkdir()
    (odd / "runs/mine.txt").write_text("1 Q0 a 1 2.5 x\n1 Q0 zz 2 1.5 x\n")
    with (odd / "queries.tsv").open("a") as file:
        file.write("id\tquery\n")
    code, out, err = whyrank("data", "check", odd)
    assert code == 0, err
    assert "  queries without a document in the run mine: 3 (2, 3, id)\n" in out
    assert "  queries that are the names of columns: 1 (id)\n" in out
    assert "documents that the collection does not have: 1 (zz)" in out
    (odd / "runs/mine.txt").write_text("1 Q0 a 1 2.5 x\n1 Q0 b 2 nan x\n")
    code, _, err = whyrank("data", "check", odd)
    assert (code, "mine.txt:2: the score is NaN" in err) == (2, True)
