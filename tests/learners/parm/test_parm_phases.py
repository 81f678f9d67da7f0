"""Both phases of PaRM: examples, losses by hand, partners, the score through BM25, and stops in between."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from parm_models import SCHEDULE, SHAPE, parm_network, parm_recipe, toy_sources, toy_world
from training_models import quiet
from whyrank.core import BadInput, UnknownName, WhyrankError
from whyrank.learners.parm import ParmPrepared, is_trained, train_parm
from whyrank.learners.parm import training as parm_training
from whyrank.learners.parm.alignment import Occlusion
from whyrank.learners.parm.data import Candidates, CandidateSampler, Terms, split_queries
from whyrank.learners.parm.first import FirstTrainer
from whyrank.learners.parm.second import SecondTrainer, pair_logits, slots_of, table_scores, find_partners
from whyrank.learners.parm.alignment import token_texts
from whyrank.networks import FRAMES, digest, framed, load, read_config
from whyrank.training import Pearson, Trainer, analyzer_of, first_phase, phases, recipe_of, second_phase
from whyrank.training.losses import losses
from whyrank.training.phases import PRESETS


def toy_terms(queries, docs, doc, seed=0):
    """Every word is a term; weights and norms are arbitrary, values too."""
    random = np.random.default_rng(seed)
    names = sorted({word for text in [*queries, *docs] for word in text.split()})
    number = {name: i for i, name in enumerate(names)}
    asked = [list(dict.fromkeys(number[w] for w in q.split())) for q in queries]
    told = [sorted({number[w] for w in d.split()}) for d in docs]
    absent = [[term not in told[d] for d in row] for terms, row in zip(asked, doc, strict=True) for term in terms]
    flat = np.array([t for terms in asked for t in terms], np.int32)
    return Terms(
        names, flat, random.uniform(1, 9, len(flat)).astype(np.float32), ends(asked), np.array(absent, bool),
        np.array([t for terms in told for t in terms], np.int32), ends(told),
        random.uniform(0.5, 1.5, len(docs)).astype(np.float32), random.uniform(0, 5, doc.shape).astype(np.float32),
    )  # fmt: skip


def ends(rows):
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)


def toy_candidates(n=40, docs=60, width=4, seed=0):
    queries, texts = toy_world(n, docs, seed)
    random = np.random.default_rng(seed)
    doc = np.stack([random.permutation(len(texts))[:width] for _ in queries]).astype(np.int32)
    return queries, texts, doc, random.standard_normal(doc.shape).astype(np.float32)


def toy_prepared(**changes):
    queries, docs, doc, scores = toy_candidates()
    network = parm_network()
    sizes = [len(q) * len(d) for q, d in word_counts(network, queries, docs, doc)]
    values = np.random.default_rng(1).random(sum(sizes)).astype(np.float32)
    other = Occlusion(values, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
    facts = {"ranker": "toy", "target": "toy", "alignment": "occlusion", "collection": ["toy"], "analyzer": "krovetz"}
    return ParmPrepared(
        parm_recipe(**changes), queries, docs, Candidates(doc, scores), toy_terms(queries, docs, doc), toy_sources(),
        facts, occlusion=other,
    )  # fmt: skip


def word_counts(network, queries, docs, doc):
    asked, told = token_texts(network, queries, docs)
    return [(range(asked.opens[q].sum()), range(told.opens[d].sum())) for q, row in enumerate(doc) for d in row]


@pytest.mark.parametrize("positives", ["gold", "target"])
def test_examples_are_candidates_of_their_query(positives):
    _, _, doc, scores = toy_candidates()
    rows = np.arange(0, len(doc), 2)
    drawn = CandidateSampler(Candidates(doc, scores), rows, 3, positives, "first")
    one, two, again = drawn.epoch(0, 0), drawn.epoch(0, 1), drawn.epoch(0, 0)
    assert sorted(one.query.tolist()) == rows.tolist()
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one.doc, two.doc)
    for query, place, target in zip(one.query, one.doc, one.target, strict=True):
        assert (place // doc.shape[1] == query).all()
        assert len(set(place.tolist())) == 3
        np.testing.assert_array_equal(target[:3], scores.ravel()[place])
        assert place[0] % doc.shape[1] == 0 if positives == "gold" else target[0] == target[:3].max()
        assert target[3:5].min() >= 0
        assert target[3:5].max() <= 1


def test_what_a_query_gets_does_not_depend_on_batches():
    """The draws stand beside the examples, so that any batches of an epoch hold the same ones."""
    _, _, doc, scores = toy_candidates()
    drawn = CandidateSampler(Candidates(doc, scores), np.arange(len(doc)), 2, "target", "first")
    whole = drawn.epoch(3, 1)
    parts = [whole.take(np.arange(i, min(i + 7, len(whole.query)))) for i in range(0, len(whole.query), 7)]
    assert np.array_equal(np.concatenate([part.target for part in parts]), whole.target)
    assert whole.target.shape[1] == 2 + 2 + 4


def test_scaled_scores_have_differences_of_spread_one():
    _, _, doc, scores = toy_candidates(200, 60, 6)
    found = Candidates(doc, 7 * scores + 100).scaled().scores.astype(np.float64)
    differences = found[:, :, None] - found[:, None]
    inside = differences[:, ~np.eye(6, dtype=bool)]
    assert abs((inside**2).mean() * 5 / 6 - 1) < 0.01


@pytest.mark.parametrize(("n", "share"), [(10, 0.2), (3, 0.5), (1, 0.5), (7, 0.0)])
def test_held_out_queries_are_others(n, share):
    kept, held = split_queries(n, share)
    assert sorted([*kept, *held]) == list(range(n))
    assert len(held) == min(round(share * n), n // 2)


def test_losses_by_hand():
    scores = torch.tensor([[3.0, 1.0], [0.5, 0.25]])
    targets = torch.tensor([[1.0, 0.5], [0.0, 1.0]])
    assert losses.create("margin-mse")(scores, targets).item() == pytest.approx((1.5**2 + 1.25**2) / 2)
    assert losses.create("margin")(scores, targets).item() == pytest.approx((0 + 0.75) / 2)
    assert losses.create("pearson")(scores, targets).item() == pytest.approx(1.0, abs=1e-4)


@given(st.integers(0, 1000))
def test_pearson_is_numpys(seed):
    random = np.random.default_rng(seed)
    scores, targets = random.standard_normal((2, 5, 4))
    expected = 1 - np.mean([np.corrcoef(s, t)[0, 1] for s, t in zip(scores, targets, strict=True)])
    assert Pearson()(torch.from_numpy(scores), torch.from_numpy(targets)).item() == pytest.approx(expected, abs=1e-3)


@given(st.integers(0, 1000), st.floats(-12, 12), st.floats(-100, 100))
def test_pearson_is_the_same_in_every_unit_of_the_targets(seed, unit, zero):
    scores, targets = torch.from_numpy(np.random.default_rng(seed).standard_normal((2, 5, 4)))
    expected = Pearson()(scores, targets).item()
    assert Pearson()(scores, (targets + zero) * 10**unit).item() == pytest.approx(expected, abs=1e-6)


def test_pearson_of_equal_scores_is_no_correlation_and_has_a_gradient():
    scores = torch.zeros(2, 3, requires_grad=True)
    loss = Pearson()(scores, torch.tensor([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]))
    assert loss.item() == 1
    assert Pearson()(torch.tensor([[1.0, 2.0, 4.0]]), torch.full((1, 3), 0.1)).item() == 1
    loss.backward()
    assert torch.isfinite(scores.grad).all()


def test_table_scores_by_hand():
    found = table_scores(torch.tensor([1.0, 2.0, 0.5]), torch.tensor([4.0, 3.0, 2.0]), torch.tensor([0.9, 0.9, 1.1]),
                         torch.tensor([0.3, 1.0, 0.0]), torch.tensor([0, 0, 2]))  # fmt: skip
    assert found.tolist() == pytest.approx([1 + 4 * 0.3 / 1.2 + 3 / 1.9, 2.0, 0.5])


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
    for place, term, number in zip(found.pair.tolist(), found.term.tolist(), found.doc.tolist(), strict=True):
        got.setdefault(place, []).append(terms.names[term])
        assert number == doc.ravel()[place]
    assert found.pair.tolist() == sorted(found.pair.tolist())
    if missing == "all":
        assert got == expected
    else:
        assert set(got) == set(expected)
        assert all(len(words) == 1 and words[0] in expected[place] for place, words in got.items())


def test_partners_are_the_best_terms_of_the_text(monkeypatch):
    queries, docs, doc, _ = toy_candidates(20, 30)
    terms, network = toy_terms(queries, docs, doc), parm_network().eval()
    slots = slots_of(terms, doc, np.arange(len(queries)), "all", 0)
    found = find_partners(slots, terms, network, "cpu")
    with torch.inference_mode():
        for i in range(0, len(slots.pair), 5):
            names = [
                terms.names[t] for t in terms.doc[terms.doc_ends[slots.doc[i]] : terms.doc_ends[slots.doc[i] + 1]]
            ]
            term = terms.names[slots.term[i]]
            logits = network.score_texts([term] * len(names), names)
            assert terms.names[found.partner[i]] == names[int(logits.argmax())]
    monkeypatch.setattr("whyrank.learners.parm.second._PAIRS", {"cpu": 500})
    monkeypatch.setattr("whyrank.learners.parm.second._TOKENS", {"cpu": 400})
    assert np.array_equal(find_partners(slots, terms, network, "cpu").partner, found.partner)


def test_a_text_without_terms_has_no_partner():
    queries, docs, doc, _ = toy_candidates(6, 8, 3)
    terms = toy_terms(queries, docs, doc)
    bare = terms._replace(doc=terms.doc[:0], doc_ends=np.zeros(len(docs) + 1, np.int64))
    slots = find_partners(slots_of(bare, doc, np.arange(len(queries)), "all", 0), bare, parm_network(), "cpu")
    assert (slots.partner == -1).all()
    second = second_phase(parm_recipe().phases)
    drawn = CandidateSampler(Candidates(doc, np.zeros(doc.shape, np.float32)), np.arange(len(queries)), 2, "target", "x")
    with pytest.raises(WhyrankError, match="no text lacks a query term"):
        SecondTrainer(parm_network(), drawn, second, bare, slots, seed=0)


def test_logits_of_pairs_are_those_of_the_network():
    network = parm_network().eval()
    words = ["balan", "cemer", "mernisropfo", "tuk"]
    ids = network.tokenizer.ids(words, 6)
    query, doc = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
    found = pair_logits(network, (ids, ids), query, doc, "cpu")
    with torch.inference_mode():
        expected = network.score_texts([words[i] for i in query], [words[i] for i in doc])
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize(("frame", "before", "behind"), [("masks", 4, 24), ("runs", 1, 1)])
def test_partners_may_be_looked_for_between_masks(frame, before, behind):
    queries, docs, doc, _ = toy_candidates(10, 12)
    terms, network = (
        toy_terms(queries, docs, doc),
        parm_network(encoder=SHAPE | {"max_position_embeddings": 64}).eval(),
    )
    slots = slots_of(terms, doc, np.arange(len(queries)), "all", 0)
    found, bare = find_partners(slots, terms, network, "cpu", frame), find_partners(slots, terms, network, "cpu")
    assert not np.array_equal(found.partner, bare.partner)
    for i in range(0, len(slots.pair), 7):
        own = terms.doc[terms.doc_ends[slots.doc[i]] : terms.doc_ends[slots.doc[i] + 1]]
        logits = [framed_logit(network, terms.names[slots.term[i]], terms.names[t], before, behind) for t in own]
        assert found.partner[i] == own[int(np.argmax(logits))]


def framed_logit(network, term, partner, before, behind):
    """One input by hand, without any helper of ours."""
    special, (asked, told) = network.tokenizer.special, network.tokenizer.ids([term, partner], 9)
    mask = special["mask"]
    first = [special["cls"], mask, *asked, mask, special["sep"]]
    second = [*[mask] * before, *told, *[mask] * behind, special["sep"]]
    batch = {"ids": [first + second], "types": [[0] * len(first) + [1] * len(second)]}
    with torch.inference_mode():
        ids, types = (torch.tensor(batch[name]) for name in ("ids", "types"))
        return float(network({"ids": ids, "types": types, "mask": torch.ones_like(ids)}))


def test_a_frame_that_an_encoder_cannot_read_is_refused():
    network = parm_network(encoder=SHAPE | {"max_position_embeddings": 32})
    with pytest.raises(
        WhyrankError, match=r"frame masks: a pair of terms has 3[0-9] tokens, and the encoder reads 32"
    ):
        framed(*[network.tokenizer.ids(["balan"], 6)] * 2, network, "masks")
    with pytest.raises(UnknownName, match="unknown frame 'mask'; did you mean 'masks'"):
        framed([], [], network, "mask")


def test_phase_one_alone_says_how_its_terms_are_read(tmp_path):
    phases = {"preset": "code", "first": {"schedule": SCHEDULE | {"max_steps": 3}, "masks": "runs"},
              "second": {"rounds": 0, "frame": "runs"}}  # fmt: skip
    train_parm(toy_prepared(phases=phases), tmp_path / "net", 0, "cpu", quiet)
    log = json.loads((tmp_path / "net" / "log.json").read_text())
    assert [phase["phase"] for phase in log["phases"]] == ["phase 1"]
    assert read_config(tmp_path / "net")["frame"] == "runs"
    train_parm(toy_prepared(), tmp_path / "both", 0, "cpu", quiet)
    assert "frame" not in read_config(tmp_path / "both")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 100), st.sampled_from(["gold", "target"]))
def test_the_loss_of_phase_two_by_hand(seed, positives):
    queries, docs, doc, scores = toy_candidates(6, 12, 4, seed)
    terms, network = toy_terms(queries, docs, doc, seed), parm_network()
    slots = find_partners(slots_of(terms, doc, np.arange(len(queries)), "all", 0), terms, network, "cpu")
    drawn = CandidateSampler(Candidates(doc, scores), np.arange(len(queries)), 2, positives, "second")
    second = second_phase({"second": {"loss": "margin", "regulariser": 0.25, "positives": positives}})
    trainer = SecondTrainer(network, drawn, second, terms, slots, seed=0)
    network.eval()
    part = drawn.epoch(0, 0)
    total, weights = 0.0, []
    with torch.inference_mode():
        for place in part.doc:
            both = []
            for p in place:
                score = float(terms.value.ravel()[p])
                for i in np.flatnonzero(slots.pair == p):
                    pair = [terms.names[slots.term[i]]], [terms.names[slots.partner[i]]]
                    weights.append(float(torch.sigmoid(network.score_texts(*pair))))
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
    drawn = CandidateSampler(Candidates(doc, scores), np.arange(len(queries)), 2, "target", "second")
    trainer = SecondTrainer(network, drawn, second_phase({}), terms, slots, seed=0, held_out=held)
    ours = terms.value[held].astype(np.float64)
    expected = [np.corrcoef(row, scores[q])[0, 1] for row, q in zip(ours, held, strict=True)]
    assert trainer.correlation_of_bm25() == pytest.approx(np.mean(expected), abs=1e-3)
    with torch.inference_mode():
        for row, q in zip(ours, held, strict=True):
            for i in np.flatnonzero(slots.pair // 5 == q):
                pair = [terms.names[slots.term[i]]], [terms.names[slots.partner[i]]]
                p = float(torch.sigmoid(network.score_texts(*pair)))
                row[slots.pair[i] % 5] += slots.weight[i] * p / (p + terms.norm[slots.doc[i]])
        found = trainer._correlation(network)
    expected = [np.corrcoef(row, scores[q])[0, 1] for row, q in zip(ours, held, strict=True)]
    assert found == pytest.approx(np.mean(expected), abs=1e-3)


def test_phase_two_is_validated_on_queries_of_all_collections(monkeypatch):
    """Queries come one collection after the other: the first of those held out are of the first ones alone."""
    monkeypatch.setattr(parm_training, "_HELD", 8)
    made = toy_prepared(phases={"first": {"held_out": 0.5}})
    held = split_queries(40, 0.5)[1]
    kept, some = parm_training.phase_two_queries(made, None, 0)
    assert set(some) < set(held)
    assert (len(some), len(kept)) == (8, 20)
    assert some.max() > np.sort(held)[8:].min()
    assert np.array_equal(some, parm_training.phase_two_queries(made, 5, 1)[1])
    monkeypatch.setattr(parm_training, "_HELD", 100)
    assert np.array_equal(parm_training.phase_two_queries(made, None, 0)[1], held)


def test_both_phases_run_and_are_told(tmp_path):
    said, folders = [], [tmp_path / "seed-3", tmp_path / "seed-4"]
    for seed, folder in zip((3, 4), folders, strict=True):
        train_parm(toy_prepared(), folder, seed, "cpu", said.append)
    assert digest(folders[0]) != digest(folders[1])
    log = json.loads((folders[0] / "log.json").read_text())
    assert [phase["phase"] for phase in log["phases"]] == ["phase 1", "phase 2, round 1"]
    assert all(np.isfinite(phase["losses"]).all() for phase in log["phases"])
    assert log["phases"][0]["validations"]
    config = json.loads((folders[0] / "config.json").read_text())
    assert config["analyzer"] == "krovetz"
    assert config["seed"] == 3
    assert not (folders[0] / "unfinished").exists()
    assert torch.isfinite(load(folders[0]).score_texts(["balan"], ["cemer"]).detach()).all()
    train_parm(toy_prepared(), folders[0], 3, "cpu", said.append)
    assert said[-1].endswith("trained already")
    assert is_trained(folders[0], parm_recipe(), 3)
    assert not is_trained(tmp_path / "none", parm_recipe(), 3)
    other = parm_recipe(settings={"max_query": 5, "max_doc": 16})
    with pytest.raises(BadInput, match="another recipe, seed, collection or target"):
        train_parm(toy_prepared()._replace(recipe=other), folders[0], 3, "cpu", quiet)
    for recipe, seed in ((other, 3), (parm_recipe(), 4)):
        with pytest.raises(BadInput, match="another recipe, seed, collection or target"):
            is_trained(folders[0], recipe, seed)


@pytest.mark.parametrize("stop", [3, 9, 14])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path, monkeypatch, stop):
    dropping = {**SHAPE, "hidden_dropout_prob": 0.2}
    schedule = {**SCHEDULE, "checkpoint_every": 2, "validate_every": 3}
    phases = {"preset": "target", "first": {"schedule": schedule, "held_out": 0.2},
              "second": {"schedule": schedule, "texts": 3, "rounds": 2}}  # fmt: skip
    made = toy_prepared(encoder=dropping, phases=phases, settings={"max_query": 6, "max_doc": 16, "dropout": 0.1})
    train_parm(made, tmp_path / "whole", 0, "cpu", quiet)
    steps, real = [], Trainer._step

    def stopping(self, step, total, batch):
        steps.append(step)
        if len(steps) == stop:
            raise KeyboardInterrupt
        real(self, step, total, batch)

    monkeypatch.setattr(Trainer, "_step", stopping)
    with pytest.raises(KeyboardInterrupt):
        train_parm(made, tmp_path / "parts", 0, "cpu", quiet)
    monkeypatch.setattr(Trainer, "_step", real)
    train_parm(made, tmp_path / "parts", 0, "cpu", quiet)
    assert digest(tmp_path / "whole") == digest(tmp_path / "parts")
    logs = [json.loads((tmp_path / name / "log.json").read_text())["phases"] for name in ("whole", "parts")]
    assert [phase["losses"] for phase in logs[0]] == [phase["losses"] for phase in logs[1]]
    assert len(logs[0]) == 3


@pytest.mark.parametrize("preset", list(PRESETS))
def test_presets(preset):
    first, second = first_phase({"preset": preset}), second_phase({"preset": preset})
    assert (first.loss, first.unit, first.deletion) == {
        "paper": ("margin-mse", "word", "paper"), "code": ("margin", "token", "code"),
        "target": ("margin-mse", "word", "paper")}[preset]  # fmt: skip
    assert (second.missing, second.regulariser) == {
        "paper": ("all", 0.0), "code": ("one", 0.1), "target": ("all", 0.02)}[preset]  # fmt: skip
    assert (first.texts, second.texts) == ((2, 6) if preset == "target" else (2, 2))
    own = first_phase({"preset": preset, "first": {"unit": "token", "schedule": {"batch": 5}}})
    assert own.unit == "token"
    assert own.schedule_for(1).batch == 5
    if preset != "target":
        assert own.schedule_for(1).max_steps == 20_000
    assert analyzer_of({"preset": preset}, {"analyzer": "lucene"}) == "lucene"
    for phase in (first, second):
        made = phase.schedule_for(0)
        assert (made.decay_all, made.epsilon, made.weight_decay) == (
            (False, 1e-8, 0.01) if preset == "target" else (True, 1e-7, 0.01))  # fmt: skip
    assert (first.masks, second.frame) == ("each", "bare")
    assert tuple(FRAMES) == phases.FRAMES


WRONG = {
    "preset": ({"preset": "papers"}, "unknown preset 'papers'; did you mean 'paper'"),
    "part": ({"preset": "paper", "third": {}}, "unknown key of phases 'third'"),
    "key": ({"first": {"units": "word"}}, "unknown key of first 'units'; did you mean 'unit'"),
    "unit": ({"first": {"unit": "words"}}, "unknown unit of first 'words'"),
    "missing": ({"second": {"missing": "some"}}, "unknown missing of second 'some'"),
    "rounds": ({"second": {"rounds": -1}}, "second: rounds must be a whole number"),
    "masks": ({"first": {"masks": "run"}}, "unknown masks of first 'run'; did you mean 'runs'"),
    "frame": ({"second": {"frame": "mask"}}, "unknown frame of second 'mask'; did you mean 'masks'"),
    "texts": ({"first": {"texts": 1}}, "first: texts must be a whole number, 2 or more"),
    "rate": ({"first": {"schedule": {"rates": 1}}}, "unknown key of first: schedule 'rates'"),
    "share": ({"first": {"held_out": 0.9}}, "first: held_out must be a number between 0 and 0.5"),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_what_cannot_be_meant_is_said(name):
    phases, message = WRONG[name]
    with pytest.raises((WhyrankError, UnknownName), match=message):
        parm_recipe(phases=phases)


def test_what_a_new_encoder_does_not_have_is_said():
    with pytest.raises(WhyrankError, match="settings: pooler is for a pre-trained encoder"):
        parm_network(settings={"max_query": 6, "max_doc": 16, "pooler": True})


@pytest.mark.parametrize(("data", "message"), [
    ({"candidates": [1, 2]}, "candidates must be three whole numbers"), ({"negatives": "bm25"}, "unknown key of data"),
    ({"depth": 0.5}, "data: depth must be a whole number"),
    ({"candidates": [0, 0, 0]}, r"candidates \[0, 0, 0\]: each query needs 1 or more texts"),
])  # fmt: skip
def test_data_that_cannot_be_meant(data, message):
    with pytest.raises(WhyrankError, match=message):
        parm_recipe(data={"collection": "sample"} | data)


def test_candidates_without_a_querys_own_text_are_two_at_least():
    phases = {"second": {"own": False}}
    with pytest.raises(WhyrankError, match=r"each query needs 2 or more texts .* own: false leaves its own out"):
        parm_recipe(data={"collection": "sample", "candidates": [0, 1, 0]}, phases=phases)
    assert parm_recipe(data={"collection": "sample", "candidates": [0, 1, 1]}, phases=phases)
    assert parm_recipe(data={"collection": "sample", "candidates": [0, 1, 0]})


def test_a_recipe_of_phases_is_for_tables():
    from whyrank.training import prepare

    with pytest.raises(WhyrankError, match="it is for `whyrank tables learn parm`"):
        prepare(parm_recipe())
    assert recipe_of(parm_recipe().as_dict()) == parm_recipe()


def test_inputs_end_to_end_give_the_same_loss():
    """What a GPU reads without padding is what a processor reads with it."""
    made = toy_prepared()
    first, network = first_phase(made.recipe.phases), parm_network()
    texts = token_texts(network, made.queries, made.docs)
    blocks = parm_training.alignment_blocks(made, network, texts, "cpu")
    drawn = CandidateSampler(made.candidates, np.arange(len(made.queries)), 3, "target", "first")
    trainer = FirstTrainer(network, drawn, first, texts, blocks, seed=0, say=quiet)
    part = drawn.epoch(0, 0).take(np.arange(9))
    with torch.inference_mode():
        padded = trainer._loss(part)
        trainer._packs = True
        torch.testing.assert_close(trainer._loss(part), padded, rtol=1e-4, atol=1e-5)
