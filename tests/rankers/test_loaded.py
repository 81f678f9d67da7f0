"""Objects as rankers: models of sentence-transformers that are loaded, and PyTerrier transformers."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_models import bert, save, wordpiece

import whyrank
from whyrank.core import WhyrankError
from whyrank.rankers import as_ranker, open_ranker
from whyrank.scoring import Engine, ScoreStore

QUERIES = ["who fell", "berlin wall", "berlin wall", "x"]
DOCS = ["robert gray fell", "the berlin wall", "a wall", "the berlin wall"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny models with random weights: a cross-encoder, one with two outputs, a bi-encoder and a sparse one."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    home, tokenizer = tmp_path_factory.mktemp("models"), wordpiece()
    torch.manual_seed(0)
    made = {
        "cross": transformers.BertForSequenceClassification(bert(tokenizer, num_labels=1)),
        "two": transformers.BertForSequenceClassification(bert(tokenizer, num_labels=2)),
        "bi": transformers.BertModel(bert(tokenizer)),
        "sparse": transformers.BertForMaskedLM(bert(tokenizer)),
    }
    return {name: save(model.eval(), tokenizer, home / name) for name, model in made.items()}


@pytest.fixture(scope="module")
def loaded(folders):
    from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder

    kinds = {"cross": CrossEncoder, "two": CrossEncoder, "bi": SentenceTransformer, "sparse": SparseEncoder}
    return {name: kind(str(folders[name]), device="cpu") for name, kind in kinds.items()}


@pytest.mark.parametrize("name", ["cross", "two", "bi", "sparse"])
def test_a_loaded_model_scores_as_its_folder_does(folders, loaded, name):
    spec = f"{'cross' if name == 'two' else name}:{folders[name]}"
    found = as_ranker(loaded[name]).score(QUERIES, DOCS)
    np.testing.assert_allclose(found, open_ranker(spec).score(QUERIES, DOCS), rtol=1e-4, atol=1e-5)
    assert len(set(np.round(found, 6))) > 2
    assert as_ranker(loaded[name]).score([], []).shape == (0,)


def test_the_identity_is_that_of_the_weights(loaded, tmp_path):
    import copy

    import torch

    model = copy.deepcopy(loaded["cross"])
    store, pairs = ScoreStore(tmp_path / "s.sqlite"), (QUERIES, DOCS, np.arange(4), np.arange(4))
    counts = [Engine(store).score(as_ranker(each), *pairs).scored for each in (loaded["cross"], model)]
    with torch.no_grad():
        next(iter(model.parameters()))[0, 0] += 0.5
    counts.append(Engine(store).score(as_ranker(model), *pairs).scored)
    model.max_seq_length = 5
    counts.append(Engine(store).score(as_ranker(model), *pairs).scored)
    assert counts == [4, 0, 4, 4]
    assert 0 < as_ranker(model).tie_tolerance < 0.1


def test_an_audit_of_objects_by_name(loaded):
    docs = {"a": "the berlin wall", "b": "the berlin wall fell in berlin", "c": "robert gray"}
    cats = whyrank.Collection.of(docs, {"q": "berlin wall"}, {"q": {"a": 1, "b": 1, "c": 0}})
    given = {"first": loaded["cross"], "second": loaded["bi"]}
    found = whyrank.audit(given, cats, "matched/length|relevance", delta=0, tolerance=0)
    assert [finding.ranker for finding in found] == ["first", "second"]


def test_a_transformer_is_a_ranker_and_other_objects_are_not():
    pytest.importorskip("pandas")

    class Longer:
        def transform(self, frame):
            return frame.assign(score=frame["text"].str.len().astype(float))[::-1]

    assert as_ranker(Longer()).name == "Longer"
    assert as_ranker(Longer()).score(QUERIES, DOCS).tolist() == [16.0, 15.0, 6.0, 15.0]
    for wrong, says in ((3, "PyTerrier transformer"), (object(), "PyTerrier transformer"), (Longer, "is a class")):
        with pytest.raises(WhyrankError, match=says):
            as_ranker(wrong)
