import numpy as np
import pytest
import torch
from chunked_models import ARCHITECTURES, WORDS, small_network, small_pairs, small_pieces, words

from whyrank.networks import digest, load, save
from whyrank.training import Trainer, TrainingSet
from whyrank.training.data import Judged
from whyrank.training.losses import CrossEntropy
from whyrank.training.schedule import Schedule
from whyrank.training.validation import Validation

torch.set_num_threads(1)
pytestmark = pytest.mark.parametrize("architecture", ARCHITECTURES)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return small_pieces(tmp_path_factory.mktemp("tokens"))


def scores(network, queries, docs):
    with torch.inference_mode():
        return network.score_texts(queries, docs).numpy()


def test_batches_and_padding_do_not_change_scores(tokenizer, architecture):
    network = small_network(architecture, tokenizer)
    queries, docs = small_pairs()
    together = scores(network, queries, docs)
    alone = [scores(network, [q], [d])[0] for q, d in zip(queries, docs, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-5)
    order = np.random.default_rng(0).permutation(len(docs))[:6]
    shuffled = scores(network, [queries[i] for i in order], [docs[i] for i in order])
    np.testing.assert_allclose(shuffled, together[order], rtol=1e-5, atol=1e-5)


def test_empty_texts_and_queries_have_scores(tokenizer, architecture):
    network = small_network(architecture, tokenizer)
    found = scores(network, ["", "w1 w2", "", "w3"], ["", "", "w1 w2", "w3 w4"])
    assert np.isfinite(found).all()
    assert np.isfinite(scores(network, [""], [""])).all()


def test_a_text_is_read_up_to_its_last_chunk_only(tokenizer, architecture):
    network = small_network(architecture, tokenizer, chunks=3)
    text = words(np.random.default_rng(0), 36)
    within = text.rsplit(" ", 6)[0] + " w1 w2 w3 w4 w5 w6"
    cut, longer, other = scores(network, ["w1 w2"] * 3, [text, text + " w1 w2" * 40, within])
    assert cut == pytest.approx(longer, abs=1e-5)
    assert cut != pytest.approx(other, abs=1e-3)


def test_one_chunk_is_the_short_form(tokenizer, architecture):
    short, full = (small_network(architecture, tokenizer, chunks=chunks) for chunks in (1, 3))
    text = words(np.random.default_rng(0), 30)
    first = " ".join(text.split()[:12])
    found = scores(short, ["w1 w2"], [text])
    np.testing.assert_allclose(found, scores(full, ["w1 w2"], [first]), atol=1e-5)
    assert abs(found - scores(full, ["w1 w2"], [text])) > 1e-3


def test_a_failed_pair_does_not_spoil_the_others(tokenizer, architecture, monkeypatch):
    network = small_network(architecture, tokenizer)
    expected = scores(network, *small_pairs())

    def spoilt(states):
        states[0] = torch.nan
        return states

    plain = type(network.encoder)
    monkeypatch.setattr(plain, "pooled", lambda self, batch, read=plain.pooled: spoilt(read(self, batch)))
    monkeypatch.setattr(plain, "last", lambda self, batch, read=plain.last: spoilt(read(self, batch)))
    monkeypatch.setattr(plain, "all", lambda self, batch, read=plain.all: [spoilt(s) for s in read(self, batch)])
    found = scores(network, *small_pairs())
    assert np.isnan(found[0])
    np.testing.assert_array_equal(found[1:], expected[1:])


def test_mixed_precision_is_close(tokenizer, architecture):
    network = small_network(architecture, tokenizer)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = scores(network, *small_pairs())
    plain = scores(network, *small_pairs())
    assert np.isfinite(mixed).all()
    assert np.corrcoef(mixed, plain)[0, 1] > 0.95


def test_a_saved_network_scores_the_same(tokenizer, architecture, tmp_path):
    network = small_network(architecture, tokenizer, seed=3, chunks=2)
    save(network, tmp_path)
    again = load(tmp_path)
    assert again.settings == network.settings
    assert again.architecture == architecture
    assert len(digest(tmp_path)) == 16
    np.testing.assert_array_equal(scores(again, *small_pairs()), scores(network, *small_pairs()))


def test_a_trained_network_finds_every_relevant_text(tokenizer, architecture):
    """Twenty queries of two words, each with one relevant text of up to three chunks among five candidates."""
    random = np.random.default_rng(1)
    queries = [" ".join(random.choice(WORDS, 2, replace=False)) for _ in range(20)]
    docs = [words(random, int(random.integers(4, 30))) for _ in range(100)]
    doc = np.arange(100, dtype=np.int32).reshape(20, 5)
    sampler = Judged(list(doc[:, :1]), list(doc[:, 1:]), n=4)
    grade = np.tile(np.array([0, 0, 1, 0, 0], np.float32), 20)
    place = doc[:, [1, 2, 0, 3, 4]].ravel()
    query = np.repeat(np.arange(20, dtype=np.int32), 5)
    check = Validation(queries, docs, query, place, grade, [[1.0]] * 20, measure="RR@10")
    network = small_network(architecture, tokenizer)
    with torch.inference_mode():
        before = check(network)
    schedule = Schedule(epochs=10, batch=10, rate=2e-3, head_rate=5e-3, validate_every=10)
    data = TrainingSet(queries, docs, sampler)
    history = Trainer(network, data, CrossEntropy(), schedule, validate=check, say=print).run()
    assert before < 0.9
    assert history.best[1] == 1.0
    with torch.inference_mode():
        assert check(network.eval()) == 1.0
