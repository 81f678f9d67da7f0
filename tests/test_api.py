"""The names that `import whyrank` offers, and the one call from Python."""

from __future__ import annotations

import doctest
import subprocess
import sys
from functools import partial
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import whyrank
from whyrank.core import WhyrankError
from whyrank.studies import Pool
from whyrank.studies.axioms import View
from whyrank.studies.probes import probes


def test_every_public_name_is_there():
    for name in whyrank.__all__:
        assert getattr(whyrank, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = whyrank.nothing


def test_importing_loads_nothing_heavy():
    code = "import sys, whyrank; print(any(m in sys.modules for m in ('numpy', 'numba', 'pyarrow', 'typer')))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )


class Shorter:
    name = "shorter"

    def __repr__(self) -> str:
        return "shorter"

    def score(self, queries, docs):
        return np.array([-len(d) for d in docs])


def test_audit_with_objects_of_one_s_own():
    docs = {"a": "cats purr", "b": "cats purr and sleep a lot", "c": "dogs"}
    collection = whyrank.Collection.of(docs, {"q": "cats"}, {"q": {"a": 1, "b": 1, "c": 0}})
    found = whyrank.audit([Shorter(), "bm25"], collection, "matched/length|relevance", delta=0, analyzer="whitespace")
    assert [(f.ranker, f.n, f.score) for f in found] == [("shorter", 1, -1.0), ("bm25", 1, -1.0)]


def test_audit_with_patterns_and_options():
    found = whyrank.audit("bm25", studies=["matched/relevance|*", "edited/case-fold"], tolerance="10%", limit=50)
    assert [f.study for f in found] == [f"matched/relevance|{c}" for c in ("length", "overlap", "sum-tf", "tf")] + [
        "edited/case-fold"
    ]
    assert all(f.n <= 50 and f.p_adjusted is not None for f in found)


def test_audit_with_a_study_of_one_s_own():
    study = probes.create("matched/length|tf", tolerance=1)
    assert whyrank.audit("bm25", studies=study).findings[0].study == "matched/length|tf(tolerance=1)"


def test_audit_for_what_is_not_there():
    with pytest.raises(WhyrankError, match="did you mean"):
        whyrank.audit("bm25", studies="matched/lenght|tf")


@pytest.mark.parametrize(
    "arguments",
    [{"tolernace": "10%"}, {"limit": 0}, {"limit": "x"}, {"by": 3}, {"by": "colour"}, {"collection": 3}, {"rankers": 3},
     {"rankers": len}, {"studies": 3}, {"studies": ["matched/length|tf", None]}, {"rankers": Shorter},
     {"collection": pd.DataFrame({"text": ["cats"]})}],
)  # fmt: skip
def test_audit_in_the_wrong_way(arguments):
    with pytest.raises(WhyrankError, match=r"^.*$"):  # one line
        whyrank.audit(**{"rankers": "bm25", "studies": "matched/length|tf", **arguments})


@pytest.mark.parametrize("name", sorted(whyrank.__all__))
def test_the_examples_in_the_docstrings_of(name):
    public = getattr(whyrank, name)
    public = getattr(public, name) if isinstance(public, ModuleType) else public  # a package that can be called
    globs = {each: getattr(whyrank, each) for each in whyrank.__all__} | {"whyrank": whyrank}
    own, *methods = sorted(
        doctest.DocTestFinder().find(public, name, module=False, globs=globs), key=lambda e: e.name
    )
    assert (own.name, len(own.examples) > 0) == (name, True)
    assert [each.name for each in (own, *methods) if doctest.DocTestRunner().run(each).failed] == []


@pytest.mark.parametrize("described", [View, Pool])
def test_what_authors_may_use_is_shown_by_examples(described):
    finder = doctest.DocTestFinder(recurse=False)
    [example] = finder.find(described, described.__name__, globs=dict(vars(sys.modules[described.__module__])))
    assert doctest.DocTestRunner().run(example).failed == 0
    public = {name for name in vars(described) if not name.startswith("_")} - {"memo", "views", "term_ids"}
    assert {name for name in public if f"`{name}" not in described.__doc__} == set()


CATS = whyrank.Collection.of(
    {"a": "cats purr", "b": "cats purr and sleep a lot", "c": "dogs"}, {"q": "cats"}, {"q": {"a": 1, "b": 1, "c": 0}}
)


def shorter(queries, docs):
    return [-len(doc) for doc in docs]


def test_rankers_as_objects_and_functions():
    assert whyrank.rank(shorter, CATS) == {"q": {"a": -9.0, "b": -25.0}}
    assert whyrank.rank(Shorter(), CATS, depth=1) == {"q": {"a": -9.0}}
    assert whyrank.rank(partial(shorter), CATS, depth=1) == {"q": {"a": -9.0}}
    assert whyrank.rank("bm25", CATS, candidates={"q": {"b": 0.0, "c": 0.0}})["q"].keys() == {"b", "c"}
    assert [row.mean for row in whyrank.evaluate([shorter, "bm25"], CATS, ["P@2", "P@1"])] == [1.0] * 4
    assert [row.mean for row in whyrank.evaluate({"mine": {"q": {"c": 2.0, "a": 1.0}}}, CATS, ["P@2"])] == [0.5]
    found = whyrank.fidelity(Shorter(), ["ql", "bm25"], CATS, measures=["agreement"])
    assert [(row.surrogate, row.mean) for row in found.rows] == [("ql", 1.0), ("bm25", 1.0)]


def test_a_learner_by_keywords_is_that_of_its_call_string():
    one, two = (
        whyrank.learn("em(threshold=0)", CATS, iterations=1),
        whyrank.learn("em(iterations=1,threshold=0)", CATS),
    )
    assert isinstance(one, whyrank.TermTable)
    assert one.digest == two.digest


@pytest.mark.parametrize(
    "call",
    [lambda: whyrank.learn("em", CATS, iteration=1), lambda: whyrank.learn("em"), lambda: whyrank.rank("bm26", CATS),
     lambda: whyrank.rank("bm25", CATS, depth=0), lambda: whyrank.rank("bm25", 3), lambda: whyrank.rank(3, CATS),
     lambda: whyrank.fidelity("bm25", ["ql"], CATS, measures=["tau"]), lambda: whyrank.fidelity("bm25", [], CATS),
     lambda: whyrank.fidelity(shorter, Shorter(), CATS), lambda: whyrank.evaluate([shorter, Shorter()], CATS),
     lambda: whyrank.evaluate(["bm25"], CATS, ["nDGC"]), lambda: whyrank.evaluate([], CATS)],
)  # fmt: skip
def test_requests_that_make_no_sense(call):
    with pytest.raises(WhyrankError):
        call()


def test_pairs_without_a_score_are_told_and_results_are_shown_in_short():
    def price(queries, docs, fields):
        return [each["price"] for each in fields]

    docs = [{"id": "a", "text": "cats purr", "price": 3}, {"id": "b", "text": "cats sleep"}]
    shop = whyrank.Collection.from_frames(docs, [{"query": "cats"}], [{"query": "cats", "doc_id": "a", "score": 1}])
    with pytest.warns(UserWarning, match=r"'price' gives no finite score, left out: 1 \(KeyError: 'price'\)"):
        assert whyrank.rank(price, shop) == {"q1": {"a": 3.0}}
    shown = [repr(whyrank.evaluate("bm25", shop)), repr(whyrank.fidelity("bm25", ["ql"], shop))]
    found = whyrank.audit("bm25", shop, "edited/prepend-query", delta=0)
    shown += map(repr, (found["edited/prepend-query"].contrasts(), whyrank.compare(found, found)))
    assert not [each for each in shown if "q1" in each or "purr" in each or len(each) > 2500]
    assert str(whyrank.explain("bm25", "cats", "cats purr")).startswith("bm25 gives the text")
    with pytest.raises(WhyrankError) as wrong:
        whyrank.rank({"mine": np.zeros((3, 3))}, shop)
    assert "\n" not in str(wrong.value)
