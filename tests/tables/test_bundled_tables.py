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
    assert len(table.query_terms) == 10_000
    assert table.weights.max() == 0.5
    assert all(len(table[term]) <= 50 for term in table.query_terms)
    assert table["car"][0].term == "automobil"
    assert table.word("automobil") == "automobile"
    english = analyzers.create(table.facts["analyzer"])
    stems = list({*table.query_terms, *table.doc_terms})
    made = english.docs([table.word(stem) for stem in stems])
    assert [english.vocabulary.terms[i] for i in made.ids.tolist()] == stems


def test_both_are_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 4_000_000


@pytest.mark.parametrize("name", BUNDLED)
def test_they_help_on_queries_that_people_typed(name, data_folder):
    """What the card says of DL 2019 and CISI: nDCG@10 beside BM25 of the same form, with the same candidates."""
    for folder, depth, least in (("msmarco_dl19", 100, 1.05), ("cisi", 50, 0.99)):
        collection = whyrank.open_collection(str(data_folder / folder))
        candidates = collection.runs["bm25.top100"] if depth == 100 else whyrank.rank("bm25", collection, depth)
        runs = {
            ranker: whyrank.rank(ranker, collection, depth, candidates)
            for ranker in ("bm25(variant=parm)", f"bm25t:{name}")
        }
        plain, with_table = whyrank.evaluate(runs, collection, ["nDCG@10"])
        assert with_table.mean / plain.mean > least, folder


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
