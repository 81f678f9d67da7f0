"""Re-ranking in stages, and which ranker retrieves."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiny_generators import generator
from whyrank.core import WhyrankError
from whyrank.data import Collection, ranking, write_run
from whyrank.rankers import Setting, open_ranker, query_scale, rankers, stacked
from whyrank.scoring import Engine, ScoreStore, rerank, retrieve
from whyrank.scoring.ranking import retriever
from whyrank.testing.examples import sample

SOURCE = """
import math

length = lambda queries, docs: [len(d) for d in docs]
shorter = lambda queries, docs: [-len(d) for d in docs]
holes = lambda queries, docs: [math.nan if "bad" in d else len(d) for d in docs]
"""
DOCS = {"a": "z", "b": "yy", "c": "xxx", "d": "wwww", "e": "vvvvv"}


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    path = tmp_path_factory.mktemp("cascade") / "stages.py"
    path.write_text(SOURCE)
    return {name: f"python:{path}:{name}" for name in ("length", "shorter", "holes")}


def cascade(of, depth):
    return open_ranker(f"cascade(of={of!r},depth={depth!r})", Setting(Collection.of(DOCS, {"1": "query"})))


def order(ranker, docs=DOCS):
    collection = Collection.of(docs, {"1": "query"}, {}, name="toy")
    run, failures = rerank(Engine(), ranker, collection, {"1": dict.fromkeys(docs, 1.0)})
    assert list(run["1"]) == ranking(run["1"])
    return "".join(run["1"]), [failure.doc for failure in failures]


def test_each_stage_orders_the_best_of_the_one_before(stages):
    length, shorter = stages["length"], stages["shorter"]
    for depth, expected in ((3, "cdeba"), (1, "edcba"), (5, "abcde"), (50, "abcde")):
        assert order(cascade([length, shorter], depth))[0] == expected
    assert order(cascade([length, shorter, length], [4, 2]))[0] == "cb" + "de" + "a"
    inner = rankers.create(f"cascade(of={[length, shorter]!r},depth=4)").name
    assert order(cascade([inner, length], 2))[0] == "cb" + "de" + "a"


def test_what_a_stage_cannot_score_is_left_out_and_reported(stages):
    docs = {**DOCS, "n": "bad one", "m": "bad"}
    for of in ([stages["holes"], stages["shorter"]], [stages["length"], stages["holes"]]):
        found, failures = order(cascade(of, 9), docs)
        assert (sorted(found), sorted(failures)) == (list("abcde"), ["bad", "bad one"])
    # a, b and m are the best three
    assert order(cascade([stages["shorter"], stages["holes"]], 3), docs) == ("ba" + "cden", ["bad"])


def test_each_stage_is_asked_only_for_what_it_needs_and_its_scores_are_kept(stages, tmp_path):
    ranker, collection = cascade(["bm25", stages["length"]], 2), Collection.of(DOCS, {"1": "query"})
    with ScoreStore(tmp_path / "s.sqlite") as store:
        rerank(Engine(store), ranker, collection, {"1": dict.fromkeys(DOCS, 1.0)})
        every = [*DOCS.values()], np.zeros(len(DOCS), np.int32), np.arange(len(DOCS), dtype=np.int32)
        assert [Engine(store).score(part, ["query"], *every).reused for part in ranker.parts] == [len(DOCS), 2]


def test_a_whole_collection_and_its_run_as_a_ranker(tmp_path):
    collection = sample()
    ranker = open_ranker("cascade(of=['bm25','ql(mu=10)'],depth=5)", Setting(collection))
    run, _ = retrieve(Engine(), ranker, collection, 20)
    bm25, _ = retrieve(Engine(), ranker.parts[0], collection, 20)
    for query_id, scores in run.items():
        assert set(list(scores)[:5]) == set(list(bm25[query_id])[:5])
        assert list(scores)[5:] == list(bm25[query_id])[5:]
    assert run != bm25
    write_run(tmp_path / "c.txt", run)
    again = open_ranker(f"run:{tmp_path / 'c.txt'}", Setting(collection))
    query_id, scores = next(iter(run.items()))
    best = next(iter(scores))
    assert again.score([collection.queries[query_id]], [collection.docs[best]]).tolist() == [scores[best]]


def test_pairs_have_no_score_and_the_error_says_what_to_do():
    ranker = open_ranker("cascade(of=['bm25','ql'])", Setting(sample()))
    with pytest.raises(WhyrankError, match=r"cascade\(of=.*single pair has no score.*rank --out FILE.*run:FILE"):
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


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("of=['bm25']", "list of two or more"),
        *((f"of=['bm25','ql'],depth={depth}", "depth must be a whole number") for depth in ("0", "'many'", "2.5", "[5,'x']", "['x']")),
        ("of=['bm25','ql','bm25']", "one depth for each of the 2"),
        ("of=['bm25','ql','bm25'],depth=[5,10]", "must not grow"),
        ("of=['bm25','nothing']", "unknown ranker 'nothing'"),
    ],
)  # fmt: skip
def test_refusals(arguments, what):
    with pytest.raises(WhyrankError, match=what):
        open_ranker(f"cascade({arguments})", Setting(sample()))


@pytest.fixture(scope="module")
def expanding(tmp_path_factory):
    pytest.importorskip("transformers")
    return f"doc2query:{generator('seq2seq', tmp_path_factory.mktemp('parts') / 'generator')}(n=2)"


class TestRetrieval:
    TEXTS = {
        "wall": "the berlin wall fell", "city": "a city of explorers", "gray": "robert gray was an explorer in berlin",
        "stone": "it stood since and had fallen", "what": "what is a wall", "none": "emoji x x", "empty": "",
    }  # fmt: skip
    QUERIES = {"1": "berlin wall", "2": "who is the explorer", "3": "city"}
    COLLECTION = Collection.of(TEXTS, QUERIES, name="toy")
    SETTING = Setting(COLLECTION)

    def test_expanded_texts_are_retrieved_as_they_are_scored(self, expanding):
        ranker = open_ranker(expanding, self.SETTING)
        run, _ = retrieve(Engine(), ranker, self.COLLECTION, 10)
        for query_id, query in self.QUERIES.items():
            scores = ranker.score([query] * len(self.TEXTS), list(self.TEXTS.values()))
            expected = {d: score for d, score in zip(self.TEXTS, scores, strict=True) if score > 0}
            assert run[query_id] == pytest.approx(expected)
            assert list(run[query_id]) == ranking(run[query_id])
        plain, _ = retrieve(Engine(), ranker.ranker, self.COLLECTION, 10)
        assert any(set(run[q]) > set(plain[q]) for q in run)  # what only the expanded texts have is found
        for query in ("berlin wall", "nothing known", ""):
            assert query_scale(ranker, query) == query_scale(ranker.ranker, query)

    def test_who_retrieves(self, expanding):
        def name(spec):
            found = retriever(open_ranker(spec, self.SETTING))
            return found and found.name

        assert name("bm25(k1=1.5)") == name("cascade(of=['bm25(k1=1.5)','ql'])") == "bm25(k1=1.5)"
        assert name("fuse(of=['bm25(b=0.1)','ql'])") == "bm25(b=0.1)"
        assert name("cascade(of=['ql','bm25'])") is name("fuse(of=['ql','bm25'])") is name("ql") is None
        assert name(f"fuse(of={[expanding, 'ql']!r})").startswith("doc2query:")
        assert name(expanding.replace("n=2", "n=2,ranker=ql")) is None
