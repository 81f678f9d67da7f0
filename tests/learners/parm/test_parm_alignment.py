"""Alignments: attention against transformers' own, products of states one by one, words across tokenizers."""

from __future__ import annotations

import numpy as np
import torch

from parm_models import WORDS, parm_network, toy_world
from whyrank.learners.parm.alignment import (
    AligningEncoder,
    token_texts,
)
from whyrank.training import new_network
from whyrank.training.sources import wordpiece_tokenizer


def reader(network=None):
    network = network or parm_network(seed=3)
    return AligningEncoder(network.encoder, network.tokenizer, network.max_query, network.max_doc)


def pairs_of(network, n=5):
    queries, docs = toy_world(n, n)
    texts = token_texts(network, queries, docs)
    query, doc = np.repeat(np.arange(len(queries)), 2), np.arange(2 * len(queries)) * 3 % len(docs)
    return queries, docs, texts, query, doc


def attention_weights(model, ids, types):
    """The mean over layers and heads for one input, by the formula."""
    states, found = model.embeddings(input_ids=ids, token_type_ids=types), []
    for layer in model.encoder.layer:
        own = layer.attention.self
        shape = (1, -1, own.num_attention_heads, own.attention_head_size)
        query, key = (part(states).view(shape).transpose(1, 2) for part in (own.query, own.key))
        found.append(torch.softmax(query @ key.transpose(-1, -2) / own.attention_head_size**0.5, dim=-1)[0])
        states = layer(states)
        states = states[0] if isinstance(states, tuple) else states
    return torch.stack(found).mean(dim=(0, 1))


def test_blocks_hold_both_directions_between_query_and_text():
    network, who = parm_network(), reader()
    _queries, _docs, texts, query, doc = pairs_of(network)
    sides = who.texts(texts[0], network.tokenizer, 6), who.texts(texts[1], network.tokenizer, 16)
    found = who.attention(*sides, query, doc, "cpu")
    assert found.shape == (len(query), texts[0].ids.shape[1], texts[1].ids.shape[1])
    for i, (q, d) in enumerate(zip(query, doc, strict=True)):
        n, m = texts[0].sizes[q], texts[1].sizes[d]
        row = [2, *texts[0].ids[q, :n], 3, *texts[1].ids[d, :m], 3]
        types = torch.tensor([[0] * (n + 2) + [1] * (m + 1)])
        with torch.inference_mode():
            weights = attention_weights(who.encoder.model, torch.tensor([row]), types)
        expected = (weights[1 : n + 1, n + 2 : n + 2 + m] + weights[n + 2 : n + 2 + m, 1 : n + 1].T) / 2
        torch.testing.assert_close(found[i, :n, :m], expected, rtol=1e-4, atol=1e-6)
        assert found[i, n:].eq(0).all()
        assert found[i, :, m:].eq(0).all()


def test_products_of_states_are_shares_of_the_score():
    network, who = parm_network(), reader()
    _queries, _docs, texts, query, doc = pairs_of(network)
    sides = who.texts(texts[0], network.tokenizer, 6), who.texts(texts[1], network.tokenizer, 16)
    found = who.embeddings(*sides, query, doc, "cpu")
    for i in (0, 3):
        states = []
        for text, number in ((texts[0], query[i]), (texts[1], doc[i])):
            ids = torch.tensor([[2, *text.ids[number, : text.sizes[number]], 3]])
            batch = {"ids": ids, "mask": torch.ones_like(ids), "types": torch.zeros_like(ids)}
            with torch.inference_mode():
                states.append(who.encoder.last(batch)[0, 1:-1])
        n, m = len(states[0]), len(states[1])
        torch.testing.assert_close(found[i, :n, :m], states[0] @ states[1].T, rtol=1e-4, atol=1e-4)
        assert found[i, n:].eq(0).all()
        assert found[i, :, m:].eq(0).all()


def letters_network():
    """A network whose tokenizer cuts every word into letters."""
    from parm_models import parm_recipe
    from whyrank.training import Sources

    return new_network(
        parm_recipe(), 5, Sources(tokenizer=wordpiece_tokenizer([" ".join(sorted(set("".join(WORDS))))], 100))
    )


def test_words_carry_values_between_tokenizers():
    network, other = parm_network(), letters_network()
    queries, docs = ["balan mernis"], ["cemer balan difo"]
    texts = token_texts(network, queries, docs)
    who = AligningEncoder(other.encoder, other.tokenizer, 20, 30)
    sides = who.texts(texts[0], network.tokenizer, 20), who.texts(texts[1], network.tokenizer, 30)
    assert sides[0].words is not None
    assert len(sides[1].ids[0]) == len("cemerbalandifo")
    found = who.embeddings(*sides, np.zeros(1, np.int64), np.zeros(1, np.int64), "cpu")[0]
    states = [letter_states(other, row) for row in (sides[0].ids[0], sides[1].ids[0])]
    products = states[0] @ states[1].T
    query, doc = texts[0].words[0], texts[1].words[0]
    query_words, doc_words = ([5, 6], [5, 5, 4])
    for a in range(texts[0].sizes[0]):
        for j in range(texts[1].sizes[0]):
            rows = slice(sum(query_words[: query[a]]), sum(query_words[: query[a] + 1]))
            columns = slice(sum(doc_words[: doc[j]]), sum(doc_words[: doc[j] + 1]))
            expected = products[rows, columns].amax(dim=1).mean()
            torch.testing.assert_close(found[a, j], expected, rtol=1e-4, atol=1e-4)


def letter_states(network, row):
    ids = torch.tensor([[2, *row, 3]])
    with torch.inference_mode():
        return network.encoder.eval().last({"ids": ids, "mask": torch.ones_like(ids), "types": ids * 0})[0, 1:-1]
