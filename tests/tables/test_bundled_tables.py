"""The tables of the package: they open by name, read well, and rank without an extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import whyrank
from whyrank.tables import BUNDLED, TermTable, open_table
from whyrank.text import analyzers

FOLDER = Path(whyrank.__file__).parent / "tables" / "bundled"


@pytest.mark.parametrize("name", BUNDLED)
def test_terms_are_stems_of_words_that_can_be_read(name):
    table = open_table(name, check=True)
    assert len(table.query_terms) > 8_000
    assert table["car"][0].term == "automobil"
    assert table.word("automobil") == "automobile"
    english = analyzers.create(table.facts["analyzer"])
    stems = list({*table.query_terms, *table.doc_terms})
    made = english.docs([table.word(stem) for stem in stems])
    assert [english.vocabulary.terms[i] for i in made.ids.tolist()] == stems


def test_both_are_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 4_000_000


def test_a_file_of_the_same_name_is_written_with_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TermTable.from_triples(["a"], ["b"], [0.5]).save("own.tsv")
    Path("own.tsv").rename("bundled")
    assert open_table("./bundled")["a"][0].term == "b"
    assert open_table(Path("bundled"))["a"][0].term == "b"
    assert open_table("bundled")["car"][0].term == "automobil"


def test_a_base_install_ranks_with_them():
    """Without torch, transformers and the Krovetz stemmer."""
    code = """
import sys
from whyrank.data import open_collection
from whyrank.rankers import Setting, open_ranker
ranker = open_ranker("bm25t:bundled", Setting(open_collection("sample")))
near, far = ranker.score(["cheap car"] * 2, ["an inexpensive automobile", "a tall tree"])
assert near > far == 0
assert not sys.modules.keys() & {"torch", "transformers", "sentence_transformers", "krovetzstemmer"}
"""
    env = os.environ | {"PYTHONPATH": str(FOLDER.parents[2])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
