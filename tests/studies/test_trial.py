"""What users wrote themselves is tried before anything long runs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import whyrank
from whyrank.core import WhyrankError
from whyrank.studies.axioms import Axiom
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
        if self.fault == "numbers":
            return whyrank.Contrasts.from_pairs([whyrank.Pair("cats", (1, 2))])
        if self.fault == "labels":
            pairs = [whyrank.Pair("cats", ("a", "b"), labels) for labels in ({}, {"query_id": "q"})]
            return whyrank.Contrasts.from_pairs(pairs)
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
        ("numbers", r"study 'mine/marked': Pair\(.*docs=\(1, 2\).*\) is no contrast; give Pair"),
        ("labels", "study 'mine/marked': all contrasts of a study need the same labels"),
    ],
)
def test_a_study_of_one_s_own_fails_before_anything_is_scored(fault, says):
    SLOW["scored"] = 0
    with pytest.raises(WhyrankError, match=says):
        whyrank.audit(slow, "sample", ["edited/typos", Marked(fault)])
    assert SLOW["scored"] == 0


@dataclass(frozen=True, kw_only=True)
class Longer(Axiom):
    """The longer text wins, by a number in place of a flag."""

    name = "LONGER"
    favours = "the longer text"

    def wins(self, view, a, b):
        return view.lengths[a] - view.lengths[b]


def test_an_axiom_of_one_s_own_gives_flags():
    with pytest.raises(
        WhyrankError, match=r"axiom/LONGER: wins\(\) gives int64 of shape .*; it must give True or False"
    ):
        whyrank.audit(slow, "sample", Longer())


@pytest.mark.parametrize(
    ("studies", "says"),
    [
        ([Marked(), Marked("read")], "several studies have the id 'mine/marked'"),
        ([Marked], "neither a name nor an object"),
        ([type("Undirected", (Marked,), {"symmetric": "no"})()], "symmetric True or False"),
    ],
)
def test_what_is_no_study_is_refused(studies, says):
    with pytest.raises(WhyrankError, match=says):
        whyrank.audit(slow, "sample", studies)


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
