"""Generated queries, by tiny models with random weights."""

from __future__ import annotations

import random

import pytest

from tiny_generators import KINDS, WORDS, generator
from whyrank.core.errors import WhyrankError
from whyrank.text.edit_content import doc2query
from whyrank.text.generation import generate

torch = pytest.importorskip("torch", reason="the extra models is not installed")
transformers = pytest.importorskip("transformers", reason="the extra models is not installed")


@pytest.fixture(scope="module", params=KINDS)
def model(request, tmp_path_factory):
    return generator(request.param, tmp_path_factory.mktemp(request.param), positions=256)


def test_seeded_by_the_text(model):
    one, two = (generate("berlin wall fell", model, 4, 42) for _ in range(2))
    assert one == two
    assert 1 <= len(one) <= 4
    assert all(set(query.split()) <= set(WORDS) for query in one)
    assert generate("berlin wall fell", model, 4, 43) != one
    assert generate("city", model, 4, 42) != one


def test_global_generator_is_left_alone(model):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    generate("wall", model, 2, 0)
    assert torch.rand(1) == expected


def test_expanded_text(model):
    found = doc2query("berlin wall", random.Random(3), model=model, n=2)
    assert found.startswith("berlin wall ")
    assert found == "berlin wall " + " ".join(generate("berlin wall", model, 2, random.Random(3).getrandbits(32)))


def test_a_model_that_is_not_there():
    with pytest.raises(WhyrankError, match="no/such/model"):
        generate("wall", "no/such/model", 1, 0)


def test_weights_must_be_safetensors(model, tmp_path):
    import shutil
    from pathlib import Path

    copy = shutil.copytree(model, tmp_path / "pickled")
    weights = Path(copy) / "model.safetensors"
    weights.rename(Path(copy) / "pytorch_model.bin")
    with pytest.raises(WhyrankError, match="safetensors"):
        generate("wall", str(copy), 1, 0)
