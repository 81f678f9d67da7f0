"""Networks trained here, and models of other packages of the same kinds."""

from __future__ import annotations

import numpy as np
import pytest

from whyrank.core import BadInput
from whyrank.networks import network, networks
from whyrank.rankers import open_ranker, rankers
from whyrank.rankers.neural.weights import NETWORK
from whyrank.testing import RankerContract
from whyrank.testing.examples import PAIRS

QUERIES, DOCS = (list(texts) for texts in zip(*PAIRS, strict=True))
NAMES = sorted(set(networks.names()) - {"cross"})


def folder_of(models, name):
    kinds = {"knrm": "words", "conv-knrm": "words", "neural-model1": "tokens"}
    return models.folder(kinds.get(name, "network"), name)


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_the_network(models, name):
    folder = folder_of(models, name)
    expected = [
        float(network.load(folder).score_texts([query], [doc]).detach()) for query, doc in PAIRS[:: len(PAIRS) // 12]
    ]
    ranker = open_ranker(f"{name}:{folder}")
    found = ranker.score(QUERIES, DOCS)
    assert np.allclose(found[:: len(PAIRS) // 12], expected, rtol=1e-4, atol=1e-4)
    assert len(set(np.round(found, 4).tolist())) > 5
    assert ranker.scale == networks.factory(name).scale


@pytest.mark.parametrize("name", NAMES)
def test_fast_is_close(models, name):
    folder = folder_of(models, name)
    exact, fast = (
        open_ranker(f"{name}:{folder}(precision={p},device=cpu)").score(QUERIES, DOCS) for p in ("exact", "fast")
    )
    assert np.isfinite(fast).all()
    assert np.corrcoef(exact, fast)[0, 1] > 0.98


@pytest.mark.parametrize("name", NAMES)
def test_a_network_of_another_architecture(models, name):
    with pytest.raises(BadInput, match=f"is a network of architecture cross, not {name}; write cross:PATH"):
        open_ranker(f"{name}:{models.folder('network')}").score(["q"], ["d"])
    assert rankers.factory(name).__doc__
    assert network.KIND == NETWORK


class _Contract(RankerContract):
    tolerance = 1e-4

    @pytest.fixture(autouse=True)
    def _models(self, models):
        self.models = models

    name = "vanilla"

    def make(self):
        return open_ranker(f"{self.name}:{folder_of(self.models, self.name)}")


class TestVanilla(_Contract):
    name = "vanilla"


class TestCedrKnrm(_Contract):
    name = "cedr-knrm"


class TestConvKnrm(_Contract):
    name = "conv-knrm"


class TestEpic(_Contract):
    name = "epic"


class TestLate(_Contract):
    name = "late"


class TestSparse(_Contract):
    name = "sparse"


class TestNeuralModel1(_Contract):
    name = "neural-model1"


class TestBertModel1(_Contract):
    name = "bert-model1"


class TestSparseEncoder(_Contract):
    def make(self):
        return open_ranker(f"sparse:{self.models.folder('sparse')}")


class TestColbert(_Contract):
    def make(self):
        return open_ranker(f"late:{self.models.folder('colbert')}(passages=max,window=6,stride=3)")


def test_sparse_encoders_of_sentence_transformers(models):
    from sentence_transformers import SparseEncoder

    folder = models.folder("sparse")
    model = SparseEncoder(str(folder), device="cpu")
    expected = model.similarity_pairwise(model.encode_query(QUERIES), model.encode_document(DOCS))
    ranker = open_ranker(f"sparse:{folder}")
    assert np.allclose(ranker.score(QUERIES, DOCS), expected, rtol=1e-4)
    assert ranker.scale == "dot"


def test_late_interaction_of_sentence_transformers(models):
    from sentence_transformers import MultiVectorEncoder

    folder = models.folder("colbert")
    model = MultiVectorEncoder(str(folder), device="cpu")
    expected = model.similarity_pairwise(model.encode_query(QUERIES), model.encode_document(DOCS))
    ranker = open_ranker(f"late:{folder}")
    assert np.allclose(ranker.score(QUERIES, DOCS), expected, rtol=1e-5, atol=1e-5)
    assert ranker.scale == "sum of similarities"


def test_a_released_colbert_and_our_network_from_it_agree(models):
    folder = models.folder("stanford")
    ours = network.start("late", folder, dim=16, max_query=29, max_doc=57).eval()
    expected = ours.score_texts(QUERIES, DOCS).detach().numpy()
    found = open_ranker(f"late:{folder}").score(QUERIES, DOCS)
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_untrained_models_are_refused(models):
    """The packages would add layers with random weights."""
    for name in ("late", "sparse"):
        with pytest.raises(BadInput, match=r"is no trained \w+Encoder \(it says BertModel\)"):
            open_ranker(f"{name}:{models.folder('plain')}").score(["q"], ["d"])
        with pytest.raises(BadInput, match=r"is no trained \w+Encoder \(it says SentenceTransformer\)"):
            open_ranker(f"{name}:{models.folder('bi')}").score(["q"], ["d"])
    with pytest.raises(BadInput, match="holds no network that was trained here; give a folder that `whyrank train`"):
        open_ranker(f"vanilla:{models.folder('cross')}").score(["q"], ["d"])


@pytest.mark.parametrize("name", ["late", "knrm"])
def test_each_distinct_text_is_encoded_once(models, name):
    ranker = open_ranker(f"{name}:{folder_of(models, name)}")
    made, seen = ranker._scorer.reader.network, []
    doc_ids = made.doc_ids
    made.doc_ids = lambda texts: seen.extend(texts) or doc_ids(texts)
    found = ranker.score(["wall", "who", "wall"], ["a wall", "a wall", "the gray wall"])
    assert sorted(seen) == ["a wall", "the gray wall"]
    assert found[0] != found[2]
