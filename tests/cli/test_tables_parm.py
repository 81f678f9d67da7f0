"""`whyrank tables learn parm` from the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pair_models import saved
from refusals import one_line
from side_by_side import wait_for
from whyrank.cli.tables_parm import _recipe
from whyrank.core import exclusive
from whyrank.networks import load
from whyrank.tables import open_table
from whyrank.training import first_phase, second_phase

torch.set_num_threads(1)
WORDS = [f"{a}{b}" for a in ("ba", "ce", "di", "fo") for b in ("lan", "mer", "nis", "rop", "tuk")]
RECIPE = """
architecture: parm
encoder: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32,
          max_position_embeddings: 48}
tokenizer: collection(size=300)
settings: {max_query: 6, max_doc: 16}
data: {analyzer: whitespace, candidates: [2, 1, 1]}
phases:
  preset: PRESET
  first: {held_out: 0.1, schedule: {epochs: 1, batch: 8, max_steps: 3, threads: 1}}
  second: {schedule: {epochs: 1, batch: 8, max_steps: 3, threads: 1}}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    (tmp_path / "toy").mkdir()
    docs = [" ".join(random.choice(WORDS, 6)) for _ in range(30)]
    queries = [" ".join(random.choice(WORDS, 2, replace=False)) for _ in range(20)]
    lines = [json.dumps({"id": f"d{i}", "text": text}) for i, text in enumerate(docs)]
    (tmp_path / "toy" / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "toy" / "queries.tsv").write_text("".join(f"q{i}\t{text}\n" for i, text in enumerate(queries)))
    (tmp_path / "toy" / "qrels.txt").write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(20)))
    (tmp_path / "tiny.yaml").write_text(RECIPE.replace("PRESET", "target"))
    return tmp_path


TABLE = ("tables", "learn", "parm", "--device", "cpu")
LEARN = (*TABLE, "--recipe", "tiny.yaml", "--target", "bm25", "--store", "none")
FEW = ("--query-terms", "5", "--doc-terms", "20")


@pytest.mark.parametrize("preset", ["paper", "code", "target"])
def test_one_command_learns_a_table(whyrank, place, preset):
    (place / "tiny.yaml").write_text(RECIPE.replace("PRESET", preset))
    code, printed, said = whyrank(
        *LEARN, "-c", "toy", "--out", "t.parquet", "--seed", "5", "--threshold", "0.01", *FEW
    )
    assert (code, printed) == (0, ""), said
    assert said.splitlines()[-1] == "rank with it: --ranker bm25t:t.parquet"
    assert "phase 1: 3 steps" in said
    assert "phase 2, round 1: 3 steps" in said
    config = json.loads((place / "t.parm" / "config.json").read_text())
    assert config["learner"] == f"parm(preset={preset})"
    assert (config["target"], config["seed"], config["collection"]) == ("bm25", 5, ["toy"])
    assert config["ranker"].startswith("bm25(k1=0.9,b=0.4")
    table, network = open_table("t.parquet"), load(place / "t.parm")
    assert (table.facts["analyzer"], table.facts["target"], table.facts["network_seed"]) == ("whitespace", "bm25", 5)
    for entry in list(table.rows())[:5]:
        with torch.inference_mode():
            weight = torch.sigmoid(network.score_texts([entry[0]], [entry[1]])).item()
        assert entry[2] == pytest.approx(weight, abs=1e-4)


def test_a_trained_network_is_not_trained_again(whyrank, place):
    """The same command goes on with the pairs; without a target, any trained network has its table made."""
    command = (*LEARN, "-c", "toy", "--network", "net", *FEW)
    assert whyrank(*command, "--out", "t.parquet")[0] == 0
    code, _, said = whyrank(*command, "--out", "u.parquet")
    assert code == 0
    assert said.splitlines()[0] == "net: trained already"
    code, _, said = whyrank(*TABLE, "--network", "net", "--out", "v.parquet", *FEW, "--audit", "balan")
    assert code == 0, said
    assert "all weights of balan: v.audit.parquet" in said
    assert len({open_table(name).digest for name in ("t.parquet", "u.parquet")}) == 1
    assert open_table("v.parquet").facts["collections"] == ["toy"]
    assert len(open_table("v.audit.parquet")) == len(open_table("v.parquet").doc_terms)
    for other in (["--seed", "9"], ["--set", "phases.second.rounds=2"], ["--target", "ql"]):
        assert "another recipe, seed, collection or target" in one_line(whyrank(*command, "--out", "w.tsv", *other))


def test_settings_change_the_recipe(whyrank, place):
    changes = ["--set", "phases.first.schedule.max_steps=2", "--set", "phases.second.rounds=2"]
    code, _, said = whyrank(*LEARN, "-c", "toy", "--out", "t.tsv", *FEW, *changes)
    assert code == 0, said
    assert "phase 1: 2 steps" in said
    assert "phase 2, round 2: 3 steps" in said


@pytest.fixture
def asked_recipe(monkeypatch, capsys):
    """The recipe that options ask for."""

    def asked(recipe, *settings, analyzer=None):
        made = _recipe(recipe, "bm25", ["toy"], analyzer, list(settings))
        return made.as_dict(), capsys.readouterr().err

    return asked


@pytest.mark.parametrize("recipe", ["parm", "parm-smoke"])
@pytest.mark.parametrize("preset", ["paper", "code"])
def test_a_preset_replaces_all_that_a_bundled_recipe_says_of_phases(asked_recipe, recipe, preset):
    """Before or behind it, what is set on the command line stays."""
    sets = ["phases.second.rounds=3", f"phases.preset={preset}", "phases.first.masks=runs"]
    made, _ = asked_recipe(recipe, *sets)
    phases = made["phases"]
    assert phases == {"preset": preset, "first": {"masks": "runs"}, "second": {"rounds": 3}}
    first, second = first_phase(phases), second_phase(phases)
    assert (first.positives, first.schedule["batch"], first.schedule["max_steps"]) == ("gold", 16, 20_000)
    assert (second.positives, second.texts, second.own) == ("gold", 2, True)
    assert (second.missing, second.schedule["batch"]) == ({"paper": "all", "code": "one"}[preset], 256)


def test_collections_stand_for_all_that_a_recipe_names(asked_recipe):
    """Also for those that texts are cut from and that are held back; the latter is said."""
    made, said = asked_recipe("parm", analyzer="lucene")
    assert (made["data"]["collection"], made["data"]["cut"], made["data"]["without"]) == (["toy"], {}, [])
    assert "note: -c: the recipe's data.without (msmarco_dl19) goes too" in said
    assert (made["data"]["depth"], made["data"]["analyzer"]) == (100, "lucene")


def test_collections_that_are_set_stay_besides_those_that_are_given(asked_recipe):
    made, said = asked_recipe("parm", "data.cut.toy=2", "data.without=[sample]")
    assert (made["data"]["cut"], made["data"]["without"]) == ({"toy": 2}, ["sample"])
    assert "goes too" not in said


def test_a_number_of_cuts_is_for_any_collection(asked_recipe, place):
    (place / "tiny.yaml").write_text((place / "tiny.yaml").read_text().replace("data: {", "data: {cut: 2, "))
    made, said = asked_recipe("tiny.yaml")
    assert made["data"]["cut"] == 2
    assert "goes too" not in said


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "name collections to learn from, with -c or data.collection"),
        (["-c", "toys"], "toys"),
        (["-c", "toy", "--recipe", "smoke"], "this recipe has no phases of parm"),
        (["-c", "toy", "--recipe", "parms"], "unknown recipe 'parms'; did you mean 'parm'"),
        (["-c", "toy", "--target", "bm52"], "unknown ranker 'bm52'; did you mean 'bm25'"),
        (["-c", "toy", "--set", "phases.first.unit=letter"], "unknown unit of first 'letter'"),
        (["-c", "toy", "--set", "phases.first.alignment=attention"], "no attention to offer"),
        (["-c", "toy", "--set", "phases.first.alignment=embeddings"], "has no embeddings"),
        (["-c", "toy", "--set", "data.target=ql"], "the recipe is for ql"),
        (["-c", "toy", "--set", "data.candidates=[0,0,0]"], "each query needs 1 or more texts"),
        (["-c", "toy", "--recipe", "parm", "--set", "phases.preset=papers"], "did you mean 'paper'"),
        (["-c", "toy", "--device", "tpu"], "device 'tpu' is not to be had here"),
        (["-c", "toy", "--precision", "int4"], "unknown precision"),
        (["-c", "toy", "--threshold", "2"], "threshold must be a number between 0 and 1"),
        (["-c", "toy", "--queries-of", "nowhere"], "nowhere"),
        (["-c", "toy", "--doc-words", "nowhere"], "nowhere"),
        (["-c", "toy", "--frame", "masked"], "unknown frame 'masked'"),
        (["-c", "toy", "--out", "t.csv"], "is written as"),
        (["-c", "toy", "--network", "tiny.yaml"], "cannot be written (Not a directory)"),
        (["-c", "toy", "--target", "run:bm25"], "a run has no scores for other texts"),
    ],
)
def test_wrong_input_is_one_line(whyrank, place, options, expected):
    code, printed, said = whyrank(*LEARN, "--out", "t.tsv", *options)
    lines = said.splitlines(keepends=True)
    assert expected in one_line((code, printed, lines[-1]))
    assert len(lines) == 1 or "embeddings" in expected or "attention" in expected
    assert not (place / "t.parm").exists()
    assert not (place / "t.tsv.blocks").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "needs --target RANKER, or --network FOLDER"),
        (["--network", "nothing"], "config.json: cannot be read"),
        (["--network", "parm", "--recipe", "parm"], "--recipe is for training; name a --target"),
        (["--network", "parm", "--set", "seeds=[1]"], "--set is for training"),
        (["--network", "parm", "--batch-size", "3"], "--batch-size is for training"),
        (["--network", "parm", "--audit", "the"], "drops it"),
        (["--network", "parm", "-c", "nowhere"], "nowhere"),
    ],
)
def test_wrong_requests_for_a_table_are_one_line(whyrank, place, options, expected):
    saved(place)
    assert expected in one_line(whyrank(*TABLE, "--out", "t.tsv", *options))
    assert not (place / "t.tsv").exists()


def test_a_second_training_in_the_same_folder_is_refused(whyrank, place):
    with exclusive("parm/.lock"):
        said = one_line(whyrank(*LEARN, "-c", "toy", "--network", "parm", "--out", "t.tsv"))
    assert "parm/.lock: another process is at work on the same output; wait until it ends" in said


def test_a_second_build_of_the_same_table_is_refused(whyrank, place):
    saved(place)
    with exclusive("t.tsv.blocks.lock"):
        said = one_line(whyrank(*TABLE, "--network", "parm", "--out", "t.tsv", *FEW))
    assert "t.tsv.blocks.lock: another process is at work on the same output; wait until it ends" in said
    assert not (place / "t.tsv.blocks").exists()


def test_table_and_slice_of_a_network(whyrank, place):
    """Words of a file are document terms; a table without entries is told."""
    saved(place)
    (place / "words.txt").write_text("dice\nJig\n")
    options = ("--network", "parm", "-c", "sample", *FEW, "--audit", "cab", "--doc-words", "words.txt")
    code, printed, said = whyrank(*TABLE, "--out", "t.parquet", *options, "--threshold", "0.3")
    assert (code, printed) == (0, "")
    table, audit = open_table("t.parquet"), open_table("t.audit.parquet")
    assert {"dice", "jig"} <= set(table.doc_terms)
    assert f"{len(table):,} entries of {len(table.query_terms) * len(table.doc_terms)} pairs: t.parquet" in said
    assert len(audit) == len(table.doc_terms)
    assert (table.facts["threshold"], table.facts["collection"], table.facts["doc_words"]) == (0.3, "sample", 2)
    assert "note: no pair weighs 1 or more" in whyrank(*TABLE, "--out", "u.tsv", *options, "--threshold", "1")[2]
    for name in ("v.parquet", "w.audit.parquet"):
        (place / name).mkdir()
    for out in ("v.parquet", "w.parquet"):
        assert "is no ordinary file" in one_line(whyrank(*TABLE, "--out", out, *options))
        assert not Path(f"{out}.blocks").exists()


def test_ctrl_c_keeps_blocks_and_says_one_line(place):
    saved(place, letters="klmnopqrstuvwxyz")
    command = [sys.executable, "-m", "whyrank.cli.main", *TABLE, "--network", "parm", "-c", "sample", "--out", "t.tsv",
               "--query-terms", "300", "--doc-terms", "500", "--analyzer", "whitespace"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: list(Path("t.tsv.blocks").glob("block-*.npz")), 180)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1].startswith("whyrank: stopped; blocks that are scored are kept")
    assert "Traceback" not in err
    assert not Path("t.tsv").exists()
