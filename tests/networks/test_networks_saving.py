"""A network's folder: what is damaged is named in one line, whatever ranker opens it."""

from __future__ import annotations

import json
import os

import pytest
from safetensors.torch import load_file, save_file

from pair_models import saved
from whyrank.core import BadInput
from whyrank.networks import load
from whyrank.rankers import open_ranker


@pytest.fixture
def place(tmp_path):
    return saved(tmp_path)


@pytest.mark.parametrize(("name", "content"), [
    ("model.safetensors", b""), ("model.safetensors", b"\xff" * 64),
    ("config.json", b'{"kind": "whyrank network", "architecture": "parm", "encoder": {}}'),
    ("config.json", b'{"kind": "whyrank network", "architecture": "parm", "encoder": {"model_type": "bert"}}'),
])  # fmt: skip
def test_a_damaged_folder_is_named(place, name, content):
    (place / name).write_bytes(content)
    with pytest.raises(BadInput, match=rf"{name}: is damaged: .+; train or copy the network again"):
        open_ranker(f"parm:{place}").score(["a"], ["b"])
    (place / "checksums.json").unlink()  # as older versions left it
    with pytest.raises(BadInput, match=r"parm: holds no whole network \(.+; train or copy the network again"):
        open_ranker(f"parm:{place}").score(["a"], ["b"])


def test_weights_of_another_shape_and_a_missing_file_are_named(place):
    (place / "checksums.json").unlink()
    state = load_file(place / "model.safetensors")
    save_file({name: tensor for name, tensor in state.items() if "outer" not in name}, place / "model.safetensors")
    with pytest.raises(BadInput, match="holds no whole network"):
        load(place)
    (place / "model.safetensors").unlink()
    with pytest.raises(BadInput, match=r"model\.safetensors"):
        load(place)


def test_a_setting_that_no_network_has_is_named(place):
    config = json.loads((place / "config.json").read_text())
    config["settings"]["colour"] = "red"
    (place / "checksums.json").unlink()
    (place / "config.json").write_text(json.dumps(config))
    with pytest.raises(BadInput, match="colour"):
        load(place)


def test_files_have_ordinary_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        kept = saved(tmp_path)
    finally:
        os.umask(before)
    modes = {each.name: oct(each.stat().st_mode & 0o777) for each in kept.iterdir()}
    assert modes == dict.fromkeys(("checksums.json", "config.json", "model.safetensors", "tokenizer.json"), "0o640")
