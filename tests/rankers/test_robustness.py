"""Rankers that raise, give no numbers, the wrong number of them, or never come back: alone and inside others."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from whyrank.core import Answered, WhyrankError, ask
from whyrank.core.protocols import PartlyScored
from whyrank.data import Collection
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine, rerank
from whyrank.scoring.batches import Batch, score_batch

SOURCE = """
import math

def fine(queries, docs):
    return [float(len(d)) for d in docs]

def raises(queries, docs):
    if "bad" in docs:
        raise ValueError("cannot read bad")
    return fine(queries, docs)

def leaves(queries, docs):
    if "bad" in docs:
        raise SystemExit(3)
    return fine(queries, docs)

def always_raises(queries, docs):
    raise OSError("model.bin is missing")

nan = lambda queries, docs: [math.nan if d == "bad" else len(d) for d in docs]
infinite = lambda queries, docs: [math.inf if d == "bad" else len(d) for d in docs]
none = lambda queries, docs: [None if d == "bad" else len(d) for d in docs]
too_many = lambda queries, docs: [1.0] * (len(docs) + 1)
"""
DOCS = {"a": "one", "b": "three", "x": "bad", "c": "seventeen"}
COLLECTION = Collection.of(DOCS, {"1": "query"}, {}, runs={"bm25": {"1": dict.fromkeys(DOCS, 1.0)}}, name="toy")
WRAPPED = {
    "alone": "{odd}",
    "fused": "fuse(of=['{odd}','{fine}'])",
    "fused by min-max": "fuse(of=['{fine}','{odd}'],normalise=minmax)",
    "fused by rank": "fuse(of=['{odd}','{fine}'],normalise=rank)",
    "first of a cascade": "cascade(of=['{odd}','{fine}'])",
    "second of a cascade": "cascade(of=['{fine}','{odd}'])",
}
CODES = np.arange(30, dtype=np.int32)


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    path = tmp_path_factory.mktemp("robust") / "odd.py"
    path.write_text(SOURCE)
    return path


def reranked(module, name, form):
    spec = WRAPPED[form].format(odd=f"python:{module}:{name}", fine=f"python:{module}:fine")
    ranker = open_ranker(spec, Setting(COLLECTION))
    return rerank(Engine(batch_size=3), ranker, COLLECTION, {"1": dict.fromkeys(DOCS, 1.0)})


REASONS = {"raises": "ValueError: cannot read bad", "nan": "score is nan", "leaves": "SystemExit: 3"}


@pytest.mark.parametrize(
    ("name", "reason", "form"),
    [
        *((name, reason, form) for name, reason in REASONS.items() for form in WRAPPED),
        *(("infinite", "score is inf", form) for form in ("alone", "fused", "first of a cascade")),
    ],
)
def test_one_bad_text_is_counted_and_the_others_ranked(module, name, reason, form):
    run, failures = reranked(module, name, form)
    assert set(run["1"]) == {"a", "b", "c"}
    assert [(failure.doc, failure.reason) for failure in failures] == [("bad", reason)]


@pytest.mark.parametrize("form", WRAPPED)
@pytest.mark.parametrize("name", ["too_many", "none"])
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


# Scores in part


class Partial:
    """Gives up some of its pairs, or all, by itself."""

    def __init__(self, reasons=None, size=None, in_order=False):
        self.name, self.reasons, self.size, self.in_order, self.calls = "partial", reasons, size, in_order, []

    def __repr__(self):
        return "partial 1"

    def score(self, queries, docs):
        self.calls.append(len(docs))
        size = len(docs) if self.size is None else self.size
        reasons = dict.fromkeys(range(len(docs)), "down") if self.reasons is None else self.reasons
        return Answered(np.ones(size), reasons, self.in_order).scores_or_raise()


def test_a_batch_that_fails_as_a_whole_counts_against_patience():
    found = score_batch(Partial(), Batch(0, ["q"] * 4, list("abcd"), patience=4))
    assert (len(found.reasons), found.succeeded, found.gave_up) == (4, False, True)
    texts = [f"d{i}" for i in CODES]
    with pytest.raises(WhyrankError, match="ranker 'partial' failed on each of the first 20 pairs: down"):
        Engine().score(Partial(), ["q"], texts, np.zeros_like(CODES), CODES)
    by_definition = Engine(batch_size=4).score(Partial(in_order=True), ["q"], texts, np.zeros_like(CODES), CODES)
    assert np.isnan(by_definition.values).all(), "where pairs without a score are in order, the run goes on"


def test_a_partial_answer_is_checked_and_travels():
    with pytest.raises(WhyrankError, match=r"ranker 'partial' returned shape \(5,\) for 2 pairs"):
        ask(Partial(size=5), ["q", "q"], ["a", "b"])
    one = pickle.loads(pickle.dumps(PartlyScored(np.array([1.0, 2.0]), {0: "down"})))
    assert str(one) == "1 of 2 pairs have no score: down"
    assert np.array_equal(one.scores, [np.nan, 2], equal_nan=True)
    assert one.reasons == {0: "down"}
