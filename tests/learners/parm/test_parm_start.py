"""Phase 2 of PaRM: where its logits start, terms that are no partners, and queries without their own text."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_parm_phases import toy_candidates, toy_prepared, toy_terms

from parm_models import SCHEDULE, parm_network, parm_recipe
from whyrank.core import WhyrankError
from whyrank.learners.parm import train_parm
from whyrank.learners.parm.data import Candidates, CandidateSampler
from whyrank.learners.parm.second import SecondTrainer, start_logits_at, other_terms, slots_of, find_partners
from whyrank.networks import load
from whyrank.training import second_phase

torch.set_num_threads(1)


def toy_slots(n=8, docs=12, width=5, seed=0):
    queries, texts, doc, scores = toy_candidates(n, docs, width, seed)
    terms, network = toy_terms(queries, texts, doc, seed), parm_network().eval()
    slots = find_partners(slots_of(terms, doc, np.arange(len(queries)), "all", 0), terms, network, "cpu")
    return terms, network, slots, doc, scores


def logits_of(network, terms, query, doc):
    with torch.inference_mode():
        names = [[terms.names[i] for i in side.tolist()] for side in (query, doc)]
        return network.score_texts(*names).double().numpy()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000))
def test_another_term_is_of_the_same_text_and_no_partner(seed):
    terms, _, slots, _, _ = toy_slots(4, 6, 3)
    short = terms._replace(doc_ends=np.minimum(terms.doc_ends, terms.doc_ends[1] + 1))  # texts of 0, 1 or more terms
    slots = slots._replace(partner=short.doc[np.minimum(short.doc_ends[slots.doc], len(short.doc) - 1)].astype(int))
    for number, other, partner in zip(slots.doc, other_terms(slots, short, seed, "x"), slots.partner, strict=True):
        own = set(short.doc[short.doc_ends[number] : short.doc_ends[number + 1]].tolist())
        assert other in own - {partner} if len(own) > 1 else other == -1


def test_every_other_term_is_drawn():
    terms, _, slots, _, _ = toy_slots(4, 6, 3)
    found = np.stack([other_terms(slots, terms, seed, "x") for seed in range(300)])
    for i, (number, partner) in enumerate(zip(slots.doc, slots.partner, strict=True)):
        own = set(terms.doc[terms.doc_ends[number] : terms.doc_ends[number + 1]].tolist())
        values, counts = np.unique(found[:, i], return_counts=True)
        assert set(values.tolist()) == own - {partner}
        assert counts.min() > 300 / len(own) / 3


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


def test_where_nothing_can_be_drawn_nothing_is_moved():
    terms, network, slots, _, _ = toy_slots()
    weights = network.outer.weight.clone()
    start_logits_at(network, terms, slots._replace(partner=np.full_like(slots.partner, -1)), (-4.0, 2.0), 0, "cpu")
    assert torch.equal(network.outer.weight, weights)


def test_terms_that_are_no_partners_count_in_the_loss():
    terms, network, slots, doc, scores = toy_slots()
    drawn = CandidateSampler(Candidates(doc, scores), np.arange(len(doc)), 3, "target", "second 0")
    part = drawn.epoch(0, 0)
    found = []
    for others in (0.0, 0.5):
        second = second_phase({"second": {"others": others}})
        with torch.inference_mode():
            trainer = SecondTrainer(network, drawn, second, terms, slots, seed=7)
            network.eval()
            found.append(float(trainer._loss(part)))
    there = np.isin(slots.pair, part.doc)
    other = other_terms(slots, terms, 7, "second 0")
    p = 1 / (1 + np.exp(-logits_of(network, terms, slots.term[there], other[there])))
    assert found[1] - found[0] == pytest.approx(0.5 * p.mean(), rel=1e-3)


def test_a_query_without_its_own_text():
    terms, network, slots, doc, scores = toy_slots()
    held, rows = np.array([1, 4, 5]), np.arange(len(doc))
    drawn = CandidateSampler(Candidates(doc, scores), rows, 9, "target", "second", own=False)
    for epoch in range(3):
        part = drawn.epoch(0, epoch)
        assert sorted((part.doc[0] % 5).tolist()) == [1, 2, 3, 4]
        assert (part.doc % 5 > 0).all()
    trainer = SecondTrainer(network, drawn, second_phase({"second": {"own": False}}), terms, slots, seed=0,
                            held_out=held)  # fmt: skip
    expected = [np.corrcoef(terms.value[q, 1:], scores[q, 1:])[0, 1] for q in held]
    assert trainer.correlation_of_bm25() == pytest.approx(np.mean(expected), abs=1e-3)
    kept = slots.take(slots.pair % 5 > 0)
    again = SecondTrainer(
        network, drawn, second_phase({"second": {"own": False}}), terms, kept, seed=0, held_out=held
    )
    network.eval()
    with torch.inference_mode():
        assert trainer._correlation(network) == again._correlation(network)


def test_all_of_it_in_a_run(tmp_path):
    second = {"schedule": SCHEDULE, "texts": 3, "own": False, "others": 0.5, "start": [-4, 2], "rounds": 2}
    phases = {"first": {"schedule": SCHEDULE, "held_out": 0.2}, "second": second}
    said = []
    train_parm(toy_prepared(phases=phases), tmp_path / "net", 0, "cpu", said.append)
    assert sum(line.startswith("phase 2") for line in said) == 2
    assert load(tmp_path / "net").architecture == "parm"


@pytest.mark.parametrize(("second", "message"), [
    ({"others": -1}, "second: others must be a number"), ({"own": 1}, "second: own must be True or False"),
    ({"start": -4}, "second: start must be two numbers"), ({"start": [-4, 0]}, "second: spread of start must be"),
    ({"start": ["a", 1]}, "second: mean of start must be"),
    ({"own": False, "positives": "gold"}, "positives are gold texts, which own: false leaves out"),
])  # fmt: skip
def test_what_cannot_be_meant_in_phase_two(second, message):
    with pytest.raises(WhyrankError, match=message):
        parm_recipe(phases={"second": second})
