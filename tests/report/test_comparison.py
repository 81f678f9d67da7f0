"""Two audits side by side: what was planted comes first, in the right direction, with the right figures."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from report_samples import NASTY

import whyrank
from toy_bias import BRANDS, Toy, toy_collection
from whyrank.core import UnknownName, WhyrankError
from whyrank.report import behaviour_card, check_rules, plain
from whyrank.report.gate import Rule

CARS = f"bias/substitution(values={'+'.join(BRANDS[:4])},head=car)"
SHUFFLED = "edited/shuffle-words"
STUDIES = [SHUFFLED, "edited/case-fold", "edited/typos", "edited/repeat-document", "axiom/TFC1"]
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Reader:
    """Counts query words; with `order`, dislikes known words that are no neighbours in any text of the sample."""

    order: float
    name: str = "reader"

    def score(self, queries, docs):
        return np.array([self.one(set(WORD.findall(q.lower())), d) for q, d in zip(queries, docs, strict=True)])

    def one(self, query, doc):
        words, (known, neighbours) = WORD.findall(doc.lower()), sample_words()
        pairs = list(pairwise(words))
        odd = sum(known.issuperset(pair) and pair not in neighbours for pair in pairs) / max(1, len(pairs))
        return sum(word in query for word in words) / 4 - self.order * odd


@cache
def sample_words():
    """All words of the sample, and all pairs of neighbours."""
    texts = [WORD.findall(text.lower()) for text in whyrank.open_collection("sample").docs.values()]
    return {word for text in texts for word in text}, {pair for text in texts for pair in pairwise(text)}


def biased(gain, **settings):
    ranker = Toy(1, words=(("honda", gain),), scale=0.05)
    return whyrank.audit(ranker, toy_collection(), [SHUFFLED, "edited/typos", CARS], delta=0.5, **settings)


@pytest.fixture(scope="module")
def cars():
    return biased(0.5), biased(1.5)


def test_a_ranker_blind_to_word_order_is_named_first():
    blind, reading = (whyrank.audit(Reader(o), "sample", STUDIES, delta=0.5, limit=150) for o in (0.0, 1.0))
    found = blind.compare(reading)
    first, *rest = found.rows
    assert (first.study, first.unit, first.n) == (SHUFFLED, "score", 150)
    assert first.difference < -0.7
    assert not any(row.significant() for row in rest)
    assert found.headlines() == [first.text]
    before, after = (f"reader ({name} audit)" for name in ("first", "second"))
    shares = [round(100 * audit[SHUFFLED].findings[0].negative / 150) for audit in (reading, blind)]
    said = f"prefers the original in {shares[0]}% of 150 pairs from 39 queries; {before} in {shares[1]}%"
    assert first.text == f"Word order. With shuffled words, {after} {said}."


def test_a_stronger_bias_is_named_first(cars):
    found = whyrank.compare(*cars)
    assert found.rows[0].study == CARS
    assert found.rows[0].difference == pytest.approx(2.0), "from 0.5 to 1.5, with a delta of 0.5"
    assert {row.study for row in found.rows if row.significant()} == {CARS}
    assert {row.value for row in found.rows if row.significant()} == {"", "honda", "ford", "toyota", "volvo"}
    [line] = found.headlines()
    assert line.startswith("Brands and names. With only the name changed, toy1 (second audit) favours honda over ")
    assert re.search(r", by 3\.\d rank steps; toy1 \(first audit\) by 1\.\d\.$", line)


def test_without_ties_a_sentence_counts_the_pairs_that_obey():
    """The shares of both texts move as far then, and rounding must not choose between them."""
    worse = whyrank.audit(Reader(0.0), "sample", "axiom/TFC1", limit=50)
    [row] = whyrank.audit("bm25", "sample", "axiom/TFC1", limit=50).compare(worse).studies
    kept = round(100 * worse["axiom/TFC1"].findings[0].positive / 50)
    assert kept < 100
    assert f"prefers the one with more query words in {kept}% of 50 pairs" in row.text
    assert row.text.endswith("; bm25 in 100%.")


def test_folders_give_the_same_as_memory(cars, tmp_path):
    for name, audit in zip(("old", "new"), cars, strict=True):
        audit.save(tmp_path / name)
    stored, held = whyrank.compare(str(tmp_path / "old"), tmp_path / "new"), cars[0].compare(cars[1])
    assert [row.difference for row in stored.rows] == [row.difference for row in held.rows]
    assert [row.difference_p for row in stored.rows] == [row.difference_p for row in held.rows]
    assert (stored.first, stored.second) == ("old", "new")
    assert "toy1 (new)" in str(stored)


def test_two_rankers_are_audited_on_the_same_contrasts_and_measured():
    found = whyrank.compare("bm25", "ql", "sample", ["matched/length|overlap", "axiom/TFC1"], limit=50)
    assert {row.study for row in found.studies} == {"matched/length|overlap", "axiom/TFC1"}
    assert [row.unit for row in found.effectiveness] == ["nDCG@10", "AP(rel=2)@100", "RR(rel=2)@10"]
    sample = whyrank.open_collection("sample")
    [measured] = [row for row in found.effectiveness if row.unit == "nDCG@10"]
    assert measured.n == len(sample.qrels)
    assert measured.difference == pytest.approx(measured.figure - measured.baseline_figure)
    assert found.headlines() == ["No study shows a significant difference between ql and bm25."]


def test_other_contrasts_are_matched_by_text_and_counted(cars):
    half = biased(0.5, limit=20)
    found = whyrank.compare(half, cars[1])
    [row] = [row for row in found.rows if row.study == SHUFFLED]
    assert row.n == 20
    assert any("compared on the 20 contrasts that both have" in note for note in found.notes)


def test_without_a_contrast_in_common_a_study_is_not_compared(cars):
    other = whyrank.audit(Toy(1), toy_collection(about=" today"), [SHUFFLED, "edited/case-fold"], delta=0.5)
    found = whyrank.compare(cars[0], other)
    assert found.rows == ()
    assert found.headlines() == ["No study could be compared of second audit and first audit."]
    assert dict(found.uncompared)[SHUFFLED].startswith("the audits have no contrast in common")
    assert "only in second audit: edited/case-fold" in found.notes
    with pytest.raises(WhyrankError, match="no study in common"):
        whyrank.compare(cars[0], whyrank.audit(Toy(1), toy_collection(), "edited/case-fold", delta=0.5))


def test_a_study_that_the_second_audit_lacks_fails_a_rule_on_drift(cars):
    """An audit in which a study was forgotten must not pass the gate."""
    fewer = replace(cars[1], findings=[f for f in cars[1] if f.study != SHUFFLED])
    found = whyrank.compare(cars[0], fewer)
    assert found.uncompared == ((SHUFFLED, "second audit does not have it"),)
    gate = check_rules([Rule.of("drift", "at most 9")], fewer, found)
    assert [(check.study, check.passed) for check in gate.checks] == [(SHUFFLED, False), ("edited/typos", True)]
    assert check_rules([Rule.of("drift edited/typos", "at most 9")], fewer, found).passed


def test_measures_alone_are_no_comparison_of_behaviour():
    one, two = (
        whyrank.audit("bm25", "sample", each, limit=10, effectiveness=True)
        for each in ("axiom/TFC1", "edited/case-fold")
    )
    assert one.effectiveness
    with pytest.raises(WhyrankError, match="no study in common"):
        one.compare(two)


class TestRankers:
    @pytest.fixture
    def several(self):
        return whyrank.audit([Toy(1), Toy(2)], toy_collection(), SHUFFLED, delta=0.1)

    def test_those_of_the_same_name(self, several):
        found = several.compare(several)
        assert [(row.baseline, row.ranker) for row in found.rows] == [
            (f"toy{i} (first audit)", f"toy{i} (second audit)") for i in (1, 2)
        ]
        assert {row.difference for row in found.rows} == {0.0}

    def test_those_that_are_named(self, several):
        [row] = several.compare(several, rankers=("toy1", "toy2")).rows
        scores = [finding.score for finding in several]
        assert (row.baseline, row.ranker, row.difference) == ("toy1", "toy2", pytest.approx(scores[1] - scores[0]))
        with pytest.raises(UnknownName, match="toy2"):
            several.compare(several, rankers=("toy3",))

    def test_none_in_common(self, several):
        other = whyrank.audit([Toy(3), Toy(4)], toy_collection(), SHUFFLED, delta=0.1)
        with pytest.raises(WhyrankError, match="no ranker is in both audits"):
            several.compare(other)
        with pytest.raises(WhyrankError, match="neither an audit nor its folder"):
            whyrank.compare(several, "bm25")


def test_hostile_names_are_shown_and_not_run():
    rankers = [Toy(1, scale=0.1), Reader(0.0, name=NASTY)]
    audit = whyrank.audit(rankers, toy_collection(), SHUFFLED, delta=0.1)
    found = audit.compare(audit, rankers=("toy1", NASTY))
    assert "<script" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()
    for page in (found.to_markdown(), behaviour_card(audit, found)):
        assert r"\<script\>" in page
        assert not re.search(r"(?<!\\)<script", page)


def test_as_json_and_as_a_data_frame(cars):
    found = cars[0].compare(cars[1])
    record = json.loads(json.dumps(plain(found.to_dict())))
    assert record["headlines"] == found.headlines()
    assert [row["difference"] for row in record["rows"]] == [row.difference for row in found.rows]
    pytest.importorskip("pandas")
    assert found.to_pandas()["study"].tolist() == [row.study for row in found.rows]


def test_a_behaviour_card_has_sentences_changes_and_findings(cars):
    found = cars[0].compare(cars[1])
    card = behaviour_card(cars[1], found)
    assert card.startswith("# Behaviour of toy1\n")
    for words in (
        f"3 studies with {sum(f.n for f in cars[1]):,} contrasts on toys",
        "## What changed",
        "## Findings",
    ):
        assert words in card
    assert "favours honda over" in card
