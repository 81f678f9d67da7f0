"""`whyrank train` as a user types it."""

from __future__ import annotations

import json
import sys

import ir_measures
import numpy as np
import pytest
import torch

from refusals import one_line
from whyrank.cli.main import main
from whyrank.core import exclusive
from whyrank.data import open_collection, read_run
from whyrank.networks import load
from whyrank.training import read_recipe
from whyrank.training.data import validation_set

QUICK = ("--set", "schedule.epochs=1", "--set", "validation={}", "--device", "cpu")


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The network that `whyrank train smoke --out F` writes, and what it said."""
    out = tmp_path_factory.mktemp("smoke") / "network"
    patch = pytest.MonkeyPatch()
    said = []
    patch.setattr("whyrank.cli.train.say", said.append)
    patch.setattr(sys, "argv", ["whyrank", "train", "smoke", "--out", str(out), "--device", "cpu"])
    with pytest.raises(SystemExit) as stop:
        main()
    patch.undo()
    assert stop.value.code == 0
    return out, said


def test_the_smoke_recipe_learns_the_sample(smoke, monkeypatch):
    out, said = smoke
    validation = validation_set(read_recipe("smoke").validation)
    random = np.random.default_rng(0)
    with monkeypatch.context() as patch:
        patch.setattr(type(validation), "_scores", lambda self, network: random.random(len(self.query)))
        orders = [validation(None) for _ in range(20)]
    with torch.inference_mode():
        found = validation(load(out))
    assert found > np.mean(orders) + 0.15
    assert said[0] == "cross: 40 queries, 499 texts"
    assert said[-2].startswith("seed 0: 100 steps in ")
    assert " pairs/s), best validation " in said[-2]
    assert said[-1] == f"score with it: --ranker cross:{out}"
    assert json.loads((out / "log.json").read_text())["seconds"] < 120


def test_the_network_is_a_ranker(smoke, whyrank, tmp_path):
    """Re-ranking the candidates of the validation with it gives the value that validation gave."""
    ranker = ("--ranker", f"cross:{smoke[0]}", "--candidates", "bm25", "--out", tmp_path / "run.txt")
    code, _, err = whyrank("rank", "--collection", "sample", *ranker)
    assert code == 0, err
    qrels = open_collection("sample").qrels
    found = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, read_run(tmp_path / "run.txt"))
    best = json.loads((smoke[0] / "log.json").read_text())["best"][1]
    assert found[ir_measures.nDCG @ 10] == pytest.approx(best, abs=1e-6)


def test_a_finished_run_is_done_at_once(smoke, whyrank):
    code, _, err = whyrank("train", "smoke", "--out", smoke[0], "--device", "cpu")
    assert code == 0
    assert f"{smoke[0]}: trained already" in err
    assert "another recipe" in one_line_after_counts(whyrank("train", "smoke", "--out", smoke[0], "--seed", 1))


def one_line_after_counts(result) -> str:
    """The error, after the line that says how much was read."""
    code, out, err = result
    assert (code, out, err.count("\n")) == (2, "", 2), err
    return err.splitlines()[1]


def test_several_seeds(whyrank, tmp_path):
    code, _, err = whyrank("train", "smoke", "--out", tmp_path, *QUICK, "--seed", 1, "--seed", 2)
    assert code == 0, err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-1", "seed-2"]
    assert f"--ranker cross:{tmp_path}/seed-1" in err


def test_values_are_set(whyrank, tmp_path):
    sets = ["schedule.rate=3e-4", "loss=margin(margin=0.5)", "encoder.hidden_size=32", "settings={max_doc: 20}", "seeds=[4]",
            "data.n=1"]  # fmt: skip
    code, _, err = whyrank("train", "smoke", "--out", tmp_path, *QUICK, *(p for s in sets for p in ("--set", s)))
    assert code == 0, err
    recipe = json.loads((tmp_path / "log.json").read_text())["recipe"]
    assert recipe["schedule"]["rate"] == 3e-4
    assert recipe["schedule"]["epochs"] == 1
    assert recipe["loss"] == "margin(margin=0.5)"
    assert (recipe["encoder"]["hidden_size"], recipe["encoder"]["num_hidden_layers"]) == (32, 2)
    assert load(tmp_path).max_doc == 20


WRONG = {
    "schedule.rates=1": "unknown key of schedule 'rates'",
    "schedule": "write KEY=VALUE",
    "seeds=3": "seeds must be a list",
    "data.collection=nowhere": "nowhere",
    "loss=hinge": "unknown loss 'hinge'",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_values_are_one_clear_line(whyrank, tmp_path, wrong):
    assert WRONG[wrong] in one_line(whyrank("train", "smoke", "--out", tmp_path, "--set", wrong))
    assert not any(tmp_path.iterdir())


def test_wrong_requests_are_one_clear_line(whyrank, tmp_path):
    assert whyrank("train", "smoke")[0] == 2
    assert "unknown recipe 'smok'; did you mean 'smoke'" in one_line(whyrank("train", "smok", "--out", tmp_path))
    assert "no such recipe" in one_line(whyrank("train", tmp_path / "own.yaml", "--out", tmp_path))
    (tmp_path / "own.yaml").write_text("architecture: cross\ndata: [1\n")
    assert "own.yaml:3: is not YAML" in one_line(whyrank("train", tmp_path / "own.yaml", "--out", tmp_path))
    result = whyrank("train", "smoke", "--out", tmp_path / "x", "--device", "toaster", *QUICK[:-2])
    assert "device 'toaster' is not available" in one_line_after_counts(result)
    (tmp_path / "file").write_text("")
    assert "file: cannot be written" in one_line(whyrank("train", "smoke", "--out", tmp_path / "file", *QUICK))


def test_trees_are_trained(whyrank, tmp_path):
    pytest.importorskip("lightgbm")
    code, _, err = whyrank("train", "ltr", "--out", tmp_path / "trees.txt", "--set", "settings.trees=5")
    assert code == 0, err
    assert err.startswith("5 trees from 40 queries, nDCG@10 0.")
    assert err.endswith(f"score with it: --ranker ltr:{tmp_path}/trees.txt\n")
    assert "one --seed" in one_line(whyrank("train", "ltr", "--out", tmp_path / "x", "--seed", 1, "--seed", 2))
    assert "unknown setting" in one_line(whyrank("train", "ltr", "--out", tmp_path / "x", "--set", "settings.tree=5"))


def test_a_second_training_in_the_same_folder_is_refused(whyrank, tmp_path):
    with exclusive(tmp_path / "network" / ".lock"):
        said = one_line(whyrank("train", "smoke", "--out", tmp_path / "network", *QUICK))
    assert "network/.lock: another process is at work on the same output; wait until it ends" in said
    assert not (tmp_path / "network").exists()
