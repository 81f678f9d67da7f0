"""Python functions and PyTerrier transformers as rankers; most transformers are stand-ins that need pandas alone."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from whyrank.core import MissingExtra, WhyrankError
from whyrank.rankers import open_ranker, rankers, tie_tolerance
from whyrank.rankers.modules import local_sources
from whyrank.scoring import Engine
from whyrank.testing import RankerContract

FUNCTIONS = """
def shorter(queries, docs):
    return [-len(d) for d in docs]

def tolerant(queries, docs):
    return [0.0 for d in docs]
tolerant.tie_tolerance = 0.5

def wrong(queries, docs):
    return [0.0 for d in docs]
wrong.tie_tolerance = -1

class Counting:
    def __init__(self):
        self.n, self.tie_tolerance = 0, 0.25
    def score(self, queries, docs):
        self.n += len(docs)
        return [float(self.n)] * len(docs)

number = 3
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FUNCTIONS)
    return path


class TestFunctions:
    def test_in_a_file_and_in_a_module(self, module, monkeypatch):
        assert open_ranker(f"python:{module}:shorter").score(["q", "q"], ["abc", ""]).tolist() == [-3, 0]
        monkeypatch.syspath_prepend(module.parent)
        module.rename(module.parent / "some_rankers.py")
        assert open_ranker("python:some_rankers:shorter").score(["a b"], ["abc"]).tolist() == [-3]

    def test_only_what_is_stateless_or_versioned_is_reused(self, module):
        cacheable = {"shorter": True, "Counting": False, "shorter(stateful=True)": False, "Counting(version=2)": True}
        assert {each: open_ranker(f"python:{module}:{each}").cacheable for each in cacheable} == cacheable

    def test_call_string_and_travel(self, module):
        made = rankers.create(f"python:{module}:shorter(version=2,batch_size=8)")
        assert rankers.create(made.name) == made
        made.score(["q"], ["a"])
        assert np.array_equal(pickle.loads(pickle.dumps(made)).score(["q"], ["ab"]), [-2])

    def test_a_declared_tie_tolerance(self, module):
        found = {
            name: open_ranker(f"python:{module}:{name}") for name in ("shorter", "tolerant", "Counting", "wrong")
        }
        assert [tie_tolerance(found[name]) for name in ("shorter", "tolerant", "Counting")] == [0, 0.5, 0.25]
        with pytest.raises(WhyrankError, match="tie_tolerance must be a number, 0 or more, not -1"):
            tie_tolerance(found["wrong"])


@pytest.mark.parametrize("kind", ["python", "pyterrier"])
@pytest.mark.parametrize(
    "resource", ["no_such_module:f", "mine", "FILE:missing", "FILE:number", "/no/such/file.py:f"]
)
def test_what_is_not_there_is_one_clear_line(module, kind, resource):
    ranker = open_ranker(f"{kind}:" + resource.replace("FILE", str(module)))
    with pytest.raises(WhyrankError, match=f"{kind}:"):
        ranker.score(["q"], ["d"])


@pytest.mark.parametrize("kind", ["python", "pyterrier"])
def test_the_line_that_failed_is_named(tmp_path, kind):
    (tmp_path / "half.py").write_text("class Needs:\n    def __init__(self, path):\n        pass\n")
    with pytest.raises(WhyrankError, match=r"Needs' cannot be made: TypeError: .* argument: 'path'$"):
        open_ranker(f"{kind}:{tmp_path}/half.py:Needs").score(["q"], ["d"])
    (tmp_path / "broken.py").write_text("x = 1\ny = x / 0\n")
    with pytest.raises(WhyrankError, match=r"imported: ZeroDivisionError: division by zero at .*broken\.py:2$"):
        open_ranker(f"{kind}:{tmp_path}/broken.py:f").score(["q"], ["d"])


class TestIdentity:
    SCORE = "def score(queries, docs):\n    return [WEIGHT for _ in docs]\n"

    @pytest.fixture
    def identity(self, tmp_path, monkeypatch):
        """Write modules into a folder that is on the path; the identity of a ranker as a new process would see it."""
        monkeypatch.syspath_prepend(tmp_path)

        def forget():
            for name, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
                    del sys.modules[name]
            importlib.invalidate_caches()

        def write(resource, **files):
            for name, content in files.items():
                path = tmp_path.joinpath(*name.split("__")).with_suffix(".py")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.with_name(path.name.replace("start.py", "__init__.py")).write_text(content)
            forget()
            return repr(open_ranker(f"python:{resource.replace('DIR', str(tmp_path))}"))

        yield write
        forget()

    @pytest.mark.parametrize("resource", ["DIR/first_one.py:score", "first_one:score"])
    @pytest.mark.parametrize(
        "source",
        [
            "import second_one\n",
            "from second_one import WEIGHT\n",
            "import second_one as other, json\n",
            "def later():\n    import second_one\n",
            "try:\n    from second_one import *\nexcept ImportError:\n    pass\n",
        ],
    )
    def test_it_has_the_sources_of_what_is_imported_from_beside(self, identity, resource, source):
        second = "import third_one\nWEIGHT = "
        before = identity(resource, first_one=source + self.SCORE, second_one=second + "1", third_one="A = 1")
        assert identity(resource, second_one=second + "2") != before
        assert identity(resource, second_one=second + "1") == before
        assert identity(resource, third_one="A = 2") != before
        assert identity(resource, third_one="A = 1", unrelated="B = 1") == before
        assert identity(resource, first_one=source + "\n" + self.SCORE) != before

    def test_it_has_the_sources_of_the_package(self, identity):
        files = {"top__start": "", "top__deep__start": "", "top__util": "WEIGHT = 1", "top__deep__near": "A = 1"}
        source = "from ..util import WEIGHT\nfrom . import near\n" + self.SCORE
        before = identity("top.deep.mine:score", **files, top__deep__mine=source)
        assert identity("top.deep.mine:score", top__util="WEIGHT = 2") != before
        assert identity("top.deep.mine:score", top__util="WEIGHT = 1") == before
        assert identity("top.deep.mine:score", top__deep__near="A = 2") != before

    def test_a_module_that_changed_after_its_import_is_known_by_what_was_imported(self, identity, tmp_path):
        first = "from second_one import WEIGHT\n" + self.SCORE
        before = identity("DIR/first_one.py:score", first_one=first, second_one="WEIGHT = 1")
        (tmp_path / "second_one.py").write_text("WEIGHT = 2")
        again = open_ranker(f"python:{tmp_path}/first_one.py:score")
        assert again.score(["q"], ["d"]).tolist() == [1]
        assert repr(again) == before

    def test_installed_packages_are_not_part_of_the_source(self):
        import pluggy._hooks
        import typing_extensions  # alone in the folder of all that is installed

        found = set(local_sources(pluggy._hooks, Path(pluggy._hooks.__file__)))
        assert {"pluggy._hooks", "pluggy"} <= found
        assert all(name.startswith("pluggy") for name in found)
        assert set(local_sources(typing_extensions, Path(typing_extensions.__file__))) == {"typing_extensions"}

    def test_it_has_the_files_that_the_ranker_names(self, module, tmp_path):
        module.write_text(FUNCTIONS + f"shorter.depends_on = ['weights.txt', {str(module)!r}]\n")
        found = []
        for content in ("1", "22", "1"):
            (tmp_path / "weights.txt").write_text(content)
            found.append(repr(open_ranker(f"python:{module}:shorter")))
        assert found[0] == found[2] != found[1]
        assert repr(open_ranker(f"python:{module}:Counting")).split("source=")[1] != found[0].split("source=")[1]

    @pytest.mark.parametrize(
        ("named", "message"),
        [("['nowhere.txt']", r"nowhere\.txt: cannot be read \(No such file or directory\), and ranker 'mine' names it"),
         ("'weights.txt'", "ranker 'mine': depends_on must be a list of paths, not 'weights.txt'")],
    )  # fmt: skip
    def test_files_that_are_not_there(self, module, named, message):
        module.write_text(FUNCTIONS + f"shorter.depends_on = {named}\n")
        with pytest.raises(WhyrankError, match=message):
            repr(open_ranker(f"python:{module}:shorter"))


TRANSFORMERS = """
class Shared:
    '''Words in common; gives the rows back in another order, with more columns.'''
    frames = []

    def transform(self, df):
        self.frames.append(df.copy())
        score = [len(set(q.split()) & set(t.split())) + len(t) / 1000 for q, t in zip(df["query"], df["text"])]
        return df.assign(score=score, rank=1).sort_values("score", ascending=False)

class Other:
    def __init__(self, change):
        self.transform = change

def raising(df):
    if df["text"].str.contains("bad").any():
        raise RuntimeError("cannot read it")
    return df.assign(score=2.0)

def twice(df):
    import pandas
    return pandas.concat([df, df]).assign(score=1.0)

class Costly:
    def __init__(self):
        raise OSError("no index here")

def make():
    return Shared()

shared, number = Shared(), 3
Cut = Other(lambda df: df[df["text"] != "bad"].assign(score=2.0))
Twice = Other(twice)
Silent = Other(lambda df: df)
Nothing = Other(lambda df: None)
Holes = Other(lambda df: df.assign(score=[float("nan") if "bad" in t else 2.0 for t in df["text"]]))
Raising = Other(raising)
"""


@pytest.fixture
def pipelines(tmp_path):
    pytest.importorskip("pandas", reason="the extra pyterrier is not installed")
    path = tmp_path / "pipelines.py"
    path.write_text(TRANSFORMERS)
    return path


class TestTransformerContract(RankerContract):
    @pytest.fixture(autouse=True)
    def path(self, pipelines):
        self.pipelines = pipelines

    def make(self):
        return open_ranker(f"pyterrier:{self.pipelines}:shared(version=1)")


class TestTransformers:
    @pytest.mark.parametrize("name", ["shared", "Shared", "make"])
    def test_an_instance_a_class_or_a_function_that_makes_one(self, pipelines, name):
        ranker = open_ranker(f"pyterrier:{pipelines}:{name}")
        queries, texts = ["a b", "c", "a b", "a b"], ["a b c \ud800", "c", "", "a b c \ud800"]
        assert ranker.score(queries, texts).tolist() == [2.007, 1.001, 0.0, 2.007]
        [frame] = ranker._transformer.frames
        assert list(frame.columns) == ["qid", "query", "docno", "text"]
        rows = [["q0", "a b", "d0", texts[0]], ["q1", "c", "d1", "c"], ["q0", "a b", "d2", ""]]
        assert frame.values.tolist() == rows
        assert ranker.score([], []).tolist() == []

    def scores(self, pipelines, name, *texts):
        codes = np.arange(len(texts), dtype=np.int32)
        ranker = open_ranker(f"pyterrier:{pipelines}:{name}")
        return Engine().score(ranker, ["q"], list(texts), np.zeros_like(codes), codes)

    @pytest.mark.parametrize(
        ("name", "reason"),
        [("Holes", "score is nan"), ("Raising", "RuntimeError: cannot read it"),
         ("Cut", "the transformer gave no row for this pair")],
    )  # fmt: skip
    def test_pairs_that_fail_are_counted_and_the_others_scored(self, pipelines, name, reason):
        found = self.scores(pipelines, name, "fine", "bad", "good")
        assert np.array_equal(found.values, [2.0, np.nan, 2.0], equal_nan=True)
        assert [(failure.doc, failure.reason) for failure in found.failures] == [("bad", reason)]

    @pytest.mark.parametrize(
        ("name", "what"),
        [
            ("Silent", "gave back no column 'score'"),
            ("Nothing", "gave back no column 'qid'"),
            ("Twice", "two rows for one pair"),
            ("Costly", r"cannot be made: \w+: no index here at .*\.py:\d+"),
            ("number", "'number' is no transformer"),
            ("missing", "'missing' is no transformer"),
        ],
    )
    def test_refusals(self, pipelines, name, what):
        with pytest.raises(WhyrankError, match=what):
            self.scores(pipelines, name, "fine")

    def test_identity_caching_and_travel(self, pipelines):
        plain = open_ranker(f"pyterrier:{pipelines}:Shared")
        versioned = open_ranker(f"pyterrier:{pipelines}:Shared(version='index 3')")
        assert (plain.cacheable, versioned.cacheable) == (False, True)
        assert repr(versioned) != repr(plain)
        assert rankers.create(versioned.name) == versioned
        assert pickle.loads(pickle.dumps(plain)).score(["a"], ["a"]).tolist() == [1.001]
        pipelines.write_text(TRANSFORMERS + "\n")
        assert repr(open_ranker(plain.name)) != repr(plain)

    def test_without_pandas_the_extra_is_named(self, tmp_path, monkeypatch):
        (tmp_path / "plain.py").write_text("class Any:\n    def transform(self, df):\n        return df\n")
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(MissingExtra, match=r"whyrank\[pyterrier\]"):
            open_ranker(f"pyterrier:{tmp_path / 'plain.py'}:Any").score(["q"], ["d"])

    def test_a_pipeline_of_real_transformers(self, tmp_path):
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
