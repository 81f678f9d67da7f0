"""Tables on the terminal, from findings made by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from whyrank.cli.show import dropped_lines, findings_table, stability_table, sweep_table
from whyrank.evaluation.stability import stability
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
    return stripped(shown(findings_table, findings, {"bm25": Threshold(0.125)}, 0.05, "holm"))


def test_the_control_has_a_column_where_there_is_one(shown):
    rows = findings_shown(shown, replace(BASE, control=0.0214), replace(BASE, ranker="ql", control=None))
    header = next(row for row in rows if "study" in row)
    place = header.index("control")
    assert [row[place] for row in rows if row[:1] == ["edited/typos"]] == ["+0.021", "–"]
    assert ["control: the score of the study's control, which only joins the tokens of a text by blanks"] in rows


def test_without_controls_there_is_no_column(shown):
    rows = findings_shown(shown, BASE)
    assert not any("control" in cell for row in rows for cell in row)


def test_dropped_questions_are_counted_below_the_table(shown):
    dropped = "not applicable 2,336; unchanged 12"
    rows = findings_shown(
        shown,
        replace(BASE, dropped=dropped),
        replace(BASE, dropped=dropped, ranker="ql"),
        replace(BASE, dropped=dropped, group="relevant", n=7),
        replace(BASE, study="edited/lemmatize"),
    )
    assert rows[-1] == ["edited/typos: 6,912 kept; not applicable 2,336; unchanged 12"]
    assert sum("kept" in cell for row in rows for cell in row) == 1


def test_no_more_than_twelve_studies_are_listed():
    many = [replace(BASE, study=f"edited/{i}", dropped="unchanged 1") for i in range(15)]
    assert dropped_lines(many)[11:] == ["edited/11: 6,912 kept; unchanged 1", "and 3 more"]
    assert len(dropped_lines(many[:12])) == 12
    assert dropped_lines([BASE]) == []


def test_sweeps_say_where_the_order_settles(shown):
    pair = [("x/a", "bm25", 0.5), ("x/a", "ql", 0.1), ("x/b", "bm25", 0.5), ("x/b", "ql", None)]
    points = [SweepPoint(study, ranker, p, 0.0, score) for study, ranker, score in pair for p in range(100)]
    rows = stripped(shown(sweep_table, points))
    assert next(row for row in rows if "study" in row)[-2:] == ["p99", "stable from"]
    last = {tuple(row[:2]): row[-1] for row in rows if row[:1] in (["x/a"], ["x/b"])}
    assert last == {("x/a", "bm25"): "0", ("x/a", "ql"): "0", ("x/b", "bm25"): "–", ("x/b", "ql"): "–"}


def test_stability_has_a_row_per_study_and_per_family(shown):
    scores = {("edited/a", "m1"): 0.1, ("edited/a", "m2"): 0.3, ("edited/b", "m1"): -0.5, ("edited/b", "m2"): -0.5}
    findings = [replace(BASE, study=study, ranker=ranker, score=x) for (study, ranker), x in scores.items()]
    rows = stripped(shown(stability_table, stability(findings, {"m*": ["m1", "m2"]})))
    family = math.sqrt((0.02 + 0) / 2)
    assert [row for row in rows if row[:1] == ["m*"]] == [
        ["m*", "edited/a", "2", "+0.200", "0.141", "+0.100", "+0.300", "–"],
        ["m*", "edited/b", "2", "-0.500", "0.000", "-0.500", "-0.500", "–"],
        ["m*", "edited/*", "2", "–", f"{family:.3f}", "-0.500", "+0.300", f"{100 * family:.2f}"],
    ]


def test_a_group_without_scores_says_so(shown):
    assert ["no study has scores of two rankers of a group"] in stripped(shown(stability_table, []))
