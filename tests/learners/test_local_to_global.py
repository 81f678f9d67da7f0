"""A planted ranker is found out by each method; adding up against plain loops."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.learners import table_learners
from whyrank.learners.local import Explained, LocalToGlobal
from whyrank.learners.local.explaining import RankedList, explain_lists
from whyrank.learners.local.learner import align, pair_weights
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine, ScoreStore, first_ranker


class Planted:
    """Counts query words, and adds 2 for a synonym of one of them."""

    name = "planted"
    synonyms = {"car": "vehicle"}

    def __init__(self, noise=0.0):
        self.scored, self.noise = 0, noise

    def __repr__(self):
        return f"planted(noise={self.noise})"

    def score(self, queries, docs):
        self.scored += len(docs)
        return np.array([self._one(q.split(), d.split()) for q, d in zip(queries, docs, strict=True)])

    def _one(self, query, doc):
        words = set(doc)
        found = sum(q in words for q in query) + 2.0 * sum(self.synonyms.get(q) in words for q in query)
        return found + self.noise * sum(len(word) for word in words)


def collection():
    rng = np.random.default_rng(0)
    filler = [f"word{i}" for i in range(30)]
    others = ["red", "blue", "fast", "cheap", "old", "new"]
    docs = {}
    for i in range(90):
        text = rng.choice(filler, 8).tolist() + ["car"] * (i % 2) + rng.choice(others, 1).tolist()
        text += ["vehicle"] * (i % 3 == 0)
        docs[f"d{i}"] = " ".join(rng.permutation(text))
    queries = {f"q{i}": f"{other} car" for i, other in enumerate(others)}
    return Collection.of(docs, queries | {"bare": "red"}, name="planted")


COLLECTION = collection()


def learner(*settings, **more):
    return LocalToGlobal("planted", *settings, **{"analyzer": "whitespace"} | more)


@pytest.mark.parametrize("method", ["occlusion", "lime", "bm25"])
@pytest.mark.parametrize("variant", ["plain", "min-frequency"])
def test_a_planted_synonym_is_found(method, variant):
    how = learner(method, variant, depth=60, explained=5, words=4)
    table, explained, failures = how.explain(COLLECTION, Planted(), Engine())
    first, *others = table.doc_terms_for("car")
    assert (first.term, first.weight) == ("vehicle", 1.0)
    assert all(weight < 1 for _, weight in others)
    assert {each.words[0] for each in explained if "car" in each.terms} == {"vehicle"}
    assert all(len(each.words) <= 4 for each in explained)
    assert failures == []


@pytest.mark.parametrize("method", ["occlusion", "lime", "bm25"])
def test_the_size_of_batches_and_of_blocks_does_not_matter(method, monkeypatch):
    how, found = learner(method, depth=60, explained=3, samples=30), []
    for size, block in ((1, 1), (7, 3), (1000, 16)):
        monkeypatch.setattr("whyrank.learners.local.learner.BLOCK", block)
        found.append(how.explain(COLLECTION, Planted(0.01), Engine(None, batch_size=size)))
    assert len({learned.table.digest for learned in found}) == 1
    assert found[0].explained == found[2].explained


def test_a_second_run_asks_nothing_again(tmp_path):
    ranker, how = Planted(), learner("lime", depth=40, explained=3, samples=20)
    store = ScoreStore(tmp_path / "scores.sqlite")
    first = how.explain(COLLECTION, ranker, Engine(store))
    before = ranker.scored
    second = how.explain(COLLECTION, ranker, Engine(store, checked=0))
    assert ranker.scored == before > 0
    assert second.table.digest == first.table.digest


@pytest.mark.parametrize("method", ["occlusion", "lime"])
def test_a_word_has_no_credit_for_the_query_term_that_it_is_joined_to(method):
    class Counting(Planted):
        def _one(self, query, doc):
            words = " ".join(doc).replace("-", " ").split()
            return float(sum(words.count(q) for q in query))

    docs = {"1": "the landlord-tenant act", "2": "landlord law of tenant"}
    bm25 = first_ranker(given := Collection.of(docs, {"q": "landlord"}), "lucene")
    lists = [RankedList("q", given.queries["q"], ["landlord"], list(docs.values()), np.array([2.0, 1.0]))]
    assert explain_lists(lists, Counting(), Engine(), bm25, learner(method))[0] == [[]]


EXPLAINED = [
    Explained("1", ["red", "car"], ["wine", "vehicle"], {"wine": ["red"], "vehicle": ["car"]}),
    Explained("2", ["car", "car", "hire"], ["vehicle", "rent"], {"vehicle": ["car"], "rent": ["hire"]}),
    Explained("3", ["car"], [], {}),
]


def test_weights_by_hand():
    assert pair_weights(EXPLAINED, "plain") == {
        ("red", "wine"): 1.0,
        ("car", "vehicle"): 0.5,  # twice, and "car" occurs four times
        ("hire", "rent"): 1.0,
    }
    assert pair_weights(EXPLAINED, "min-frequency") == {("car", "vehicle"): 0.5}
    uniform, _ = align(EXPLAINED, Planted(), Engine(), "uniform")
    assert pair_weights(uniform, "uniform") == {
        ("red", "wine"): 1.0, ("car", "wine"): 0.25, ("red", "vehicle"): 1.0, ("car", "vehicle"): 0.5,
        ("hire", "vehicle"): 1.0, ("car", "rent"): 0.25, ("hire", "rent"): 1.0,
    }  # fmt: skip
    assert len(learner(threshold=0.6)._table(EXPLAINED, {}, [])) == 2
    with pytest.raises(WhyrankError, match=r"all 1 pairs weigh less than --threshold 0\.6; lower it"):
        learner(variant="min-frequency", threshold=0.6)._table(EXPLAINED, {}, [])


class Affinity:
    """Knows how well a term and a word go together."""

    name = "affinity"
    known = {("car", "vehicle"): 3.0, ("red", "vehicle"): 1.0, ("red", "wine"): -2.0, ("car", "wine"): -5.0}

    def __repr__(self):
        return "affinity"

    def score(self, queries, docs):
        return np.array([self.known.get(pair, 0.0) for pair in zip(queries, docs, strict=True)])


def test_words_go_to_the_term_that_the_target_matches_best():
    given = [Explained("1", ["red", "car", "red"], ["vehicle", "wine", "tie"], {})]
    [each], failures = align(given, Affinity(), Engine(), "plain")
    assert each.aligned == {"vehicle": ["car"], "wine": ["red"], "tie": ["red"]}
    assert failures == []


def test_a_run_file_cannot_score_changed_texts():
    given = replace(COLLECTION, runs={"first": {"q0": {"d1": 2.0, "d3": 1.0, "d5": 0.5}}})
    target = open_ranker("run:first", Setting(given))
    for how in (learner(), learner("bm25")):
        with pytest.raises(WhyrankError, match="no scores for changed texts"):
            how.explain(given, target, Engine())
    table = learner("bm25", "uniform").explain(given, target, Engine(), given.runs["first"]).table
    assert set(table.query_terms) <= {"red", "car"}


LONGER = "def longer(queries, docs):\n    return [len(doc) for doc in docs]\n"


def test_the_explanations_are_written_and_the_call_string_makes_the_table_again(tmp_path):
    (tmp_path / "mine.py").write_text(LONGER)
    out, target = tmp_path / "words.jsonl", f"python:{tmp_path}/mine.py:longer"
    table = LocalToGlobal(target, explained=2, depth=9, words=3, query_sample=5, explanations=str(out)).learn(
        COLLECTION
    )
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 5
    assert {word for line in lines for word in line["aligned"]} == set(table.doc_terms)
    assert "explanations=" not in table.facts["learner"], "they change nothing in the table"
    again = table_learners.create(table.facts["learner"]).learn(COLLECTION)
    assert len(table) > 0
    assert (again.digest, dict(again.facts)) == (table.digest, dict(table.facts))


@pytest.mark.parametrize("method", ["occlusion", "lime"])
def test_changed_texts_that_fill_memory_are_scored_in_parts(method, monkeypatch):
    texts = list(COLLECTION.docs.values())[:6]
    lists = [RankedList(q, q, q.split(), texts, np.arange(6.0)) for q in ("red car", "old car")]
    bm25, sizes = first_ranker(COLLECTION, "whitespace"), []

    class Watched(Planted):
        def score(self, queries, docs):
            sizes.append(sum(map(len, docs)))
            return super().score(queries, docs)

    whole = explain_lists(lists, Planted(), Engine(), bm25, learner(method))[0]
    monkeypatch.setattr("whyrank.learners.local.explaining.CHARACTERS", 300)
    assert explain_lists(lists, Watched(), Engine(), bm25, learner(method))[0] == whole
    assert whole[0]
    assert max(sizes) < 500 < sum(sizes)


@pytest.mark.parametrize(("options", "expected"), [
    ({"method": "shap"}, "unknown value of local-to-global: method"), ({"variant": "all"}, "uniform"), ({"explained": 0}, "1 or more"),
    ({"samples": 1}, "between 2 and 100000, not 1"), ({"samples": 10**14}, "between 2 and 100000"), ({"threshold": 2.0}, "between 0 and 1"),
    ({}, "give one"),
])  # fmt: skip
def test_refusals(options, expected):
    with pytest.raises(WhyrankError, match=expected):
        learner(**options).learn()
