"""Small collections, studies and rankers that several commands are given."""

from __future__ import annotations

import pytest
from small_collections import write_collection


@pytest.fixture
def folder(tmp_path):
    """A collection: of the documents of query 1, `a` has more query terms than `b` and `c`."""
    docs = {"a": "cats cats", "b": "cats dogs", "c": "cats cows", "d": "pigs"}
    run = "1 Q0 a 1 3.0 x\n1 Q0 b 2 2.0 x\n1 Q0 d 3 1.0 x\n"
    return write_collection(tmp_path / "tiny", docs, {"1": "cats", "2": "pigs"}, "1 0 a 1\n1 0 b 0\n1 0 c 2\n", run)


@pytest.fixture
def ranker(tmp_path):
    """Write a ranker from the expression of its score for a query `q` and a text `d`; gives its call string."""

    def write(score, before="", name="mine"):
        source = f"def f(queries, docs):\n    {before or 'pass'}\n"
        source += f"    return [{score} for q, d in zip(queries, docs)]\n"
        (tmp_path / f"{name}.py").write_text(source)
        return f"python:{tmp_path}/{name}.py:f"

    return write


@pytest.fixture
def tea(tmp_path, monkeypatch):
    """A folder with templates, and a ranker that likes one kind of tea and notes how many texts it scored."""
    monkeypatch.chdir(tmp_path)
    rows = [f"which drink {i}\tdrink {{value}} at {i}" for i in range(8)]
    (tmp_path / "tea.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "likes.py").write_text(
        "def rose(queries, docs):\n"
        "    with open('scored.txt', 'a') as notes:\n"
        "        notes.write('x' * len(docs))\n"
        "    return [len(q) / 10 + 0.3 * ('rose' in d) + 0.01 * (sum(map(ord, q + d)) % 7)"
        " for q, d in zip(queries, docs)]\n"
    )
    return tmp_path
