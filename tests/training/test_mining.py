"""Candidates from teachers."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from training_models import ENCODER, toy_sources, toy_texts
from whyrank.training import new_network
from whyrank.training.distilling import Mined, embed, joined, mined_top


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
    one, two = joined(queries, SHARES), joined(texts)
    return Mined(np.arange(n, dtype=np.int32), mined_top(one, two, depth), one, two, top, lexical)


def test_the_best_texts_have_the_highest_weighted_cosine():
    np.testing.assert_array_equal(mined().ranked, np.argsort(-cosines(), axis=1)[:, :25])


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


def test_some_candidates_are_those_of_bm25():
    by_words = np.random.default_rng(0).permuted(np.tile(np.arange(40, dtype=np.int32), (12, 1)), axis=1)[:, :6]
    found = mined(lexical=(by_words, 2)).epoch(0, 0)
    assert found.doc.shape == (12, 1 + 3 + 4 + 2 + 2)
    for query, docs in zip(found.query, found.doc, strict=True):
        assert len(set(docs[8:10].tolist()) & set(by_words[query].tolist())) == 2


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
        special, ids = network.tokenizer.special, network.tokenizer.ids(texts, 10)
        row = torch.tensor([[special["cls"], *ids[7].tolist(), special["sep"]]])
        states = network.encoder.eval().last({"ids": row, "types": row * 0, "mask": torch.ones_like(row)})[0]
    torch.testing.assert_close(found[7], functional.normalize(states.mean(dim=0), dim=0), rtol=1e-4, atol=1e-5)
