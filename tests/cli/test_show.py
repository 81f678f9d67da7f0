"""Tables on the terminal, from findings made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.cli import show
from whyrank.cli.console import figure
from whyrank.studies import Finding, SweepPoint, Threshold

BASE = Finding(
    study="edited/typos", ranker="bm25", collection="toy", n=6912, positive=60, neutral=10, negative=30, nonfinite=0,
    score=0.3, ci_low=0.2, ci_high=0.4, p_value=0.001, p_adjusted=0.01, mean_diff=0.5, median_diff=0.25, delta=0.125,
    n_queries=20, fingerprint="ab", seed=0,
)  # fmt: skip


@pytest.fixture
def shown(capsys):
    """What a call prints: its lines, split into cells where two blanks or more lie between them."""

    def show(print_table, *arguments):
        print_table(*arguments)
        return [[cell for cell in line.strip().split("  ") if cell] for line in capsys.readouterr().out.splitlines()]

    return show


def stripped(rows):
    return [[cell.strip() for cell in row] for row in rows]


def findings_shown(shown, *findings):
    return stripped(shown(show.findings, findings, {"bm25": Threshold(0.125)}, 0.05, "holm"))


def test_the_control_has_a_column_where_there_is_one(shown):
    rows = findings_shown(shown, replace(BASE, control=0.0214), replace(BASE, ranker="ql", control=None))
    header = next(row for row in rows if "study" in row)
    column = header.index("control")
    assert [row[column] for row in rows if row[:1] == ["edited/typos"]] == ["+0.021", "–"]
    assert ["control: the score of the study's control, which only joins the tokens of a text by blanks"] in rows


def test_sweeps_say_where_the_order_settles(shown):
    pair = [("x/a", "bm25", 0.5), ("x/a", "ql", 0.1), ("x/b", "bm25", 0.5), ("x/b", "ql", None)]
    points = [SweepPoint(study, ranker, p, 0.0, score) for study, ranker, score in pair for p in range(100)]
    rows = stripped(shown(show.sweep, points, {}))
    assert next(row for row in rows if "study" in row)[-2:] == ["p99", "stable from"]
    last = {tuple(row[:2]): row[-1] for row in rows if row[:1] in (["x/a"], ["x/b"])}
    assert last == {("x/a", "bm25"): "0", ("x/a", "ql"): "0", ("x/b", "bm25"): "–", ("x/b", "ql"): "–"}


@given(value=st.floats(-2, 2), decimals=st.integers(1, 6))
def test_is_the_number_that_is_shown(value, decimals):
    shown = figure(value, f"+.{decimals}f")
    assert float(shown) == pytest.approx(value, abs=0.51 * 10**-decimals)
    assert shown[0] == ("-" if float(shown) < 0 else "+")


class TestAxioms:
    FINDING = replace(
        BASE, study="axiom/LNC1", nonfinite=2, delta=0.0, conclusion="weak", satisfied=0.7, satisfied_low=0.6,
        satisfied_high=0.8, chance=0.55, with_relevant=1234, decided=1000, agreement=0.25,
    )  # fmt: skip

    def test_a_finding(self, capsys):
        show.findings([self.FINDING], {"bm25": Threshold(0.4)}, 0.05, "holm")
        out = capsys.readouterr().out
        for words in ("0.700*", "[0.600, 0.800]", "345.6", "0.250 of 1,000", "delta: 0 (axioms)"):
            assert words in out
        assert "2 contrasts without a finite score" in out

    def test_instances_without_a_score(self, capsys):
        scored = replace(self.FINDING, study="axiom/DIV", nonfinite=0)
        show.findings([self.FINDING, scored], {}, 0.05, "holm")
        out = capsys.readouterr().out
        header, *rows = [
            line.split("  ") for line in out.splitlines() if line.strip().startswith(("axiom", "LNC1", "DIV"))
        ]
        names = [name.strip() for name in header if name.strip()]
        figures = [dict(zip(names, [cell.strip() for cell in row if cell.strip()], strict=True)) for row in rows]
        assert [(row["violated"], row["unscored"], row["with relevant"]) for row in figures] == [
            ("30", "2", "1,234"), ("30", "0", "1,234")
        ]  # fmt: skip
        assert "unscored: instances without a finite score; they count in instances, per query" in out
        show.findings([scored], {}, 0.05, "holm")
        assert "unscored" not in capsys.readouterr().out
