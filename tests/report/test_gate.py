"""Rules on behaviour: what holds, what fails, and what cannot be checked."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_samples import NASTY, axiom, finding

from whyrank.core import BadInput
from whyrank.evaluation import Effectiveness
from whyrank.report import Audit, Change, Comparison, Gate, check_rules, read_rules
from whyrank.report.gate import Check, Rule

TYPOS = finding(study="edited/typos", score=-0.35, ci_low=-0.45, ci_high=-0.25)
BIAS = finding(study="bias/car-brand", score=0.4, range=0.9, range_deltas=1.8)
MEASURED = [Effectiveness.of("bm25", "nDCG@10", {"a": 0.5, "b": 0.7})]
AUDIT = Audit([TYPOS, axiom(), BIAS], effectiveness=MEASURED)


def change(study, difference, low, high, adjusted, unit="score"):
    figures = (0.5 + difference, 0.5, difference, low, high, adjusted, adjusted)
    return Change(study, "bm25", "old", "", unit, 50, 20, *figures)


COMPARISON = Comparison(
    "old",
    "bm25",
    (
        change("edited/typos", -0.3, -0.4, -0.2, 0.01),
        change("axiom/TFC1", 0.2, -0.1, 0.5, 0.4, "share satisfied"),
        change("bias/car-brand", 1.5, 1.0, 2.0, 0.01, "deltas"),
        change("effectiveness", -0.02, -0.05, 0.01, 0.3, "nDCG@10"),
    ),
    uncompared=(("edited/case-fold", "no contrast in common"),),
)


def checks(key, text, comparison=COMPARISON):
    return {check.study: check for check in check_rules([Rule.of(key, text)], AUDIT, comparison).checks}


@pytest.mark.parametrize(
    ("key", "text", "passed"),
    [
        ("edited/typos", "at least -0.4", True),
        ("edited/typos", "surely at least -0.4", False),
        ("edited/typos", "at most -0.36", False),
        ("edited/*", "surely at most -0.2", True),
        ("axiom/TFC1", "at least 0.9", True),
        ("axiom/TFC1", "at least 90%", True),
        ("axiom/TFC1", "surely share at least 0.9", False),
        ("axiom/TFC1", "score at most 0.5", False),
        ("bias/car-brand", "range at most 2 deltas", True),
        ("bias/car-brand", "at most 1.5 deltas", False),
        ("bias/car-brand", "range at most 1", True),
        ("drift edited/typos", "at most 0.3", True),
        ("drift edited/typos", "surely at most 0.3", False),
        ("drift axiom/*", "at most 0.1", False),
        ("drift axiom/*", "at most 0.1 where significant", True),
        ("drift", "at most 1.6 deltas", True),
        ("effectiveness", "nDCG@10 drop at most 0.02", True),
        ("effectiveness", "nDCG@10 drop at most 0.01", False),
        ("effectiveness", "surely nDCG@10 drop at most 0.02", False),
        ("effectiveness", "nDCG@10 at least 0.6", True),
        ("effectiveness", "surely nDCG@10 at least 0.6", False),
    ],
)
def test_a_rule_holds_for_the_estimate_or_surely_for_its_interval(key, text, passed):
    [check] = checks(key, text).values()
    assert check.passed is passed, check


def test_drift_covers_every_study_and_a_study_that_cannot_be_compared_fails():
    found = checks("drift", "at most 0.25 where significant")
    assert {study: check.passed for study, check in found.items()} == {
        "edited/typos": False, "axiom/TFC1": True, "edited/case-fold": False,
    }  # fmt: skip
    assert "no contrast in common" in found["edited/case-fold"].found


def test_a_study_without_contrasts_fails_by_name_and_is_left_out_of_a_pattern():
    empty = finding(study="edited/doc2query", n=0, score=None, ci_low=None, ci_high=None)
    audit = Audit([TYPOS, empty])
    assert not check_rules([Rule.of("edited/doc2query", "at least -1")], audit).passed
    assert [c.study for c in check_rules([Rule.of("edited/*", "at least -1")], audit).checks] == ["edited/typos"]


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("edited/typo", "at least 0", "did you mean 'edited/typos'"),
        ("drift edited/case", "at most 1", "matches no study that was compared"),
        ("effectiveness", "RR@10 at least 0.5", "was not measured"),
        ("edited/typos", "share at least 0.5", "only axioms"),
        ("edited/typos", "range at most 1", "only bias studies"),
        ("edited/typos", "at most 1 deltas", "only a range"),
        ("bias/*", "surely range at most 1 deltas", "no interval"),
    ],
)
def test_a_rule_that_cannot_be_checked_is_an_error(key, text, words):
    with pytest.raises(BadInput, match=words) as error:
        checks(key, text)
    assert str(error.value).startswith(f"rules: {key}: ")


@pytest.mark.parametrize(("key", "text"), [("drift", "at most 1"), ("effectiveness", "nDCG@10 drop at most 1")])
def test_changes_need_two_audits(key, text):
    with pytest.raises(BadInput, match="needs two audits"):
        checks(key, text, None)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "has no rules"),
        ("- a\n- b\n", "has no rules"),
        ("a: [", "malformed YAML"),
        ("edited/typos: 3", "edited/typos: a rule is a text"),
        ("edited/typos: []", "edited/typos: a rule is a text"),
        ("edited/typos: {at least: 3}", "edited/typos: a rule is a text"),
        ("1: at least 3", "1: a rule is a text"),
        ("a: at leest 3", "a: 'at leest 3' is no rule"),
        ("a: at least nan", "is no rule"),
        ("a: at least 1e999", "a: .*finite"),
        ("a: width at least 3", "a: .*'width' is no figure"),
        ("a: at least 3 where significant", "a: .*is for drift"),
        ("drift: at least 3", "drift: .*at most"),
        ("effectiveness: at most 3", "effectiveness: .*name a measure"),
        ("effectiveness: nDGC@10 at most 3", "effectiveness: measure 'nDGC@10'"),
        ("a: at least 3\na: at most 4", ":2: there are two rules with the name 'a'; write them as a list"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_file_and_key(tmp_path, content, words):
    path = tmp_path / "behaviour.yaml"
    path.write_text(content)
    with pytest.raises(BadInput, match=words) as error:
        read_rules(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)


def test_several_rules_of_one_study(tmp_path):
    path = tmp_path / "behaviour.yaml"
    path.write_text("'edited/*': [at least -1, surely score at most 0.5]\ndrift: at most 10%\n")
    found = [(rule.key, rule.side, rule.limit, rule.surely) for rule in read_rules(path)]
    assert found == [
        ("edited/*", "at least", -1, False), ("edited/*", "at most", 0.5, True), ("drift", "at most", 0.1, False),
    ]  # fmt: skip


def test_the_rules_of_the_manual_are_rules(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "gate-a-model.md").read_text(encoding="utf-8")
    first, second, _ = (block.split("```")[0] for block in page.split("```yaml\n")[1:])
    path = tmp_path / "behaviour.yaml"
    path.write_text(first + second, encoding="utf-8")
    kinds = [rule.kind for rule in read_rules(path)]
    assert kinds == ["study"] * 3 + ["drift"] + ["study"] * 3 + ["drift", "effectiveness"]


def test_what_fails_comes_first_in_every_form():
    gate = Gate(tuple(checks("drift", "at most 0.25").values()))
    assert [line.split()[0] for line in gate.lines] == ["FAILED", "FAILED"], "a rule that fails is not said to pass"
    assert gate.to_markdown().splitlines()[4].startswith("| **failed** |")
    assert gate.summary == "2 of 3 checks failed"
    assert [check["passed"] for check in gate.to_dict()["checks"]] == [False, False, True]


def test_junit_is_valid_whatever_the_names():
    gate = Gate((Check(NASTY, "at most 1\x00\x1b", NASTY, NASTY + "\ud800", "<&>\uffff", passed=False),))
    root = ElementTree.fromstring(gate.to_junit().encode())
    assert (root.get("tests"), root.get("failures")) == ("1", "1")
    [case] = root.iter("testcase")
    assert case.get("name").startswith(NASTY)
    assert case.find("failure").get("message") == "<&>\ufffd"
