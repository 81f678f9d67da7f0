"""Bias studies in `whyrank audit`: what is printed and written."""

from __future__ import annotations

import csv
import json
from xml.etree import ElementTree

import pytest

from whyrank.report import read_bias_results, read_findings, read_settings

TEA = "bias/substitution(values=mint+rose+sage,templates=tea.tsv,head=drink)"
ROSE = "python:likes.py:rose(version=1)"
FILES = ("values.csv", "pairs.csv", "correlations.csv")


def untimed(results):
    return [{name: value for name, value in r.as_dict().items() if name != "seconds"} for r in results]


def test_results_do_not_depend_on_the_other_studies(tea, whyrank):
    (tea / "table.tsv").write_text("drink\tmint\t0.2\ndrink\trose\t0.9\n")
    options = ["-r", ROSE, "-r", "bm25", "--seed", 4, "--correction", "bh", "--limit", 6, "--table", "table.tsv"]
    studies = [TEA, "bias/country", "bias/postfix-letter"]
    first = whyrank("audit", *studies, "TFC1", *options, "--out", "whole")
    second = whyrank("audit", *studies, *options, "--out", "alone")
    assert (first[0], second[0]) == (0, 0), first[2] + second[2]
    found, alone = read_bias_results("whole"), read_bias_results("alone")
    assert untimed(found) == untimed(alone)
    assert len(found) == 6
    assert [row.weight for row in found[0].values] == [pytest.approx(0.2), pytest.approx(0.9), None]
    assert any("1 of 3 values have no weight in the table" in note for note in found[0].notes)
    for name in FILES:
        assert (tea / "whole" / "bias" / name).read_bytes() == (tea / "alone" / "bias" / name).read_bytes()
    drawings = {path.name for path in (tea / "alone" / "bias").glob("*.svg")}
    assert {path.name for path in (tea / "whole" / "bias").glob("*.svg")} == drawings
    assert len(drawings) == 3
    assert '<a href="table.html">all entries of table.tsv</a>' in (tea / "whole" / "report.html").read_text()
    assert '"rose"' in (tea / "whole" / "table.html").read_text()


def test_values_are_printed_and_written(tea, whyrank):
    code, out, err = whyrank("audit", TEA, "-r", ROSE, "--out", "res", "--delta", "0.1", "--show", 2, "--seed", 3)
    assert code == 0, err
    assert "the 2 largest effects of 3 values" in out
    assert "report: res/report.html" in err
    [result] = json.loads((tea / "res" / "bias" / "bias.json").read_text())["results"]
    effects = {row["value"]: row["effect"] for row in result["values"]}
    assert effects["rose"] == pytest.approx(0.2, abs=0.04)
    assert result["values"][1]["deltas"] == pytest.approx(effects["rose"] / 0.1)
    assert (result["n_templates"], result["seed"]) == (8, 3)
    rows = list(csv.DictReader((tea / "res" / "bias" / "values.csv").open()))
    assert [row["value"] for row in rows] == ["mint", "rose", "sage"]
    assert float(rows[1]["effect"]) == effects["rose"]
    assert len(list(csv.DictReader((tea / "res" / "bias" / "pairs.csv").open()))) == 3
    [drawing] = (tea / "res" / "bias").glob("*.svg")
    groups = [
        e for e in ElementTree.parse(drawing).iter() if (e.get("class") or "").startswith("mark-symbol role-mark")
    ]
    assert [len(group) for group in groups] == [3], "a dot for each value"


def test_a_pattern_leaves_out_what_lacks_its_values(whyrank):
    code, out, err = whyrank("audit", "bias/*u*", "-r", "bm25", "--delta", "none", "--limit", 4)
    assert code == 0, err
    assert "left out, because it needs values=a+b+c: bias/substitution" in err
    assert "bias/country" in out
    assert "bias/currency" in out


def test_findings_and_results_say_the_same(tea, whyrank):
    code, out, err = whyrank(
        "audit", TEA, "matched/length|tf", "-r", ROSE, "--delta", "0.1", "--out", "res", "--json"
    )
    assert code == 0, err
    probe, finding = read_findings("res")
    [result] = read_bias_results("res")
    assert [row["study"] for row in json.loads(out)] == ["matched/length|tf", TEA]
    assert (probe.study, finding.study) == ("matched/length|tf", TEA)
    assert (finding.p_value, finding.p_adjusted) == (result.p_value, result.p_adjusted)
    assert probe.p_adjusted == probe.p_value, "a bias study is no test of the same family"
    assert finding.n == 8 * 3
    assert finding.score == pytest.approx(2 / 3), (
        "rose differs from both, the others from each other by less than 0.1"
    )
    assert [study["name"] for study in read_settings("res")["studies"]] == ["matched/length|tf", TEA]
    assert "table.html" not in (tea / "res" / "report.html").read_text()
    assert not (tea / "res" / "table.html").exists()


def test_stored_scores_are_used_again(tea, whyrank):
    """What an audit has scored is in the store: the same command scores a sample of it and no more."""
    given = ["-r", ROSE, "--delta", "0.1", "--store", "scores.sqlite"]
    assert whyrank("audit", TEA, *given, "--out", "res")[0] == 0
    before = len((tea / "scored.txt").read_text())
    assert before >= 24, "every text of the grid, and those of the overlap split"
    assert whyrank("audit", TEA, *given)[0] == 0
    assert whyrank("audit", TEA, *given, "--out", "res")[0] == 0
    assert len((tea / "scored.txt").read_text()) == before + 2 * 4


@pytest.fixture
def silent(tea):
    """A module of a ranker with no score for some words: each as its name says."""
    lines = ["def rose(q, d): return _but(d, 'rose')", "def two(q, d): return _but(d, 'rose', 'mint')"]
    body = "return [float('nan') if any(w in t for w in words) else float(len(t)) for t in d]"
    (tea / "silent.py").write_text("\n".join([f"def _but(d, *words): {body}", *lines]) + "\n")
    return tea


def test_values_because_of_which_nothing_can_be_compared_are_named(silent, whyrank):
    code, _, err = whyrank("audit", TEA, "-r", "python:silent.py:two", "--delta", "none")
    assert code == 2
    said = "has no template with a finite score for every value: it lacks mint, rose; take one that scores any text"
    assert err.splitlines()[-1] == f"whyrank: ranker 'python:silent.py:two' {said}"


def test_a_ranker_without_scores_ends_with_an_error_after_the_others_results(whyrank, tea, ranker):
    nans = ranker("float('nan')")
    code, _, err = whyrank("audit", TEA, "-r", "bm25", "-r", nans, "--store", "none", "--out", "found")
    assert code == 2
    assert err.splitlines()[-1].startswith(f"whyrank: ranker {nans!r} has no finite score for any template")
    plain, odd = read_bias_results("found")
    assert (plain.n_templates, odd.delta) == (8, None)
    assert plain.delta > 0
    assert list(odd.notes) == ["no template has a finite score for every value, so nothing can be said"]
    assert f"note: effects of {nans} are in scores alone: ranker {nans!r} gave no two" in err
