"""Phase 2 of PaRM: slots, partners, where logits start, the loss and the validation, all by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pair_models import forward
from parm_models import SHAPE, parm_network, parm_recipe, toy_candidates, toy_terms
from whyrank.core import UnknownName, WhyrankError
from whyrank.learners.parm.data import CandidateSampler, TargetScores
from whyrank.learners.parm.phase2 import (
    SecondTrainer,
    find_partners,
    other_terms,
    slots_of,
    start_logits_at,
)
from whyrank.learners.parm.phases import second_phase
from whyrank.networks import frame_terms

torch.set_num_threads(1)


def toy_slots(n=8, docs=12, width=5, seed=0):
    queries, texts, doc, scores = toy_candidates(n, docs, width, seed)
    terms, network = toy_terms(queries, texts, doc, seed), parm_network().eval()
    slots = find_partners(slots_of(terms, doc, np.arange(len(queries)), "all", 0), terms, network, "cpu")
    return terms, network, slots, doc, scores


def logits_of(network, terms, query, doc):
    with torch.inference_mode():
        names = [[terms.names[i] for i in side.tolist()] for side in (query, doc)]
        return forward(network, *names).double().numpy()


@pytest.mark.parametrize("missing", ["all", "one"])
def test_slots_are_the_terms_that_texts_lack(missing):
    queries, docs, doc, _ = toy_candidates()
    terms, chosen = toy_terms(queries, docs, doc), np.arange(1, len(queries), 3)
    found = slots_of(terms, doc, chosen, missing, seed=0)
    expected = {}
    for q in chosen:
        for c, d in enumerate(doc[q]):
            lacking = [w for w in dict.fromkeys(queries[q].split()) if w not in docs[d].split()]
            if lacking:
                expected[int(q) * doc.shape[1] + c] = lacking
    got = {}
    for pair, term, number in zip(found.pair.tolist(), found.term.tolist(), found.doc.tolist(), strict=True):
        got.setdefault(pair, []).append(terms.names[term])
        assert number == doc.ravel()[pair]
    assert found.pair.tolist() == sorted(found.pair.tolist())
    if missing == "all":
        assert got == expected
    else:
        assert set(got) == set(expected)
        assert all(len(words) == 1 and words[0] in expected[pair] for pair, words in got.items())


def test_partners_are_the_best_terms_of_the_text(monkeypatch):
    queries, docs, doc, _ = toy_candidates(20, 30)
    terms, network = toy_terms(queries, docs, doc), parm_network().eval()
    slots = slots_of(terms, doc, np.arange(len(queries)), "all", 0)
    found = find_partners(slots, terms, network, "cpu")
    with torch.inference_mode():
        for i in range(0, len(slots.pair), 5):
            own = terms.doc[terms.doc_ends[slots.doc[i]] : terms.doc_ends[slots.doc[i] + 1]]
            names = [terms.names[t] for t in own]
            term = terms.names[slots.term[i]]
            logits = forward(network, [term] * len(names), names)
            assert terms.names[found.partner[i]] == names[int(logits.argmax())]
    monkeypatch.setattr("whyrank.learners.parm.phase2._PAIRS", {"cpu": 500})
    monkeypatch.setattr("whyrank.learners.parm.phase2._TOKENS", {"cpu": 400})
    assert np.array_equal(find_partners(slots, terms, network, "cpu").partner, found.partner)


def test_a_text_without_terms_has_no_partner():
    queries, docs, doc, _ = toy_candidates(6, 8, 3)
    terms = toy_terms(queries, docs, doc)
    bare = terms._replace(doc=terms.doc[:0], doc_ends=np.zeros(len(docs) + 1, np.int64))
    slots = find_partners(slots_of(bare, doc, np.arange(len(queries)), "all", 0), bare, parm_network(), "cpu")
    assert (slots.partner == -1).all()
    second = second_phase(parm_recipe().phases)
    alike = TargetScores(doc, np.zeros(doc.shape, np.float32))
    sampler = CandidateSampler(alike, np.arange(len(queries)), 2, "target", "x")
    with pytest.raises(WhyrankError, match="no text lacks a query term"):
        SecondTrainer(parm_network(), sampler, second, bare, slots, seed=0)


def test_a_frame_that_an_encoder_cannot_read_is_refused():
    network = parm_network(encoder=SHAPE | {"max_position_embeddings": 32})
    with pytest.raises(
        WhyrankError, match=r"frame masks: a pair of terms has 3[0-9] tokens, and the encoder reads 32"
    ):
        frame_terms(*[network.tokenizer.ids(["balan"], 6)] * 2, network, "masks")
    with pytest.raises(UnknownName, match="unknown frame 'mask'; did you mean 'masks'"):
        frame_terms([], [], network, "mask")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 100), st.sampled_from(["gold", "target"]))
def test_the_loss_of_phase_two_by_hand(seed, positives):
    queries, docs, doc, scores = toy_candidates(6, 12, 4, seed)
    terms, network = toy_terms(queries, docs, doc, seed), parm_network()
    slots = find_partners(slots_of(terms, doc, np.arange(len(queries)), "all", 0), terms, network, "cpu")
    sampler = CandidateSampler(TargetScores(doc, scores), np.arange(len(queries)), 2, positives, "second")
    second = second_phase({"second": {"loss": "margin", "regulariser": 0.25, "positives": positives}})
    trainer = SecondTrainer(network, sampler, second, terms, slots, seed=0)
    network.eval()
    part = sampler.epoch(0, 0)
    total, weights = 0.0, []
    with torch.inference_mode():
        for pairs in part.doc:
            both = []
            for p in pairs:
                score = float(terms.value.ravel()[p])
                for i in np.flatnonzero(slots.pair == p):
                    pair = [terms.names[slots.term[i]]], [terms.names[slots.partner[i]]]
                    weights.append(float(torch.sigmoid(forward(network, *pair))))
                    norm = float(terms.norm[doc.ravel()[p]])
                    score += float(slots.weight[i]) * weights[-1] / (weights[-1] + norm + 1e-8)
                both.append(score)
            total += max(0.0, 1 - both[0] + both[1]) / len(part.query)
        found = float(trainer._loss(part))
    assert found == pytest.approx(total + 0.25 * np.mean(weights or [0.0]), rel=1e-4, abs=1e-4)


def test_the_validation_of_phase_two_is_the_correlation_with_the_target():
    queries, docs, doc, scores = toy_candidates(8, 12, 5)
    terms, network, held = toy_terms(queries, docs, doc), parm_network().eval(), np.array([1, 4, 5])
    slots = find_partners(slots_of(terms, doc, np.arange(len(queries)), "all", 0), terms, network, "cpu")
    sampler = CandidateSampler(TargetScores(doc, scores), np.arange(len(queries)), 2, "target", "second")
    trainer = SecondTrainer(network, sampler, second_phase({}), terms, slots, seed=0, held_out=held)
    ours = terms.value[held].astype(np.float64)
    expected = [np.corrcoef(row, scores[q])[0, 1] for row, q in zip(ours, held, strict=True)]
    assert trainer.correlation_of_bm25() == pytest.approx(np.mean(expected), abs=1e-3)
    with torch.inference_mode():
        for row, q in zip(ours, held, strict=True):
            for i in np.flatnonzero(slots.pair // 5 == q):
                pair = [terms.names[slots.term[i]]], [terms.names[slots.partner[i]]]
                p = float(torch.sigmoid(forward(network, *pair)))
                row[slots.pair[i] % 5] += slots.weight[i] * p / (p + terms.norm[slots.doc[i]])
        found = trainer._correlation(network)
    expected = [np.corrcoef(row, scores[q])[0, 1] for row, q in zip(ours, held, strict=True)]
    assert found == pytest.approx(np.mean(expected), abs=1e-3)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_another_term_is_of_the_same_text_and_no_partner(seed):
    terms, _, slots, _, _ = toy_slots(4, 6, 3)
    short = terms._replace(doc_ends=np.minimum(terms.doc_ends, terms.doc_ends[1] + 1))  # texts of 0, 1 or more terms
    slots = slots._replace(partner=short.doc[np.minimum(short.doc_ends[slots.doc], len(short.doc) - 1)].astype(int))
    for number, other, partner in zip(slots.doc, other_terms(slots, short, seed, "x"), slots.partner, strict=True):
        own = set(short.doc[short.doc_ends[number] : short.doc_ends[number + 1]].tolist())
        assert other in own - {partner} if len(own) > 1 else other == -1


@pytest.mark.parametrize("head", ["deep", "affine"])
@pytest.mark.parametrize("start", [(-4.0, 2.0), (1.0, 0.25)])
def test_logits_start_where_they_are_told_and_keep_their_order(head, start):
    terms, _, slots, _, _ = toy_slots()
    settings_ = {"max_query": 6, "max_doc": 16, "dropout": 0.3, "head": head}
    network = parm_network(settings=settings_).eval()
    rows = np.random.default_rng(0).integers(0, len(terms.names), (2, 60))
    before = logits_of(network, terms, *rows)
    start_logits_at(network, terms, slots, start, 3, "cpu")
    shown = logits_of(network.eval(), terms, slots.term, other_terms(slots, terms, 3, "start"))
    assert shown.mean() == pytest.approx(start[0], abs=1e-3)
    assert shown.std() == pytest.approx(start[1], rel=1e-3)
    after = logits_of(network, terms, *rows)
    assert np.corrcoef(before, after)[0, 1] == pytest.approx(1, abs=1e-6)


def test_terms_that_are_no_partners_count_in_the_loss():
    terms, network, slots, doc, scores = toy_slots()
    sampler = CandidateSampler(TargetScores(doc, scores), np.arange(len(doc)), 3, "target", "second 0")
    part = sampler.epoch(0, 0)
    found = []
    for others in (0.0, 0.5):
        second = second_phase({"second": {"others": others}})
        with torch.inference_mode():
            trainer = SecondTrainer(network, sampler, second, terms, slots, seed=7)
            network.eval()
            found.append(float(trainer._loss(part)))
    there = np.isin(slots.pair, part.doc)
    other = other_terms(slots, terms, 7, "second 0")
    p = 1 / (1 + np.exp(-logits_of(network, terms, slots.term[there], other[there])))
    assert found[1] - found[0] == pytest.approx(0.5 * p.mean(), rel=1e-3)
