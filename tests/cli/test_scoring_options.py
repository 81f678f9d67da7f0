"""Options of all commands that score: a time limit, and scoring anew."""

from __future__ import annotations

import pytest

from whyrank.data import open_collection, read_run

SOURCE = """
import time
from pathlib import Path

def score(queries, docs):
    state = Path("state.txt").read_text()
    if any(doc == state for doc in docs):
        time.sleep(1e6)
    return [float(len(doc) if state == "up" else -len(doc)) for doc in docs]
"""


@pytest.fixture
def ranked(tmp_path, monkeypatch, whyrank):
    """Rank six documents of two queries; gives what is told and the scores of the first query."""
    monkeypatch.chdir(tmp_path)
    sample = open_collection("sample")
    queries, docs = list(sample.queries)[:2], list(sample.docs)[:3]
    (tmp_path / "run.txt").write_text(
        "".join(f"{q} Q0 {d} {i} {-i} x\n" for q in queries for i, d in enumerate(docs))
    )
    (tmp_path / "mine.py").write_text(SOURCE)

    def call(state, *options):
        (tmp_path / "state.txt").write_text(state)
        asked = ("rank", "-r", "python:mine.py:score", "--candidates", "run.txt", "--store", "s.sqlite")
        code, _, err = whyrank(*asked, "--out", "out.txt", *options)
        assert code == 0, err
        return err, read_run("out.txt")[queries[0]]

    return call, {d: len(sample.docs[d]) for d in docs}, sample.docs[docs[1]]


def test_stale_scores_are_told_and_scored_anew(ranked):
    call, lengths, _ = ranked
    assert call("up") == (call("up")[0], lengths)
    err, stale = call("down")
    assert stale == lengths
    assert "warning: ranker 'python:mine.py:score' no longer gives the scores that are stored" in err
    err, anew = call("down", "--fresh")
    assert anew == {d: -length for d, length in lengths.items()}
    assert "no longer gives" not in err + call("down")[0]


def test_a_pair_that_never_ends_has_no_score(ranked):
    call, lengths, text = ranked
    err, scores = call(text, "--timeout", "3")
    assert {d: -score for d, score in scores.items()} == {d: n for d, n in lengths.items() if n != len(text)}
    assert "2 pairs have no finite score; the first: TimeoutError: no answer within 3 s" in err


def test_a_time_limit_that_makes_no_sense_is_refused(whyrank):
    code, _, err = whyrank("rank", "--timeout", "0", "--store", "none")
    assert (code, err.strip()) == (
        2,
        "whyrank: timeout must be a number between 0 and infinity (both excluded), not 0.0",
    )
