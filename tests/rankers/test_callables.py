"""Python functions as rankers."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from whyrank.core import WhyrankError
from whyrank.rankers import open_ranker, rankers, tie_tolerance
from whyrank.rankers.modules import local_sources

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


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """Write modules into a folder that is on the path, and give the identity of a ranker as a new process would."""
    monkeypatch.syspath_prepend(tmp_path)

    def forget():
        for name in [n for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(str(tmp_path))]:
            del sys.modules[name]
        importlib.invalidate_caches()

    def identity(resource, **files):
        for name, content in files.items():
            path = tmp_path.joinpath(*name.split("__")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_name(path.name.replace("start.py", "__init__.py")).write_text(content)
        forget()
        return repr(open_ranker(f"python:{resource.replace('DIR', str(tmp_path))}"))

    yield identity
    forget()


SCORE = "def score(queries, docs):\n    return [WEIGHT for _ in docs]\n"


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
def test_identity_has_the_sources_of_what_is_imported_fromlocal_sources(beside, resource, source):
    before = beside(resource, first_one=source + SCORE, second_one="import third_one\nWEIGHT = 1", third_one="A = 1")
    assert beside(resource, second_one="import third_one\nWEIGHT = 2") != before
    assert beside(resource, second_one="import third_one\nWEIGHT = 1") == before
    assert beside(resource, third_one="A = 2") != before
    assert beside(resource, third_one="A = 1", unrelated="B = 1") == before


def test_identity_has_the_sources_of_the_package(beside):
    files = {"top__start": "", "top__deep__start": "", "top__util": "WEIGHT = 1"}
    source = "from ..util import WEIGHT\nfrom . import near\n" + SCORE
    before = beside("top.deep.mine:score", **files, top__deep__mine=source, top__deep__near="A = 1")
    assert beside("top.deep.mine:score", top__util="WEIGHT = 2") != before
    assert beside("top.deep.mine:score", top__util="WEIGHT = 1") == before
    assert beside("top.deep.mine:score", top__deep__near="A = 2") != before


def test_a_module_that_changed_after_its_import_is_known_by_what_was_imported(beside, tmp_path):
    before = beside(
        "DIR/first_one.py:score", first_one="from second_one import WEIGHT\n" + SCORE, second_one="WEIGHT = 1"
    )
    (tmp_path / "second_one.py").write_text("WEIGHT = 2")
    again = open_ranker(f"python:{tmp_path}/first_one.py:score")
    assert again.score(["q"], ["d"]).tolist() == [1]
    assert repr(again) == before


def test_installed_packages_are_not_part_of_the_source():
    import numpy

    assert set(local_sources(numpy.linalg, Path(numpy.linalg.__file__))) >= {"numpy.linalg", "numpy"}
    import typing_extensions  # alone in the folder of all that is installed

    assert set(local_sources(typing_extensions, Path(typing_extensions.__file__))) == {"typing_extensions"}


def test_identity_has_the_files_that_the_ranker_names(module, tmp_path):
    module.write_text(
        SOURCE + "shorter.depends_on = ['weights.txt', ABSOLUTE]\n".replace("ABSOLUTE", repr(str(module)))
    )
    (tmp_path / "weights.txt").write_text("1")
    before = repr(open_ranker(f"python:{module}:shorter"))
    assert repr(open_ranker(f"python:{module}:Counting")) != before
    (tmp_path / "weights.txt").write_text("22")
    assert repr(open_ranker(f"python:{module}:shorter")) != before
    (tmp_path / "weights.txt").write_text("1")
    assert repr(open_ranker(f"python:{module}:shorter")) == before


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            "['nowhere.txt']",
            r"nowhere\.txt: cannot be read \(No such file or directory\), and ranker 'mine' names it",
        ),
        ("'weights.txt'", "ranker 'mine': depends_on must be a list of paths, not 'weights.txt'"),
    ],
)
def test_files_that_are_not_there_are_one_clear_line(module, named, message):
    module.write_text(SOURCE + f"shorter.depends_on = {named}\n")
    with pytest.raises(WhyrankError, match=message):
        repr(open_ranker(f"python:{module}:shorter"))


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
