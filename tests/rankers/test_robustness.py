"""Rankers that raise, give no numbers, the wrong number of them, or never come back: alone and inside others."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from whyrank.core import Answered, WhyrankError, ask
from whyrank.core.protocols import PartlyScored, checked
from whyrank.data import Collection
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine, ScoreStore, rerank
from whyrank.scoring.asking import Task, answer
from whyrank.testing.examples import sample

SOURCE = """
import math, time

def fine(queries, docs):
    return [float(len(d)) for d in docs]

def raises(queries, docs):
    if "bad" in docs:
        raise ValueError("cannot read bad")
    return fine(queries, docs)

def always_raises(queries, docs):
    raise OSError("model.bin is missing")

def nan(queries, docs):
    return [math.nan if d == "bad" else len(d) for d in docs]

def infinite(queries, docs):
    return [math.inf if d == "bad" else len(d) for d in docs]

def none(queries, docs):
    return [None if d == "bad" else len(d) for d in docs]

def too_few(queries, docs):
    return [1.0] * (len(docs) - 1)

def too_many(queries, docs):
    return [1.0] * (len(docs) + 1)

def one_number(queries, docs):
    return 1.0

def words(queries, docs):
    return ["high"] * len(docs)

def nothing(queries, docs):
    return None

def leaves(queries, docs):
    if "bad" in docs:
        raise SystemExit(3)
    return fine(queries, docs)

def hangs(queries, docs):
    print("hanging", flush=True)
    time.sleep(600)
"""
DOCS = {"a": "one", "b": "three", "x": "bad", "c": "seventeen"}


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    path = tmp_path_factory.mktemp("robust") / "odd.py"
    path.write_text(SOURCE)
    return path


def collection():
    run = dict.fromkeys(DOCS, 1.0)
    return Collection.of(DOCS, {"1": "query"}, {}, runs={"bm25": {"1": run}}, name="toy")


WRAPPED = {
    "alone": "{odd}",
    "fused": "fuse(of=['{odd}','{fine}'])",
    "fused by min-max": "fuse(of=['{fine}','{odd}'],normalise=minmax)",
    "fused by rank": "fuse(of=['{odd}','{fine}'],normalise=rank)",
    "first of a cascade": "cascade(of=['{odd}','{fine}'])",
    "second of a cascade": "cascade(of=['{fine}','{odd}'])",
}


def reranked(module, name, form):
    spec = WRAPPED[form].format(odd=f"python:{module}:{name}", fine=f"python:{module}:fine")
    ranker = open_ranker(spec, Setting(collection()))
    return rerank(Engine(batch_size=3), ranker, collection(), {"1": dict.fromkeys(DOCS, 1.0)})


@pytest.mark.parametrize("form", WRAPPED)
@pytest.mark.parametrize("name", ["raises", "nan", "leaves"])
def test_one_bad_text_is_counted_and_the_others_ranked(module, form, name):
    run, failures = reranked(module, name, form)
    assert set(run["1"]) == {"a", "b", "c"}
    reasons = {"raises": "ValueError: cannot read bad", "nan": "score is nan", "leaves": "SystemExit: 3"}
    assert [(failure.doc, failure.reason) for failure in failures] == [("bad", reasons[name])]


@pytest.mark.parametrize("form", ["alone", "fused", "first of a cascade"])
def test_infinite_scores_are_counted(module, form):
    run, failures = reranked(module, "infinite", form)
    assert set(run["1"]) == {"a", "b", "c"}
    assert [(failure.doc, failure.reason) for failure in failures] == [("bad", "score is inf")]


@pytest.mark.parametrize("form", WRAPPED)
@pytest.mark.parametrize("name", ["too_few", "too_many", "one_number", "words", "nothing", "none"])
def test_answers_that_are_no_scores_name_the_ranker(module, form, name):
    with pytest.raises(WhyrankError, match=f"odd.py:{name}' returned .*; return one number per pair") as caught:
        reranked(module, name, form)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", WRAPPED)
def test_a_ranker_that_never_works_leaves_nothing_but_reasons(module, form):
    run, failures = reranked(module, "always_raises", form)
    assert run["1"] == {}
    assert len(failures) == 4
    assert all("model.bin is missing" in failure.reason for failure in failures)


def test_a_ranker_that_hangs_can_be_stopped_and_loses_nothing(module, tmp_path):
    """What was committed before stays, and the run ends at once with one line and exit code 130."""
    source = str(Path(__file__).parents[2] / "src")
    environment = os.environ | {"PYTHONPATH": source, "WHYRANK_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", "whyrank.cli.main", "rank", "--candidates", "bm25", "-r"]
    spec = f"cascade(of=['python:{module}:fine','python:{module}:hangs'],depth=2)"
    process = subprocess.Popen(
        [*command, spec], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert "hanging" in process.stderr.readline()
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - start < 20
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    query_id, run = next(iter(sample().runs["bm25"].items()))
    texts = {sample().docs[doc_id] for doc_id in run}
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        kept = store.get(repr(open_ranker(f"python:{module}:fine")), sample().queries[query_id], texts)
    assert kept == {text: len(text) for text in texts}


# Scores in part


def test_pairs_that_the_ranker_itself_gives_up_are_not_tried_again():
    class Partial:
        name, calls = "partial", []

        def score(self, queries, docs):
            self.calls.append(len(docs))
            raise PartlyScored(np.arange(len(docs), dtype=np.float64), {1: "down", 2: "down too"})

    found = answer(Partial(), Task(0, ["q"] * 4, list("abcd"), patience=2))
    assert Partial.calls == [4]
    assert np.array_equal(found.values, [0, np.nan, np.nan, 3], equal_nan=True)
    assert (found.reasons, found.succeeded, found.gave_up) == ({1: "down", 2: "down too"}, True, False)


def test_a_batch_that_fails_as_a_whole_counts_against_patience():
    class Down:
        name = "down"

        def score(self, queries, docs):
            raise PartlyScored(np.zeros(len(docs)), dict.fromkeys(range(len(docs)), "down"))

    found = answer(Down(), Task(0, ["q"] * 4, list("abcd"), patience=4))
    assert (len(found.reasons), found.succeeded, found.gave_up) == (4, False, True)
    codes = np.arange(30, dtype=np.int32)
    with pytest.raises(WhyrankError, match="ranker 'down' failed on each of the first 20 pairs: down"):
        Engine().score(Down(), ["q"], [f"d{i}" for i in codes], np.zeros_like(codes), codes)


def test_pairs_without_a_score_by_definition_do_not_count_against_patience():
    class Narrow:
        name = "narrow"

        def score(self, queries, docs):
            raise PartlyScored(np.zeros(len(docs)), dict.fromkeys(range(len(docs)), "unknown"), in_order=True)

    codes = np.arange(30, dtype=np.int32)
    found = Engine(batch_size=4).score(Narrow(), ["q"], [f"d{i}" for i in codes], np.zeros_like(codes), codes)
    assert {failure.reason for failure in found.failures} == {"unknown"}
    assert np.isnan(found.values).all()


def test_pairs_without_a_score_are_not_stored(tmp_path):
    class Versioned:
        name = "versioned"

        def __init__(self, down):
            self.down = down

        def __repr__(self):
            return "versioned 1"

        def score(self, queries, docs):
            lacking = {i: "down" for i, doc in enumerate(docs) if self.down and doc == "bad"}
            return Answered(np.ones(len(docs)), lacking).handed_over()

    codes = np.arange(2, dtype=np.int32)
    asked = (["q"], ["good", "bad"], np.zeros_like(codes), codes)
    with ScoreStore(tmp_path / "s.sqlite") as store:
        first = Engine(store).score(Versioned(down=True), *asked)
        assert np.array_equal(first.values, [1, np.nan], equal_nan=True)
        assert [failure.reason for failure in store.failures("versioned 1")] == ["down"]
        second = Engine(store).score(Versioned(down=False), *asked)
        assert (second.values.tolist(), second.scored, second.reused) == ([1, 1], 1, 1)


def test_wrong_partial_answers_name_the_ranker():
    class Wrong:
        name = "wrong"

        def score(self, queries, docs):
            raise PartlyScored(np.zeros(5), {0: "down"})

    with pytest.raises(WhyrankError, match=r"ranker 'wrong' returned shape \(5,\) for 2 pairs"):
        ask(Wrong(), ["q", "q"], ["a", "b"])


def test_a_partial_answer_travels():
    import pickle

    one = pickle.loads(pickle.dumps(PartlyScored(np.array([1.0, 2.0]), {0: "down"})))
    assert str(one) == "1 of 2 pairs have no score: down"
    assert np.array_equal(one.scores, [np.nan, 2], equal_nan=True)
    assert one.reasons == {0: "down"}


def test_what_stands_in_for_an_array_and_fails():
    class Lazy:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("lost\nthe weights")

    with pytest.raises(WhyrankError, match=r"no array \(RuntimeError: lost the weights\)"):
        checked(open_ranker("bm25"), Lazy(), 1)


async def later():
    return [1.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: None, "returned nothing; return one number per pair"),
        (lambda: (1.0 for _ in "ab"), "returned one thing of type generator; "),
        (lambda: {"a": 1.0}, "returned one thing of type dict; "),
        (later, "returned one thing of type coroutine; "),
    ],
)
def test_what_is_no_array_is_named(make, says):
    with pytest.raises(WhyrankError, match=says):
        checked(open_ranker("bm25"), make(), 1)
    gc.collect()
