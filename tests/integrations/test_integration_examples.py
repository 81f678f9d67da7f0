"""The examples in the docstrings of the integrations."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    ("needed", "module", "name"),
    [
        ("pyterrier", "whyrank.integrations.pyterrier", "Transformer"),
        ("sentence_transformers", "whyrank.integrations.sentence_transformers", "StudyEvaluator"),
        ("yaml", "whyrank.scoring.metadata", "run_metadata"),
    ],
)
def test_the_example_of(needed, module, name):
    pytest.importorskip(needed)
    found = importlib.import_module(module)
    [example] = doctest.DocTestFinder(recurse=False).find(getattr(found, name), name, globs=dict(vars(found)))
    assert doctest.DocTestRunner().run(example) == (0, len(example.examples))
    assert example.examples
