"""Bias studies in `whyrank audit`: what is asked, what is written, and that it is what `whyrank bias` says."""

from __future__ import annotations

import json

import pytest

from refusals import one_line
from whyrank.core import BadInput
from whyrank.report import read_findings, read_settings
from whyrank.report.bias import read_bias_results
from whyrank.studies import DEMO_BIAS, every_kind, everything, usual_studies

TEA = "bias/substitution(values=mint+rose+sage,templates=tea.tsv,head=drink)"
ROSE = "python:likes.py:rose(version=1)"
FILES = ("values.csv", "pairs.csv", "correlations.csv")


def untimed(results):
    return [{name: value for name, value in r.as_dict().items() if name != "seconds"} for r in results]


def test_results_are_those_of_the_command_bias(tea, whyrank):
    (tea / "table.tsv").write_text("drink\tmint\t0.2\ndrink\trose\t0.9\n")
    options = ["-r", ROSE, "-r", "bm25", "--seed", 4, "--correction", "bh", "--limit", 6, "--table", "table.tsv"]
    studies = [TEA, "bias/country", "bias/postfix-letter"]
    first = whyrank("audit", *studies, "TFC1", *options, "--out", "whole")
    second = whyrank("bias", *studies, *options, "--out", "alone")
    assert (first[0], second[0]) == (0, 0), first[2] + second[2]
    found, alone = read_bias_results("whole"), read_bias_results("alone")
    assert untimed(found) == untimed(alone)
    assert len(found) == 6
    assert [row.weight for row in found[0].values] == [pytest.approx(0.2), pytest.approx(0.9), None]
    for name in FILES:
        assert (tea / "whole" / "bias" / name).read_bytes() == (tea / "alone" / "bias" / name).read_bytes()
    drawings = {path.name for path in (tea / "alone" / "bias").glob("*.svg")}
    assert {path.name for path in (tea / "whole" / "bias").glob("*.svg")} == drawings
    assert len(drawings) == 3
    assert '<a href="table.html">all entries of table.tsv</a>' in (tea / "whole" / "report.html").read_text()
    assert '"rose"' in (tea / "whole" / "table.html").read_text()


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


def test_the_report_shows_what_it_favours(tea, whyrank):
    code, out, err = whyrank("audit", TEA, "-r", ROSE, "--delta", "0.1", "--out", "res")
    assert code == 0, err
    page = (tea / "res" / "report.html").read_text()
    for words in ("What it favours", "Largest differences", "8 templates kept", "<title>rose:", "favours"):
        assert words in page
    assert page.count('<circle class="dot"') == 3
    assert "templates   independent" in out
    assert "1 study with 24 contrasts" in err


def test_markup_in_values_stays_text(tea, whyrank):
    (tea / "odd.txt").write_text("<b>&\n<script>alert(1)</script>\nrose\n")
    study = "bias/substitution(values=odd.txt,templates=tea.tsv)"
    code, _, err = whyrank("audit", study, "-r", ROSE, "--delta", "0.1", "--out", "res")
    assert code == 0, err
    page = (tea / "res" / "report.html").read_text()
    assert "<b>&" not in page
    assert "<script>alert" not in page
    assert "&lt;b&gt;&amp;" in page


def test_scores_are_asked_for_once(tea, whyrank):
    """What an audit has scored is in the store: the same command, and `bias`, ask for a sample of it and no more."""
    asked = ["-r", ROSE, "--delta", "0.1", "--store", "scores.sqlite"]
    assert whyrank("audit", TEA, *asked, "--out", "res")[0] == 0
    before = len((tea / "asked.txt").read_text())
    assert before >= 24, "every text of the grid, and those of the overlap split"
    assert whyrank("bias", TEA, *asked)[0] == 0
    assert whyrank("audit", TEA, *asked, "--out", "res")[0] == 0
    assert len((tea / "asked.txt").read_text()) == before + 2 * 4


def test_an_older_result_is_replaced(tea, whyrank):
    for study in (TEA, "matched/length|tf"):
        assert whyrank("audit", study, "-r", "bm25", "--out", "res")[0] == 0
    assert not (tea / "res" / "bias").exists()
    with pytest.raises(BadInput, match=r"has no bias\.json"):
        read_bias_results("res")


def test_without_names_all_probes_and_axioms_and_on_the_sample_a_bias_study():
    for collection, more in (("sample", ["bias/car-brand"]), ("elsewhere", [])):
        found = {name for pattern in usual_studies(collection) for name in every_kind().match(pattern)}
        assert found == {*everything().names(), *more}
        assert not found & set(usual_studies(collection)) - set(more), (
            "what is found and cannot run is left out, not an error"
        )


def test_the_default_study_has_templates_enough(tmp_path, whyrank):
    code, out, err = whyrank("audit", *DEMO_BIAS, "-r", "bm25", "--out", tmp_path / "res")
    assert code == 0, err
    [result] = read_bias_results(tmp_path / "res")
    assert result.n_clusters >= 6, "fewer independent templates cannot be significant"
    assert "bias/car-brand" in out


def test_a_collection_without_values_has_written_templates(tmp_path, whyrank):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "corpus.jsonl").write_text(
        '{"id": "a", "text": "tea is hot"}\n{"id": "b", "text": "a drink of tea"}\n'
    )
    (tmp_path / "docs" / "queries.tsv").write_text("q\thot tea\n")
    (tmp_path / "docs" / "qrels.txt").write_text("q 0 a 1\nq 0 b 0\n")
    asked = ["-c", tmp_path / "docs", "-r", "bm25", "--out", tmp_path / "res"]
    assert whyrank("audit", "bias/currency", "matched/length|tf", *asked)[0] == 0
    assert [f.study for f in read_findings(tmp_path / "res")] == ["matched/length|tf", "bias/currency"]
    assert read_bias_results(tmp_path / "res")[0].n_templates == 8


def test_the_published_template_by_option(whyrank):
    code, out, err = whyrank("audit", "bias/when-year", "TFC1", "-r", "bm25", "--compat", "relevance-thesaurus",
                             "--json")  # fmt: skip
    assert code == 0, err
    assert [row["n"] for row in json.loads(out)][1] == 25 * 24 / 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bias/substitution"], "needs its values"),
        (["bias/car-brnd"], "did you mean 'bias/car-brand'"),
        (["TFC1", "--table", "table.tsv"], "--table is for bias studies"),
        (["bias/when-year", "--table", "nofile.tsv"], "nofile.tsv"),
        (["bias/when-year", "--compat", "abnirml"], "is for probes"),
    ],
)
def test_wrong_requests_end_with_one_line(arguments, message, whyrank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.tsv").write_text("drink\tmint\t0.2\n")
    assert message in one_line(whyrank("audit", *arguments, "-r", "bm25"))
