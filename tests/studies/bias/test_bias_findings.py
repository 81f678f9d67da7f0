"""Bias studies beside probes and axioms: the same runner, findings in the same form, results as when asked alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest

import whyrank
from toy_bias import BRANDS, PLANTED, TERMS, Toy, toy_collection
from whyrank.core import WhyrankError
from whyrank.report.views import significant
from whyrank.scoring import Engine
from whyrank.studies import Contrasts, Pair, Plan, Threshold, all_studies, answers, limit_options, with_adjusted_p
from whyrank.studies.bias.reading import ValueComparison

CARS = f"bias/substitution(values={'+'.join(BRANDS)},head=car)"
LETTERS = "bias/postfix-letter(values=a+q+x)"
DELTA = 0.12


def planned(*studies: str, rankers=(PLANTED,), **changes) -> Plan:
    chosen = all_studies().make(studies, {"seed": 0})
    thresholds = {ranker.name: Threshold(DELTA) for ranker in rankers}
    return replace(Plan(toy_collection(), chosen, list(rankers), Engine(), thresholds), **changes)


def test_a_finding_counts_pairs_of_values_in_the_same_text():
    """Against scores that are computed here, one text at a time."""
    [answer] = answers(planned(CARS))
    [finding] = answer.findings
    collection = toy_collection()
    gaps = []
    for number in range(24):
        query, text = collection.queries[f"q{number}"], collection.docs[f"b{number}"]
        own = BRANDS[number % len(BRANDS)].capitalize()
        filled = [f"{'an' if brand == 'audi' else 'a'} {brand.capitalize()}" for brand in BRANDS]
        scores = [PLANTED.one(query, text.replace(f"a {own}", words)) for words in filled]
        gaps += [abs(a - b) for a, b in combinations(scores, 2)]
    wide = sum(gap > DELTA for gap in gaps)
    assert (finding.n, finding.n_queries, finding.nonfinite) == (24 * 66, 24, 0)
    assert (finding.positive, finding.neutral, finding.negative) == (wide, len(gaps) - wide, 0)
    assert finding.score == pytest.approx(wide / len(gaps))
    assert finding.mean_diff == pytest.approx(np.mean(gaps))
    assert finding.p_value == answer.details.p_value < 0.01
    assert finding.ci_low <= finding.score <= finding.ci_high
    contrasts = answer.contrasts
    for row in range(0, len(contrasts), 97):
        query, texts = contrasts.queries[contrasts.query[row]], [contrasts.docs[doc] for doc in contrasts.doc[row]]
        assert answer.reading.scores[row].tolist() == PLANTED.score([query] * 2, texts).tolist()


def test_each_ranker_has_the_templates_that_its_filters_leave():
    fond, cool = Toy(1, words=(("engine", 5.0),)), Toy(2, words=(("garage", 5.0),))
    study = CARS.replace("head=car", "head=car,filters='relevant(above=4)'")
    found = list(answers(planned(study, rankers=(fond, cool))))
    queries = [set(answer.contrasts.queries) for answer in found]
    assert all("engine" in query for query in queries[0])
    assert all("garage" in query for query in queries[1])
    assert all(queries)
    assert [answer.details.n_templates for answer in found] == [len(names) for names in queries]


def test_corrections_of_bias_studies_are_their_own():
    plan = planned(CARS, "axiom/TFC1", LETTERS)
    raw = [finding for answer in answers(plan) for finding in answer.findings]
    given = [replace(f, p_value=p) for f, p in zip(raw, (0.04, 0.01, 0.03), strict=True)]
    found = with_adjusted_p(given, "holm", plan.families)
    assert [f.study for f in found] == ["axiom/TFC1", CARS, LETTERS]
    assert [f.p_adjusted for f in found] == pytest.approx([0.04, 0.02, 0.03])


def test_a_limit_is_one_of_templates_unless_the_call_says_another():
    assert limit_options(None) == {}
    given = CARS.replace("head=car", "head=car,most=7")
    made = all_studies().make([CARS, given, "axiom/TFC1"], {}, limit_options(5))
    assert [made[CARS].most, made[given].most] == [5, 7]
    assert made["axiom/TFC1"].most > 7
    [finding] = whyrank.audit(PLANTED, toy_collection(), CARS, delta=DELTA, limit=5)
    assert finding.n == 5 * 66


def fond(name: str, gain: float, noise_of: float = 0.0) -> Toy:
    """A ranker that adds `gain` for one make, to scores that differ by 1 between words of the query."""

    class Fond(Toy):
        @property
        def name(self) -> str:
            return name

    return Fond(words=(("honda", gain), *((term, float(i)) for i, term in enumerate(TERMS))), scale=noise_of)


def test_a_finding_states_how_strong_a_bias_is():
    """A bias of 0.5, one of 1.5, and a ranker whose scores of different texts differ by noise of 0.001."""
    rankers = [fond("mild", 0.5), fond("strong", 1.5), fond("innocent", 0.0, 1e-3)]
    found = whyrank.audit(rankers, toy_collection(), CARS, delta=0.25).findings
    mild, strong, innocent = found
    assert [f.range for f in found] == [pytest.approx(0.5), pytest.approx(1.5), pytest.approx(0, abs=0.002)]
    assert [f.range_deltas for f in found] == [pytest.approx(2), pytest.approx(6), pytest.approx(0, abs=0.008)]
    assert mild.score == strong.score, "the share of pairs that differ does not tell them apart"
    for f in (mild, strong):
        assert (f.favoured, f.disfavoured) == ("honda", "all others")
        assert f.p_omnibus == f.p_value < 0.01
        assert significant(f, 0.05)
    assert innocent.p_omnibus > 0.05
    assert not significant(innocent, 0.05)
    [plain] = whyrank.audit(fond("mild", 0.5), toy_collection(), CARS, delta=0)
    assert (plain.range, plain.range_deltas) == (pytest.approx(0.5), None), "without a delta, in scores"


def test_values_that_are_no_grid_are_refused():
    @dataclass(frozen=True)
    class Plain:
        id: str = "mine/plain"
        positive: str = "prefers a"
        symmetric: bool = False
        reading = ValueComparison()

        def contrasts(self, collection):
            return Contrasts.from_pairs(
                [Pair("car", ("a car", "b car"), {"value": ("a", "b"), "template": "{} car"})]
            )

    with pytest.raises(WhyrankError, match="mine/plain: contrasts of values must come from a Grid"):
        whyrank.audit(PLANTED, toy_collection(), Plain(), delta=0)
