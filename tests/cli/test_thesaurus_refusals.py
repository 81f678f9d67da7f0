"""Wrong requests and rankers that do not answer, for the commands around the relevance thesaurus."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from refusals import one_line
from toy_bias import PLANTED, toy_table
from whyrank.tables import TermTable

sys.path.append(str(Path(__file__).parents[1] / "networks"))
from pair_models import saved

torch.set_num_threads(1)
SMALL = ("--query-terms", "6", "--doc-terms", "40")
ODD = """
import numpy as np


def nans(queries, docs):
    return np.full(len(docs), np.nan)


def equal(queries, docs):
    return np.zeros(len(docs))


def fails(queries, docs):
    raise ValueError("out\\nof order")


def lengths(queries, docs):
    return np.array([float(len(doc)) for doc in docs])
"""
RECIPE = """
architecture: parm
encoder: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32}
tokenizer: collection(size=300)
settings: {max_query: 6, max_doc: 16}
data: {collection: [toy], analyzer: whitespace, candidates: [1, 1, 1]}
phases:
  preset: target
  first: {texts: 2, schedule: {epochs: 1, batch: 4, max_steps: 1, threads: 1}}
  second: {texts: 2, schedule: {epochs: 1, batch: 4, max_steps: 1, threads: 1}}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A parm network, a table, odd rankers, and a collection with an empty text and a query without words."""
    monkeypatch.chdir(tmp_path)
    saved(tmp_path)
    toy_table(PLANTED).save("table.parquet")
    (tmp_path / "odd.py").write_text(ODD)
    (tmp_path / "tiny.yaml").write_text(RECIPE)
    (tmp_path / "toy").mkdir()
    docs = {"d1": "balan cemer dinis", "d2": "", "d3": "fotuk balan", "d4": "cemer"}
    lines = [json.dumps({"id": name, "text": text}) for name, text in docs.items()]
    (tmp_path / "toy" / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "toy" / "queries.tsv").write_text("q1\tbalan cemer\nq2\t?!\n")
    (tmp_path / "toy" / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d3 1\n")
    return tmp_path


def test_a_ranker_without_scores_ends_fidelity_with_an_error(whyrank, place):
    for side in (("-t", "python:odd.py:nans", "-s", "bm25"), ("-t", "bm25", "-s", "python:odd.py:nans")):
        code, out, err = whyrank("fidelity", *side, "--depth", "5", "--store", "none", "--json", "--out", "f.json")
        assert code == 2
        assert err.splitlines()[-1] == (
            "whyrank: 'python:odd.py:nans' has no finite score for any candidate of sample"
        )
        assert json.loads(out)["fidelity"][0]["mean"] is None
        assert json.loads(Path("f.json").read_text())["fidelity"]
    code, _, err = whyrank("fidelity", "-t", "python:odd.py:equal", "-s", "bm25", "--depth", "5", "--store", "none")
    assert code == 0, err


def test_a_ranker_without_any_score_gives_no_run(whyrank, place):
    code, out, err = whyrank(
        "rank", "-r", "python:odd.py:nans", "--candidates", "bm25", "--out", "odd.run", "--store", "none"
    )
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        "whyrank: 'python:odd.py:nans' has no finite score for any document, so there is no run; mend the ranker"
    )
    assert not (place / "odd.run").exists()


def test_fidelity_without_candidates_is_an_error(whyrank, place):
    (place / "toy" / "queries.tsv").write_text("q1\t...\nq2\t?!\n")
    code, out, err = whyrank("fidelity", "-t", "ql", "-s", "bm25", "-c", "toy", "--store", "none")
    assert (code, out) == (2, "")
    assert "toy: no query has candidates; give --candidates RUN" in err


def test_a_ranker_without_scores_ends_a_bias_study_with_an_error(whyrank, place):
    rankers = ("-r", "bm25", "-r", "python:odd.py:nans", "--store", "none")
    code, out, err = whyrank("bias", "bias/car-brand", *rankers, "--json", "--out", "found")
    assert code == 2
    assert err.splitlines()[-1].startswith(
        "whyrank: ranker 'python:odd.py:nans' has no finite score for any template"
    )
    plain, odd = json.loads(out)
    assert plain["n_templates"] > 0
    assert plain["delta"] > 0
    assert odd["delta"] is None
    assert odd["notes"] == ["no template has a finite score for every value, so nothing can be said"]
    assert "note: effects of python:odd.py:nans are in scores alone: ranker 'python:odd.py:nans' gave no two" in err
    assert (place / "found" / "bias" / "bias.json").exists()


@pytest.mark.parametrize(
    ("study", "expected"),
    [
        ("bias/car-brand(filters='python:odd.py:fails')", "failed: ValueError: out of order"),
        ("bias/car-brand(filters='python:odd.py:nans')", "answered nan; return one yes or no"),
        ("bias/substitution(values=a+b,query='x {value}',doc='{value}')", "query= has {value}"),
        ("bias/substitution(values=a+b,query='',doc='{value}')", "query= is empty"),
        ("bias/car-brand(head='')", "head= is empty"),
        ("bias/substitution(values=a+b,templates=slots.tsv)", "slots.tsv:1: is no template"),
    ],
)
def test_studies_that_make_no_sense_are_one_line(whyrank, place, study, expected):
    (place / "slots.tsv").write_text("what is {value}\ta {value}\n")
    assert expected in one_line(whyrank("bias", study, "-r", "python:odd.py:lengths", "--store", "none"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--out", "found.csv"], "end the name in .json"),
        (["--out", "toy"], "end the name in .json"),
        (["--out", "folder.json"], "is no ordinary file"),
        (["--pipeline", "en_core_web_sm"], "give them with --collection"),
    ],
)
def test_wrong_searches_for_surprises_are_one_line(whyrank, place, options, expected):
    (place / "folder.json").mkdir()
    assert expected in one_line(whyrank("tables", "surprises", "table.parquet", *options))


def test_a_class_that_the_table_does_not_have_is_told(whyrank, place):
    code, _, err = whyrank("tables", "surprises", "table.parquet", "--values", "anvil+bellows")
    assert code == 0
    assert "note: cannot be judged: anvil+bellows: fewer than 4 of its values are document terms with entries" in err
    code, _, err = whyrank("tables", "surprises", "table.parquet", "--values", "2001+2002+2003+2004")
    assert "its values are document terms" not in err


def test_surprises_that_no_ranker_answers(whyrank, place):
    asked = ("-c", "sample", "--pipeline", "none", "--run", "--top", "1", "--store", "none")
    code, out, err = whyrank("tables", "surprises", "table.parquet", *asked, "-r", "python:odd.py:nans")
    assert code == 2
    assert "not answered: the ranker has no finite scores for it" in out
    assert err.splitlines()[-1].startswith("whyrank: ranker 'python:odd.py:nans' has no finite score for any text")


@pytest.mark.parametrize(
    ("ranker", "expected"),
    [
        ("nans", "'python:odd.py:nans' has no finite score for 8 of 8 pairs (score is nan); mend it"),
        ("equal", "'python:odd.py:equal' scores all texts of a query alike: nothing to learn"),
    ],
)
def test_targets_that_say_nothing_are_not_learned_from(whyrank, place, ranker, expected):
    learn = ("tables", "learn", "parm", "--recipe", "tiny.yaml", "--store", "none", "--device", "cpu")
    code, _, err = whyrank(*learn, "--target", f"python:odd.py:{ranker}", "--out", "t.tsv")
    assert code == 2
    assert err.splitlines()[-1].endswith(expected)
    assert not Path("t.parm").exists()


def test_texts_and_queries_without_words_are_learned_from(whyrank, place):
    learn = ("tables", "learn", "parm", "--recipe", "tiny.yaml", "--store", "none", "--device", "cpu")
    code, _, err = whyrank(*learn, "--target", "python:odd.py:lengths", "--out", "t.tsv")
    assert code == 0, err
    assert "aligned by occlusion" in err
    assert Path("t.parm/model.safetensors").exists()
    assert Path("t.tsv").exists()


def test_texts_that_a_tables_analyzer_is_not_there_for(whyrank, place):
    TermTable.from_triples(["car"], ["fiat"], [0.5], analyzer="folded").save("far.parquet")
    said = one_line(whyrank("tables", "surprises", "far.parquet", "-c", "sample", "--pipeline", "none"))
    assert "the table was learned with folded: unknown analyzer 'folded'" in said
    TermTable.from_triples(["car"], ["fiat"], [0.5], analyzer=None).save("bare.parquet")
    assert whyrank("tables", "surprises", "bare.parquet", "-c", "sample", "--pipeline", "none")[0] == 0


def test_tables_that_differ_in_how_they_were_made_are_told(whyrank, place):
    TermTable.from_triples(["car"], ["fiat"], [0.5], analyzer="krovetz", threshold=0.1).save("a.parquet")
    TermTable.from_triples(["car"], ["ford"], [0.5], analyzer="lucene", threshold=0.3).save("b.parquet")
    _, _, err = whyrank("tables", "diff", "a.parquet", "b.parquet")
    assert "note: terms are made by krovetz in A and by lucene in B" in err
    assert "note: entries of A and B begin at different weights (0.1 and 0.3)" in err
    assert "note" not in whyrank("tables", "diff", "a.parquet", "a.parquet")[2]
