from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import axiom, broken_axiom, empty, finding, findings

from whyrank.report import csv_of, to_json, to_latex, to_markdown
from whyrank.report.arrow import findings_of, findings_table, table_of_csv
from whyrank.report.tables import escape_latex, escape_markdown
from whyrank.studies import Finding


def cells(line: str) -> list[str]:
    """The cells of a Markdown row, split at unescaped pipes."""
    return [re.sub(r"\\(.)", r"\1", cell).strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def unlatex(text: str) -> str:
    """What LaTeX shows for an escaped text."""
    named = {
        "backslash": "\\", "asciitilde": "~", "asciicircum": "^", "bar": "|", "less": "<", "greater": ">",
        "asciigrave": "`",
    }  # fmt: skip
    text = re.sub(r"\\text(\w+)\{\}", lambda m: f"\0{ord(named[m[1]])}\0", text)
    text = re.sub(r"\{([][*])\}|\{\}", lambda m: m[1] or "", text)
    text = re.sub(r"\\([{}$&#%_])", r"\1", text)
    return re.sub("\0(\\d+)\0", lambda m: chr(int(m[1])), text)


@settings(max_examples=50)
@given(findings)
def test_findings_survive_csv_arrow_and_json(rows):
    table = findings_table(rows)
    assert findings_of(table_of_csv(csv_of(table), Finding)) == findings_of(table) == rows
    assert [Finding.from_dict(row) for row in json.loads(to_json(rows))] == rows


def test_csv_can_be_read_by_other_programs():
    rows = list(csv.DictReader(io.StringIO(csv_of(findings_table([finding(ranker='a "b", c'), empty()])))))
    assert list(rows[0]) == [field.name for field in fields(Finding)]
    assert rows[0]["ranker"] == 'a "b", c'
    assert float(rows[0]["score"]) == 0.3
    assert (rows[1]["score"], rows[1]["n"], rows[0]["group"]) == ("", "0", "")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "'=", "''-"])
def test_words_are_no_formulas_in_csv(start):
    rows = [
        finding(ranker=f'{start}HYPERLINK("http://evil")', group=f"{start}1", score=-0.25),
        finding(ranker="'quoted'"),
    ]
    text = csv_of(findings_table(rows))
    cells = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["ranker"] for row in cells] == [f"'{rows[0].ranker}", "'quoted'"]
    assert (cells[0]["group"], cells[0]["score"]) == (f"'{start}1", "-0.25")
    assert findings_of(table_of_csv(text, Finding)) == rows


def test_json_knows_no_nan():
    rows = json.loads(to_json([finding(score=math.nan, mean_diff=math.inf)]), parse_constant=pytest.fail)
    assert (rows[0]["score"], rows[0]["mean_diff"]) == (None, None)
    assert rows[0]["n"] == 100


def test_markdown_has_a_row_per_study_and_a_column_per_ranker():
    rows = [
        finding(),
        finding(ranker="ql", score=-0.204, p_adjusted=0.5, delta=2.0),
        finding(study="matched/tf|length"),
    ]
    lines = to_markdown(rows, alpha=0.05, correction="holm").splitlines()
    assert cells(lines[0]) == ["study", "n", "queries", "bm25", "ql"]
    assert cells(lines[2]) == ["matched/length|tf", "100", "20", "+0.30†", "−0.20"]
    assert cells(lines[3]) == ["matched/tf|length", "100", "20", "+0.30†", "–"]
    assert {line.count("|") - line.count(r"\|") for line in lines[:4]} == {6}


def test_groups_follow_their_study():
    rows = [
        finding(),
        finding(group="both relevant", n=7),
        finding(study="matched/tf|length"),
        finding(ranker="ql"),
        finding(ranker="ql", group="both relevant", n=7),
    ]
    lines = to_markdown(rows).splitlines()
    assert cells(lines[0]) == ["study", "group", "n", "queries", "bm25", "ql"]
    assert [cells(line)[:3] for line in lines[2:5]] == [
        ["matched/length|tf", "all", "100"],
        ["matched/length|tf", "both relevant", "7"],
        ["matched/tf|length", "all", "100"],
    ]
    assert cells(lines[3])[4:] == ["+0.30†", "+0.30†"]


def test_the_control_stands_in_brackets_and_is_explained():
    rows = [finding(control=-0.021), finding(ranker="ql", control=None, p_adjusted=0.9)]
    markdown, latex = to_markdown(rows), to_latex(rows)
    assert cells(markdown.splitlines()[2])[3:] == ["+0.30† (−0.02)", "+0.30"]
    assert r"$+0.30^{\dagger}$ ($-0.02$) & $+0.30$ \\" in latex
    for text in (markdown, latex):
        assert "In brackets: the score of the control" in text


AXIOMS = [
    axiom(),
    axiom(ranker="ql", satisfied=1.0, satisfied_low=1.0, satisfied_high=1.0),
    broken_axiom(conclusion="weak", with_relevant=None, agreement=None),
    broken_axiom(ranker="ql", ci_high=0.1, conclusion="weak", with_relevant=None, agreement=None),
]


def test_axioms_have_a_markdown_table_of_their_own():
    scores, axioms = to_markdown([finding(), *AXIOMS], correction="holm").split("\n\n| axiom")
    assert cells(scores.splitlines()[2]) == ["matched/length|tf", "100", "20", "+0.30†"]
    assert "TFC1" not in scores
    lines = ("| axiom" + axioms).splitlines()
    assert cells(lines[0]) == ["axiom", "conclusion", "n", "queries", "agreement", "bm25", "ql"]
    assert cells(lines[2]) == ["axiom/TFC1", "strict", "104", "20", "84.0%", "90.0%†", "100.0%†"]
    assert cells(lines[3]) == ["axiom/TP", "weak", "104", "20", "–", "22.0%‡", "22.0%"]
    assert "‡ one below it" in lines[5]
    assert "Holm correction" in lines[5]
    assert "δ per ranker: bm25 0; ql 0." in lines[5]
    assert lines[1] == "| --- | --- | ---: | ---: | ---: | ---: | ---: |"


def test_axioms_have_a_latex_table_of_their_own():
    text = to_latex([finding(), *AXIOMS], caption="Both.", label="tab:x")
    assert re.findall(r"\\label\{(.*?)\}", text) == ["tab:x", "tab:x-axioms"]
    assert text.count("Both.") == 2
    assert r"\begin{tabular}{llrrrrr}" in text
    assert r"Axiom & Conclusion & $n$ & Queries & Agreement & BM25 & QL \\" in text
    row = r"more query words, same length & strict & 104 & 20 & 84.0\% & 90.0\%$^{\dagger}$ & 100.0\%$^{\dagger}$ \\"
    assert row in text.splitlines()
    assert r"22.0\%$^{\ddagger}$" in text
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")


def test_latex_is_a_booktabs_table():
    rows = [
        finding(),
        finding(ranker="ql", score=-0.5),
        finding(study="a_b|c%", p_adjusted=0.9),
        finding(n=1234, study="z"),
    ]
    text = to_latex(rows, caption="50% of_all", label="tab:x", correction="holm")
    lines = text.splitlines()
    assert [r"\toprule" in text, r"\midrule" in text, r"\bottomrule" in text] == [True] * 3
    assert r"\begin{tabular}{lrrrr}" in lines
    assert r"longer, same counts of each query word & 100 & 20 & $+0.30^{\dagger}$ & $-0.50^{\dagger}$ \\" in lines
    assert r"a\_b\textbar{}c\% & 100 & 20 & $+0.30$ & -- \\" in lines
    assert r"z & 1,234 & 20 & $+0.30^{\dagger}$ & -- \\" in lines
    caption = next(line for line in lines if line.startswith(r"\caption"))
    assert r"50\% of\_all" in caption
    assert "Holm correction" in caption
    assert r"$\delta$ per ranker: BM25 0.125; QL 0.125" in caption
    assert r"$^{\dagger}$ marks p \textless{} 0.05" in caption
    assert r"\label{tab:x}" in lines


def test_latex_has_chosen_rows_and_bold_differences():
    rows = [
        finding(),
        finding(ranker="ql"),
        finding(study="edited/typos"),
        finding(study="edited/typos", ranker="ql"),
    ]
    assert to_latex(rows, studies=["edited/*"]).count(r" \\") == 2
    for p, bold in ((0.01, True), (0.2, False)):
        tested = finding(ranker="ql", baseline="bm25", difference_p=0.001, difference_adjusted=p)
        text = to_latex([finding(), tested])
        assert (r"$\mathbf{+0.30}^{\dagger}$" in text) is bold
        assert r"Bold: differs from BM25, p \textless{} 0.05." in text
        assert r"& BM25 & QL & QL $-$ BM25 \\" in text, "differences have the names that columns have"
    assert r"\mathbf" not in to_latex(rows)


def test_latex_braces_balance_whatever_the_names():
    text = to_latex([finding(study="{{}", ranker="\\}$", group="%\n")], caption="}")
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"(?<!\\)%", text)


@given(st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="δ†‡−–")))
def test_latex_escaping_keeps_the_text(text):
    assert unlatex(escape_latex(text)) == text


@given(st.text(st.characters(exclude_categories=["C", "Z"])))
def test_markdown_escaping_keeps_the_text(text):
    escaped = escape_markdown(text)
    assert re.sub(r"\\([\\`*_\[\]<>|&~])", r"\1", escaped) == text
    assert not re.search(r"(?<!\\)(?:\\\\)*[|<`]", escaped)


def test_line_breaks_become_blanks():
    assert escape_markdown("a\n\tb\r\x00c") == "a b c"
    assert escape_latex("a\n\\b") == r"a \textbackslash{}b"


def test_hyphens_do_not_join():
    assert escape_latex("a---b") == "a-{}-{}-b"
