"""Weighted sums of rankers, against sums written out here; fitted weights; one ranker over several fields."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.core.protocols import PartlyScored
from whyrank.data import Collection
from whyrank.rankers import Setting, contents_of, open_ranker, query_scale, rankers, tie_tolerance, write_weights
from whyrank.rankers.fuse import read_weights
from whyrank.scoring import Engine, rerank
from whyrank.tables import TermTable
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
"""
DOCS = {"a": "red fox", "b": "the red red fox ran", "c": "blue", "d": "fox fox", "bad": "bad fox"}
QUERIES = {"1": "red fox", "2": "blue", "3": "nothing of it"}
RUN = {"1": {"a": 3.0, "b": 2.0, "c": 1.0, "gone": 9.0}, "2": {"c": 1.0}}
TOY = Collection.of(DOCS, QUERIES, {}, runs={"bm25": RUN}, name="toy")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuse") / "parts.py"
    path.write_text(SOURCE)
    return {name: f"python:{path}:{name}" for name in ("length", "shared", "broken", "holes")}


def fused(of, collection=TOY, **arguments):
    inside = ",".join(f"{key}={value!r}" for key, value in arguments.items())
    return open_ranker(f"fuse(of={of!r}{',' if inside else ''}{inside})", Setting(collection, "whitespace"))


def by_hand(kind, known, score, k=60):
    """The normalised score of one ranker, straight from the definition."""
    if kind == "minmax":
        return (score - min(known)) / ((max(known) - min(known)) or 1)
    if kind == "zscore":
        return (score - statistics.fmean(known)) / (statistics.pstdev(known) or 1)
    return 1 / (k + 1 + sum(other > score for other in known))


class TestContract(RankerContract):
    def make(self):
        return open_ranker("fuse(of=['bm25','ql'],weights=[0.3,0.7],normalise=query)", self.setting())


class TestContractOfRanks(RankerContract):
    def make(self):
        return open_ranker("fuse(of=['bm25','ql'],normalise=rank,depth=20)", self.setting())

    def pairs(self):
        queries, docs = list(sample().queries.values())[:3], list(sample().docs.values())[:4]
        return [(query, doc) for query in queries for doc in [*docs, "", "some other text"]]


class TestSum:
    def test_plain_shifted_and_scaled(self, parts):
        of = [parts["length"], parts["shared"]]
        assert fused(of).score(["red fox"], ["red fox"]).tolist() == [9]
        weighted = fused(of, weights=[2, -1]).score(["red fox", "blue"], ["red fox", "blue"])
        assert weighted.tolist() == [2 * 7 - 2, 2 * 4 - 1]
        scaled = fused(of, shifts=[1, 0], scales=[3, 0.5], weights=[1, 10]).score(["red fox"], ["red fox"])
        assert scaled.tolist() == [2 + 10 * 4]

    @pytest.mark.parametrize("kind", ["minmax", "zscore", "rank"])
    def test_normalised_by_the_candidates_of_the_run(self, parts, kind):
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

    def test_only_the_best_candidates_count(self, parts):
        two = fused([parts["length"], parts["shared"]], normalise="minmax", depth=2)
        lengths = [len("red fox"), len("the red red fox ran")]
        assert two.score(["red fox"], ["blue"])[0] == pytest.approx(by_hand("minmax", lengths, 4) + (0 - 2))

    def test_reciprocal_rank_fusion_of_a_run(self, parts):
        """The order is the one that the formula of Cormack et al. gives from the two rankings."""
        ranker = fused([parts["length"], parts["shared"]], normalise="rank", k=1)
        run, failures = rerank(Engine(), ranker, TOY, {"1": RUN["1"]})
        ranks = {"a": (2, 1), "b": (1, 1), "c": (3, 3)}
        assert run == {"1": {d: 1 / (1 + i) + 1 / (1 + j) for d, (i, j) in sorted(ranks.items(), key=lambda x: sum(x[1]))}}  # fmt: skip
        assert failures == []

    @given(
        st.randoms(use_true_random=False), st.integers(1, 8), st.sampled_from(["none", "minmax", "zscore", "rank"])
    )
    @settings(max_examples=15)
    def test_no_score_depends_on_the_rest_of_the_batch(self, rng, size, kind):
        ranker = open_ranker(f"fuse(of=['bm25','ql'],normalise={kind},depth=10)", Setting(sample()))
        queries, docs = list(sample().queries.values())[:4], list(sample().docs.values())[:6]
        pairs = [(q, d) for q in queries for d in docs]
        whole = dict(zip(pairs, ranker.score(*map(list, zip(*pairs, strict=True))).tolist(), strict=True))
        rng.shuffle(pairs)
        fresh = open_ranker(ranker.name, Setting(sample()))
        for start in range(0, len(pairs), size):
            some = pairs[start : start + size]
            assert fresh.score(*map(list, zip(*some, strict=True))).tolist() == [whole[pair] for pair in some]


class TestFailures:
    def test_a_query_without_candidates_is_a_counted_failure(self, parts):
        ranker = fused([parts["length"], parts["shared"]], normalise="zscore")
        with pytest.raises(PartlyScored, match="zscore: the query has no candidates") as caught:
            ranker.score(["blue", "an edited query", "nothing of it"], ["blue"] * 3)
        assert sorted(caught.value.reasons) == [1, 2]
        assert np.isfinite(caught.value.scores).tolist() == [True, False, False]

    def test_any_number_of_them_does_not_end_a_run(self, parts):
        ranker, codes = fused([parts["length"], parts["shared"]], normalise="minmax"), np.arange(60, dtype=np.int32)
        queries = [*(f"unknown {i}" for i in codes[1:]), "blue"]
        found = Engine(batch_size=7).score(ranker, queries, ["blue"], codes, np.zeros_like(codes))
        assert (len(found.failures), np.isfinite(found.values).sum()) == (59, 1)

    def test_a_part_that_scores_no_candidate_is_a_counted_failure_with_its_reason(self, parts):
        collection = replace(TOY, runs={"bm25": {"1": {"bad": 1.0}}})
        for name, reason in (("broken", "ValueError: cannot read bad"), ("holes", "no finite score")):
            ranker = fused([parts["length"], parts[name]], collection, normalise="minmax")
            with pytest.raises(PartlyScored, match=rf"{name} scores no candidate of the query \({reason}\)"):
                ranker.score(["red fox"], ["fine"])

    def test_what_a_part_lacks_is_passed_on(self, monkeypatch):
        monkeypatch.setitem(rankers._factories, "lacking", Lacking)
        ranker = fused(["lacking", "bm25"])
        with pytest.raises(PartlyScored) as caught:
            ranker.score(["red fox"] * 3, list(DOCS.values())[:3])
        assert caught.value.reasons == {1: "lacking: the service is down"}
        assert np.isnan(caught.value.scores).tolist() == [False, True, False]
        assert not caught.value.in_order
        assert (ranker.cacheable, ranker.batch_size) == (False, 32)


@dataclass(frozen=True)
class Lacking:
    """Knows which of its pairs failed."""

    name: str = "lacking"
    cacheable: bool = False

    def score(self, queries, docs):
        raise PartlyScored(np.ones(len(docs)), {1: "the service is down"})


class TestByQuery:
    @staticmethod
    def idf(df):
        return math.log(1 + (len(DOCS) - df + 0.5) / (df + 0.5))

    @pytest.mark.parametrize("variant", ["lucene", "robertson", "atire", "terrier"])
    def test_bm25_is_divided_by_the_idfs_of_its_distinct_known_terms(self, variant):
        """Whatever the variant: red is in 2 documents, fox in 4; zebra is in none, and red counts once."""
        ranker = open_ranker(f"bm25(variant={variant})", Setting(TOY, "whitespace"))
        assert query_scale(ranker, "red fox red zebra") == pytest.approx(self.idf(2) + self.idf(4))

    @pytest.mark.parametrize(
        ("spec", "query", "scale"),
        [("ql", "red fox red zebra", 4), ("ql", "", 1), ("bm25", "zebra", 1), ("bm25", "", 1), ("ql(smoothing=jm)", "a b", 2)],
    )  # fmt: skip
    def test_scales(self, spec, query, scale):
        assert query_scale(open_ranker(spec, Setting(TOY, "whitespace")), query) == scale


class TestFields:
    def test_they_are_parts_with_an_analyzer_each(self):
        made = rankers.create(
            "fuse(of='bm25(k1=2)',fields=['lucene','wordpiece:some folder/t.json'],normalise=query)"
        )
        assert made.parts == ["bm25(k1=2,analyzer=lucene)", "bm25(k1=2,analyzer='wordpiece:some folder/t.json')"]
        assert rankers.create(made.name) == made
        both = rankers.create("fuse(of=['bm25','ql'],fields=['lucene','krovetz'],weights=[1,2,3,4])")
        assert both.parts == [f"{name}(analyzer={each})" for name in ("bm25", "ql") for each in ("lucene", "krovetz")]


class TestIdentity:
    def test_what_it_depends_on(self):
        of, plain = ["bm25", "ql"], fused(["bm25", "ql"])
        assert (plain.cacheable, plain.batch_size) == (True, 250_000)
        different = [
            fused(of, weights=[1, 2]),
            fused(["bm25(k1=2)", "ql"]),
            fused(["ql", "bm25"]),
            fused(of, scales=[1, 2]),
            fused(of, normalise="minmax"),
            fused(of, normalise="zscore"),
            fused(of, normalise="minmax", depth=1),
            fused(of, replace(TOY, runs={"bm25": {"1": {"a": 3.0}}}), normalise="minmax"),
        ]
        assert len({repr(each) for each in different} | {repr(plain)}) == len(different) + 1
        assert repr(fused(of, weights=[1.0, 1.0])) == repr(plain)

    NAMES = st.sampled_from(["bm25", "ql", "bm25(k1=1.2,b=0.75)", "ql(smoothing=jm,lam=0.2)", "run:some file.txt"])
    SPECS = st.recursive(
        NAMES,
        lambda inner: st.lists(inner, min_size=2, max_size=3).map(lambda of: rankers.create(f"fuse(of={of!r})").name),
        max_leaves=6,
    )

    @given(st.lists(SPECS, min_size=2, max_size=3), st.sampled_from(["fuse", "cascade"]))
    def test_nested_call_strings_parse_back(self, of, kind):
        depth = f",depth={list(range(9, 9 - len(of) + 1, -1))}" if kind == "cascade" else ""
        made = rankers.create(f"{kind}(of={of!r}{depth})")
        again = rankers.create(made.name)
        assert (again, again.name, list(again.of), hash(again)) == (made, made.name, of, hash(made))


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("", "needs 'of'"),
        *((f"of={of}", "list of two or more rankers") for of in ("bm25", "['bm25']", "['bm25',3]")),
        ("of=['bm25','nothing']", "unknown ranker 'nothing'"),
        ("of=['bm25','ql'],weights=[1]", "a number for each of the 2 rankers"),
        ("of=['bm25','ql'],weights=[1,'x']", "weights must be a number"),
        ("of=['bm25','ql'],scales=[1,0]", "scales must not be 0"),
        ("of=['bm25','ql'],normalise=max", "unknown value of fuse: normalise"),
        ("of=['bm25','ql'],normalise=rank,scales=[1,2]", "for normalise=none"),
        ("of=['bm25','ql'],candidates=bm25", "needs no candidates"),
        ("of=['bm25','ql'],normalise=rank,candidates=3", "must be text"),
        ("of=['bm25','ql'],normalise=rank,depth=0", "depth must be a whole number"),
        ("of=['bm25','ql'],normalise=rank,k=-1", "k must be a number"),
        *((f"of=bm25,fields={fields}", "list of two or more analyzers") for fields in ("['lucene']", "x", "['x',3]")),
        ("of=bm25,fields=['lucene','whitespace'],weights=[1]", "a number for each of the 2 rankers"),
        ("of=['run:x','bm25'],fields=['lucene','whitespace']", "unknown argument of ranker 'run' 'analyzer'"),
    ],
)
def test_refusals(arguments, what):
    with pytest.raises(WhyrankError, match=what) as caught:
        open_ranker(f"fuse({arguments})", Setting(TOY))
    assert "\n" not in str(caught.value)


def test_candidates_must_come_from_somewhere():
    for setting in (Setting(), Setting(replace(TOY, runs={}))):
        with pytest.raises(WhyrankError, match="candidates=RUN"):
            open_ranker("fuse(of=['bm25','ql'],normalise=minmax)", setting)


class Tied:
    """Scores by length, with a rounding error that grows with the batch."""

    name, tie_tolerance = "tied", 0.01

    def score(self, queries, docs):
        return np.array([len(doc) for doc in docs]) + 1e-4 * len(docs)


class TestTies:
    @pytest.fixture(autouse=True)
    def tied(self, monkeypatch):
        monkeypatch.setitem(rankers._factories, "tied", Tied)

    def test_tolerances_add_up(self):
        plain = fused(["tied", "bm25"], weights=[-3.0, 100.0], scales=[2.0, 1.0])
        assert tie_tolerance(plain) == pytest.approx(0.015)
        assert tie_tolerance(fused(["tied", "bm25"], normalise="query")) == pytest.approx(0.01)
        sizes = [len(DOCS[d]) for d in "abc"]
        scale = {"minmax": max(sizes) - min(sizes), "zscore": statistics.pstdev(sizes)}
        for kind, width in scale.items():  # the only candidate of query 2 leaves its scores as they are
            assert tie_tolerance(fused(["tied", "bm25"], normalise=kind)) == pytest.approx(0.01 / min(width, 1.0))

    def test_ranks_respect_the_tolerance(self):
        """A candidate has no rank below itself, whatever stands beside it in the batch."""
        ranker = fused(["tied", "tied"], normalise="rank")
        alone = [ranker.score(["red fox"], [DOCS[d]])[0] for d in "abc"]
        assert alone == ranker.score(["red fox"] * 3, [DOCS[d] for d in "abc"]).tolist()
        assert tie_tolerance(ranker) == 0


class TestWeightsOfAFile:
    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "w.json"
        write_weights(str(path), ["bm25", "ql"], "query", [0.25, -0.75], {"measure": "RR@10"})
        return path

    def test_they_are_used(self, file):
        ranker = fused(["bm25", "ql"], weights=str(file), normalise="query")
        plain = fused(["bm25", "ql"], weights=[0.25, -0.75], normalise="query")
        assert repr(ranker) == repr(plain), "the identity has the weights, not the name of the file"
        assert rankers.create(ranker.name).name == ranker.name
        assert json.loads(file.read_text())["measure"] == "RR@10"

    @pytest.mark.parametrize(
        ("of", "normalise", "text", "what"),
        [
            (["ql", "bm25"], "query", None, "has weights for"),
            (["bm25", "ql"], "none", None, "was fitted with normalise=query, not none"),
            (["bm25", "ql"], "query", "{", "not a file of weights"),
            (["bm25", "ql"], "query", "[1, 2]", "not a file of weights"),
            (["bm25", "ql"], "query", '{"weights": [1, 2]}', "not a file of weights"),
            (["bm25", "ql"], "query", '{"kind": "whyrank fusion weights", "of": ["bm25", "ql"], "normalise": "query", "weights": [1]}', "a weight for each of 2"),
            (["bm25", "ql"], "query", '{"kind": "whyrank fusion weights", "of": ["bm25", "ql"], "normalise": "query", "weights": [1, "x"]}', "valid number"),
        ],
    )  # fmt: skip
    def test_wrong_files(self, file, of, normalise, text, what):
        if text is not None:
            file.write_text(text)
        with pytest.raises(WhyrankError, match=what) as caught:
            read_weights(str(file), of, normalise)
        assert "\n" not in str(caught.value)
        with pytest.raises(WhyrankError, match="cannot be read"):
            read_weights(str(file) + ".gone", of, normalise)

    @pytest.mark.parametrize(
        ("fitted", "given", "what"),
        [
            ("scales=[1,10]", "", r"fitted with scales=\[1, 10\], not \[1.0, 1.0\]"),
            ("", "shifts=[2,0]", r"fitted with shifts=\[0.0, 0.0\], not \[2, 0\]"),
            ("normalise=rank", "normalise=rank,k=5", r"fitted with k=60.0, not 5"),
            ("normalise=minmax,depth=2", "normalise=minmax", r"fitted with depth=2, not 100"),
        ],
    )
    def test_they_are_for_the_numbers_they_were_fitted_with(self, tmp_path, fitted, given, what):
        made, path = rankers.create(f"fuse(of=['bm25','ql'],{fitted})"), str(tmp_path / "w.json")
        write_weights(path, made.parts, made.normalise, [0.5, 0.5], {"numbers": made.numbers})
        assert open_ranker(f"fuse(of=['bm25','ql'],weights={path!r},{fitted})", Setting(TOY)).weights == (0.5, 0.5)
        with pytest.raises(WhyrankError, match=what):
            open_ranker(f"fuse(of=['bm25','ql'],weights={path!r},{given})", Setting(TOY))

    def test_a_table_that_was_replaced_is_noticed(self, tmp_path):
        table, path = tmp_path / "t.tsv", str(tmp_path / "w.json")
        parts = ["bm25", f"model1:{table}(lam=0)"]

        def learned(weight):
            TermTable.from_triples(["red", "fox"], ["red", "cub"], [0.5, weight], analyzer="whitespace").save(table)
            return [open_ranker(part, Setting(TOY, "whitespace")) for part in parts]

        fitted = contents_of(learned(0.25))
        assert [len(each) for each in fitted] == [0, 1]
        write_weights(path, parts, "query", [0.5, 0.5], {"contents": fitted})
        for collection in (TOY, replace(TOY, docs={"a": "blue"})):
            assert fused(parts, collection, weights=path, normalise="query").weights == (0.5, 0.5)
        learned(0.125)
        with pytest.raises(
            WhyrankError, match=r"w.json: was fitted with another table or model behind model1:.*; fit"
        ):
            fused(parts, weights=path, normalise="query")
        for odd in ({}, "x", [], [[]]):
            write_weights(path, parts, "query", [0.5, 0.5], {"contents": odd})
            with pytest.raises(WhyrankError, match="another table"):
                fused(parts, weights=path, normalise="query")
