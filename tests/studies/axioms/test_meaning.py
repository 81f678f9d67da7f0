"""What the semantic axioms see: vectors of terms, trained or read, and what has none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from axiom_oracles import Space, crowd, expected, found_by, made
from test_definitions import FLAT, SPACE, write

from whyrank.data import Collection
from whyrank.studies.axioms import axioms, meaning
from whyrank.studies.axioms.aspects import REG
from whyrank.studies.axioms.semantic import STMC1, STMC2
from whyrank.text import Analyzer, analyzers
from whyrank.text.vectors import GloVe, collection_vectors

SEMANTIC = ["STMC1", "STMC2", "STMC3", "REG", "ANTI-REG", "STMC1(compat=camara-hauff)"]


@pytest.fixture
def flat(tmp_path):
    return write(tmp_path / "flat.txt", FLAT)


@pytest.mark.parametrize("spec", SEMANTIC)
def test_trained_vectors(spec):
    """They are those of the documents in any order."""
    collection, axiom = crowd(), axioms.create(f"axiom/{spec}", analyzer="whitespace", seed=3)
    trained = collection_vectors(collection.docs, analyzers.create("whitespace"), GloVe(seed=3))
    space = Space(dict(zip(trained.words, trained.matrix, strict=True)))
    assert found_by(axiom, collection) == expected(axiom, collection, space)
    backwards = Collection.of(dict(reversed(collection.docs.items())), collection.queries, collection.qrels)
    assert axiom.contrasts(backwards).fingerprint == axiom.contrasts(collection).fingerprint


def test_no_term_stands_out_where_two_are_alike(tmp_path):
    spec = write(tmp_path / "v.txt", {"q": [1, 0], "r": [2, 0], "s": [0, 1], "t": [0, 3]})
    axiom = REG(analyzer="whitespace", vectors=spec)
    assert axiom.preference("q r s t", "s", "q") == 0
    assert axiom.preference("q r s", "s", "q") == 1
    assert axiom.contrasts(made(["q", "s"], ["q r s t", "q r s", "q r"])).dropped == {
        "queries of fewer than three terms with a vector": 1,
        "queries without a single term least like the others": 1,
    }


def test_what_has_no_vector_is_counted_and_never_an_instance(flat):
    docs = ["q near", "q far", "q unknown", "q", "q near back", "other unknown q mid"]
    collection, axiom = made(docs, ["q", "lost", "q lost"]), STMC1(analyzer="whitespace", vectors=flat)
    assert axiom.contrasts(collection).dropped == {
        "words without a vector": 3,
        "documents without a word vector outside the query": 6,  # an unknown word, no other word, two that cancel out
        "queries without a word vector": 1,
    }
    assert {pair for _, pair in found_by(axiom, collection)} == {("d0", "d1"), ("d0", "d5"), ("d5", "d1")}
    both = STMC2(analyzer="whitespace", vectors=flat).contrasts(collection).dropped
    assert set(both) == {"words without a vector", "documents without a word vector outside the query"}


def units_of(axiom, collection):
    """The vector of each term of the collection that has one."""
    views = axiom.views(collection)
    slot, units, _ = axiom.term_vectors(views)
    terms = views.pools.analyzer.vocabulary.terms[: len(slot)]
    return {term: units[slot[i]] for i, term in enumerate(terms) if slot[i] >= 0}


def test_the_vector_of_a_stem_is_the_mean_of_its_forms(tmp_path):
    space = {"running": [2, 0], "runs": [0, 1], "run": [-5, -5], "jumps": [0, 1], "Ran": [1, 1], "lazi": [3, 4], "us": [1, 0]}  # fmt: skip
    collection = made(["He RUNNING, runs! lazy us", "Jumps; Ran jump running"], ["runs lazy unseen"])
    found = units_of(STMC1(analyzer="lucene", vectors=write(tmp_path / "v.txt", space)), collection)
    half = math.sqrt(0.5)
    wanted = {"run": [half, half], "jump": [0, 1], "ran": [half, half], "lazi": [0.6, 0.8], "us": [1, 0]}
    assert {term: found[term] for term in wanted} == {t: pytest.approx(v) for t, v in wanted.items()}
    assert "u" not in found


def test_tokens_inside_words_lose_their_mark(tmp_path):
    def tokens(text):
        return [token for word in text.split() for token in (word[:3], f"##{word[3:]}") if token.strip("#")]

    space = {"run": [1, 0], "running": [1, 9], "ning": [0, 1], "##ner": [1, 1], "cat": [3, 4]}
    spec = write(tmp_path / "v.txt", space)
    analyzers.register("semantic-test-tokens")(lambda: Analyzer.of("semantic-test-tokens", tokens))
    try:
        axiom = STMC1(analyzer="semantic-test-tokens", vectors=spec)
        found = units_of(axiom, made(["running runner cat ##"], ["cat"]))
    finally:
        analyzers.forget("semantic-test-tokens")
    assert set(found) == {"run", "##ning", "cat"}
    assert found["cat"] == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("texts", [("", ""), ("x", ""), ("q", "q q"), ("a b c q", "q r s a"), ("?", "\ud800 q")])
def test_two_texts_alone_are_enough_to_train_on(texts):
    for spec in SEMANTIC:
        for query in ("q r s", ""):
            assert axioms.create(f"axiom/{spec}").preference(query, *texts) in (-1, 0, 1)


def test_many_documents_do_without_one_table(tmp_path, monkeypatch):
    axiom = STMC2(analyzer="whitespace", vectors=write(tmp_path / "v.txt", SPACE))
    whole = found_by(axiom, crowd())
    monkeypatch.setattr(meaning, "_CELLS", 10)
    monkeypatch.setattr(meaning, "_PAIRS", 7)
    assert found_by(axiom, crowd()) == whole


def test_training_happens_once_for_a_collection_and_seed(monkeypatch):
    trained, train = [], GloVe.train
    monkeypatch.setattr(GloVe, "train", lambda self, *given: (trained.append(self.seed), train(self, *given))[1])
    collection = crowd()
    for spec in SEMANTIC:
        axiom = axioms.create(f"axiom/{spec}", analyzer="whitespace")
        axiom.contrasts(collection)
        axiom.preference("a b c", "a x", "b z", collection)
    assert trained == [0]
    seeds = [STMC1(analyzer="whitespace", seed=seed) for seed in (0, 1)]
    cosines = [axiom.nearness(next(iter(axiom.views(collection)))).cosine for axiom in seeds]
    assert not np.allclose(*cosines, equal_nan=True)
