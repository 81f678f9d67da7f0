"""Learners by name, and what makes them known."""

from __future__ import annotations

import dataclasses
import inspect
import re

import pytest

from whyrank.core import UnknownName, WhyrankError, call_of
from whyrank.data import open_collection
from whyrank.learners import table_learners
from whyrank.learners.em import learn_em, make_bitext


def test_em_by_name_is_em():
    sample = open_collection("sample")
    learner = table_learners.create("em(iterations=2,analyzer=whitespace,threshold=0.01,most=500,seed=3)")
    found = learner.learn(sample)
    expected = learn_em(make_bitext(sample, "whitespace", most=500, seed=3), iterations=2, threshold=0.01).table
    assert found.digest == expected.digest
    assert table_learners.create(learner.name) == learner
    assert found.facts["learner"] == learner.name == call_of(learner, "em")
    assert found.facts["perplexities"] == expected.facts["perplexities"]


@pytest.mark.parametrize("name", table_learners.names())
def test_every_setting_is_explained(name):
    """The command line and the reference are made from the fields of a learner and their descriptions."""
    learner = table_learners.factory(name)
    _, _, described = inspect.getdoc(learner).partition("Attributes:")
    explained = re.findall(r"^ {4}(\w+): \S", described, re.MULTILINE)
    assert explained == [field.name for field in dataclasses.fields(learner)]


def test_it_needs_a_collection_and_known_settings():
    with pytest.raises(WhyrankError, match="give one"):
        table_learners.create("em").learn()
    with pytest.raises(UnknownName, match="iterations"):
        table_learners.create("em(iteration=2)")
    with pytest.raises(UnknownName, match="neural"):
        table_learners.create("neurl:x")
    with pytest.raises(WhyrankError, match="top"):
        table_learners.create("neural:x(top=0)")
