"""Re-ranking in stages."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.data import Collection, ranking, write_run
from whyrank.rankers import Setting, open_ranker, rankers, stacked
from whyrank.scoring import Engine, ScoreStore, rerank, retrieve
from whyrank.scoring.engine import identity_of
from whyrank.testing.examples import sample

SOURCE = """
import math

def length(queries, docs):
    return [len(d) for d in docs]

def shorter(queries, docs):
    return [-len(d) for d in docs]

def holes(queries, docs):
    return [math.nan if "bad" in d else len(d) for d in docs]
"""
DOCS = {"a": "z", "b": "yy", "c": "xxx", "d": "wwww", "e": "vvvvv"}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    path = tmp_path_factory.mktemp("cascade") / "stages.py"
    path.write_text(SOURCE)
    return {name: f"python:{path}:{name}" for name in ("length", "shorter", "holes")}


def toy(docs=DOCS):
    return Collection.of(docs, {"1": "query"}, {}, name="toy")


def cascade(of, depth, collection=None):
    return open_ranker(f"cascade(of={of!r},depth={depth!r})", Setting(collection or toy()))


def order(ranker, docs=DOCS):
    run, failures = rerank(Engine(), ranker, toy(docs), {"1": dict.fromkeys(docs, 1.0)})
    assert list(run["1"]) == ranking(run["1"])
    return "".join(run["1"]), failures


def test_the_second_orders_the_best_of_the_first(parts):
    of = [parts["length"], parts["shorter"]]
    assert order(cascade(of, 3))[0] == "cde" + "ba"
    assert order(cascade(of, 1))[0] == "edcba"
    assert order(cascade(of, 5))[0] == order(cascade(of, 50))[0] == "abcde"


def test_three_stages(parts):
    of = [parts["length"], parts["shorter"], parts["length"]]
    assert order(cascade(of, [4, 2]))[0] == "cb" + "de" + "a"


def test_a_cascade_in_a_cascade(parts):
    inner = rankers.create(f"cascade(of={[parts['length'], parts['shorter']]!r},depth=4)").name
    assert order(cascade([inner, parts["length"]], 2))[0] == "cb" + "de" + "a"


def test_scores_of_the_best_are_those_of_the_last_stage(parts):
    run, _ = rerank(Engine(), cascade([parts["length"], parts["shorter"]], 2), toy(), {"1": dict.fromkeys(DOCS, 1.0)})
    assert run["1"] == {"d": -4.0, "e": -5.0, "c": -6.0, "b": -7.0, "a": -8.0}


def test_what_a_stage_cannot_score_is_left_out_and_reported(parts):
    docs = {**DOCS, "n": "bad one", "m": "bad"}
    for of in ([parts["holes"], parts["shorter"]], [parts["length"], parts["holes"]]):
        found, failures = order(cascade(of, 9), docs)
        assert sorted(found) == list("abcde")
        assert sorted(failure.doc for failure in failures) == ["bad", "bad one"]
    found, failures = order(cascade([parts["shorter"], parts["holes"]], 3), docs)  # a, b and m are the best three
    assert found == "ba" + "cden"
    assert [failure.doc for failure in failures] == ["bad"]


def test_each_stage_is_asked_only_for_what_it_needs_and_its_scores_are_kept(parts, tmp_path):
    ranker = cascade(["bm25", parts["length"]], 2)
    with ScoreStore(tmp_path / "s.sqlite") as store:
        rerank(Engine(store), ranker, toy(), {"1": dict.fromkeys(DOCS, 1.0)})
        first, second = ranker.stages
        assert set(store.get(identity_of(first), "query", DOCS.values())) == set(DOCS.values())
        assert len(store.get(identity_of(second), "query", DOCS.values())) == 2


def test_a_whole_collection_and_its_run_as_a_ranker(tmp_path):
    collection = sample()
    ranker = open_ranker("cascade(of=['bm25','ql(mu=10)'],depth=5)", Setting(collection))
    run, _ = retrieve(Engine(), ranker, collection, 20)
    bm25, _ = retrieve(Engine(), ranker.stages[0], collection, 20)
    for query_id, scores in run.items():
        assert set(list(scores)[:5]) == set(list(bm25[query_id])[:5])
        assert list(scores)[5:] == list(bm25[query_id])[5:]
    assert run != bm25
    write_run(tmp_path / "c.txt", run)
    again = open_ranker(f"run:{tmp_path / 'c.txt'}", Setting(collection))
    query_id = next(iter(run))
    best = next(iter(run[query_id]))
    assert again.score([collection.queries[query_id]], [collection.docs[best]]).tolist() == [run[query_id][best]]


@given(st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=12, unique=True), st.integers(1, 12))
def test_a_list_of_texts_is_ordered_like_a_run(texts, depth):
    """By definition, with the position in the list in place of ids."""
    ranker = open_ranker(f"cascade(of=['bm25','ql'],depth={depth})")
    found = ranker.rerank_list("a b", texts)
    first, second = (stage.score(["a b"] * len(texts), texts) for stage in ranker.stages)
    by_first = sorted(range(len(texts)), key=lambda i: (-first[i], i))
    expected = [*sorted(by_first[:depth], key=lambda i: (-second[i], i)), *by_first[depth:]]
    assert sorted(range(len(texts)), key=lambda i: (-found[i], i)) == expected


def test_a_list_with_texts_that_cannot_be_scored(parts):
    ranker = cascade([parts["length"], parts["holes"]], 3)
    found = ranker.rerank_list("q", ["a", "bad text", "bb", "ccc"])
    assert np.isnan(found).tolist() == [False, True, False, False]
    assert np.argsort(-found[[0, 2, 3]]).tolist() == [2, 1, 0]
    assert ranker.rerank_list("q", []).tolist() == []


def test_pairs_have_no_score_and_the_error_says_what_to_do():
    ranker = open_ranker("cascade(of=['bm25','ql'])", Setting(sample()))
    with pytest.raises(
        WhyrankError, match=r"cascade\(of=.*single pair has no score.*whyrank rank --out FILE.*run:FILE"
    ):
        Engine().score(ranker, ["q"], ["d"], np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert ranker.score([], []).tolist() == []


@given(st.dictionaries(st.text(), st.floats(-1e300, 1e300)), st.lists(st.integers(), unique=True))
def test_the_rest_lies_below_the_best_in_its_order(top, rest):
    found = stacked(top, rest)
    values = [found[each] for each in rest]
    assert all(a > b for a, b in pairwise(values))
    assert not rest or not top or values[0] < min(top.values())


@given(st.floats(-1e30, 1e30), st.integers(1, 300))
def test_the_order_of_the_rest_is_seen_in_single_precision(lowest, size):
    """As trec_eval reads scores."""
    values = np.array(list(stacked({-1: lowest}, range(size)).values()), np.float32)
    assert (np.diff(values) < 0).all()


def test_identity_and_travel():
    ranker = open_ranker("cascade(of=['bm25','ql'],depth=7)", Setting(sample()))
    copy = pickle.loads(pickle.dumps(ranker))
    assert repr(copy) == repr(ranker) != repr(open_ranker("cascade(of=['bm25','ql'],depth=8)", Setting(sample())))
    assert rankers.create(ranker.name).depths == (7,)
    assert ranker.cacheable
    assert ranker.batch_size == 250_000


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("of=['bm25']", "list of two or more"),
        ("of=['bm25','ql'],depth=0", "depth must be a whole number"),
        ("of=['bm25','ql'],depth='many'", "depth must be a whole number"),
        ("of=['bm25','ql'],depth=2.5", "depth must be a whole number"),
        ("of=['bm25','ql'],depth=[5,'x']", "depth must be a whole number"),
        ("of=['bm25','ql'],depth=['x']", "depth must be a whole number"),
        ("of=['bm25','ql','bm25']", "one depth for each of the 2"),
        ("of=['bm25','ql','bm25'],depth=[5,10]", "must not grow"),
        ("of=['bm25','nothing']", "unknown ranker 'nothing'"),
    ],
)
def test_wrong_configurations_are_one_clear_line(arguments, what):
    with pytest.raises(WhyrankError, match=what):
        open_ranker(f"cascade({arguments})", Setting(sample()))
