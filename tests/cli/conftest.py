"""A small bias study that several commands are asked."""

from __future__ import annotations

import pytest


@pytest.fixture
def tea(tmp_path, monkeypatch):
    """A folder with templates, and a ranker that likes one kind of tea and notes how many texts it was asked about."""
    monkeypatch.chdir(tmp_path)
    rows = [f"which drink {i}\tdrink {{value}} at {i}" for i in range(8)]
    (tmp_path / "tea.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "likes.py").write_text(
        "def rose(queries, docs):\n"
        "    with open('asked.txt', 'a') as notes:\n"
        "        notes.write('x' * len(docs))\n"
        "    return [len(q) / 10 + 0.3 * ('rose' in d) + 0.01 * (sum(map(ord, q + d)) % 7) for q, d in zip(queries, docs)]\n"
    )
    return tmp_path
