"""Splits, deletions and masks of PaRM's phase 1 against plain loops over lists."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parm_models import parm_network, toy_prepared, toy_world
from training_models import quiet
from whyrank.learners.parm.alignment import TokenTexts, token_texts
from whyrank.learners.parm.data import CandidateSampler, TargetScores
from whyrank.learners.parm.phase1 import (
    FirstTrainer,
    Segmenter,
    tie_keys,
)
from whyrank.learners.parm.phases import First, first_phase
from whyrank.learners.parm.training import alignment_blocks

SPECIAL = {"cls": 1, "sep": 2, "pad": 0, "mask": 3}
INSIDE = np.arange(200) % 3 == 1  # the tokens 4, 7, 10, ... continue words
TOKENS = st.lists(st.integers(4, 199), min_size=1, max_size=7)
UNIFORM = st.floats(0, 1, exclude_max=True, width=32)
NORMAL = st.floats(-4, 4, width=32)


def texts(rows):
    return TokenTexts.of([np.array(row, np.int32) for row in rows], INSIDE)


def starts_of(row):
    return [i for i, token in enumerate(row) if i == 0 or not INSIDE[token]]


def span_by_hand(row, first, second, whole, starts_of=starts_of):
    """The specification's steps, one after the other."""
    start = min(int(np.float32(first) * len(row)), len(row) - 1)
    while start < len(row) and start not in starts_of(row):
        start += 1
    if start == len(row):  # behind the last word's first token: back to it
        start = starts_of(row)[-1]
    end = start + 1 + min(int(np.float32(second) * (len(row) - start)), len(row) - start - 1)
    while whole and end < len(row) and end not in starts_of(row):
        end += 1
    return start, end


def parts_by_hand(row, start, end, mask=SPECIAL["mask"]):
    rest = [*row[:start], mask, *row[end:]]
    span = [mask] * (start > 0) + row[start:end] + [mask] * (end < len(row))
    return rest, span


def units_by_hand(row, unit, starts_of=starts_of):
    """The positions of each unit's tokens."""
    if unit == "token":
        return [[i] for i in range(len(row))]
    found = []
    for i in range(len(row)):
        if i in starts_of(row):
            found.append([])
        found[-1].append(i)
    return found


def count_by_hand(kind, draw, units, part):
    draw = float(np.float32(draw))
    if kind == "paper":
        return max(0, min(max(1, int(units / 2 + units / 2 * draw)), units - 1))
    many = max(units - part, 1)
    return max(0, min(int(many / 2 + many / 2 * draw), units - max(part // 2, 1)))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(["word", "token"]), st.sampled_from(["paper", "code"]), st.booleans(),
       st.sampled_from(["each", "runs"]))  # fmt: skip
def test_batches_are_put_together_as_by_hand(data, unit, deletion, whole, masks):
    queries, docs = (data.draw(st.lists(TOKENS, min_size=2, max_size=3)) for _ in range(2))
    first = First(unit=unit, deletion=deletion, ends="word" if whole else "token", masks=masks)
    query = np.array(data.draw(st.lists(st.integers(0, len(queries) - 1), min_size=1, max_size=3)))
    doc = np.array([data.draw(st.permutations(range(len(docs))))[:2] for _ in query])
    seed = data.draw(st.integers(0, 2**20))
    random = np.random.default_rng(seed)
    draws = np.concatenate([random.random((len(query), 2)), random.standard_normal((len(query), 4))], axis=1)
    draws = draws.astype(np.float32)
    sides = texts(queries), texts(docs)
    blocks = random.random((len(query), 2, *(side.ids.shape[1] for side in sides))).astype(np.float32)
    segment = Segmenter(*sides, first, SPECIAL, "cpu")
    padded = segment(query, doc, torch.from_numpy(blocks), draws, packed=False)
    packed = segment(query, doc, torch.from_numpy(blocks), draws, packed=True)
    rows = list(by_hand(queries, docs, query, doc, blocks, draws, unit, deletion, whole, masks == "runs"))
    assert padded["mask"].sum(dim=1).tolist() == [len(ids) for ids, _ in rows]
    for i, (ids, types) in enumerate(rows):
        assert padded["ids"][i].tolist() == ids + [0] * (padded["ids"].shape[1] - len(ids))
        assert padded["types"][i].tolist() == types + [0] * (padded["ids"].shape[1] - len(ids))
    assert packed["ids"].tolist() == [token for ids, _ in rows for token in ids]
    assert packed["types"].tolist() == [kind for _, types in rows for kind in types]
    assert packed["positions"].tolist() == [i for ids, _ in rows for i in range(len(ids))]
    assert packed["ends"].tolist() == [0, *np.cumsum([len(ids) for ids, _ in rows]).tolist()]


def by_hand(queries, docs, query, doc, blocks, draws, unit, deletion, whole, runs, special=SPECIAL, starts=starts_of):
    for i, q in enumerate(query):
        row = queries[q]
        start, end = span_by_hand(row, draws[i, 0], draws[i, 1], whole, starts)
        inside = [[a for a in range(len(row)) if not start <= a < end], list(range(start, end))]
        parts = parts_by_hand(row, start, end, special["mask"])
        for k, d in enumerate(doc[i]):
            units = units_by_hand(docs[d], unit, starts)
            for part in range(2):
                rows = blocks[i, k][inside[part]][:, : len(docs[d])]
                scores = rows.mean(axis=0) if len(rows) else np.zeros(len(docs[d]))
                size = len(inside[part]) if unit == "token" else sum(a in starts(row) for a in inside[part])
                draw = draws[i, 2 + 2 * k + part]
                many = count_by_hand(deletion, draw, len(units), size)
                keys = tie_keys(torch.tensor([int(np.float32(draw) * 2**20)]), blocks.shape[-1])[0].tolist()
                order = sorted(range(len(units)), key=lambda u: (max(scores[j] for j in units[u]), keys[u]))
                gone = {j for u in order[:many] for j in units[u]}
                masked = [special["mask"] if j in gone else token for j, token in enumerate(docs[d])
                          if not (runs and {j - 1, j} <= gone)]  # fmt: skip
                ids = [special["cls"], *parts[part], special["sep"], *masked, special["sep"]]
                yield ids, [0] * (len(parts[part]) + 2) + [1] * (len(masked) + 1)


@pytest.mark.parametrize("preset", ["paper", "code"])
@pytest.mark.parametrize("masks", ["each", "runs"])
def test_the_loss_of_phase_one_by_hand(preset, masks):
    """All of phase 1 from the draws to the loss, one input at a time."""
    network, random = parm_network().eval(), np.random.default_rng(3)
    queries, docs = toy_world(6, 9)
    sides = token_texts(network, queries, docs)
    rows = [[row[:size].tolist() for row, size in zip(side.ids, side.sizes, strict=True)] for side in sides]
    doc = np.stack([random.permutation(len(docs))[:3] for _ in queries]).astype(np.int32)
    given_ = TargetScores(doc, random.standard_normal(doc.shape).astype(np.float32))
    blocks = random.random((doc.size, *(side.ids.shape[1] for side in sides))).astype(np.float32)
    first = first_phase({"preset": preset, "first": {"masks": masks}})
    sampler = CandidateSampler(given_, np.arange(len(queries)), 2, first.positives, "first")
    trainer = FirstTrainer(network, sampler, first, sides, torch.from_numpy(blocks), seed=0)
    part, total = sampler.epoch(0, 0), 0.0
    how = {"special": network.tokenizer.special, "starts": lambda row: opening(network, row)}
    inputs = list(by_hand(*rows, part.query, doc.ravel()[part.doc], blocks[part.doc], part.target[:, 2:], first.unit,
                          first.deletion, first.ends == "word", masks == "runs", **how))  # fmt: skip
    for i, target in enumerate(part.target):
        one, other = (sum(logit(network, *row) for row in inputs[j : j + 2]) for j in (4 * i, 4 * i + 2))
        wrong = (one - other) - (target[0] - target[1])
        total += (wrong**2 if preset == "paper" else max(0.0, 1 - (one - other))) / len(part.query)
    with torch.inference_mode():
        assert float(trainer._loss(part)) == pytest.approx(total, rel=1e-4)


def opening(network, row):
    names = network.tokenizer.spell(row)
    return [i for i, name in enumerate(names) if i == 0 or not name.startswith("##")]


def logit(network, ids, types):
    ids, types = torch.tensor([ids]), torch.tensor([types])
    with torch.inference_mode():
        return float(network({"ids": ids, "types": types, "mask": torch.ones_like(ids)}))


def test_inputs_end_to_end_give_the_same_loss():
    """What a GPU reads without padding is what a processor reads with it."""
    made = toy_prepared()
    first, network = first_phase(made.recipe.phases), parm_network()
    texts = token_texts(network, made.queries, made.docs)
    blocks = alignment_blocks(made, network, texts, "cpu")
    sampler = CandidateSampler(made.candidates, np.arange(len(made.queries)), 3, "target", "first")
    trainer = FirstTrainer(network, sampler, first, texts, blocks, seed=0, say=quiet)
    part = sampler.epoch(0, 0).take(np.arange(9))
    with torch.inference_mode():
        padded = trainer._loss(part)
        trainer._packs = True
        torch.testing.assert_close(trainer._loss(part), padded, rtol=1e-4, atol=1e-5)
