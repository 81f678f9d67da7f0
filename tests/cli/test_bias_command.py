"""`whyrank bias` as a user types it."""

from __future__ import annotations

import csv
import json
from xml.etree import ElementTree

import pytest

from refusals import one_line

TEA = "bias/substitution(values=mint+rose+sage,templates=tea.tsv)"


def test_a_study_is_printed_and_written(tea, whyrank):
    code, out, err = whyrank("bias", TEA, "-r", "python:likes.py:rose", "--out", "res", "--delta", "0.1", "--top", 2)
    assert code == 0, err
    assert "rose" in out
    assert "the 2 largest effects of 3 values" in out
    assert "report: res/report.html" in err
    record = json.loads((tea / "res" / "bias" / "bias.json").read_text())
    [result] = record["results"]
    effects = {row["value"]: row["effect"] for row in result["values"]}
    assert effects["rose"] == pytest.approx(0.2, abs=0.04)
    assert result["values"][1]["deltas"] == pytest.approx(effects["rose"] / 0.1)
    rows = list(csv.DictReader((tea / "res" / "bias" / "values.csv").open()))
    assert [row["value"] for row in rows] == ["mint", "rose", "sage"]
    assert float(rows[1]["effect"]) == effects["rose"]
    assert len(list(csv.DictReader((tea / "res" / "bias" / "pairs.csv").open()))) == 3
    [drawing] = (tea / "res" / "bias").glob("*.svg")
    dots = ElementTree.parse(drawing).findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(dots) == 3
    page = (tea / "res" / "report.html").read_text()
    assert "rose" in page
    assert page.count("<svg") == 1


def test_json_is_the_results(tea, whyrank):
    code, out, _ = whyrank("bias", TEA, "-r", "python:likes.py:rose", "--json", "--delta", "none", "--seed", 3)
    [result] = json.loads(out)
    assert code == 0
    assert result["n_templates"] == 8
    assert result["seed"] == 3
    assert result["call"].startswith("bias/substitution(values=mint+rose+sage")
    assert result["delta"] is None


def test_names_with_markup_are_shown_as_they_are(tea, whyrank):
    (tea / "odd.txt").write_text("<b>&\nrose\n")
    code, _, err = whyrank("bias", "bias/substitution(values=odd.txt,templates=tea.tsv)", "-r", "python:likes.py:rose",
                           "--out", "res", "--delta", "none")  # fmt: skip
    assert code == 0, err
    page = (tea / "res" / "report.html").read_text()
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page


def test_a_pattern_leaves_out_what_lacks_its_values(whyrank):
    code, out, err = whyrank("bias", "bias/*u*", "-r", "bm25", "--delta", "none", "--limit", 4)
    assert code == 0, err
    assert "left out, because it needs values=a+b+c: bias/substitution" in err
    assert "bias/country" in out
    assert "bias/currency" in out


def test_the_published_template_by_option(whyrank):
    code, out, err = whyrank("bias", "bias/when-year", "-r", "bm25", "--compat", "relevance-thesaurus", "--json")
    assert code == 0, err
    assert json.loads(out)[0]["n_templates"] == 1


def test_a_table_is_compared(tea, whyrank):
    (tea / "table.tsv").write_text("drink\tmint\t0.2\ndrink\trose\t0.9\n")
    code, out, err = whyrank("bias", f"{TEA[:-1]},head=drink)", "-r", "python:likes.py:rose", "--table", "table.tsv",
                             "--json", "--delta", "none")  # fmt: skip
    assert code == 0, err
    [result] = json.loads(out)
    assert [row["weight"] for row in result["values"]] == [pytest.approx(0.2), pytest.approx(0.9), None]
    assert any("1 of 3 values have no weight in the table" in note for note in result["notes"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bias/substitution"], "needs its values"),
        (["bias/car-brnd"], "did you mean 'bias/car-brand'"),
        (["bias/substitution(values=a+b,most=x)"], "whole number"),
        (["bias/when-year", "--compat", "abnirml"], "is for probes"),
        (["bias/when-year", "--compat", "abnirm"], "unknown compat mode"),
        (["bias/when-year", "--correction", "hlm"], "unknown correction"),
        (["bias/when-year", "--table", "nofile.tsv"], "nofile.tsv"),
        (["bias/when-year(templates=nofile)"], "is no file"),
    ],
)
def test_wrong_requests_end_with_one_line(arguments, message, whyrank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in one_line(whyrank("bias", *arguments, "-r", "bm25", "--delta", "none"))


@pytest.fixture
def silent(tea):
    """A module of a ranker with no score for some words: each as its name says."""
    lines = ["def rose(q, d): return _but(d, 'rose')", "def two(q, d): return _but(d, 'rose', 'mint')"]
    body = "return [float('nan') if any(w in t for w in words) else float(len(t)) for t in d]"
    (tea / "silent.py").write_text("\n".join([f"def _but(d, *words): {body}", *lines]) + "\n")
    return tea


def test_a_value_that_a_ranker_does_not_score_is_named_and_left_out(silent, whyrank):
    code, out, err = whyrank("bias", TEA, "-r", "python:silent.py:rose", "--json", "--delta", "none")
    [result] = json.loads(out)
    assert code == 0, err
    assert [row["value"] for row in result["values"]] == ["mint", "sage"]
    assert (result["n_templates"], result["unscored"]) == (8, {"rose": 8})
    code, out, _ = whyrank("bias", TEA, "-r", "python:silent.py:rose", "--delta", "none")
    assert "left out, without a finite score in any template: rose" in out


def test_values_because_of_which_nothing_can_be_compared_are_named(silent, whyrank):
    code, _, err = whyrank("bias", TEA, "-r", "python:silent.py:two", "--delta", "none")
    assert code == 2
    told = "has no template with a finite score for every value: it lacks mint, rose; take one that scores any text"
    assert err.splitlines()[-1] == f"whyrank: ranker 'python:silent.py:two' {told}"


def test_bias_studies_and_filters_are_listed(whyrank):
    code, out, _ = whyrank("list", "bias_studies", "bias_filters", "--json")
    listed = json.loads(out)
    assert code == 0
    assert "bias/car-brand" in listed["bias_studies"]
    assert "relevant" in listed["bias_filters"]
    assert all(line for kind in listed.values() for line in kind.values())


def test_a_given_delta_is_not_calibrated(whyrank, tea):
    whyrank("bias", TEA, "-r", "python:likes.py:rose", "--delta", "none", "--store", "none")
    alone = len((tea / "asked.txt").read_text())
    whyrank("bias", TEA, "-r", "python:likes.py:rose", "--delta", "0.1", "--store", "none")
    assert len((tea / "asked.txt").read_text()) == 2 * alone
