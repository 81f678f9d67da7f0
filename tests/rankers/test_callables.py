"""Python functions as rankers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from whyrank.core.errors import WhyrankError
from whyrank.rankers import open_ranker, rankers
from whyrank.rankers.nesting import tie_tolerance

SOURCE = """
def shorter(queries, docs):
    return [-len(d) for d in docs]

class Counting:
    def __init__(self):
        self.n = 0
    def score(self, queries, docs):
        self.n += len(docs)
        return [float(self.n)] * len(docs)

number = 3
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def test_a_function_in_a_file(module):
    ranker = open_ranker(f"python:{module}:shorter")
    assert ranker.score(["q", "q"], ["abc", ""]).tolist() == [-3, 0]


def test_a_function_in_a_module(module, monkeypatch):
    monkeypatch.syspath_prepend(module.parent)
    module.rename(module.parent / "some_rankers.py")
    assert open_ranker("python:some_rankers:shorter").score(["a b"], ["abc"]).tolist() == [-3]


def test_a_class_is_made_once(module):
    ranker = open_ranker(f"python:{module}:Counting")
    ranker.score(["q"], ["a"])
    assert ranker.score(["q"], ["a"]).tolist() == [2.0]


def test_identity_has_the_source(module):
    before = repr(open_ranker(f"python:{module}:shorter"))
    module.write_text(SOURCE.replace("-len(d)", "len(d)"))
    after = open_ranker(f"python:{module}:shorter")
    assert repr(after) != before
    assert after.score(["q"], ["abc"]).tolist() == [3]


def test_only_what_is_stateless_or_versioned_is_reused(module):
    assert open_ranker(f"python:{module}:shorter").cacheable
    assert not open_ranker(f"python:{module}:Counting").cacheable
    assert not open_ranker(f"python:{module}:shorter(stateful=True)").cacheable
    assert open_ranker(f"python:{module}:Counting(version=2)").cacheable


def test_call_string_parses_back(module):
    made = rankers.create(f"python:{module}:shorter(version=2,batch_size=8)")
    assert rankers.create(made.name) == made


def test_travels_to_another_process(module):
    ranker = open_ranker(f"python:{module}:shorter")
    ranker.score(["q"], ["a"])
    assert np.array_equal(pickle.loads(pickle.dumps(ranker)).score(["q"], ["ab"]), [-2])


@pytest.mark.parametrize(
    "resource", ["no_such_module:f", "mine", "{file}:missing", "{file}:number", "/no/such/file.py:f"]
)
def test_what_is_not_there_is_one_clear_line(module, resource):
    ranker = open_ranker("python:" + resource.replace("{file}", str(module)))
    with pytest.raises(WhyrankError, match="python:"):
        ranker.score(["q"], ["d"])


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("stateful=x", "python: stateful must be True or False, not 'x'"),
        ("stateful=1", "python: stateful must be True or False, not 1"),
        ("batch_size=0", "python: batch_size must be a whole number, 1 or more, not 0"),
    ],
)
def test_arguments_that_cannot_be_meant(module, argument, message):
    with pytest.raises(WhyrankError, match=message):
        open_ranker(f"python:{module}:shorter({argument})")


def test_a_declared_tie_tolerance(tmp_path):
    (tmp_path / "tied.py").write_text(
        "def plain(queries, docs):\n    return [0.0 for d in docs]\n"
        "def told(queries, docs):\n    return [0.0 for d in docs]\ntold.tie_tolerance = 0.5\n"
        "class Model:\n    def __init__(self):\n        self.tie_tolerance = 0.25\n"
        "    def score(self, queries, docs):\n        return [0.0 for d in docs]\n"
        "def wrong(queries, docs):\n    return [0.0 for d in docs]\nwrong.tie_tolerance = -1\n"
    )
    ranker = {name: open_ranker(f"python:{tmp_path}/tied.py:{name}") for name in ("plain", "told", "Model", "wrong")}
    found = [tie_tolerance(ranker[name]) for name in ("plain", "told", "Model")]
    assert found == [0, 0.5, 0.25]
    with pytest.raises(WhyrankError, match="tie_tolerance must be a number, 0 or more, not -1"):
        tie_tolerance(ranker["wrong"])
