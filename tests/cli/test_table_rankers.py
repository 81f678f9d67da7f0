"""Rankers over term tables on the command line: what is refused, and what is told beside the figures."""

from __future__ import annotations

import json

import numpy as np
import pytest

from whyrank.tables import TermTable, open_table

HEART = (["heart", "heart", "attack"], ["qcardiac", "heart", "qinfarct"], [0.5, 0.3, 0.6])


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    docs = {"d1": "the cat sat", "d2": "a dog", "d3": "cat"}
    lines = [json.dumps({"_id": i, "text": text}) for i, text in docs.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "queries.tsv").write_text("q1\tcat\nq2\tthe of\nq3\tzebra\n")
    run = [f"q{q} Q0 {d} {rank} {9 - rank} r" for q in (1, 2, 3) for rank, d in enumerate(docs, 1)]
    (tmp_path / "run.txt").write_text("\n".join([*run, "q4 Q0 d1 1 1 r"]) + "\n")
    words = ["cat", "dog", "sat"]
    TermTable.from_triples(words, words, [0.9, 0.8, 0.7], analyzer="lucene").save(tmp_path / "t.tsv")
    return tmp_path


def test_typed_texts_are_explained_whatever_the_collection(whyrank, here):
    TermTable.from_triples(*HEART, analyzer="whitespace").save(here / "heart.tsv")
    code, out, err = whyrank("explain", "-r", "model1:heart.tsv(lam=0)", "heart attack", "qcardiac arrest", "--json")
    assert (code, json.loads(out)["document_terms"]) == (0, ["qcardiac"])
    assert "knows" not in err


def test_a_query_without_words_is_told(whyrank, here):
    for ranker in ("bm25", "ql", "model1:t.tsv"):
        code, out, err = whyrank("explain", "-r", ranker, "the of", "some text")
        assert (code, out) == (0, "")
        assert "note: the query has no word that this ranker reads" in err
    [note] = json.loads(whyrank("explain", "-r", "bm25", "the of", "text", "--json")[1])["notes"]
    assert note.startswith("the query has no word")
    assert "no word" not in whyrank("explain", "-r", "bm25", "cats", "some text")[2]


def test_a_run_tells_of_queries_that_give_no_order(whyrank, here):
    code, _, err = whyrank("rank", "-c", here, "-r", "model1:t.tsv(lam=0)", "--candidates", "run.txt", "-o", "o.txt")
    assert code == 0
    assert "note: 2 queries (q2, q3): all of their documents have the same score" in err
    (here / "queries.tsv").write_text("q1\tcat\n")
    code, _, err = whyrank("rank", "-c", here, "-r", "bm25", "--candidates", "run.txt", "-o", "o.txt")
    assert (code, "same score" in err) == (0, False)


def test_a_damaged_table_is_one_line(whyrank, here):
    TermTable.from_triples(*HEART).save(here / "t.arrow")
    indices = open_table(here / "t.arrow").indices
    content = (here / "t.arrow").read_bytes()
    damaged = content.replace(indices.tobytes(), np.full(len(indices), 1 << 29, np.int32).tobytes())
    assert damaged != content
    (here / "t.arrow").write_bytes(damaged.replace(b"whyrank-sha256:", b"no-checksum-at-"))  # of another tool
    asked = [["tables", "show", "t.arrow", "heart"], ["explain", "-r", "qlt:t.arrow", "heart", "cardiac"]]
    asked.append(["audit", "bias/when-year", "-r", "bm25", "--table", "t.arrow", "--limit", "2"])
    for arguments in asked:
        code, _, err = whyrank(*arguments)
        assert (code, err.count("\n")) == (2, 1)
        assert "t.arrow: this is no term table: the number of a document term is out of range" in err


def test_differences_of_pruned_tables_are_noted(whyrank, here):
    assert whyrank("tables", "export", "t.tsv", "--threshold", "0.75", "--top", "1", "-o", "less.tsv")[0] == 0
    assert open_table("less.tsv").facts == {"analyzer": "lucene", "threshold": 0.75, "top_query": 1}
    told = whyrank("tables", "diff", "t.tsv", "less.tsv")[2]
    assert "begin at different weights (unknown and 0.75)" in told
    assert "have so many entries at most: any number and 1;" in told
    open_table("t.tsv").renormalised("doc").save("sums.tsv")
    told = whyrank("tables", "diff", "t.tsv", "sums.tsv")[2]
    assert "different scales (as learned and with the sum 1 by doc term)" in told
    assert "note" not in whyrank("tables", "diff", "t.tsv", "t.tsv")[2]
