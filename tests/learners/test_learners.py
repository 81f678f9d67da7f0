"""Learners by name, and what makes them known."""

from __future__ import annotations

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
    expected = learn_em(make_bitext(sample, "whitespace", most=500, seed=3), 2, threshold=0.01).table
    assert found.digest == expected.digest
    assert table_learners.create(learner.name) == learner
    assert found.facts["learner"] == learner.name == call_of(learner, "em")
    assert found.facts["perplexities"] == expected.facts["perplexities"]


def test_every_setting_of_bitext_and_em_is_one_of_the_learner():
    import inspect

    from whyrank.learners.registry import EM

    known = set(inspect.signature(make_bitext).parameters) | set(inspect.signature(learn_em).parameters)
    assert set(inspect.signature(EM).parameters) == known - {"collection", "bitext", "held", "checkpoint", "check"}


def test_it_needs_a_collection_and_known_settings():
    with pytest.raises(WhyrankError, match="give one"):
        table_learners.create("em").learn()
    with pytest.raises(UnknownName, match="iterations"):
        table_learners.create("em(iteration=2)")
    with pytest.raises(UnknownName, match="did you mean 'neural'"):
        table_learners.create("neurl:x")
    with pytest.raises(WhyrankError, match="top must be a whole number"):
        table_learners.create("neural:x(top=0)")


def test_the_list_names_them(whyrank):
    code, printed, _ = whyrank("list", "table_learners")
    assert code == 0
    assert "em" in printed
    assert "neural" in printed
    assert "IBM Model 1 by EM" in printed


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
