"""What users wrote themselves is tried before anything long runs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import whyrank
from whyrank.core import WhyrankError
from whyrank.studies.reading import Preferences
from whyrank.text.edits import edits

SLOW = {"scored": 0}


def slow(queries, docs):
    """Counts what it scores."""
    SLOW["scored"] += len(docs)
    return [float(len(doc)) for doc in docs]


@dataclass(frozen=True)
class Marked:
    """Each judged text with and without a mark."""

    fault: str = ""
    id = "mine/marked"
    positive = "prefers the text without a mark"
    symmetric = False

    def contrasts(self, collection):
        if self.fault == "none":
            return None
        if self.fault == "few" and len(collection.queries) < 3:
            raise ValueError("too few queries")
        if self.fault == "build":
            return collection.nothing
        texts = [(collection.queries[q], collection.docs[d]) for q, docs in collection.qrels.items() for d in docs]
        return whyrank.Contrasts.from_pairs(whyrank.Pair(q, (d, d + "!"), {}) for q, d in texts)

    @property
    def reading(self):
        return Unreadable() if self.fault == "read" else Preferences()


class Unreadable(Preferences):
    def read(self, *arguments):
        raise KeyError("label")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("build", r"study 'mine/marked' fails in contrasts\(\) at .*test_trial.py:\d+: AttributeError: .*nothing"),
        ("read", r"study 'mine/marked' fails in read\(\) at .*test_trial.py:\d+: KeyError: 'label'"),
        ("none", r"study 'mine/marked': contrasts\(\) returns NoneType, not Contrasts"),
    ],
)
def test_a_study_of_one_s_own_fails_before_anything_is_scored(fault, says):
    SLOW["scored"] = 0
    with pytest.raises(WhyrankError, match=says):
        whyrank.audit(slow, "sample", ["edited/typos", Marked(fault)])
    assert SLOW["scored"] == 0


def test_a_study_that_needs_more_than_an_excerpt_runs(monkeypatch):
    [finding] = whyrank.audit(slow, "sample", Marked("few"), delta=0, limit=10)
    assert (finding.n, finding.score) == (10, -1.0)


def test_an_edit_of_one_s_own_is_tried_as_well():
    @edits.register("broken")
    def broken(text, rng):
        """With a fault"""
        return text.nothing()

    try:
        with pytest.raises(WhyrankError, match=r"study 'edited/broken' fails in broken\(\) at .*: AttributeError"):
            whyrank.audit(slow, "sample", "edited/broken")
    finally:
        edits.forget("broken")
