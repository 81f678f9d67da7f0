"""Runs by name and by path: what is odd about them is said, and none that has nothing to do with the collection."""

from __future__ import annotations

import json

import pytest

from whyrank.core import BadInput
from whyrank.data import open_collection, open_run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps({"id": i, "text": "a cat"}) + "\n" for i in "12"))
    (tmp_path / "queries.tsv").write_text("q1\tcat\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "some.txt").write_text("q1 Q0 1 1 2.0 x\nq1 Q0 9 2 1.0 x\nq7 Q0 1 1 1.0 x\n")
    (tmp_path / "runs" / "other.txt").write_text("q7 Q0 1 1 2.0 x\n")
    return tmp_path


@pytest.mark.parametrize("name", ["some", "runs/some.txt"])
def test_unknown_ids_are_noted(folder, name, monkeypatch):
    monkeypatch.chdir(folder)
    run, notes = open_run(open_collection(str(folder)), name)
    assert run["q1"] == {"1": 2.0, "9": 1.0}
    assert [note.split(": ", 1)[1] for note in notes] == [
        "queries that the collection does not have: 1 (q7)",
        "documents that the collection does not have: 1 (9)",
    ]


@pytest.mark.parametrize("name", ["other", "runs/other.txt"])
def test_a_run_of_other_queries_is_refused(folder, name, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(BadInput, match=rf"{name}: has no query of collection .*; take a run of its queries"):
        open_run(open_collection(str(folder)), name)


def test_a_wrong_name_lists_the_runs(folder):
    with pytest.raises(
        BadInput, match=r"nope: there is no such run file; runs of .*: other, some; `whyrank rank .* writes one"
    ):
        open_run(open_collection(str(folder)), "nope")
