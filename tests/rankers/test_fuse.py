"""Weighted sums of rankers, against sums written out here."""

from __future__ import annotations

import pickle
import statistics
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.core.protocols import PartlyScored
from whyrank.data import Collection
from whyrank.rankers import Setting, open_ranker, rankers, tie_tolerance
from whyrank.rankers.normalisation import KINDS
from whyrank.scoring import Engine, rerank
from whyrank.testing import RankerContract
from whyrank.testing.examples import sample

SOURCE = """
import math

def length(queries, docs):
    return [len(d) for d in docs]

def shared(queries, docs):
    return [float(len(set(q.split()) & set(d.split()))) for q, d in zip(queries, docs)]

def broken(queries, docs):
    if any("bad" in d for d in docs):
        raise ValueError("cannot read bad")
    return [1.0] * len(docs)

def holes(queries, docs):
    return [math.nan if "bad" in d else 1.0 for d in docs]

def short(queries, docs):
    return [1.0] * (len(docs) + 1)
"""
DOCS = {"a": "red fox", "b": "the red red fox ran", "c": "blue", "d": "fox fox", "bad": "bad fox"}
QUERIES = {"1": "red fox", "2": "blue", "3": "nothing of it"}
RUN = {"1": {"a": 3.0, "b": 2.0, "c": 1.0, "gone": 9.0}, "2": {"c": 1.0}}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuse") / "parts.py"
    path.write_text(SOURCE)
    return {name: f"python:{path}:{name}" for name in ("length", "shared", "broken", "holes", "short")}


def toy():
    return Collection.of(DOCS, QUERIES, {}, runs={"bm25": RUN}, name="toy")


def fused(of, collection=None, **arguments):
    inside = ",".join(f"{key}={value!r}" for key, value in arguments.items())
    return open_ranker(f"fuse(of={of!r}{',' if inside else ''}{inside})", Setting(collection or toy()))


def by_hand(kind, known, score, k=60):
    """The normalised score of one ranker, straight from the definition."""
    if kind == "minmax":
        return (score - min(known)) / ((max(known) - min(known)) or 1)
    if kind == "zscore":
        return (score - statistics.fmean(known)) / (statistics.pstdev(known) or 1)
    return 1 / (k + 1 + sum(other > score for other in known))


class TestContract(RankerContract):
    def make(self):
        return open_ranker("fuse(of=['bm25','ql'],weights=[0.3,0.7])", self.setting())


class TestContractOfRanks(RankerContract):
    def make(self):
        return open_ranker("fuse(of=['bm25','ql'],normalise=rank,depth=20)", self.setting())

    def pairs(self):
        queries, docs = list(sample().queries.values())[:3], list(sample().docs.values())[:4]
        return [(query, doc) for query in queries for doc in [*docs, "", "some other text"]]


def test_the_plain_sum(parts):
    ranker = fused([parts["length"], parts["shared"]], weights=[2, -1])
    assert ranker.score(["red fox", "blue"], ["red fox", "blue"]).tolist() == [2 * 7 - 2, 2 * 4 - 1]
    plain = fused([parts["length"], parts["shared"]])
    assert plain.score(["red fox"], ["red fox"]).tolist() == [9]


def test_fixed_shifts_and_scales(parts):
    ranker = fused([parts["length"], parts["shared"]], shifts=[1, 0], scales=[3, 0.5], weights=[1, 10])
    assert ranker.score(["red fox"], ["red fox"]).tolist() == [2 + 10 * 4]


@pytest.mark.parametrize("kind", ["minmax", "zscore", "rank"])
def test_normalised_by_the_candidates_of_the_run(parts, kind):
    ranker = fused([parts["length"], parts["shared"]], normalise=kind, weights=[0.25, 2])
    texts = [*DOCS.values(), "", "a text that is no candidate", "red fox red fox"]
    for query, ids in (("red fox", "abc"), ("blue", "c")):
        lengths = [len(DOCS[d]) for d in ids]
        matches = [len(set(query.split()) & set(DOCS[d].split())) for d in ids]
        expected = [
            0.25 * by_hand(kind, lengths, len(text))
            + 2 * by_hand(kind, matches, len(set(query.split()) & set(text.split())))
            for text in texts
        ]
        assert ranker.score([query] * len(texts), texts) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["minmax", "zscore"])
@given(st.floats(-50, 50), st.integers(1, 120))
def test_where_all_candidates_score_the_same_the_scale_is_one(kind, score, size):
    curve = KINDS[kind](np.full(size, score), 60.0)
    assert curve(np.array([score, score + 1])) == pytest.approx([0, 1])


def test_only_the_best_candidates_count(parts):
    two = fused([parts["length"], parts["shared"]], normalise="minmax", depth=2)
    lengths = [len("red fox"), len("the red red fox ran")]
    assert two.score(["red fox"], ["blue"])[0] == pytest.approx(by_hand("minmax", lengths, 4) + (0 - 2))


def test_reciprocal_rank_fusion_of_a_run(parts):
    """The order is the one that the formula of Cormack et al. gives from the two rankings."""
    collection = toy()
    ranker = fused([parts["length"], parts["shared"]], collection, normalise="rank", k=1)
    run, failures = rerank(Engine(), ranker, collection, {"1": RUN["1"]})
    places = {"a": (2, 1), "b": (1, 1), "c": (3, 3)}
    assert run == {
        "1": {d: 1 / (1 + i) + 1 / (1 + j) for d, (i, j) in sorted(places.items(), key=lambda x: sum(x[1]))}
    }
    assert failures == []


@given(st.randoms(use_true_random=False), st.integers(1, 8), st.sampled_from(["none", "minmax", "zscore", "rank"]))
@settings(max_examples=30)
def test_no_score_depends_on_the_rest_of_the_batch(rng, size, kind):
    collection = sample()
    ranker = open_ranker(f"fuse(of=['bm25','ql'],normalise={kind},depth=10)", Setting(collection))
    queries, docs = list(collection.queries.values())[:4], list(collection.docs.values())[:6]
    pairs = [(q, d) for q in queries for d in docs]
    whole = dict(zip(pairs, ranker.score(*map(list, zip(*pairs, strict=True))).tolist(), strict=True))
    rng.shuffle(pairs)
    fresh = open_ranker(ranker.name, Setting(collection))
    for start in range(0, len(pairs), size):
        some = pairs[start : start + size]
        assert fresh.score(*map(list, zip(*some, strict=True))).tolist() == [whole[pair] for pair in some]


def test_a_query_without_candidates_is_a_counted_failure(parts):
    ranker = fused([parts["length"], parts["shared"]], normalise="zscore")
    with pytest.raises(PartlyScored, match="zscore: the query has no candidates") as caught:
        ranker.score(["blue", "an edited query", "nothing of it"], ["blue"] * 3)
    assert sorted(caught.value.reasons) == [1, 2]
    assert np.isfinite(caught.value.scores).tolist() == [True, False, False]
    codes = np.arange(2, dtype=np.int32)
    found = Engine().score(ranker, ["blue", "an edited query"], ["blue"], codes, np.zeros(2, np.int32))
    assert [(failure.query, failure.reason) for failure in found.failures] == [
        ("an edited query", "zscore: the query has no candidates to compare with")
    ]


def test_any_number_of_queries_without_candidates_does_not_end_a_run(parts):
    ranker = fused([parts["length"], parts["shared"]], normalise="minmax")
    codes = np.arange(60, dtype=np.int32)
    queries = [*(f"unknown {i}" for i in codes[1:]), "blue"]
    found = Engine(batch_size=7).score(ranker, queries, ["blue"], codes, np.zeros_like(codes))
    assert (len(found.failures), np.isfinite(found.values).sum()) == (59, 1)


def test_parts_that_fail_on_some_texts(parts):
    collection = toy()
    for name, reason in (("broken", "ValueError: cannot read bad"), ("holes", "score is nan")):
        ranker = fused([parts["length"], parts[name]], collection)
        run, failures = rerank(Engine(), ranker, collection, {"1": dict.fromkeys(DOCS, 1.0)})
        assert set(run["1"]) == set(DOCS) - {"bad"}
        assert [(failure.doc, failure.reason) for failure in failures] == [("bad fox", reason)]


def test_candidates_that_fail_are_left_out_of_the_calibration(parts):
    collection = Collection.of(DOCS, QUERIES, {}, runs={"bm25": {"1": dict.fromkeys(DOCS, 1.0)}}, name="toy")
    ranker = fused([parts["length"], parts["holes"]], collection, normalise="minmax")
    lengths = [len(text) for text in DOCS.values()]
    assert ranker.score(["red fox"], ["blue"])[0] == pytest.approx(by_hand("minmax", lengths, 4))


def test_a_part_that_scores_no_candidate_is_a_counted_failure_with_its_reason(parts):
    collection = Collection.of(DOCS, QUERIES, {}, runs={"bm25": {"1": {"bad": 1.0}}}, name="toy")
    for name, reason in (("broken", "ValueError: cannot read bad"), ("holes", "no finite score")):
        ranker = fused([parts["length"], parts[name]], collection, normalise="minmax")
        with pytest.raises(PartlyScored, match=rf"{name} scores no candidate of the query \({reason}\)"):
            ranker.score(["red fox"], ["fine"])


def test_a_part_of_the_wrong_length_is_named(parts):
    with pytest.raises(WhyrankError, match=r"parts.py:short' returned shape \(3,\) for 2 pairs"):
        fused([parts["length"], parts["short"]]).score(["q", "q"], ["a", "b"])


@dataclass(frozen=True)
class Lacking:
    """Knows which of its pairs failed."""

    name: str = "lacking"
    cacheable: bool = False

    def score(self, queries, docs):
        raise PartlyScored(np.ones(len(docs)), {1: "the service is down"})


def test_what_a_part_lacks_is_passed_on(monkeypatch):
    monkeypatch.setitem(rankers._factories, "lacking", Lacking)
    ranker = fused(["lacking", "bm25"])
    with pytest.raises(PartlyScored) as caught:
        ranker.score(["red fox"] * 3, list(DOCS.values())[:3])
    assert caught.value.reasons == {1: "lacking: the service is down"}
    assert np.isnan(caught.value.scores).tolist() == [False, True, False]
    assert not caught.value.in_order
    assert not ranker.cacheable
    assert ranker.batch_size == 32


def test_identity(parts):
    collection = toy()
    of = ["bm25", "ql"]
    plain = fused(of, collection)
    assert plain.cacheable
    assert plain.batch_size == 250_000
    different = [
        fused(of, collection, weights=[1, 2]),
        fused(["bm25(k1=2)", "ql"], collection),
        fused(["ql", "bm25"], collection),
        fused(of, collection, scales=[1, 2]),
        fused(of, collection, normalise="minmax"),
        fused(of, collection, normalise="zscore"),
        fused(of, collection, normalise="minmax", depth=1),
    ]
    assert len({repr(each) for each in different} | {repr(plain)}) == len(different) + 1
    assert repr(fused(of, collection, weights=[1.0, 1.0])) == repr(plain)
    other = Collection.of(DOCS, QUERIES, {}, runs={"bm25": {"1": {"a": 3.0}}}, name="toy")
    same, changed = (repr(fused(of, each, normalise="minmax")) for each in (toy(), other))
    assert same == repr(different[4]) != changed


@pytest.mark.parametrize("kind", ["none", "minmax", "rank"])
def test_travels_without_the_collection(kind):
    collection = sample()
    ranker = open_ranker(f"fuse(of=['bm25','ql'],normalise={kind},depth=5)", Setting(collection))
    query, texts = next(iter(collection.queries.values())), list(collection.docs.values())[:3]
    scores = ranker.score([query] * 3, texts)
    copy = pickle.loads(pickle.dumps(ranker))
    assert repr(copy) == repr(ranker)
    assert copy.score([query] * 3, texts).tolist() == scores.tolist()


NAMES = st.sampled_from(["bm25", "ql", "bm25(k1=1.2,b=0.75)", "ql(smoothing=jm,lam=0.2)", "run:some file.txt"])
SPECS = st.recursive(
    NAMES,
    lambda inner: st.lists(inner, min_size=2, max_size=3).map(lambda of: rankers.create(f"fuse(of={of!r})").name),
    max_leaves=6,
)


@given(st.lists(SPECS, min_size=2, max_size=3), st.sampled_from(["fuse", "cascade"]))
def test_nested_call_strings_parse_back(of, kind):
    depth = f",depth={list(range(9, 9 - len(of) + 1, -1))}" if kind == "cascade" else ""
    made = rankers.create(f"{kind}(of={of!r}{depth})")
    again = rankers.create(made.name)
    assert again == made
    assert again.name == made.name
    assert list(again.of) == of
    assert hash(again) == hash(made)


def test_parts_are_written_in_one_way():
    assert rankers.create("fuse(of=('bm25( k1=1.2 )','ql'))") == rankers.create("fuse(of=['bm25(k1=1.2)','ql'])")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("", "needs 'of'"),
        ("of=bm25", "list of two or more rankers"),
        ("of=['bm25']", "list of two or more rankers"),
        ("of=['bm25',3]", "list of two or more rankers"),
        ("of=['bm25','nothing']", "unknown ranker 'nothing'"),
        ("of=['bm25','ql(']", "brackets|call string"),
        ("of=['bm25','ql'],weights=[1]", "a number for each of the 2 rankers"),
        ("of=['bm25','ql'],weights=3", "a number for each of the 2 rankers"),
        ("of=['bm25','ql'],weights=[1,'x']", "weights must be a number"),
        ("of=['bm25','ql'],weights=[1,1e999]", "weights must be a number"),
        ("of=['bm25','ql'],scales=[1,0]", "scales must not be 0"),
        ("of=['bm25','ql'],normalise=max", "unknown normalisation"),
        ("of=['bm25','ql'],normalise=rank,scales=[1,2]", "for normalise=none"),
        ("of=['bm25','ql'],candidates=bm25", "needs no candidates"),
        ("of=['bm25','ql'],normalise=rank,candidates=3", "must be text"),
        ("of=['bm25','ql'],normalise=rank,candidates=nothing", "nothing"),
        ("of=['bm25','ql'],normalise=rank,depth=0", "depth must be a whole number"),
        ("of=['bm25','ql'],normalise=rank,k=-1", "k must be a number"),
    ],
)
def test_wrong_configurations_are_one_clear_line(arguments, what):
    with pytest.raises(WhyrankError, match=what) as caught:
        open_ranker(f"fuse({arguments})", Setting(toy()))
    assert "\n" not in str(caught.value)


def test_candidates_must_come_from_somewhere():
    without_run = Collection.of(DOCS, QUERIES, {}, name="toy")
    for setting in (Setting(), Setting(without_run)):
        with pytest.raises(WhyrankError, match="candidates=RUN"):
            open_ranker("fuse(of=['bm25','ql'],normalise=minmax)", setting)


class Tied:
    """Scores by length, with a rounding error that grows with the batch."""

    name, tie_tolerance = "tied", 0.01

    def score(self, queries, docs):
        return np.array([len(doc) for doc in docs]) + 1e-4 * len(docs)


def test_tie_tolerances_add_up(monkeypatch):
    monkeypatch.setitem(rankers._factories, "tied", Tied)
    plain = fused(["tied", "bm25"], toy(), weights=[-3.0, 100.0], scales=[2.0, 1.0])
    assert tie_tolerance(plain) == pytest.approx(0.015)
    assert tie_tolerance(fused(["tied", "bm25"], toy(), normalise="query")) == pytest.approx(0.01)
    sizes = {query: [len(DOCS[d]) for d in docs if d in DOCS] for query, docs in RUN.items()}
    scale = {"minmax": max(sizes["1"]) - min(sizes["1"]), "zscore": statistics.pstdev(sizes["1"])}
    for kind, width in scale.items():  # the only candidate of query 2 leaves its scores as they are
        assert tie_tolerance(fused(["tied", "bm25"], toy(), normalise=kind)) == pytest.approx(0.01 / min(width, 1.0))


def test_ranks_respect_the_tie_tolerance(monkeypatch):
    """A candidate has no rank below itself, whatever stands beside it in the batch."""
    monkeypatch.setitem(rankers._factories, "tied", Tied)
    ranker = fused(["tied", "tied"], toy(), normalise="rank")
    alone = [ranker.score(["red fox"], [DOCS[d]])[0] for d in "abc"]
    assert alone == ranker.score(["red fox"] * 3, [DOCS[d] for d in "abc"]).tolist()
    assert tie_tolerance(ranker) == 0
