"""`fuse` with weights from a file, scores by what a query is worth, and one ranker over several fields."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.rankers import Setting, contents_of, open_ranker, query_scale, rankers, write_weights
from whyrank.rankers.fuse import read_weights
from whyrank.tables import TermTable
from whyrank.testing import RankerContract

DOCS = {"a": "red fox", "b": "the red red fox ran home", "c": "blue", "d": "fox fox cub"}
TOY = Collection.of(DOCS, {"1": "red fox"}, {}, name="toy")


def opened(spec, collection=TOY):
    return open_ranker(spec, Setting(collection, "whitespace"))


class TestContractByQuery(RankerContract):
    def make(self):
        return open_ranker("fuse(of=['bm25','ql'],weights=[0.3,0.7],normalise=query)", self.setting())


class TestContractOfFields(RankerContract):
    def make(self):
        return open_ranker("fuse(of=bm25,fields=['lucene','whitespace'],normalise=query)", self.setting())


def idf(df):
    return math.log(1 + (len(DOCS) - df + 0.5) / (df + 0.5))


@pytest.mark.parametrize("variant", ["lucene", "robertson", "atire", "terrier"])
def test_bm25_is_divided_by_the_idfs_of_its_distinct_known_terms(variant):
    """Whatever the variant: red is in 2 of 4 documents, fox in 3; zebra is in none, and red counts once."""
    ranker = opened(f"bm25(variant={variant})")
    assert query_scale(ranker, "red fox red zebra") == pytest.approx(idf(2) + idf(3))


@pytest.mark.parametrize(
    ("spec", "query", "scale"),
    [("ql", "red fox red zebra", 4), ("ql", "", 1), ("bm25", "zebra", 1), ("bm25", "", 1), ("ql(smoothing=jm)", "a b", 2)],
)  # fmt: skip
def test_scales(spec, query, scale):
    assert query_scale(opened(spec), query) == scale


def test_a_ranker_may_say_it_itself():
    class Own:
        name = "own"

        def score(self, queries, docs):
            return np.ones(len(docs))

        def query_scale(self, query):
            return 8.0

    class Plain:
        name = "plain"

        def score(self, queries, docs):
            return np.ones(len(docs))

    assert query_scale(Own(), "x") == 8.0
    assert query_scale(Plain(), "x") == 1.0


def test_the_sum_by_query():
    bm25, ql = opened("bm25"), opened("ql")
    fused = opened("fuse(of=['bm25','ql'],weights=[2,0.5],normalise=query)")
    queries, docs = ["red fox", "blue blue", "zebra"], [DOCS["b"], DOCS["c"], DOCS["a"]]
    scales = [idf(2) + idf(3), idf(1), 1.0]
    expected = 2 * bm25.score(queries, docs) / scales + 0.5 * ql.score(queries, docs) / [2, 2, 1]
    assert fused.score(queries, docs) == pytest.approx(expected)
    assert "query" in repr(fused)
    with pytest.raises(WhyrankError, match="query needs no candidates"):
        opened("fuse(of=['bm25','ql'],normalise=query,candidates=x)")


def test_fields_are_parts_with_an_analyzer_each():
    made = rankers.create("fuse(of='bm25(k1=2)',fields=['lucene','wordpiece:some folder/t.json'],normalise=query)")
    assert made.parts == ["bm25(k1=2,analyzer=lucene)", "bm25(k1=2,analyzer='wordpiece:some folder/t.json')"]
    assert rankers.create(made.name) == made
    both = rankers.create("fuse(of=['bm25','ql'],fields=['lucene','krovetz'],weights=[1,2,3,4])")
    assert both.parts == [f"{name}(analyzer={field})" for name in ("bm25", "ql") for field in ("lucene", "krovetz")]


def test_fields_score_as_the_parts_written_out():
    short = opened("fuse(of=['bm25(b=0.2)'],fields=['lucene','whitespace'],weights=[0.25,2])")
    long = opened("fuse(of=['bm25(b=0.2,analyzer=lucene)','bm25(b=0.2,analyzer=whitespace)'],weights=[0.25,2])")
    pairs = ["red foxes"] * 4, list(DOCS.values())
    assert short.score(*pairs).tolist() == long.score(*pairs).tolist()
    assert repr(short) == repr(long)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("of=bm25,fields=['lucene']", "fields must be a list of two or more analyzers"),
        ("of=bm25,fields=lucene", "fields must be a list of two or more analyzers"),
        ("of=bm25,fields=['lucene',3]", "fields must be a list of two or more analyzers"),
        ("of=bm25,fields=['lucene','nothing']", "nothing"),
        ("of=bm25,fields=['lucene','whitespace'],weights=[1]", "a number for each of the 2 rankers"),
        ("of=bm25", "list of two or more rankers"),
        ("of=['run:x','bm25'],fields=['lucene','whitespace']", "unknown argument of ranker 'run' 'analyzer'"),
    ],
)
def test_wrong_fields(arguments, what):
    with pytest.raises(WhyrankError, match=what):
        opened(f"fuse({arguments})")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "w.json"
    write_weights(str(path), ["bm25", "ql"], "query", [0.25, -0.75], {"measure": "RR@10"})
    return path


def test_weights_from_a_file(file):
    ranker = opened(f"fuse(of=['bm25','ql'],weights={str(file)!r},normalise=query)")
    plain = opened("fuse(of=['bm25','ql'],weights=[0.25,-0.75],normalise=query)")
    assert ranker.weights == (0.25, -0.75)
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
def test_wrong_files(file, of, normalise, text, what):
    if text is not None:
        file.write_text(text)
    with pytest.raises(WhyrankError, match=what) as caught:
        read_weights(str(file), of, normalise)
    assert "\n" not in str(caught.value)
    with pytest.raises(WhyrankError, match="cannot be read"):
        read_weights(str(file) + ".gone", of, normalise)


@pytest.mark.parametrize(
    ("fitted", "asked", "what"),
    [
        ("scales=[1,10]", "", r"fitted with scales=\[1, 10\], not \[1.0, 1.0\]"),
        ("", "shifts=[2,0]", r"fitted with shifts=\[0.0, 0.0\], not \[2, 0\]"),
        ("normalise=rank", "normalise=rank,k=5", r"fitted with k=60.0, not 5"),
        ("normalise=minmax,depth=2", "normalise=minmax", r"fitted with depth=2, not 100"),
    ],
)
def test_weights_are_for_the_numbers_they_were_fitted_with(tmp_path, fitted, asked, what):
    made, path = rankers.create(f"fuse(of=['bm25','ql'],{fitted})"), str(tmp_path / "w.json")
    write_weights(path, made.parts, made.normalise, [0.5, 0.5], {"numbers": made.numbers})
    collection = replace(TOY, runs={"bm25": {"1": {"a": 1.0, "b": 2.0}}})
    assert opened(f"fuse(of=['bm25','ql'],weights={path!r},{fitted})", collection).weights == (0.5, 0.5)
    with pytest.raises(WhyrankError, match=what):
        opened(f"fuse(of=['bm25','ql'],weights={path!r},{asked})", collection)


def test_a_table_that_was_replaced_is_noticed(tmp_path):
    table, path = tmp_path / "t.tsv", str(tmp_path / "w.json")

    def learned(weight):
        TermTable.from_triples(["red", "fox"], ["red", "cub"], [0.5, weight], analyzer="whitespace").save(table)
        return opened(f"model1:{table}(lam=0)")

    parts = ["bm25", f"model1:{table}(lam=0)"]
    fitted = contents_of([opened("bm25"), learned(0.25)])
    assert [len(each) for each in fitted] == [0, 1]
    write_weights(path, parts, "query", [0.5, 0.5], {"contents": fitted})
    spec = f"fuse(of={parts!r},weights={path!r},normalise=query)"
    assert opened(spec).weights == opened(spec, replace(TOY, docs={"a": "blue"})).weights == (0.5, 0.5)
    learned(0.125)
    with pytest.raises(
        WhyrankError, match=r"w.json: was fitted with another table or model behind model1:.*; fit the"
    ):
        opened(spec)
    for odd in ({}, "x", [], [[]]):
        write_weights(path, parts, "query", [0.5, 0.5], {"contents": odd})
        with pytest.raises(WhyrankError, match="another table"):
            opened(spec)
