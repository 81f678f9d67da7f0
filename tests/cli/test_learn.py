"""`whyrank tables learn` as a user types it: EM, local-to-global and PaRM."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_collections import write_collection

from pair_models import forward, saved
from refusals import one_line
from side_by_side import wait_for
from whyrank.core import exclusive
from whyrank.data import open_collection
from whyrank.learners.em import learn_em, make_bitext
from whyrank.learners.local import LocalToGlobal
from whyrank.networks import load
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine
from whyrank.tables import open_table

torch.set_num_threads(1)


def test_the_last_line_has_perplexities_entries_and_path(whyrank, tmp_path):
    out = tmp_path / "table.parquet"
    code, printed, said = whyrank("tables", "learn", "em", "--out", out, "--held-out", "0.1", "--seed", "4")
    expected = learn_em(make_bitext(open_collection("sample"), "lucene", seed=4), held_out=0.1, seed=4)
    table = open_table(out)
    assert (code, printed) == (0, "")
    assert table.digest == expected.table.digest
    last = said.splitlines()[-1]
    assert last.endswith(f"; {len(table):,} entries: {out}")
    assert f"{expected.perplexities[-1]:.4g}, held out" in last
    assert table.facts["analyzer"] == "lucene"
    assert table.facts["collection"] == "sample"


def test_all_settings_of_em_arrive(whyrank, tmp_path):
    out = tmp_path / "table.tsv"
    options = (
        "--iterations 2 --ratio 3 --fertility 4 --no-symmetrise --sample 0.5 --threshold 0.1 --threads 2 --seed 7"
    )
    options += " --memory 100K --relevant 1 --no-null --table-terms 500 --most 900 --stop 0.001 --analyzer whitespace --check"
    code, _, said = whyrank("tables", "learn", "em", "--out", out, *options.split())
    assert code == 0, said
    assert "double precision differs by" in said
    bitext = make_bitext(
        open_collection("sample"), "whitespace", ratio=3.0, fertility=4.0, symmetrise=False, sample=0.5, seed=7, relevant=1,
        most=900,
    )  # fmt: skip
    expected = learn_em(bitext, iterations=2, null=False, threshold=0.1, table_terms=500).table
    found = open_table(out)
    assert [tuple(e)[:2] for e in found.rows()] == [tuple(e)[:2] for e in expected.rows()]


def test_a_second_learner_with_the_same_checkpoint_is_refused(whyrank, tmp_path):
    state = tmp_path / "state"
    with exclusive(f"{state}.lock"):
        said = one_line(whyrank("tables", "learn", "em", "--out", tmp_path / "t.tsv", "--checkpoint", state))
    assert "state.lock: another process is at work on the same output; wait until it ends" in said
    assert whyrank("tables", "learn", "em", "--out", tmp_path / "t.tsv", "--checkpoint", state)[0] == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["state", "t.tsv"]
    state.write_text("no state")
    code, _, err = whyrank("tables", "learn", "em", "--out", tmp_path / "t.tsv", "--checkpoint", state)
    assert (code, "no checkpoint of EM" in err.splitlines()[-1]) == (2, True)


LOCAL = (
    "tables",
    "learn",
    "local-to-global",
    "--target",
    "ql",
    "--depth",
    "20",
    "--explained",
    "3",
    "--query-sample",
    "6",
)


def test_all_settings_of_local_to_global_arrive(whyrank, tmp_path, ranker):
    out, words = tmp_path / "t.parquet", tmp_path / "w.jsonl"
    options = "--method lime --variant uniform --words 4 --samples 25 --threshold 0.2 --seed 3 --analyzer lucene"
    target = ranker("len(d) + len(q)")
    options += f" --target {target} --store none"
    code, printed, said = whyrank(*LOCAL, *options.split(), "--out", out, "--explanations", words)
    assert (code, printed) == (0, ""), said
    sample = open_collection("sample")
    learner = LocalToGlobal(
        target, "lime", "uniform", 20, 3, 4, 25, threshold=0.2, seed=3, analyzer="lucene", query_sample=6
    )
    expected = learner.explain(sample, open_ranker(target, Setting(sample)), Engine())
    table = open_table(out)
    assert table.digest == expected.table.digest
    assert dict(table.facts) == dict(expected.table.facts)
    lines = [json.loads(line) for line in words.read_text().splitlines()]
    assert [line["query_id"] for line in lines] == [each.query_id for each in expected.explained]
    assert [line["words"] for line in lines] == [each.words for each in expected.explained]
    assert said.splitlines()[-1].endswith(f"of 6 queries, terms by lucene; {len(table):,} entries: {out}")


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
def here(tmp_path, monkeypatch):
    """A folder with a collection of invented words and a tiny recipe."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    docs = {f"d{i}": " ".join(random.choice(WORDS, 6)) for i in range(30)}
    queries = {f"q{i}": " ".join(random.choice(WORDS, 2, replace=False)) for i in range(20)}
    write_collection(tmp_path / "toy", docs, queries, "".join(f"q{i} 0 d{i} 1\n" for i in range(20)))
    (tmp_path / "tiny.yaml").write_text(RECIPE.replace("PRESET", "target"))
    return tmp_path


TABLE = ("tables", "learn", "parm", "--device", "cpu")
PARM = (*TABLE, "--recipe", "tiny.yaml", "--target", "bm25", "--store", "none")
FEW = ("--query-terms", "5", "--doc-terms", "20")


@pytest.mark.parametrize("preset", ["code", "target"])
def test_one_command_learns_a_table(whyrank, here, preset):
    (here / "tiny.yaml").write_text(RECIPE.replace("PRESET", preset))
    code, printed, said = whyrank(
        *PARM, "-c", "toy", "--out", "t.parquet", "--seed", "5", "--threshold", "0.01", *FEW
    )
    assert (code, printed) == (0, ""), said
    assert said.splitlines()[-1] == "rank with it: --ranker bm25t:t.parquet"
    assert "phase 1: 3 steps" in said
    assert "phase 2, round 1: 3 steps" in said
    config = json.loads((here / "t.parm" / "config.json").read_text())
    assert config["learner"] == f"parm(preset={preset})"
    assert (config["target"], config["seed"], config["collection"]) == ("bm25", 5, ["toy"])
    assert config["ranker"].startswith("bm25(k1=0.9,b=0.4")
    table, network = open_table("t.parquet"), load(here / "t.parm")
    assert (table.facts["analyzer"], table.facts["target"], table.facts["network_seed"]) == ("whitespace", "bm25", 5)
    for entry in list(table.rows())[:5]:
        with torch.inference_mode():
            weight = torch.sigmoid(forward(network, [entry[0]], [entry[1]])).item()
        assert entry[2] == pytest.approx(weight, abs=1e-4)


def test_a_trained_network_is_not_trained_again(whyrank, here):
    """The same command goes on with the pairs; without a target, any trained network has its table made."""
    command = (*PARM, "-c", "toy", "--network", "net", *FEW)
    assert whyrank(*command, "--out", "t.parquet")[0] == 0
    code, _, said = whyrank(*command, "--out", "u.parquet")
    assert code == 0
    assert said.splitlines()[0] == "net: trained already"
    more = ("--audit", "balan", "--executor", "processes(workers=2)")
    code, _, said = whyrank(*TABLE, "--network", "net", "--out", "v.parquet", *FEW, *more)
    assert code == 0, said
    assert "all weights of balan: v.audit.parquet" in said
    assert len({open_table(name).digest for name in ("t.parquet", "u.parquet", "v.parquet")}) == 1
    assert open_table("v.parquet").facts["collections"] == ["toy"]
    assert len(open_table("v.audit.parquet")) == len(open_table("v.parquet").doc_terms)
    for other in (["--seed", "9"], ["--set", "phases.second.rounds=2"], ["--target", "ql"]):
        assert "another recipe, seed, collection or target" in one_line(whyrank(*command, "--out", "w.tsv", *other))


WRONG = [
    ("", "name collections to learn from, with -c or data.collection"),
    ("-c toy --recipe smoke", "this recipe has no phases of parm"),
    ("-c toy --target run:bm25", "a run has no scores for other texts"),
    ("-c toy --set phases.first.unit=letter", "first: unit must be 'word' or 'token'"),
    ("-c toy --set phases.first.alignment=attention", "no attention to offer"),
    ("-c toy --set data.target=ql", "the recipe is for ql"),
    ("-c toy --device tpu", "device 'tpu' is not available here"),
    ("-c toy --number-format int4", "unknown number format"),
    ("-c toy --queries-of nowhere", "nowhere"),
    ("-c toy --doc-words nowhere", "nowhere"),
    ("-c toy --out t.csv", "is written as"),
    ("-c toy --network tiny.yaml", "cannot be written (Not a directory)"),
    ("-c toy --target python:odd.py:equal", "scores all texts of a query alike: nothing to learn"),
]
ODD = "def equal(q, d): return [0.0] * len(d)\n"


@pytest.mark.parametrize(("options", "expected"), WRONG)
def test_wrong_requests_for_a_network_are_one_line(whyrank, here, options, expected):
    (here / "odd.py").write_text(ODD)
    code, printed, said = whyrank(*PARM, "--out", "t.tsv", *options.split())
    assert (code, printed) == (2, "")
    assert expected in said.splitlines()[-1]
    assert not (here / "t.parm").exists()
    assert not (here / "t.tsv.blocks").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", "needs --target RANKER, or --network FOLDER"),
        ("--network nothing", "config.json: cannot be read"),
        ("--network parm --recipe parm", "--recipe is for training; name a --target"),
        ("--network parm --batch-size 3", "--batch-size is for training"),
        ("--network parm --audit the", "drops it"),
    ],
)
def test_wrong_requests_for_a_table_are_one_line(whyrank, here, options, expected):
    saved(here)
    assert expected in one_line(whyrank(*TABLE, "--out", "t.tsv", *options.split()))
    assert not (here / "t.tsv").exists()


def test_texts_and_queries_without_words_are_learned_from(whyrank, here, ranker):
    docs = {"d1": "balan cemer dinis", "d2": "", "d3": "fotuk balan", "d4": "cemer"}
    write_collection(here / "toy", docs, {"q1": "balan cemer", "q2": "?!"}, "q1 0 d1 1\nq2 0 d3 1\n")
    sets = ("--set", "data.candidates=[1,1,1]", "--set", "phases.first.texts=2", "--set", "phases.second.texts=2")
    code, _, err = whyrank(*PARM, "-c", "toy", *sets, "--target", ranker("float(len(d))"), "--out", "t.tsv")
    assert code == 0, err
    assert "aligned by occlusion" in err
    assert Path("t.parm/model.safetensors").exists()
    assert Path("t.tsv").exists()


def test_table_and_slice_of_a_network(whyrank, here):
    """Words of a file are document terms; a table without entries is told."""
    saved(here)
    (here / "words.txt").write_text("dice\nJig\n")
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
        (here / name).mkdir()
    for out in ("v.parquet", "w.parquet"):
        assert "is no ordinary file" in one_line(whyrank(*TABLE, "--out", out, *options))
        assert not Path(f"{out}.blocks").exists()


def test_ctrl_c_keeps_blocks_and_says_one_line(here):
    saved(here, letters="klmnopqrstuvwxyz")
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
    assert err.splitlines()[-1].startswith("whyrank: stopped; scored blocks are kept")
    assert "Traceback" not in err
    assert not Path("t.tsv").exists()
