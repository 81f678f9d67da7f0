"""The names that `import whyrank` offers, and the one call from Python."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import whyrank
from whyrank.core import WhyrankError
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
     {"rankers": len}, {"studies": 3}, {"studies": ["matched/length|tf", None]}],
)  # fmt: skip
def test_audit_in_the_wrong_way(arguments):
    with pytest.raises(WhyrankError):
        whyrank.audit(**{"rankers": "bm25", "studies": "matched/length|tf", **arguments})
