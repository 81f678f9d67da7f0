"""Statistics of bias studies against plain loops and scipy, and the published correlation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from whyrank.core import sign_flip_p
from whyrank.studies.bias import cluster_scores, mean_bounds, value_p
from whyrank.studies.bias.correlation import correlate, correlations_of, pearson
from whyrank.studies.bias.statistics import omnibus, pair_differences

# Year, weight for "when" in the published thesaurus, score of its cross-encoder for "{year} north carolina join
# ifta", and occurrences in the corpus: facts of a published study.
WHEN_YEAR = """
2000 0.15991954505443573 8.402446746826172 58169
2001 0.17009232938289642 9.676849365234375 22329
2002 0.16455566883087158 9.452437400817871 21778
2003 0.19133111834526062 9.660808563232422 26924
2004 0.18887905776500702 9.34357738494873 26277
2005 0.18211613595485687 8.962972640991211 31919
2006 0.12253455817699432 8.953495979309082 33039
2007 0.12562014162540436 8.873234748840332 43287
2008 0.1550411880016327 8.64099407196045 47245
2009 0.11106028407812119 8.566083908081055 49267
2010 0.1153125986456871 8.503437042236328 99466
2011 0.05630696937441826 8.311593055725098 69167
2012 0.039196114987134933 8.33627986907959 83092
2013 0.029429536312818527 7.812245845794678 96449
2014 0.02278118208050728 7.911380290985107 113221
2015 0.004900562111288309 7.778740882873535 151484
2016 0.0026514031924307346 7.777125358581543 115044
2017 0.0014096475206315517 7.607086181640625 98952
2018 0.00046073851990513504 7.475591659545898 33214
2019 0.14225299656391144 7.903474807739258 2666
2020 0.13050927221775055 7.827475070953369 4753
2021 0.15954212844371796 8.836408615112305 895
2022 0.030796818435192108 8.51842212677002 1849
2023 0.045765507966279984 8.793581008911133 467
2024 0.06430057436227798 8.792820930480957 1040
"""
_, WEIGHTS, SCORES, COUNTS = np.array([line.split() for line in WHEN_YEAR.split("\n") if line], dtype=float).T


def grids(least=2):
    """Scores of templates and values, with clusters."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng).map(lambda random: _grid(random, least))


def _grid(random, least):
    n, v = int(random.integers(least, 12)), int(random.integers(2, 7))
    clusters = random.integers(0, max(2, n // 2), size=n).astype(np.int32)
    return random.normal(size=(n, v)).round(3), clusters


def test_the_published_correlation_and_its_confounder():
    found = {(c.first, c.second, c.given): c for c in correlations_of(
        {"mean score": SCORES, "weight": WEIGHTS, "count": COUNTS}, ordered=True
    )}  # fmt: skip
    main = found["mean score", "weight", ""]
    assert main.n == 25
    assert round(main.pearson, 3) == 0.746
    assert main.pearson == pytest.approx(stats.pearsonr(SCORES, WEIGHTS).statistic)
    assert main.p_value < 0.0005
    assert main.p_shift > main.p_value, "neighbouring years are alike, so shifts are the harder test"
    assert main.low < 0.746 < main.high
    assert round(found["weight", "count", ""].pearson, 2) == -0.54
    assert round(found["mean score", "count", ""].pearson, 2) == -0.51
    partial = found["mean score", "weight", "count"]
    x, y = (np.polyval(np.polyfit(COUNTS, column, 1), COUNTS) for column in (SCORES, WEIGHTS))
    assert partial.pearson == pytest.approx(stats.pearsonr(SCORES - x, WEIGHTS - y).statistic)
    assert partial.pearson < main.pearson


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_the_permutation_test_of_a_correlation_is_that_of_all_permutations(seed):
    random = np.random.default_rng(seed)
    x, y = random.normal(size=(2, 5))
    every = [abs(np.corrcoef(x, order)[0, 1]) for order in itertools.permutations(y)]
    exact = np.mean(np.array(every) >= abs(np.corrcoef(x, y)[0, 1]) - 1e-9)
    assert correlate(x, y, permutations=20_000).p_value == pytest.approx(exact, abs=0.02)


def test_correlations_that_are_undefined():
    assert correlate([1, 1, 1, 1], [1, 2, 3, 4]).pearson is None
    assert correlate([1, 2, 3], [1, 2, 3]).pearson is None, "three values say nothing"
    assert correlate([1, 2, 3, 4, np.nan], [1, 2, 3, 4, 9]).n == 4
    assert correlate([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], [1, 2, 3, 4, 5]).pearson is None, (
        "nothing is left of the first"
    )
    assert math.isnan(pearson(np.zeros(3), np.arange(3.0)))
    x, y, z = np.random.default_rng(2).normal(size=(3, 5))
    assert correlate(x[:4], y[:4], z[:4]).pearson is None, "what is given takes a value more"
    assert correlate(x, y, z).pearson is not None


def freed(column, given):
    """What is left of a column by least squares, by numpy's own solver."""
    known = np.stack([np.ones(len(given)), given], axis=1)
    return column - known @ np.linalg.lstsq(known, column, rcond=None)[0]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_the_partial_permutation_test_is_that_of_freedman_and_lane(seed):
    """Permuted residuals are freed of what is given again, as the statistic is."""
    random = np.random.default_rng(seed)
    x, y, z = random.normal(size=(3, 5))
    a, b = freed(x, z), freed(y, z)
    every = [abs(np.corrcoef(a, freed(np.array(order), z))[0, 1]) for order in itertools.permutations(b)]
    exact = np.mean(np.array(every) >= abs(np.corrcoef(a, b)[0, 1]) - 1e-9)
    assert correlate(x, y, z, permutations=20_000).p_value == pytest.approx(exact, abs=0.02)


def test_shifts_of_a_partial_correlation_are_freed_of_what_is_given_too():
    x, y, z = np.random.default_rng(23).normal(size=(3, 9))
    a, b = freed(x, z), freed(y, z)
    shifted = [abs(np.corrcoef(a, freed(np.roll(b, step), z))[0, 1]) for step in range(9)]
    expected = np.mean(np.array(shifted) >= shifted[0] - 1e-9)
    assert correlate(x, y, z, ordered=True, permutations=10).p_shift == pytest.approx(expected)


def test_every_draw_of_a_partial_correlation_is_freed_of_what_is_given():
    random = np.random.default_rng(11)
    z = random.lognormal(0, 2, size=8)
    x, y = z + random.normal(size=(2, 8))
    drawn = []
    for rows in random.integers(0, 8, size=(4_000, 8)):
        a, b = freed(x[rows], z[rows]), freed(y[rows], z[rows])
        drawn += [np.corrcoef(a, b)[0, 1]] if min(np.abs(a).max(), np.abs(b).max()) > 1e-9 else []
    found = correlate(x, y, z, permutations=10)
    np.testing.assert_allclose([found.low, found.high], np.quantile(drawn, [0.025, 0.975]), atol=0.03)


@given(grids())
def test_sums_are_those_of_a_loop(grid):
    scores, clusters = grid
    [sums] = cluster_scores(scores, clusters).ways
    for place, cluster in enumerate(sorted(set(clusters.tolist()))):
        rows = scores[clusters == cluster]
        np.testing.assert_allclose(sums.scores[place], rows.sum(axis=0))
        np.testing.assert_allclose(sums.effects[place], sum(row - row.mean() for row in rows), atol=1e-9)
        assert sums.sizes[place] == len(rows)


def jackknifed(scores, clusters):
    """The variance of the mean of each column: every cluster left out once."""
    names = sorted(set(clusters.tolist()))
    means = np.array([scores[clusters != name].mean(axis=0) for name in names])
    return (len(names) - 1) / len(names) * ((means - scores.mean(axis=0)) ** 2).sum(axis=0)


@given(grids(), st.randoms(use_true_random=False))
def test_differences_are_t_tests_with_the_error_of_the_jackknife(grid, shuffler):
    scores, docs = grid
    queries = np.array([shuffler.randrange(3) for _ in docs], dtype=np.int32)
    for given_ in ([docs], [docs, queries]):
        sums = cluster_scores(scores, *given_)
        ways = [way for way in given_ if len(set(way.tolist())) > 1]
        found = pair_differences(sums)
        for k, (i, j) in enumerate(zip(found.first, found.second, strict=True)):
            difference = (scores[:, i] - scores[:, j])[:, None]
            assert found.mean[k] == pytest.approx(difference.mean(), abs=1e-9)
            if not ways:
                assert math.isnan(found.p_values[k])
                continue
            variances = [jackknifed(difference, way)[0] for way in ways]
            if len(ways) == 2:
                variances.append(sum(variances) - jackknifed(difference, 3 * docs + queries)[0])
            error, free = max(variances) ** 0.5, min(len(set(way.tolist())) for way in ways) - 1
            if error > 1e-6:
                p = 2 * stats.t.sf(abs(difference.mean()) / error, free)
                assert found.p_values[k] == pytest.approx(p, abs=1e-6)
                reach = stats.t.ppf(0.975, free) * error
                assert found.bounds.low[k] == pytest.approx(difference.mean() - reach, abs=1e-6)
                assert found.bounds.high[k] == pytest.approx(difference.mean() + reach, abs=1e-6)


@pytest.mark.parametrize("templates", [2, 5, 12, 3_000])
def test_templates_that_agree_to_the_last_digit_have_the_p_value_of_sign_flips(templates):
    """A ranker that adds 0.5 for the first value, to scores of any size: no test may be surer than 2 / 2^templates."""
    scores = np.random.default_rng(templates).normal(size=(templates, 1)) + np.array([0.5, 0.0, 0.0])
    found = pair_differences(cluster_scores(scores, np.arange(templates, dtype=np.int32)))
    np.testing.assert_allclose(found.p_values, [2.0 ** -min(templates - 1, 1000)] * 2 + [1])
    assert (found.p_values > 0).all()


@given(grids(least=4))
@settings(max_examples=50)
def test_friedman_is_scipys(grid):
    scores = grid[0]
    found = omnibus(cluster_scores(scores, np.arange(len(scores), dtype=np.int32)), 10, 0)
    if scores.shape[1] > 2:
        statistic, p = stats.friedmanchisquare(*scores.T)
        assert (found.friedman, found.p_friedman) == pytest.approx((statistic, p), abs=1e-9)
        assert found.kendall_w == pytest.approx(statistic / len(scores) / (scores.shape[1] - 1))


def test_the_omnibus_test_is_that_of_all_permutations():
    scores = np.array([[0.0, 1.0, 3.0], [0.2, 0.9, 1.0], [0.1, 0.5, 0.4]])
    sums = cluster_scores(scores, np.arange(3, dtype=np.int32))
    rows = [list(itertools.permutations(row)) for row in sums.cells.effects]
    every = np.array([(np.array(choice).sum(axis=0) ** 2).sum() for choice in itertools.product(*rows)])
    exact = np.mean(every >= (sums.cells.effects.sum(axis=0) ** 2).sum() - 1e-9)
    assert omnibus(sums, 20_000, 0).p_value == pytest.approx(exact, abs=0.01)


def test_one_cluster_has_no_tests_and_equal_scores_no_effect():
    one = cluster_scores(np.array([[1.0, 2.0], [3.0, 5.0]]), np.zeros(2, np.int32))
    assert math.isnan(omnibus(one, 10, 0).p_value)
    assert np.isnan(value_p(one, 10, 0)).all()
    assert np.isnan(pair_differences(one).p_values).all()
    assert np.isnan(mean_bounds(one, lambda way: way.scores)).all()
    flat = cluster_scores(np.full((8, 3), 0.1) + np.arange(8)[:, None] / 3, np.arange(8, dtype=np.int32))
    assert omnibus(flat, 100, 0).p_value == 1
    assert (value_p(flat, 100, 0) == 1).all()
    assert (pair_differences(flat).p_values == 1).all()


@given(grids(), st.randoms(use_true_random=False))
def test_neither_the_order_of_templates_nor_their_level_matters(grid, shuffler):
    scores, clusters = grid
    order = list(range(len(scores)))
    shuffler.shuffle(order)
    level = np.array([shuffler.random() * 10 for _ in order])[:, None]
    plain = cluster_scores(scores, clusters)
    moved = cluster_scores((scores + level)[order], clusters[order])
    np.testing.assert_allclose(moved.ways[0].effects, plain.ways[0].effects, atol=1e-9)
    assert omnibus(moved, 50, 1).friedman == pytest.approx(omnibus(plain, 50, 1).friedman, nan_ok=True, abs=1e-6)


@given(grids())
def test_the_test_of_a_value_is_the_sign_flip_test(grid):
    sums = cluster_scores(*grid)
    if sums.size > 1:
        expected = [sign_flip_p(column) for column in sums.ways[0].effects.T]
        np.testing.assert_allclose(value_p(sums, 100, 0), expected)


def test_random_sign_flips_are_near_the_exact_test():
    effects = np.random.default_rng(3).normal(0.3, 1, size=(13, 4))
    exact = cluster_scores(effects, np.arange(13, dtype=np.int32))
    twice = cluster_scores(np.concatenate([effects, np.zeros((5, 4))]), np.arange(18, dtype=np.int32))
    np.testing.assert_allclose(value_p(twice, 20_000, 0), value_p(exact, 1, 0), atol=0.012)


@pytest.mark.parametrize("clusters", [4, 8, 15])
def test_intervals_cover_the_mean_with_few_clusters_of_different_sizes(clusters):
    random, hits = np.random.default_rng(5), np.zeros(3)
    for _ in range(400):
        codes = np.repeat(np.arange(clusters, dtype=np.int32), random.integers(1, 6, size=clusters))
        scores = random.normal(size=(clusters, 3))[codes] + random.normal(size=(len(codes), 3)) + [0, 1, 2]
        low, high = mean_bounds(cluster_scores(scores, codes), lambda way: way.scores)
        hits += (low <= [0, 1, 2]) & (high >= [0, 1, 2])
    assert hits.sum() >= stats.binom.ppf(0.001, 1200, 0.94), hits / 400


def crossed(random, docs=12, queries=10, size=60):
    """Templates of some pairs of documents and queries."""
    pairs = random.choice(docs * queries, size, replace=False)
    return (pairs // queries).astype(np.int32), (pairs % queries).astype(np.int32)


@pytest.mark.parametrize("shared", [(0, 0), (1, 0), (0, 1), (1, 1)], ids=["none", "doc", "query", "both"])
def test_documents_and_queries_that_recur_do_not_make_noise_significant(shared):
    """Noise of templates, and noise that templates of one document, of one query, or of either have in common."""
    by_doc, by_query = shared
    random, hits, tests = np.random.default_rng(7), np.zeros(3), 0
    for trial in range(150):
        doc, query = crossed(random)
        noise = by_doc * random.normal(size=(12, 4))[doc] + by_query * random.normal(size=(10, 4))[query]
        sums = cluster_scores(noise + 0.3 * random.normal(size=(60, 4)), doc, query)
        found = [[omnibus(sums, 199, trial).p_value] * 4, value_p(sums, 199, trial), pair_differences(sums).p_values]
        hits += [np.mean(np.array(p) <= 0.05) for p in found]
        tests += 1
    assert (hits <= stats.binom.ppf(0.999, tests, 0.05)).all(), hits / tests
