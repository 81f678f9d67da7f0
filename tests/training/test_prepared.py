"""A run that is prepared here and trained elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch

import whyrank
from training_models import toy_data, toy_network, toy_recipe, toy_run, toy_sources, toy_validation, train_quietly
from whyrank.core import BadInput, WhyrankError
from whyrank.learners.__main__ import main
from whyrank.networks import load
from whyrank.training import Examples, Prepared, Sources, TrainingSet, load_prepared, new_network, save_prepared
from whyrank.training.data import Fixed, Mixed

MISSING = ("numba", "pyarrow", "ir_measures", "typer", "rich", "pydantic", "scipy")
DEPENDENT = ("sklearn", "scikit_learn")  # which need one of these
CODE = f"""
import importlib, runpy, sys
for name in {MISSING}:
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    sys.exit(f"{{name}} can be imported")
sys.argv = ["whyrank.training", *sys.argv[1:]]
runpy.run_module("whyrank.learners", run_name="__main__")
"""


@pytest.fixture(scope="module")
def bare_site(tmp_path_factory):
    """A folder of all installed packages but those that a machine elsewhere may lack."""
    folder = tmp_path_factory.mktemp("site")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        package = path.name.replace("-", ".").split(".")[0]
        if path.suffix != ".pth" and package not in (*MISSING, *DEPENDENT):
            (folder / path.name).symlink_to(path)
    return folder


def elsewhere(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m whyrank.learners` where only the packages of a folder can be imported."""
    home = Path(whyrank.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(home)]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-S", "-c", CODE, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_training_elsewhere_gives_the_same_losses(tmp_path, bare_site):
    made = toy_run(corpus=tuple(toy_data().docs), pretraining={"collection": "toy", "batch": 10}, seeds=[3, 1])
    save_prepared(tmp_path / "run", made)
    found = elsewhere(bare_site, str(tmp_path / "run"), "--out", str(tmp_path / "there"), "--device", "cpu")
    assert found.returncode == 0, found.stderr
    assert "seed 3: 16 steps in" in found.stdout
    here = train_quietly(made, tmp_path / "here", seed=3)
    there = train_quietly(made, tmp_path / "there" / "seed-3", seed=3)  # finished: read from its log
    assert (there.losses, there.validations) == (here.losses, here.validations)
    ours, theirs = (load(tmp_path / name).state_dict() for name in ("here", "there/seed-3"))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert (tmp_path / "there" / "seed-1" / "log.json").exists()


def fixed() -> TrainingSet:
    data = toy_data(negatives=2)
    drawn = data.sampler.epoch(0, 0)
    targets = np.random.default_rng(0).random(drawn.doc.shape, np.float32)
    return TrainingSet(data.queries, data.docs, Fixed(drawn._replace(target=targets)))


WORDS = Sources(words=["balan", "über"], vectors=np.array([[1.0, 2.0], [3.0, 4.5]], np.float32))


@pytest.mark.parametrize("data", [toy_data(negatives=3), fixed()], ids=["judged", "fixed"])
@pytest.mark.parametrize("validation", [toy_validation(measure="RR@10"), None], ids=["validated", "not"])
@pytest.mark.parametrize("sources", [toy_sources(), WORDS], ids=["tokenizer", "vectors"])
def test_a_prepared_folder_holds_everything(tmp_path, data, validation, sources):
    made = Prepared(toy_recipe(seeds=(1, 2)), data, validation, ["corpus \ud800 text"], sources)
    save_prepared(tmp_path / "run", made)
    found = load_prepared(tmp_path / "run")
    assert found.recipe.as_dict() == made.recipe.as_dict() | {"seeds": [1, 2]}
    assert (found.data.queries, found.data.docs) == (data.queries, data.docs)
    for epoch in (0, 1):
        for ours, theirs in zip(data.sampler.epoch(5, epoch), found.data.sampler.epoch(5, epoch), strict=True):
            np.testing.assert_array_equal(ours, theirs)
            assert ours.dtype == theirs.dtype
    assert found.corpus == made.corpus
    assert found.sources.tokenizer == sources.tokenizer
    assert list(found.sources.words) == list(sources.words)
    assert found.sources.vectors is None or np.array_equal(found.sources.vectors, sources.vectors)
    assert found.identity(4) == made.identity(4) != made.identity(5)
    if validation is not None:
        network = toy_network().eval()
        with torch.inference_mode():
            assert found.validation(network) == validation(network)


def test_the_encoder_travels_with_the_folder(tmp_path):
    """A folder of a pre-trained model is copied: its weights, its config, its tokenizer, nothing else."""
    model, sources = tmp_path / "model", toy_sources()
    encoder = new_network(toy_recipe(), 5, sources).encoder
    encoder.model.save_pretrained(model)
    (model / "tokenizer.json").write_bytes(sources.tokenizer)
    (model / "pytorch_model.bin").write_bytes(b"not this")
    recipe = toy_recipe(encoder=str(model), tokenizer="", layers=[1])
    save_prepared(tmp_path / "run", Prepared(recipe, toy_data(), None, [], Sources(model)))
    for path in model.iterdir():
        path.unlink()
    assert sorted(p.name for p in (tmp_path / "run" / "encoder").iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json",
    ]  # fmt: skip
    found = load_prepared(tmp_path / "run")
    made = new_network(found.recipe, 0, found.sources)
    assert made.encoder.depth == 1
    kept = encoder.model.encoder.layer[1].state_dict()
    assert all(torch.equal(t, kept[name]) for name, t in made.encoder.model.encoder.layer[0].state_dict().items())


def test_a_folder_is_prepared_again_but_other_things_are_left_alone(tmp_path):
    save_prepared(tmp_path / "run", toy_run())
    save_prepared(tmp_path / "run", toy_run(negatives=4)._replace(sources=WORDS))
    found = load_prepared(tmp_path / "run")
    assert found.data.sampler.n == 4
    assert found.sources.tokenizer == b""
    (tmp_path / "own" / "encoder").mkdir(parents=True)
    (tmp_path / "own" / "encoder" / "thesis.txt").write_text("precious")
    with pytest.raises(BadInput, match="other things"):
        save_prepared(tmp_path / "own", toy_run())
    assert (tmp_path / "own" / "encoder" / "thesis.txt").read_text() == "precious"


@pytest.mark.parametrize("name", ["recipe.json.gz", "texts.json.gz", "examples.npz", "vectors.npy", "words.json.gz"])
@pytest.mark.parametrize("content", [None, b"", b"nonsense"])
def test_a_broken_folder_is_one_clear_line(tmp_path, name, content):
    save_prepared(tmp_path, toy_run()._replace(sources=WORDS))
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    elif name == "vectors.npy":
        return
    with pytest.raises(WhyrankError, match=r"^[^\n]*--prepare[^\n]*$"):
        load_prepared(tmp_path)


def test_mixed_examples_cannot_be_prepared(tmp_path):
    mixed = TrainingSet(["q"], ["a", "b"], Mixed([Fixed(Examples(*(np.zeros((1, 2)),) * 3))]))
    with pytest.raises(WhyrankError, match="Mixed cannot be prepared"):
        save_prepared(tmp_path, toy_run()._replace(data=mixed))


def test_errors_elsewhere_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["whyrank.training", str(tmp_path), "--out", str(tmp_path / "out")])
    assert main() == 2
    assert capsys.readouterr().err.count("\n") == 1
    save_prepared(tmp_path / "run", toy_run())
    (tmp_path / "file").write_text("")
    for more in (["--out", str(tmp_path / "file" / "x")], ["--out", str(tmp_path / "y"), "--device", "toaster"]):
        monkeypatch.setattr(sys, "argv", ["whyrank.training", str(tmp_path / "run"), *more])
        assert main() == 2
        error = capsys.readouterr().err
        assert error.startswith("whyrank: ")
        assert error.count("\n") == 1
