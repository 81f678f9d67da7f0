"""Figures on the terminal have the form that they have in a report."""

from __future__ import annotations

import pytest

from whyrank.cli import console
from whyrank.report import words


@pytest.mark.parametrize("value", [None, 0.0, 0.0004, 0.02, 1.0, float("nan")])
def test_p_values(value):
    assert console.p_value(value) == words.p_value(value)
    assert console.p_value(0.0004) == "<0.001"


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [(-0.00004, "+.3f", "+0.000"), (-0.00004, ".3f", "0.000"), (-1.5, "+.2f", "-1.50"), (None, ".3f", "–"),
     (0.25, ".1%", "25.0%"), (1234, ",", "1,234")],
)  # fmt: skip
def test_figures(value, form, shown):
    assert console.figure(value, form) == shown
    assert words.figure(value, form) == shown.replace("-", words.MINUS)


def test_intervals():
    assert console.interval(-0.5, 0.25) == "[-0.500, +0.250]"
    assert console.interval(None, None) == "–"
