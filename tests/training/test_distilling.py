"""Distillation from a recipe: which queries and texts, which candidates, prepared and trained."""

from __future__ import annotations

import json

import numpy as np
import pytest

from training_models import ENCODER, quiet, toy_recipe, toy_sources
from whyrank.core import WhyrankError
from whyrank.data import open_collection
from whyrank.training import (
    Distillation,
    distillation_set,
    new_network,
    prepare,
    read_recipe,
    recipe_of,
    train_seeds,
)

TEACHERS = {"a": 0.5, "b": 0.5}


@pytest.fixture
def teachers(tmp_path):
    sources, found = toy_sources(), {}
    for seed, share in ((1, 0.75), (2, 0.25)):
        place = tmp_path / f"teacher-{seed}"
        new_network(toy_recipe(encoder=ENCODER), seed, sources).encoder.model.save_pretrained(place)
        (place / "tokenizer.json").write_bytes(sources.tokenizer)
        found[str(place)] = share
    return found


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "lakes"
    place.mkdir()
    texts = ["The deepest lake of all is in Siberia and holds much water.", "Paper is made from wood fibres in a mill.",
             "Glaciers are bodies of ice that move slowly downhill."]  # fmt: skip
    rows = [json.dumps({"doc_id": f"d{i}", "text": text}) for i, text in enumerate(texts)]
    (place / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    (place / "queries.tsv").write_text("q1\tdeepest lake\nq2\tHow is paper made?\nq3\tunanswered\n")
    (place / "qrels.txt").write_text("q1 0 d0 1\nq2 0 d1 1\nq3 0 d2 0\n")
    return place


def test_queries_have_their_relevant_text_or_the_text_they_were_cut_from(folder):
    found = distillation_set({"collection": str(folder), "cut": {str(folder): 4}, "teachers": TEACHERS})
    docs = [" ".join(text.split()) for text in open_collection(str(folder)).docs.values()]
    assert list(found.docs) == docs
    own = dict(zip(found.queries, found.sampler.source.tolist(), strict=True))
    assert own["deepest lake"] == 0
    assert own["How is paper made?"] == 1
    assert "unanswered" not in own
    assert len(own) > 6
    assert set(own.values()) == {0, 1, 2}


def test_nothing_of_a_collection_that_is_held_back_is_learned(folder, tmp_path):
    held = tmp_path / "held"
    held.mkdir()
    (held / "corpus.jsonl").write_text(
        json.dumps({"doc_id": "x", "text": "paper is made, from wood fibres in a mill"}) + "\n"
    )
    (held / "queries.tsv").write_text("q\tDeepest LAKE?\n")
    (held / "qrels.txt").write_text("q 0 x 1\n")
    data = {"collection": [str(folder)], "cut": {str(folder): 9}, "without": [str(held)], "teachers": TEACHERS}
    found = distillation_set(data)
    assert len(found.docs) == 2
    assert not [text for text in found.docs if "aper" in text]
    assert not {"deepest lake", "How is paper made?"} & set(found.queries)


def test_a_recipe_with_teachers_is_trained(folder, teachers, tmp_path):
    data = {"collection": str(folder), "cut": {str(folder): 6}, "teachers": teachers, "candidates": [1, 1, 1],
            "depth": 3, "lexical": 1}  # fmt: skip
    recipe = toy_recipe(
        data=data, loss="kl", tokenizer="collection", dropout=0.0, schedule={"epochs": 30}, seeds=[0, 1]
    )
    made = prepare(recipe)
    assert prepare(recipe).identity(0) == made.identity(0) != made.identity(1)
    assert isinstance(made.data.sampler, Distillation)
    assert made.data.sampler.shares == [0.75, 0.25]
    for place in train_seeds(made, tmp_path / "networks", (), "cpu", quiet):
        losses = json.loads((place / "log.json").read_text())["losses"]
        assert np.mean(losses[-3:]) < np.mean(losses[:3])


@pytest.mark.parametrize(("data", "words"), [
    ({"teachers": {"m": 1}}, "name collections"),
    ({"teachers": ["m"], "cut": {"c": 1}}, "teachers must be names with numbers"),
    ({"teachers": {"m": 0}, "cut": {"c": 1}}, "teachers: m"),
    ({"teachers": {"m": 1}, "cut": {"c": 0}}, "cut: c"),
    ({"teachers": {"m": 1}, "cut": {"c": 1}, "candidates": [1, 2]}, "three whole numbers"),
    ({"teachers": {"m": 1}, "cut": {"c": 1}, "negatives": "bm25"}, "negatives"),
    ({"teachers": {"m": 1}, "cut": {"c": 1}, "without": [3]}, "list of names"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(data, words):
    with pytest.raises(WhyrankError, match=words):
        toy_recipe(data=data)


def test_a_teacher_that_is_no_model_is_refused(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    data = {"cut": {str(folder): 2}, "teachers": {str(tmp_path / "empty"): 1}}
    with pytest.raises(WhyrankError, match=r"empty cannot be loaded"):
        train_seeds(prepare(toy_recipe(data=data, loss="kl")), tmp_path / "network", (), "cpu", quiet)


def test_dropout_of_a_recipe_is_that_of_all_parts():
    import torch

    network = new_network(recipe_of(toy_recipe(dropout=0.25).as_dict()), 0, toy_sources())
    assert {m.p for m in network.modules() if isinstance(m, torch.nn.Dropout)} == {0.25}


def test_the_recipe_of_the_bundled_ranker_holds_back_what_it_is_measured_on():
    data = read_recipe("bundled").data
    assert "msmarco_dl19" in data["without"]
    assert not [name for name in [*data["collection"], *data["cut"]] if "dl19" in name or "dl20" in name]
