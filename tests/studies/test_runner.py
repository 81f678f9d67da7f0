"""From a collection to findings, whatever the batch size, the executor and the order of input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whyrank
from whyrank.core import WhyrankError, executor
from whyrank.data import Collection, open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine, ScoreStore
from whyrank.studies import (
    Plan,
    Threshold,
    answers,
    candidates_for_delta,
    given_thresholds,
    needs_calibration,
    sweep,
    thresholds,
    with_adjusted_p,
)
from whyrank.studies.axioms import axioms
from whyrank.studies.probes import probes

STUDIES = ["matched/relevance|length", "matched/length|tf", "matched/overlap|relevance", "matched/tf|sum-tf"]


def plan_over(collection, engine=None, specs=("bm25", "ql"), seed=0, limit=None, by=None):
    engine = engine or Engine()
    rankers = [open_ranker(spec, Setting(collection)) for spec in specs]
    deltas = thresholds("p50", rankers, candidates_for_delta(collection), engine)
    studies = {name: probes.create(name, tolerance="10%") for name in STUDIES}
    return Plan(collection, studies, rankers, engine, deltas, seed, limit, by)


def findings_of(plan):
    found = [finding for answer in answers(plan) for finding in answer.findings]
    return [replace(finding, seconds=0.0) for finding in found]


@pytest.fixture(scope="module")
def sample():
    return open_collection("sample")


@pytest.fixture(scope="module")
def expected(sample):
    return findings_of(plan_over(sample))


@given(size=st.integers(1, 400))
@settings(max_examples=4, deadline=None)
def test_batch_size_does_not_matter(sample, expected, size):
    assert findings_of(plan_over(sample, Engine(batch_size=size))) == expected


def test_executor_does_not_matter(sample, expected):
    assert findings_of(plan_over(sample, Engine(executor=executor("processes")))) == expected


def test_store_does_not_matter(sample, expected, tmp_path):
    for _ in range(2):
        assert findings_of(plan_over(sample, Engine(ScoreStore(tmp_path / "s.sqlite")))) == expected


@given(random=st.randoms())
@settings(max_examples=3, deadline=None)
def test_order_of_input_does_not_matter(sample, expected, random):
    """Documents, queries and judgements in any order: the same findings to the bit, fingerprints included."""
    docs, queries = list(sample.docs.items()), list(sample.queries.items())
    qrels = [(q, d, g) for q, judged in sample.qrels.items() for d, g in judged.items()]
    for part in (docs, queries, qrels):
        random.shuffle(part)
    mixed = Collection.of(docs, queries, qrels, name=sample.name, grades=sample.grades, runs=dict(sample.runs))
    assert findings_of(plan_over(mixed)) == expected


def test_breakdown_adds_up(sample):
    found = findings_of(plan_over(sample, by="relevance_group"))
    whole = {(f.study, f.ranker): f for f in found if f.group is None}
    for key, total in whole.items():
        parts = [f for f in found if f.group is not None and (f.study, f.ranker) == key]
        assert sum(f.n for f in parts) == total.n
        assert sum(f.positive for f in parts) == total.positive


def test_correction_is_over_the_whole_table(expected):
    raw = np.array([np.nan if f.p_value is None else f.p_value for f in expected])
    corrected = with_adjusted_p(expected, "bonferroni")
    for finding, p in zip(corrected, raw, strict=True):
        assert finding.p_adjusted == (None if np.isnan(p) else pytest.approx(min(1.0, p * np.isfinite(raw).sum())))


def test_sweep_meets_the_finding_at_its_own_delta(sample):
    plan = plan_over(sample, specs=("bm25",))
    for answer in answers(plan):
        points = sweep(answer, plan.thresholds["bm25"])
        assert [p.percentile for p in points] == list(range(100))
        at_median = points[50]
        assert at_median.delta == answer.findings[0].delta
        assert at_median.score == (answer.findings[0].score if answer.findings[0].n else None)
    with pytest.raises(WhyrankError, match="calibration"):
        sweep(answer, Threshold(0.1))


class TestExactStudies:
    """Axioms count every difference, unless a delta is asked for; other studies have the calibrated one."""

    STUDIES = {"axiom/TFC1": axioms.create("axiom/TFC1"), "matched/length|tf": probes.create("matched/length|tf")}

    def asked(self, sample, spec, studies=None):
        rankers, engine = [open_ranker("bm25", Setting(sample))], Engine()
        used = thresholds(spec, rankers, candidates_for_delta(sample), engine)
        plan = Plan(sample, studies or self.STUDIES, rankers, engine, used)
        return {finding.study: finding for finding in findings_of(plan)}, used["bm25"]

    def test_without_a_delta(self, sample):
        found, used = self.asked(sample, None)
        assert (found["axiom/TFC1"].delta, found["matched/length|tf"].delta) == (0, used.calibration.quantile(0.5))

    @pytest.mark.parametrize("spec", ["p50", "0.25"])
    def test_a_given_delta_is_for_all(self, sample, spec):
        found, used = self.asked(sample, spec)
        assert {finding.delta for finding in found.values()} == {used.delta}
        assert used.delta > 0

    def test_calibration_only_where_it_is_needed(self):
        axiom, probe = self.STUDIES.values()
        assert [needs_calibration(spec, [axiom]) for spec in (None, "0.1", "p50")] == [False, False, True]
        assert [needs_calibration(spec, [axiom, probe]) for spec in (None, "0.1", "p50")] == [True, False, True]

    def test_thresholds_without_a_calibration(self, sample):
        rankers = [open_ranker("bm25", Setting(sample))]
        assert given_thresholds("0.5", rankers) == {"bm25": Threshold(0.5, exact=0.5)}
        [used] = given_thresholds(None, rankers).values()
        assert (used.delta, used.exact, used.calibration) == (0, 0, None)
        assert "axioms" in used.source
        with pytest.raises(WhyrankError, match="p50"):
            given_thresholds("median", rankers)


class Rounded:
    """Scores by length, with an error of up to 0.004."""

    name, tie_tolerance = "rounded", 0.01

    def score(self, queries, docs):
        return [len(doc) // 20 + len(doc) % 5 / 1000 for doc in docs]


class TestTieTolerance:
    DOCS = {"a": "x" * 21, "b": "x" * 23, "c": "x" * 44}
    COLLECTION = Collection.of(DOCS, {"q": "x"}, {"q": {"a": 2, "b": 1, "c": 0}})

    def counts(self, delta):
        [finding] = whyrank.audit(Rounded(), self.COLLECTION, "axiom/ORACLE", delta=delta)
        return finding.delta, finding.positive, finding.neutral, finding.negative

    def test_no_delta_is_below_it(self):
        assert self.counts(None) == self.counts(0) == (0.01, 0, 1, 2)
        assert self.counts(5) == (5, 0, 3, 0)
        used = thresholds("p0", [Rounded()], candidates_for_delta(self.COLLECTION), Engine())["rounded"]
        assert (used.delta, used.exact, used.source) == (0.01, 0.01, "tie tolerance of the ranker")


class TestConclusions:
    def test_agreement_with_the_judgements_of_the_collection(self):
        """d1 has more query terms than d2 and d3: it is better than d2, and worse than d3; d4 is unjudged."""
        docs = {"d1": "cat cat", "d2": "cat dog", "d3": "cat cow", "d4": "cat pig"}
        collection = Collection.of(docs, {"q": "cat"}, {"q": {"d1": 2, "d2": 1, "d3": 3}}, name="dl19",
                                   runs={"r": {"q": dict.fromkeys(docs, 1.0)}})  # fmt: skip
        study = axioms.create("axiom/TFC1", analyzer="whitespace", pairs="all")
        found, _ = TestExactStudies().asked(collection, "0", {"x": study})
        assert (found["x"].n, found["x"].with_relevant, found["x"].decided) == (3, 3, 3)
        assert found["x"].agreement == pytest.approx(2 / 3)

    def test_a_query_in_several_blocks_is_one_cluster(self, monkeypatch, sample):
        monkeypatch.setattr("whyrank.studies.axioms.axiom.BLOCK", 8)
        split, _ = TestExactStudies().asked(sample, None)
        monkeypatch.undo()
        whole, _ = TestExactStudies().asked(sample, None)
        assert split["axiom/TFC1"] == whole["axiom/TFC1"]


class TestCandidatesForDelta:
    docs = {"a": "x", "b": "y"}

    def test_judged_when_there_is_no_run(self):
        """Queries of one text have the candidates of both."""
        judged = {"q": {"a": 1}, "p": {"b": 0, "gone": 1}, "lost": {"a": 1}}
        found = candidates_for_delta(Collection.of(self.docs, {"q": "x", "p": "x"}, judged, name="c"))
        assert (found.texts, found.source) == ({"x": self.docs}, "judged documents of c")

    def test_the_plain_bm25_run_first(self):
        runs = {"tasb": {"q": {"b": 1.0}}, "bm25.top100": {"q": {"a": 1.0, "gone": 0.5}}, "bm25_rm3": {"q": {}}}
        found = candidates_for_delta(Collection.of(self.docs, {"q": "x"}, {}, runs=runs, name="c"))
        assert (found.texts, found.source) == ({"x": {"a": "x"}}, "run bm25.top100 of c")

    @pytest.mark.parametrize(("spec", "source"), [("0.5", "given"), ("0", "given"), ("p50", "run bm25 of sample"),
                                                  (None, "run bm25 of sample")])  # fmt: skip
    def test_a_number_does_not_come_from_a_run(self, spec, source):
        """A given delta is still set against the neighbours of a run, for symmetric studies and sweeps."""
        sample = open_collection("sample")
        ranker = open_ranker("bm25", Setting(sample))
        found = thresholds(spec, [ranker], candidates_for_delta(sample), Engine())["bm25"]
        assert found.source == source
        assert found.calibration.source == "run bm25 of sample"
