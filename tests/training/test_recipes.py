"""Recipes, bundled and wrong ones."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from whyrank.core import WhyrankError
from whyrank.data import parse_yaml
from whyrank.networks import networks
from whyrank.training import Recipe, check_settings, read_recipe, recipe_of
from whyrank.training.losses import losses
from whyrank.training.recipe import FOLDER, bundled_recipes

REAL = ("bundled", "parm", "stability-epic", "stability-vanilla")  # which learn from collections that are fetched


def test_every_architecture_has_a_recipe():
    assert {read_recipe(name).architecture for name in bundled_recipes()} == {*networks._builtin, "ltr"}
    assert "smoke" in bundled_recipes()


@pytest.mark.parametrize("name", bundled_recipes())
def test_a_bundled_recipe_is_whole(name):
    recipe = read_recipe(name)
    losses.create(recipe.loss)
    if recipe.architecture != "ltr":
        check_settings(recipe)
    if name not in REAL:
        assert recipe.architecture in ("ltr", "parm") or recipe.validation["collection"] == "sample"
        assert recipe.data["collection"] == "sample"
    assert (FOLDER / f"{name}.yaml").read_text().startswith("# ")
    assert recipe_of(recipe.as_dict()) == recipe


@pytest.mark.parametrize(
    ("text", "value"),
    [("2e-5", 2e-5), ("1E3", 1000.0), ("-2.5e+3", -2500.0), (".5e1", 5.0), ("12", 12), ("1.0e-3", 1e-3), ("e5", "e5"),
     ("1e", "1e"), ("'2e-5'", "2e-5"), ("[0, 1]", [0, 1]), ("true", True), ("", None), ("1-2e5", "1-2e5")],
)  # fmt: skip
def test_numbers_with_an_exponent_are_numbers(text, value):
    assert parse_yaml(text) == value
    assert type(parse_yaml(text)) is type(value)


GOOD = "architecture: cross\nencoder: some/model\ndata: {collection: sample}\n"
WRONG = {
    "lossy: margin": "unknown key of the recipe 'lossy'; did you mean 'loss'",
    "architecture: crossed": "unknown architecture 'crossed'; did you mean 'cross'",
    "encoder: 5": "encoder must be a name",
    "layers: 3": "layers must be a list, not 3",
    "seeds: []": "seeds must have at least 1 item",
    "seeds: [true]": "seeds: 0 must be a whole number",
    "data:": "data: keys with values are expected, not None",
    "data: {collection: }": "name a collection, or a file of triples",
    "data: {collection: a, triples: b}": "name a collection or a file of triples, not both",
    "data: {collection: a, 3: b}": "unknown key of data '3'",
    "data: {collection: a, n: 0}": "data: n must be greater than 0",
    "settings: {max_doc: x}": "settings: max_doc must be a whole number",
    "schedule: {epoch: 3}": "unknown key of schedule 'epoch'; did you mean 'epochs'",
    "schedule: {rate: fast}": "rate must be a number",
    "schedule: {precision: fp8}": "schedule: precision must be 'fp32' or",
    "validation: {run: bm25}": "validation: collection is missing",
    "validation: {collection: a, measure: MAP}": "unknown validation measure 'MAP'",
    "pretraining: {collection: a, masked: 2}": "pretraining: masked",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_line_is_one_clear_line(line, tmp_path):
    key = line.partition(":")[0]
    path = tmp_path / "own.yaml"
    path.write_text("".join(old + "\n" for old in GOOD.splitlines() if not old.startswith(f"{key}:")) + line)
    with pytest.raises(WhyrankError) as error:
        read_recipe(str(path))
    assert WRONG[line] in str(error.value)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"architecture: [cross", "own.yaml:1: is not YAML"), (b"a: b\n\tc: d", "own.yaml:2: is not YAML"),
     (b"- cross", "'architecture' is missing"), (b"", "'architecture' is missing"), (b"\xff\xfe", "cannot be read"),
     (b"data: {collection: sample}", "'architecture' is missing"), (b"a: &x [*x]", "its aliases stand for more than"),
     (b"!!python/object/apply:os.system [ls]", "is not YAML"), (b"a: " + b"[" * 5000, "is not YAML")],
)  # fmt: skip
def test_a_file_that_is_no_recipe_is_one_clear_line(content, what, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_bytes(content)
    with pytest.raises(WhyrankError) as error:
        read_recipe(str(path))
    assert what in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "what"),
    [("crosss", "unknown recipe 'crosss'; did you mean 'cross'"), ("no/such.yaml", "there is no such recipe"),
     ("", "unknown recipe")],
)  # fmt: skip
def test_a_missing_recipe_is_one_clear_line(name, what):
    with pytest.raises(WhyrankError, match=what):
        read_recipe(name)


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"settings": {"chunks": 3}}, "unknown setting of 'cross' 'chunks'"),
     ({"settings": {"encoder": 3}}, "unknown setting"),
     ({"architecture": "knrm", "encoder": "collection", "settings": {"trainables": True}}, "did you mean 'trainable'"),
     ({"architecture": "knrm", "encoder": "", "tokenizer": "x"}, "tokenizer: 'knrm' is built on word vectors"),
     ({"architecture": "conv-knrm", "pretraining": {"collection": "a"}}, "pretraining: 'conv-knrm' is built on"),
     ({"architecture": "neural-model1", "tokenizer": "x"}, "encoder: 'neural-model1' is built on tokens and takes none"),
     ({"architecture": "neural-model1", "encoder": ""}, "tokenizer: tokens need one"),
     ({"encoder": ""}, "encoder: give a hub id"), ({"encoder": {"hidden_size": 64}}, "tokenizer: a new encoder needs"),
     ({"encoder": {"hidden_size": 64}, "tokenizer": "x", "layers": [0]}, "num_hidden_layers")],
)  # fmt: skip
def test_settings_that_do_not_go_together_are_one_clear_line(changes, what):
    given = {"architecture": "cross", "encoder": "some/model", "data": {"collection": "sample"}}
    with pytest.raises(WhyrankError, match=what):
        check_settings(recipe_of(given | changes))


def test_trees_take_data_and_settings_only():
    for key, value in (("encoder", "x"), ("schedule", {"epochs": 2}), ("layers", [0])):
        with pytest.raises(WhyrankError, match=f"{key}: 'ltr' takes"):
            Recipe("ltr", data={"collection": "sample"}, **{key: value})


def test_reading_a_recipe_needs_no_torch():
    """Trees are trained where torch is not installed."""
    code = "import sys; from whyrank.training.recipe import read_recipe; read_recipe('ltr'); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


def test_a_key_of_data_without_a_value_is_none():
    given = {"architecture": "cross", "encoder": "some/model"}
    found = recipe_of(given | {"data": {"collection": None, "triples": "t.tsv", "limit": None}})
    assert found == recipe_of(given | {"data": {"triples": "t.tsv"}})
