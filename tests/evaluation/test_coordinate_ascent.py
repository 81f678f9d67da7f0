"""Coordinate ascent: against measures written out here, all stretches tried one by one, and grids."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.core import WhyrankError
from whyrank.evaluation.fusion.ascent import fit, weighted_sum
from whyrank.evaluation.fusion.objectives import RankedGains, cut

KINDS = ["ndcg", "rr"]


def made(kind, offsets, grades, cutoff=3):
    """The measure as the search knows it."""
    offsets = np.array(offsets, dtype=np.int64)
    grades = np.array(grades, dtype=np.float64)
    ranks = 1.0 + np.arange(1 + int(np.diff(offsets).max(initial=0)))
    if kind == "rr":
        return RankedGains(offsets, grades, cut(1 / ranks, cutoff), np.ones(len(offsets) - 1), len(offsets) - 1, True)
    norms = np.array([ideal(grades[a:b], cutoff) or 1.0 for a, b in itertools.pairwise(offsets)])
    return RankedGains(offsets, grades, cut(1 / np.log2(ranks + 1), cutoff), norms, len(offsets) - 1)


def ideal(grades, cutoff):
    return sum(g / math.log2(i + 2) for i, g in enumerate(sorted(grades, reverse=True)[:cutoff]))


def by_hand(kind, offsets, grades, scores, cutoff=3):
    """The mean measure from a sorted list, straight from the definition."""
    total = 0.0
    for a, b in itertools.pairwise(offsets):
        order = sorted(range(a, b), key=lambda i: (-scores[i], i))[:cutoff]
        found = [grades[i] for i in order]
        if kind == "rr":
            total += next((1 / (i + 1) for i, grade in enumerate(found) if grade > 0), 0.0)
        else:
            total += sum(g / math.log2(i + 2) for i, g in enumerate(found)) / (ideal(grades[a:b], cutoff) or 1.0)
    return total / (len(offsets) - 1)


def problem(seed, queries=4, rows=6, columns=3, noise=1.0):
    """Random scores that know something of the grades."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, rows + 1, queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    grades = rng.integers(0, 3, offsets[-1]).astype(float)
    matrix = rng.normal(0, noise, (offsets[-1], columns)) + rng.uniform(-0.5, 1, columns) * grades[:, None]
    return matrix * rng.choice([0.1, 1.0, 30.0], columns), offsets.tolist(), grades


seeds = st.integers(0, 10**6)


@given(seeds, st.sampled_from(KINDS), st.integers(1, 8))
@settings(max_examples=25)
def test_the_measure_is_the_one_of_the_definition(seed, kind, cutoff):
    matrix, offsets, grades = problem(seed)
    scores = np.round(matrix[:, 0], 1)  # with ties
    expected = by_hand(kind, offsets, grades, scores, cutoff)
    assert made(kind, offsets, grades, cutoff).value(scores) == pytest.approx(expected)


@given(seeds, st.sampled_from(KINDS), st.booleans())
@settings(max_examples=25)
def test_along_a_line_every_stretch_has_its_value(seed, kind, whole):
    """Crossings of all pairs of rows cut the line; the value between two of them is worked out by sorting."""
    matrix, offsets, grades = problem(seed)
    matrix = np.round(matrix) if whole else matrix  # whole numbers cross at the same point, or not at all
    base, slope = matrix[:, 0], matrix[:, 1]
    segments = made(kind, offsets, grades).segments(base, slope)
    assert segments.low[0] == -np.inf
    assert segments.high[-1] == np.inf
    assert (segments.low[1:] == segments.high[:-1]).all()
    crossed = {
        (base[j] - base[i]) / (slope[i] - slope[j])
        for a, b in itertools.pairwise(offsets)
        for i in range(a, b)
        for j in range(a, b)
        if slope[i] != slope[j]
    }
    edges = sorted(crossed)
    points = [(x + y) / 2 for x, y in itertools.pairwise(edges) if y - x > 1e-6]
    for t in [(edges or [0.0])[0] - 1, *points, (edges or [0.0])[-1] + 1]:
        stretch = np.searchsorted(segments.high, t)
        assert segments.values[stretch] == pytest.approx(by_hand(kind, offsets, grades, base + t * slope), abs=1e-9)


@given(seeds, st.sampled_from(KINDS))
@settings(max_examples=15)
def test_two_columns_are_solved_as_a_fine_grid_solves_them(seed, kind):
    """The best of 3,000 directions of the half plane: one line search from equal weights finds at least as much."""
    matrix, offsets, grades = problem(seed, columns=2)
    objective = made(kind, offsets, grades)
    found = fit(matrix, objective, restarts=3, seed=1)
    unit = np.median(np.abs(matrix[:, 0])) / np.median(np.abs(matrix[:, 1]))
    grid = [
        objective.value(matrix[:, 0] + unit * math.tan(a) * matrix[:, 1]) for a in np.linspace(-1.57, 1.57, 3_000)
    ]
    assert found.value >= max(grid) - 1e-12
    assert found.value == pytest.approx(by_hand(kind, offsets, grades, matrix @ np.array(found.weights)))


@given(seeds, st.sampled_from(KINDS), st.integers(1, 4))
@settings(max_examples=15)
def test_never_worse_than_equal_weights_or_an_ascent_of_its_own(seed, kind, columns):
    matrix, offsets, grades = problem(seed, columns=columns)
    found = fit(matrix, made(kind, offsets, grades), restarts=4, seed=seed)
    equal = by_hand(kind, offsets, grades, weighted_sum(matrix.T, np.full(columns, 1 / columns)))
    assert found.value >= equal - 1e-12
    assert found.value == max(ascent.value for ascent in found.ascents)
    assert np.abs(found.weights).sum() == pytest.approx(1)
    assert found.ascents[0].start == pytest.approx([1 / columns] * columns)


def test_seeded_and_repeatable():
    matrix, offsets, grades = problem(3, queries=20, rows=10, columns=4)
    objective = made("ndcg", offsets, grades)
    one, same, other = (fit(matrix, objective, 5, seed) for seed in (0, 0, 1))
    assert one == same
    assert [a.start for a in one.ascents] != [a.start for a in other.ascents]
    assert one.ascents[0] == other.ascents[0], "the first ascent starts from equal weights"


def test_scale_does_not_matter():
    """One column is a million times larger; the useful one is found all the same."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 2, 60).astype(float)
    matrix = np.column_stack([1e6 * rng.normal(size=60), grades + rng.normal(0, 0.01, 60)])
    assert fit(matrix, made("ndcg", range(0, 61, 6), grades), restarts=1).value == pytest.approx(
        by_hand("ndcg", range(0, 61, 6), grades, grades), abs=1e-12
    )


def test_queries_without_rows_and_without_hits():
    objective = made("ndcg", [0, 0, 2, 4], [0, 0, 0, 1])
    assert objective.value(np.array([1.0, 2.0, 1.0, 2.0])) == pytest.approx(1 / 3)
    assert fit(np.ones((4, 2)), objective, restarts=1).weights == (0.5, 0.5)


@pytest.mark.parametrize(
    ("matrix", "arguments", "says"),
    [
        (np.zeros((0, 2)), {}, "finite scores"),
        (np.array([[np.nan]]), {}, "finite scores"),
        (np.ones((1, 1)), {"restarts": 0}, "restarts"),
        (np.ones((1, 1)), {"tolerance": -1}, "tolerance"),
    ],
)
def test_wrong_input(matrix, arguments, says):
    with pytest.raises(WhyrankError, match=says):
        fit(matrix, made("rr", [0, len(matrix)], np.ones(len(matrix))), **arguments)
