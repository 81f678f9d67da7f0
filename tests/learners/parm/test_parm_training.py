"""Both phases of PaRM in a run: presets, stops in between, refusals, and losses by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from pair_models import forward
from parm_models import SCHEDULE, SHAPE, parm_recipe, toy_prepared
from training_models import quiet
from whyrank.core import BadInput, WhyrankError
from whyrank.learners.parm import check_parm, is_trained, train_parm
from whyrank.learners.parm import training as parm_training
from whyrank.learners.parm.data import split_queries
from whyrank.learners.parm.phases import first_phase, second_phase
from whyrank.networks import digest, load
from whyrank.training import Trainer, prepare, recipe_of

torch.set_num_threads(1)


def test_both_phases_run_and_are_told(tmp_path):
    said, folders = [], [tmp_path / "seed-3", tmp_path / "seed-4"]
    for seed, folder in zip((3, 4), folders, strict=True):
        train_parm(toy_prepared(), folder, seed, "cpu", said.append)
    assert digest(folders[0]) != digest(folders[1])
    log = json.loads((folders[0] / "log.json").read_text())
    assert [phase["phase"] for phase in log["phases"]] == ["phase 1", "phase 2, round 1"]
    assert all(np.isfinite(phase["losses"]).all() for phase in log["phases"])
    assert log["phases"][0]["validations"]
    config = json.loads((folders[0] / "config.json").read_text())
    assert config["analyzer"] == "krovetz"
    assert config["seed"] == 3
    assert "frame" not in config
    assert not (folders[0] / "unfinished").exists()
    assert torch.isfinite(forward(load(folders[0]), ["balan"], ["cemer"]).detach()).all()
    train_parm(toy_prepared(), folders[0], 3, "cpu", said.append)
    assert said[-1].endswith("trained already")
    assert is_trained(folders[0], parm_recipe(), 3)
    assert not is_trained(tmp_path / "none", parm_recipe(), 3)
    other = parm_recipe(settings={"max_query": 5, "max_doc": 16})
    with pytest.raises(BadInput, match="another recipe, seed, collection or target"):
        train_parm(toy_prepared()._replace(recipe=other), folders[0], 3, "cpu", quiet)
    for recipe, seed in ((other, 3), (parm_recipe(), 4)):
        with pytest.raises(BadInput, match="another recipe, seed, collection or target"):
            is_trained(folders[0], recipe, seed)


def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path, monkeypatch):
    schedule = {**SCHEDULE, "checkpoint_every": 2, "validate_every": 3}
    phases = {"preset": "target", "first": {"schedule": schedule, "held_out": 0.2},
              "second": {"schedule": schedule, "texts": 3, "rounds": 2}}  # fmt: skip
    dropping = {**SHAPE, "hidden_dropout_prob": 0.2}
    made = toy_prepared(encoder=dropping, phases=phases, settings={"max_query": 6, "max_doc": 16, "dropout": 0.1})
    real, logs = Trainer._step, {}
    for stop in (0, 3, 9, 14):  # in phase 1 and in both rounds of phase 2
        steps, folder = [], tmp_path / str(stop)

        def stopping(self, step, total, batch, steps=steps, stop=stop):
            steps.append(step)
            if len(steps) == stop:
                raise KeyboardInterrupt
            real(self, step, total, batch)

        if stop:
            monkeypatch.setattr(Trainer, "_step", stopping)
            with pytest.raises(KeyboardInterrupt):
                train_parm(made, folder, 0, "cpu", quiet)
            monkeypatch.setattr(Trainer, "_step", real)
        train_parm(made, folder, 0, "cpu", quiet)
        logs[stop] = [phase["losses"] for phase in json.loads((folder / "log.json").read_text())["phases"]]
    assert len({digest(tmp_path / str(stop)) for stop in logs}) == 1
    assert len(logs[0]) == 3
    assert all(losses == logs[0] for losses in logs.values())


def test_phase_two_is_validated_on_queries_of_all_collections(monkeypatch):
    """Queries come one collection after the other: the first of those held out are of the first ones alone."""
    monkeypatch.setattr(parm_training, "_HELD", 8)
    made = toy_prepared(phases={"first": {"held_out": 0.5}})
    held = split_queries(40, 0.5)[1]
    kept, some = parm_training.phase_two_queries(made, None, 0)
    assert set(some) < set(held)
    assert (len(some), len(kept)) == (8, 20)
    assert some.max() > np.sort(held)[8:].min()
    assert np.array_equal(some, parm_training.phase_two_queries(made, 5, 1)[1])
    monkeypatch.setattr(parm_training, "_HELD", 100)
    assert np.array_equal(parm_training.phase_two_queries(made, None, 0)[1], held)


def test_a_recipe_of_phases_is_for_tables():
    with pytest.raises(WhyrankError, match="it is for `whyrank tables learn parm`"):
        prepare(parm_recipe())
    assert recipe_of(parm_recipe().as_dict()) == parm_recipe()


SAMPLE = {"collection": "sample"}
OWN = {"second": {"own": False}}
REFUSED = [
    ({"phases": {"preset": "papers"}}, "unknown preset 'papers'; did you mean 'paper'"),
    ({"phases": {"preset": "paper", "third": {}}}, "unknown key of phases 'third'"),
    ({"phases": {"first": {"units": "word"}}}, "unknown key of first 'units'; did you mean 'unit'"),
    ({"phases": {"first": {"unit": "words"}}}, "first: unit must be 'word' or 'token'"),
    ({"phases": {"first": {"texts": 1}}}, "first: texts must be"),
    ({"phases": {"first": {"schedule": {"rates": 1}}}}, "unknown key of first: schedule 'rates'"),
    ({"phases": {"first": {"schedule": {"rate": "x"}}}}, "first: schedule: rate must be a number"),
    ({"phases": {"second": {"own": 1}}}, "second: own must be true or false"),
    ({"phases": {"second": {"start": -4}}}, "second: start must be a list"),
    ({"phases": {"second": {"start": [-4, 0]}}}, "second: the spread of start must be"),
    ({"phases": {"second": {"own": False, "positives": "gold"}}}, "second: positives are gold texts"),
    ({"data": SAMPLE | {"candidates": [1, 2]}}, "data: candidates must have at least 3"),
    ({"data": SAMPLE | {"negatives": "bm25"}}, "unknown key of data"),
    ({"data": SAMPLE | {"depth": 0.5}}, "data: depth must be a whole number"),
    ({"data": SAMPLE | {"candidates": [0, 0, 0]}}, r"candidates \[0, 0, 0\]: each query needs 1 or more texts"),
    ({"data": SAMPLE | {"candidates": [0, 1, 0]}, "phases": OWN}, "each query needs 2 or more texts"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=lambda each: each if isinstance(each, str) else "")
def test_a_recipe_that_cannot_be_meant_is_refused(changes, message):
    with pytest.raises(WhyrankError, match=message):
        check_parm(parm_recipe(**changes), "bm25")


def recipe_for(recipe, *changes, analyzer=None):
    notes = []
    made = parm_training.parm_recipe("bm25", recipe, ["toy"], changes, analyzer, notes.append)
    return made.as_dict(), " ".join(notes)


@pytest.mark.parametrize("preset", ["paper", "code"])
def test_a_preset_replaces_all_that_a_bundled_recipe_says_of_phases(preset):
    """Before or behind it, what is set on the command line stays."""
    made, _ = recipe_for("parm", "phases.second.rounds=3", f"phases.preset={preset}", "phases.first.masks=runs")
    assert made["phases"] == {"preset": preset, "first": {"masks": "runs"}, "second": {"rounds": 3}}
    first, second = first_phase(made["phases"]), second_phase(made["phases"])
    assert (first.positives, first.schedule_for(0).batch, first.schedule_for(0).max_steps) == ("gold", 16, 20_000)
    assert (second.missing, second.rounds, second.schedule_for(0).batch) == (
        {"paper": "all", "code": "one"}[preset],
        3,
        256,
    )
    own = first_phase({"preset": preset, "first": {"schedule": {"batch": 5}}}).schedule_for(0)
    assert (own.batch, own.max_steps, own.decay_all, own.epsilon) == (5, 20_000, True, 1e-7)


def test_collections_replace_all_that_a_recipe_names(tmp_path):
    """Also those that queries are cut from and that are held back; the latter is said."""
    made, notes = recipe_for("parm", analyzer="lucene")
    assert (made["data"]["collection"], made["data"]["cut"], made["data"]["without"]) == (["toy"], {}, [])
    assert (made["data"]["depth"], made["data"]["analyzer"], made["data"]["target"]) == (100, "lucene", "bm25")
    assert "data.without (msmarco_dl19) goes too" in notes
    made, notes = recipe_for("parm", "data.cut.toy=2", "data.without=[sample]")
    assert (made["data"]["cut"], made["data"]["without"], notes) == ({"toy": 2}, ["sample"], "")
    file = tmp_path / "own.yaml"
    file.write_text("architecture: parm\nencoder: bundled\ndata: {cut: 2}\nphases: {preset: target}\n")
    assert recipe_for(str(file))[0]["data"]["cut"] == 2  # a number is for any collection
