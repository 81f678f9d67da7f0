"""Candidates from teachers, and queries cut from texts."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional
from training_models import ENCODER, toy_sources, toy_texts

from whyrank.training.keywords import OPENINGS, keyword_queries
from whyrank.training.mining import Mined, embed, mined_top
from whyrank.training.sources import new_network


def teacher(n, seed, width=6):
    random = torch.Generator().manual_seed(seed)
    return functional.normalize(torch.randn(n, width, generator=random), dim=1)


def mined(n=12, docs=40, depth=25, top=(3, 4, 2)):
    queries, texts = [teacher(n, 1), teacher(n, 2)], [teacher(docs, 3), teacher(docs, 4)]
    source = np.arange(n, dtype=np.int32)
    return Mined(source, mined_top(queries, texts, depth, block=5), queries, texts, top)


def test_the_best_texts_have_the_highest_mean_cosine():
    made = mined()
    means = np.mean([(q @ d.T).numpy() for q, d in zip(made.queries, made.docs, strict=True)], axis=0)
    np.testing.assert_array_equal(made.ranked, np.argsort(-means, axis=1)[:, :25])


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


def test_targets_are_the_mean_cosines_of_the_teachers():
    made = mined()
    found = made.epoch(3, 0)
    for query, docs, targets in zip(*found, strict=True):
        means = [
            np.mean([float(q[query] @ d[doc]) for q, d in zip(made.queries, made.docs, strict=True)]) for doc in docs
        ]
        np.testing.assert_allclose(targets, means, atol=1e-6)


def test_with_few_texts_fewer_are_drawn():
    found = mined(docs=12, depth=60).epoch(0, 0)
    assert found.doc.shape == (12, 1 + 3 + 2 + 2)
    assert mined(docs=12, depth=4).epoch(0, 0).doc.shape == (12, 1 + 3 + 0 + 2)


def test_embeddings_are_mean_states_of_length_one(tmp_path):
    from training_models import toy_recipe

    sources = toy_sources()
    network = new_network(toy_recipe(encoder=ENCODER), 0, sources)
    network.encoder.model.save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(sources.tokenizer)
    texts = toy_texts()[1]
    found = embed(str(tmp_path), texts, most=10, batch=3)
    with torch.inference_mode():
        special, ids = network.pieces.special, network.pieces.ids(texts, 10)
        row = torch.tensor([[special["cls"], *ids[7].tolist(), special["sep"]]])
        states = network.encoder.eval().last({"ids": row, "types": row * 0, "mask": torch.ones_like(row)})[0]
    torch.testing.assert_close(found[7], functional.normalize(states.mean(dim=0), dim=0), rtol=1e-4, atol=1e-5)


SENTENCES = "The quick brown fox jumps over the lazy dog today. Whales are very large animals of the sea. Short one. "


@given(st.integers(0, 50), st.integers(1, 3))
def test_keyword_queries_are_words_of_their_text_in_order(seed, per_text):
    stops = frozenset({"the", "over", "are", "very", "of"})
    found = keyword_queries([SENTENCES, "too short"], stops, per_text, seed)
    assert found == keyword_queries([SENTENCES, "too short"], stops, per_text, seed)
    assert 1 <= len(found) <= per_text
    content = [w for w in SENTENCES.lower().replace(".", "").split() if w not in stops]
    for text, source in found:
        assert source == 0
        plain = next((text.removeprefix(o + " ") for o in OPENINGS if text.startswith(o + " ")), text)
        assert 2 <= len(plain.split()) <= 6
        assert f" {plain} " in f" {' '.join(content)} "
