"""Figures on the terminal keep their sign, whatever the number of decimals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.cli.show import figure


@given(value=st.floats(-2, 2), decimals=st.integers(1, 6))
def test_is_the_number_that_is_shown(value, decimals):
    shown = figure(value, f"+.{decimals}f")
    assert float(shown) == pytest.approx(value, abs=0.51 * 10**-decimals)
    assert shown[0] == ("-" if float(shown) < 0 else "+")


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (-0.0004, "+.4f", "-0.0004"),
        (-0.0004, "+.3f", "+0.000"),
        (-0.0004, ".3f", "+0.000"),
        (-0.00004, "+.4f", "+0.0000"),
        (0.0, ".4g", "0"),
        (-1e-7, ".2g", "-1e-07"),
        (None, ".3f", "–"),
    ],
)
def test_by_hand(value, form, shown):
    assert figure(value, form) == shown


def test_facts_of_a_table_are_one_line_each(tmp_path, whyrank):
    from whyrank.tables import TermTable

    facts = {"certificate": {"recall": 0.99470976, "drawn": 4_000_000, "strata": [{"pairs": 1}, {"pairs": 2}]}}
    table = TermTable.from_triples(["car"], ["vehicle"], [0.5], collections=["one", "two"], top=10, **facts)
    table.save(str(tmp_path / "table.parquet"))
    code, out, _ = whyrank("tables", "show", str(tmp_path / "table.parquet"))
    assert code == 0
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines() if line.strip()}
    assert lines["certificate"] == "recall 0.99471, drawn 4000000, strata [2: see --json]"
    assert lines["collections"] == "one, two"
    assert lines["top"] == "10"
