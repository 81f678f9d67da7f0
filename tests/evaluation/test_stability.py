"""Spread of scores within a group of rankers, against the definition."""

from __future__ import annotations

import statistics
from itertools import permutations

import pytest

from whyrank.evaluation.stability import stability
from whyrank.studies import Finding


def finding(study, ranker, score):
    return Finding(study, ranker, "c", 9, 3, 3, 3, 0, score, None, None, None, None, None, None, 0.0, 3, "", 0)


SCORES = {"matched/a": {"r1": 0.1, "r2": 0.2, "r3": None}, "matched/b": {"r1": 0.1, "r2": 0.4, "r3": 0.3}}


@pytest.mark.parametrize("order", list(permutations(SCORES)))
def test_a_family_does_not_depend_on_the_order_of_its_studies(order):
    """Three rankers are in the family, although one of them has no score in one of the studies."""
    found = stability([finding(s, r, x) for s in order for r, x in SCORES[s].items()], {"r*": ["r1", "r2", "r3"]})
    *_, family = found
    variances = [statistics.variance(x for x in SCORES[s].values() if x is not None) for s in order]
    assert (family.study, family.studies, family.rankers) == ("matched/*", 2, 3)
    assert family.deviation == pytest.approx(statistics.mean(variances) ** 0.5)
    assert (family.low, family.high) == (0.1, 0.4)
    assert {row.study: row.rankers for row in found[:2]} == {"matched/a": 2, "matched/b": 3}
