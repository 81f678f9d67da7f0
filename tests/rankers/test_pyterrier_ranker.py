"""PyTerrier transformers as rankers: stand-ins that need pandas alone, and real ones where PyTerrier is installed."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from whyrank.core import MissingExtra, WhyrankError
from whyrank.core.protocols import PartlyScored
from whyrank.rankers import open_ranker, rankers
from whyrank.scoring import Engine
from whyrank.testing import RankerContract

SOURCE = """
class Shared:
    '''Words in common; gives the rows back in another order, with more columns.'''
    frames = []

    def transform(self, df):
        self.frames.append(df.copy())
        score = [len(set(q.split()) & set(t.split())) + len(t) / 1000 for q, t in zip(df["query"], df["text"])]
        return df.assign(score=score, rank=1).sort_values("score", ascending=False)

class Cut:
    def transform(self, df):
        return df[df["text"] != "gone"].assign(score=1.5)

class Twice:
    def transform(self, df):
        import pandas
        return pandas.concat([df, df]).assign(score=1.0)

class Passages:
    def transform(self, df):
        return df.assign(docno=df["docno"] + "%p0", score=1.0)

class Silent:
    def transform(self, df):
        return df

class Nothing:
    def transform(self, df):
        return None

class Words:
    def transform(self, df):
        return df.assign(score="high")

class Holes:
    def transform(self, df):
        return df.assign(score=[float("nan") if "bad" in t else 2.0 for t in df["text"]])

class Raising:
    def transform(self, df):
        if df["text"].str.contains("bad").any():
            raise RuntimeError("cannot read it")
        return df.assign(score=2.0)

class Costly:
    def __init__(self):
        raise OSError("no index here")

def make():
    return Shared()

shared, number = Shared(), 3
"""


@pytest.fixture
def module(tmp_path):
    pytest.importorskip("pandas", reason="the extra pyterrier is not installed")
    path = tmp_path / "pipelines.py"
    path.write_text(SOURCE)
    return path


def expected(query, text):
    return len(set(query.split()) & set(text.split())) + len(text) / 1000


class TestContract(RankerContract):
    @pytest.fixture(autouse=True)
    def path(self, module):
        self.module = module

    def make(self):
        return open_ranker(f"pyterrier:{self.module}:shared(version=1)")


@pytest.mark.parametrize("name", ["shared", "Shared", "make"])
def test_an_instance_a_class_or_a_function_that_makes_one(module, name):
    queries, texts = ["a b", "c", "a b", "a b"], ["a b c", "c", "", "a b c"]
    found = open_ranker(f"pyterrier:{module}:{name}").score(queries, texts)
    assert found.tolist() == [expected(q, t) for q, t in zip(queries, texts, strict=True)]


def test_what_a_transformer_is_given(module):
    ranker = open_ranker(f"pyterrier:{module}:shared")
    ranker.score(["a", "b", "a", "a"], ["x", "x", "y", "x"])
    [frame] = ranker._transformer.frames
    assert list(frame.columns) == ["qid", "query", "docno", "text"]
    assert frame.values.tolist() == [["q0", "a", "d0", "x"], ["q1", "b", "d0", "x"], ["q0", "a", "d1", "y"]]


def test_texts_that_are_no_valid_unicode(module):
    assert open_ranker(f"pyterrier:{module}:shared").score(["a"], ["a \ud800"]).tolist() == [1.003]


def test_no_pairs_ask_nothing(module):
    ranker = open_ranker(f"pyterrier:{module}:Nothing")
    assert ranker.score([], []).tolist() == []


def test_rows_that_are_left_out_are_counted(module):
    ranker = open_ranker(f"pyterrier:{module}:Cut")
    with pytest.raises(PartlyScored) as caught:
        ranker.score(["q", "q"], ["gone", "here"])
    assert caught.value.reasons == {0: "the transformer gave no row for this pair"}
    assert caught.value.scores[1] == 1.5


def engine_scores(ranker, texts):
    codes = np.arange(len(texts), dtype=np.int32)
    return Engine().score(ranker, ["q"], texts, np.zeros_like(codes), codes)


@pytest.mark.parametrize(("name", "reason"), [("Holes", "score is nan"), ("Raising", "RuntimeError: cannot read it")])
def test_pairs_that_fail_are_counted_and_the_others_scored(module, name, reason):
    found = engine_scores(open_ranker(f"pyterrier:{module}:{name}"), ["fine", "bad", "good"])
    assert np.array_equal(found.values, [2.0, np.nan, 2.0], equal_nan=True)
    assert [(failure.doc, failure.reason) for failure in found.failures] == [("bad", reason)]


def test_other_documents_than_asked_are_no_scores(module):
    found = engine_scores(open_ranker(f"pyterrier:{module}:Passages"), ["fine"])
    assert [failure.reason for failure in found.failures] == ["the transformer gave no row for this pair"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("Silent", "gave back no column 'score'"),
        ("Nothing", "gave back no column 'qid'"),
        ("Twice", "two rows for one pair"),
        ("Costly", "cannot be made: no index here"),
        ("number", "'number' is no transformer"),
        ("missing", "'missing' is no transformer"),
    ],
)
def test_what_is_no_scorer_is_one_clear_line(module, name, what):
    with pytest.raises(WhyrankError, match=what):
        engine_scores(open_ranker(f"pyterrier:{module}:{name}"), ["fine"])


def test_scores_that_are_no_numbers_are_failures(module):
    found = engine_scores(open_ranker(f"pyterrier:{module}:Words"), ["fine"])
    assert "high" in found.failures[0].reason


@pytest.mark.parametrize("resource", ["no_such_module:f", "mine", "/no/such/file.py:f"])
def test_what_is_not_there_is_one_clear_line(resource):
    with pytest.raises(WhyrankError, match="pyterrier:"):
        open_ranker(f"pyterrier:{resource}").score(["q"], ["d"])


def test_identity_and_caching(module):
    plain = open_ranker(f"pyterrier:{module}:shared")
    assert not plain.cacheable
    versioned = open_ranker(f"pyterrier:{module}:shared(version='index 3')")
    assert versioned.cacheable
    assert repr(versioned) != repr(plain)
    module.write_text(SOURCE + "\n")
    assert repr(open_ranker(plain.name)) != repr(plain)
    assert rankers.create(versioned.name) == versioned


def test_travels_to_another_process(module):
    ranker = open_ranker(f"pyterrier:{module}:Shared")
    ranker.score(["q"], ["a"])
    assert pickle.loads(pickle.dumps(ranker)).score(["a"], ["a"]).tolist() == [1.001]


def test_without_pandas_the_extra_is_named(tmp_path, monkeypatch):
    (tmp_path / "plain.py").write_text("class Any:\n    def transform(self, df):\n        return df\n")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"whyrank\[pyterrier\]"):
        open_ranker(f"pyterrier:{tmp_path / 'plain.py'}:Any").score(["q"], ["d"])


def test_a_pipeline_of_real_transformers(tmp_path):
    pytest.importorskip("pyterrier", reason="the extra pyterrier is not installed")
    (tmp_path / "real.py").write_text(
        "import pyterrier as pt\n"
        "length = pt.apply.doc_score(lambda row: float(len(row['text'])))\n"
        "pipeline = length >> pt.apply.doc_score(lambda row: row['score'] * 2)\n"
        "added = length + 3 * length\n"
    )
    for name, factor in (("length", 1), ("pipeline", 2), ("added", 4)):
        ranker = open_ranker(f"pyterrier:{tmp_path / 'real.py'}:{name}")
        assert ranker.score(["a", "b", "a"], ["xy", "xyz", ""]).tolist() == [2 * factor, 3 * factor, 0]
