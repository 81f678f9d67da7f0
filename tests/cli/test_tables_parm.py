"""`whyrank tables learn parm` from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from refusals import one_line
from whyrank.core import exclusive
from whyrank.networks import digest, load
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
BARE = """
import sys
for name in ("numba", "pyarrow", "ir_measures", "bm25s", "nltk", "jinja2"):
    sys.modules[name] = None
sys.argv = ["x", "run", "--out", "there", "--seed", "0", "--seed", "1", "--device", "cpu"]
from whyrank.learners.__main__ import main
sys.exit(main())
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


LEARN = ("tables", "learn", "parm", "--recipe", "tiny.yaml", "--target", "bm25", "--store", "none", "--device", "cpu")


@pytest.mark.parametrize("preset", ["paper", "code", "target"])
def test_one_command_learns_what_another_builds_a_table_of(whyrank, place, preset):
    (place / "tiny.yaml").write_text(RECIPE.replace("PRESET", preset))
    code, printed, said = whyrank(*LEARN, "-c", "toy", "--network", "net", "--seed", "5")
    assert (code, printed) == (0, ""), said
    last = said.splitlines()[-1]
    assert last == "build its table: whyrank tables build net --out TABLE.parquet --analyzer 'whitespace' -c toy"
    assert "phase 1: 3 steps" in said
    assert "phase 2, round 1: 3 steps" in said
    config = json.loads((place / "net" / "config.json").read_text())
    assert config["learner"] == f"parm(preset={preset})"
    assert (config["target"], config["seed"], config["collection"]) == ("bm25", 5, ["toy"])
    assert config["ranker"].startswith("bm25(k1=0.9,b=0.4")
    built = ("tables", "build", "net", "--out", "t.parquet", "--analyzer", "whitespace", "-c", "toy")
    code, _, said = whyrank(
        *built, "--threshold", "0.01", "--device", "cpu", "--query-terms", "5", "--doc-terms", "20"
    )
    assert code == 0, said
    table = open_table("t.parquet")
    network = load(place / "net")
    for entry in list(table.rows())[:5]:
        with torch.inference_mode():
            weight = torch.sigmoid(network.score_texts([entry[0]], [entry[1]])).item()
        assert entry[2] == pytest.approx(weight, abs=1e-4)


def test_a_prepared_run_trains_with_torch_alone(whyrank, place):
    code, _, said = whyrank(*LEARN, "-c", "toy", "--prepare", "run")
    assert code == 0, said
    assert "train there with `python -m whyrank.learners run --out OUT`" in said
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, env=os.environ, check=False)
    assert done.returncode == 0, done.stderr
    code, _, _ = whyrank(*LEARN, "-c", "toy", "--network", "here", "--seed", "1")
    assert code == 0
    assert digest(place / "there" / "seed-1") == digest(place / "here") != digest(place / "there" / "seed-0")


def test_settings_change_the_recipe(whyrank, place):
    changes = ["--set", "phases.first.schedule.max_steps=2", "--set", "phases.second.rounds=2"]
    code, _, said = whyrank(*LEARN, "-c", "toy", "--network", "net", *changes)
    assert code == 0, said
    assert "phase 1: 2 steps" in said
    assert "phase 2, round 2: 3 steps" in said


def prepared_recipe(whyrank, place, *options):
    """The recipe that a prepared run has."""
    code, printed, said = whyrank(*LEARN, "--prepare", "run", *options)
    assert (code, printed) == (0, ""), said
    return json.loads((place / "run" / "parm.json").read_text())["recipe"], said


@pytest.mark.parametrize("recipe", ["parm", "parm-smoke"])
@pytest.mark.parametrize("preset", ["paper", "code"])
def test_a_preset_replaces_all_that_a_bundled_recipe_says_of_phases(whyrank, place, recipe, preset):
    """Before or behind it, what is set on the command line stays."""
    sets = ["--set", "phases.second.rounds=3", "--set", f"phases.preset={preset}", "--set", "phases.first.masks=runs"]
    made, _ = prepared_recipe(whyrank, place, "--recipe", recipe, "-c", "toy", *sets)
    phases = made["phases"]
    assert phases == {"preset": preset, "first": {"masks": "runs"}, "second": {"rounds": 3}}
    first, second = first_phase(phases), second_phase(phases)
    assert (first.positives, first.schedule["batch"], first.schedule["max_steps"]) == ("gold", 16, 20_000)
    assert (second.positives, second.texts, second.own) == ("gold", 2, True)
    assert (second.missing, second.schedule["batch"]) == ({"paper": "all", "code": "one"}[preset], 256)


def test_collections_stand_for_all_that_a_recipe_names(whyrank, place):
    """Also for those that texts are cut from and that are held back; the latter is said."""
    made, said = prepared_recipe(whyrank, place, "--recipe", "parm", "-c", "toy")
    assert (made["data"]["collection"], made["data"]["cut"], made["data"]["without"]) == (["toy"], {}, [])
    assert "note: -c: the recipe's data.without (msmarco_dl19) goes too" in said
    assert made["data"]["depth"] == 100


def test_collections_that_are_set_stay_besides_those_that_are_given(whyrank, place):
    sets = ["--set", "data.cut.toy=2", "--set", "data.without=[sample]"]
    made, said = prepared_recipe(whyrank, place, "--recipe", "parm", "-c", "toy", *sets)
    assert (made["data"]["cut"], made["data"]["without"]) == ({"toy": 2}, ["sample"])
    assert "goes too" not in said


def test_a_number_of_cuts_is_for_any_collection(whyrank, place):
    (place / "tiny.yaml").write_text((place / "tiny.yaml").read_text().replace("data: {", "data: {cut: 2, "))
    made, said = prepared_recipe(whyrank, place, "-c", "toy")
    assert made["data"]["cut"] == 2
    assert "goes too" not in said


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], "needs --network FOLDER"),
        (["--network", "a", "--prepare", "b"], "needs --network FOLDER"),
        (["--network", "net"], "name collections to learn from, with -c or data.collection"),
        (["--network", "net", "-c", "toys"], "toys"),
        (["--network", "net", "-c", "toy", "--recipe", "smoke"], "this recipe has no phases of parm"),
        (["--network", "net", "-c", "toy", "--recipe", "parms"], "unknown recipe 'parms'; did you mean 'parm'"),
        (["--network", "net", "-c", "toy", "--target", "bm52"], "unknown ranker 'bm52'; did you mean 'bm25'"),
        (["--network", "net", "-c", "toy", "--set", "phases.first.unit=letter"], "unknown unit of first 'letter'"),
        (["--network", "net", "-c", "toy", "--set", "phases.first.alignment=attention"], "no attention to offer"),
        (["--network", "net", "-c", "toy", "--set", "phases.first.alignment=embeddings"], "has no embeddings"),
        (["--network", "net", "-c", "toy", "--set", "data.target=ql"], "the recipe is for ql"),
        (["--network", "net", "-c", "toy", "--set", "data.candidates=[0,0,0]"], "each query needs 1 or more texts"),
        (
            ["--network", "net", "-c", "toy", "--recipe", "parm", "--set", "phases.preset=papers"],
            "did you mean 'paper'",
        ),
        (["--prepare", "toy", "-c", "toy"], "is a folder with other things in it"),
        (["--prepare", "run", "-c", "toy", "--bits", "4"], "weights are kept in 8, 16, 32 bits, not in 4"),
        (["--network", "net", "-c", "toy", "--device", "tpu"], "device 'tpu' is not to be had here"),
    ],
)
def test_wrong_input_is_one_line(whyrank, place, options, expected):
    code, printed, said = whyrank(*LEARN, *options)
    lines = said.splitlines(keepends=True)
    assert expected in one_line((code, printed, lines[-1]))
    assert len(lines) == 1 or "embeddings" in expected or "attention" in expected
    assert not (place / "net").exists()


def test_a_second_training_in_the_same_folder_is_refused(whyrank, place):
    with exclusive("parm/.lock"):
        said = one_line(whyrank(*LEARN, "-c", "toy", "--network", "parm"))
    assert "parm/.lock: another process is at work on the same output; wait until it ends" in said
