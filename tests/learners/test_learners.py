"""Learners by name, and what makes them known."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys

import pytest

from whyrank.core import UnknownName, WhyrankError, call_of
from whyrank.data import open_collection
from whyrank.learners import table_learners
from whyrank.learners.em import learn_em, make_bitext
from whyrank.tables import TermTable


def test_em_by_name_is_em():
    sample = open_collection("sample")
    learner = table_learners.create("em(iterations=2,analyzer=whitespace,threshold=0.01,most=500,seed=3)")
    found = learner.learn(sample)
    expected = learn_em(make_bitext(sample, "whitespace", most=500, seed=3), iterations=2, threshold=0.01).table
    assert found.digest == expected.digest
    assert table_learners.create(learner.name) == learner
    assert found.facts["learner"] == learner.name == call_of(learner, "em")
    assert found.facts["perplexities"] == expected.facts["perplexities"]


def test_what_changes_no_weight_is_not_in_the_facts(tmp_path):
    state = str(tmp_path / "state")
    learner = table_learners.create(f"em(iterations=2,most=300,check=True,checkpoint={state!r})")
    table = learner.learn(open_collection("sample"))
    assert table_learners.create(learner.name) == learner
    assert table.facts["learner"] == "em(most=300,iterations=2)"
    assert table.facts["float64_difference"] < 1e-5
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


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


def test_a_plugin_may_register_one():
    @table_learners.register("nothing")
    class Nothing:
        """No entries."""

        def learn(self, collection=None):
            return TermTable.from_triples([], [], [])

    try:
        assert len(table_learners.create("nothing").learn()) == 0
    finally:
        table_learners.forget("nothing")


def test_a_table_costs_nothing_to_import():
    code = "import sys, whyrank.data, whyrank.tables; print(any(m in sys.modules for m in ('numba', 'pyarrow', 'torch')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
