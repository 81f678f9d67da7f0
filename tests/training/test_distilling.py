"""Distillation: which queries and texts, which candidates of teachers and BM25, prepared and trained."""

from __future__ import annotations

import json
from collections import Counter
from math import log

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from training_models import ENCODER, quiet, toy_recipe, toy_sources, toy_texts
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
from whyrank.training.distilling import (
    FUNCTION_WORDS,
    OPENINGS,
    Mined,
    cut_queries,
    embed,
    top_by_bm25,
    top_by_vectors,
)

TEACHERS = {"a": 0.5, "b": 0.5}


@pytest.fixture
def teachers(tmp_path):
    sources, found = toy_sources(), {}
    for seed, share in ((1, 0.75), (2, 0.25)):
        path = tmp_path / f"teacher-{seed}"
        new_network(toy_recipe(encoder=ENCODER), seed, sources).encoder.model.save_pretrained(path)
        (path / "tokenizer.json").write_bytes(sources.tokenizer)
        found[str(path)] = share
    return found


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "lakes"
    path.mkdir()
    texts = ["The deepest lake of all is in Siberia and holds much water.", "Paper is made from wood fibres in a mill.",
             "Glaciers are bodies of ice that move slowly downhill."]  # fmt: skip
    rows = [json.dumps({"doc_id": f"d{i}", "text": text}) for i, text in enumerate(texts)]
    (path / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    (path / "queries.tsv").write_text("q1\tdeepest lake\nq2\tHow is paper made?\nq3\tunanswered\n")
    (path / "qrels.txt").write_text("q1 0 d0 1\nq2 0 d1 1\nq3 0 d2 0\n")
    return path


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
    for out in train_seeds(made, tmp_path / "networks", (), "cpu", quiet):
        losses = json.loads((out / "log.json").read_text())["losses"]
        assert np.mean(losses[-3:]) < np.mean(losses[:3])


@pytest.mark.parametrize(("data", "words"), [
    ({"teachers": {"m": 1}}, "name collections"),
    ({"teachers": ["m"], "cut": {"c": 1}}, "teachers must be keys with values"),
    ({"teachers": {"m": 1}, "cut": {"c": 1}, "candidates": [1, 2]}, "candidates must have at least 3 items"),
    ({"teachers": {"m": 1}, "cut": {"c": 1}, "negatives": "bm25"}, "negatives"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(data, words):
    with pytest.raises(WhyrankError, match=words):
        toy_recipe(data=data)


def test_dropout_of_a_recipe_is_that_of_all_parts():
    network = new_network(recipe_of(toy_recipe(dropout=0.25).as_dict()), 0, toy_sources())
    assert {m.p for m in network.modules() if isinstance(m, torch.nn.Dropout)} == {0.25}


def test_the_recipe_of_the_bundled_ranker_holds_back_what_it_is_measured_on():
    data = read_recipe("bundled").data
    assert "msmarco_dl19" in data["without"]
    assert not [name for name in [*data["collection"], *data["cut"]] if "dl19" in name or "dl20" in name]


def teacher(n, seed, width=6):
    random = torch.Generator().manual_seed(seed)
    return functional.normalize(torch.randn(n, width, generator=random), dim=1)


SHARES = (0.7, 0.3)


def parts(n=12, docs=40):
    return [teacher(n, 1), teacher(n, 2, 9)], [teacher(docs, 3), teacher(docs, 4, 9)]


def cosines(n=12, docs=40):
    return sum(w * (q @ d.T).numpy() for w, q, d in zip(SHARES, *parts(n, docs), strict=True))


def mined(n=12, docs=40, depth=25, top=(3, 4, 2), lexical=None):
    queries, texts = parts(n, docs)
    one = torch.cat([part * share for part, share in zip(queries, SHARES, strict=True)], dim=1)
    two = torch.cat(texts, dim=1)
    return Mined(np.arange(n, dtype=np.int32), top_by_vectors(one, two, depth), one, two, top, lexical)


def test_an_epoch_has_the_source_some_of_the_best_some_of_the_next_and_some_at_random():
    made = mined()
    found = made.epoch(0, 1)
    assert sorted(found.query.tolist()) == list(range(12))
    assert found.doc.shape == found.target.shape == (12, 10)
    for query, docs in zip(found.query, found.doc, strict=True):
        assert docs[0] == made.source[query]
        assert len(set(docs[1:4].tolist()) & set(made.ranked[query, :10].tolist())) == 3
        assert len(set(docs[4:8].tolist()) & set(made.ranked[query, 10:].tolist())) == 4
    again = made.epoch(0, 1)
    assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))
    assert not np.array_equal(found.doc, made.epoch(0, 2).doc)


def test_targets_are_the_weighted_cosines_of_the_teachers():
    expected = cosines()
    for query, docs, targets in zip(*mined().epoch(3, 0), strict=True):
        np.testing.assert_allclose(targets, expected[query, docs], atol=1e-6)


def test_embeddings_are_mean_states_of_length_one(tmp_path):
    sources = toy_sources()
    network = new_network(toy_recipe(encoder=ENCODER), 0, sources)
    network.encoder.model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(sources.tokenizer)
    texts = toy_texts()[1]
    found = embed(str(tmp_path), texts, most=10, batch=3)
    with torch.inference_mode():
        special, ids = network.tokenizer.special, network.tokenizer.ids(texts, 10)
        row = torch.tensor([[special["cls"], *ids[7].tolist(), special["sep"]]])
        states = network.encoder.eval().last({"ids": row, "types": row * 0, "mask": torch.ones_like(row)})[0]
    torch.testing.assert_close(found[7], functional.normalize(states.mean(dim=0), dim=0), rtol=1e-4, atol=1e-5)


TOKENS = st.lists(st.integers(0, 11), max_size=8).map(lambda row: np.array(row, np.int32))


def bm25(query, docs, k1=0.9, b=0.4):
    mean = sum(map(len, docs)) / len(docs)
    scores = []
    for doc in docs:
        tf, total = Counter(doc.tolist()), 0.0
        for token in set(query.tolist()):
            having = sum(token in other for other in docs)
            weight = log(1 + (len(docs) - having + 0.5) / (having + 0.5))
            if tf[token]:
                total += weight * tf[token] / (tf[token] + k1 * (1 - b + b * len(doc) / mean))
        scores.append(total)
    return scores


@settings(deadline=None, max_examples=40)
@given(st.lists(TOKENS, min_size=1, max_size=5), st.lists(TOKENS, min_size=1, max_size=9), st.integers(1, 12))
def test_the_best_texts_are_those_of_the_definition(queries, docs, depth):
    found = top_by_bm25(queries, docs, 12, depth)
    assert found.shape == (len(queries), min(depth, len(docs)))
    for query, row in zip(queries, found, strict=True):
        scores = bm25(query, docs)
        assert len(set(row.tolist())) == len(row)
        np.testing.assert_allclose([scores[d] for d in row], sorted(scores, reverse=True)[: len(row)], atol=1e-5)


SENTENCES = "The quick brown fox jumps over the lazy dog today. Whales are very large animals of the sea. Short one."
WORDS = SENTENCES.lower().replace(".", "").split()
CONTENT = [word for word in WORDS if word not in FUNCTION_WORDS]


def without_opening(text):
    return next(
        (text.removeprefix(o + " ") for o in sorted(OPENINGS, key=len)[::-1] if text.startswith(o + " ")), text
    )


@given(st.integers(0, 50), st.integers(1, 6))
def test_cuts_are_words_of_their_text_in_order(seed, per_text):
    found = cut_queries([SENTENCES, "too short"], per_text, seed)
    assert found == cut_queries([SENTENCES, "too short"], per_text, seed)
    assert len(found) <= per_text
    for text, source in found:
        assert source == 0
        plain = without_opening(text)
        assert 2 <= len(plain.split()) <= 9
        assert any(f" {plain} " in f" {' '.join(words)} " for words in (WORDS, CONTENT))
        assert not {plain.split()[0], plain.split()[-1]} & FUNCTION_WORDS


def test_the_questions_of_a_text_are_queries_as_they_stand():
    texts = [
        "You may ask: how deep is the deepest lake? It is deep.",
        "Why? Because is that so?",
        "No questions asked.",
    ]
    found = cut_queries(texts, 0)
    assert found == [("how deep is the deepest lake", 0)]
