"""Intervals and tests by cluster, against enumeration, plain loops and scipy."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.core import (
    Interval,
    SharedDocuments,
    cluster_sums,
    mean_interval,
    paired_t_p,
    sign_flip_p,
    stratified_interval,
)
from whyrank.studies import Contrasts, Pair

EFFECTS = st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.integers(0, 6)), min_size=2, max_size=60)
SUMS = st.lists(st.integers(-20, 20), min_size=1, max_size=30)


def interval_of(rows) -> Interval:
    values, codes = zip(*rows, strict=True)
    return mean_interval(values, codes, bounds=(-1, 1))


def sign_flip_oracle(sums) -> float:
    """All signs, in whole numbers, so that ties are ties."""
    signs = list(itertools.product((-1, 1), repeat=len(sums)))
    totals = [abs(sum(e * s for e, s in zip(row, sums, strict=True))) for row in signs]
    return sum(total >= abs(sum(sums)) for total in totals) / len(signs)


# mean_interval


def test_independent_values_give_the_interval_of_student():
    from scipy import stats

    values = np.random.default_rng(3).exponential(size=80)
    expected = stats.t.interval(0.95, 79, values.mean(), values.std(ddof=1) / math.sqrt(80))
    assert mean_interval(values) == pytest.approx(expected)


def test_the_variance_is_that_of_a_jackknife_over_clusters():
    from scipy import stats

    values, codes = np.array([3.0, 2.5, -1.0, 0.4, 2.2, -3.0, 1.9, 0.2]), np.array([0, 0, 1, 1, 2, 2, 3, 3])
    means = [values[codes != code].mean() for code in range(4)]
    spread = math.sqrt(3 / 4 * sum((mean - np.mean(means)) ** 2 for mean in means))
    low, high = mean_interval(values, codes)
    independent = math.sqrt(((values - values.mean()) ** 2).sum()) / 8
    freedom = [stats.t.isf(0.025, df) for df in (3, 2)]
    assert spread > independent
    assert freedom[0] * spread - 1e-12 <= (high - low) / 2 <= freedom[1] * spread + 1e-12


def test_a_bounded_mean_has_the_interval_of_wilson():
    from statistics import NormalDist

    # 2,000 queries with one contrast each: t is nearly normal
    effects = np.array([1] * 1900 + [-1] * 100)
    low, high = mean_interval(effects, np.arange(2000), bounds=(-1, 1))
    z, share, n = NormalDist().inv_cdf(0.975), 0.95, 2000
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    assert ((low + 1) / 2, (high + 1) / 2) == pytest.approx((centre - half, centre + half), abs=1e-4)


@pytest.mark.parametrize(
    ("effect", "bounds", "expected"),
    [(1, (-1, 1), (2 * 0.025**0.1 - 1, 1)), (-1, (-1, 1), (-1, 1 - 2 * 0.025**0.1)), (0, (0, 1), (0, 1 - 0.025**0.1)),
     (0, (-1, 1), (0.025**0.1 - 1, 1 - 0.025**0.1))],
)  # fmt: skip
def test_where_all_contrasts_agree_the_interval_is_a_bound(effect, bounds, expected):
    """Ten queries without an exception: exceptions may have a share of 1 - 0.025^(1/10), however many contrasts."""
    assert mean_interval(np.full(500, effect), np.arange(500) % 10, bounds=bounds) == pytest.approx(expected)


def test_one_positive_effect_does_not_exclude_zero():
    effects = np.zeros(480)
    effects[0] = 1
    assert mean_interval(effects, np.repeat(np.arange(40), 12), bounds=(-1, 1)).low == 0
    assert mean_interval(-effects, np.repeat(np.arange(40), 12), bounds=(-1, 1)).high == 0


@pytest.mark.parametrize(
    ("values", "codes"), [([], []), ([3.0, 1.0], [5, 5]), ([1.0, math.nan], [0, 1]), ([1.0, math.inf], [0, 1])]
)
def test_the_interval_is_undefined(values, codes):
    assert all(math.isnan(end) for end in mean_interval(values, codes))


@given(EFFECTS, st.randoms(use_true_random=False))
def test_the_interval_does_not_depend_on_order(rows, shuffling):
    shuffled = list(rows)
    shuffling.shuffle(shuffled)
    assert interval_of(shuffled) == pytest.approx(interval_of(rows), abs=0, nan_ok=True)


@given(EFFECTS)
def test_negated_effects_give_the_mirrored_interval(rows):
    low, high = interval_of(rows)
    assert interval_of([(-e, code) for e, code in rows]) == pytest.approx((-high, -low), abs=1e-12, nan_ok=True)


@given(EFFECTS)
def test_the_interval_holds_the_mean_and_stays_within_bounds(rows):
    low, high = interval_of(rows)
    mean = np.mean([e for e, _ in rows])
    assert math.isnan(low) or -1 - 1e-12 <= low <= mean + 1e-12
    assert math.isnan(high) or mean - 1e-12 <= high <= 1 + 1e-12


def test_the_mean_of_several_samples_has_the_interval_of_welch():
    from scipy import stats

    draw = np.random.default_rng(2)
    one, other = draw.uniform(size=30), 3 * draw.uniform(size=12)
    theirs = stats.ttest_ind(one, -other, equal_var=False).confidence_interval(0.95)
    assert stratified_interval([one, other]) == pytest.approx((theirs.low / 2, theirs.high / 2))
    assert stratified_interval([one]) == pytest.approx(mean_interval(one))
    assert all(math.isnan(end) for parts in ([], [one, np.ones(1)]) for end in stratified_interval(parts))


def test_memory_stays_small_for_thousands_of_clusters():
    sums = np.random.default_rng(0).normal(size=5000)
    tracemalloc.start()
    sign_flip_p(sums, flips=1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


# documents that several queries share


def covariance_oracle(values, clusters, docs) -> float:
    rows = range(len(values))
    return sum(
        values[i] * values[j]
        for i, j in itertools.product(rows, rows)
        if clusters[i] != clusters[j] and set(docs[i]) & set(docs[j])
    )


@given(st.integers(2, 3), st.data())
def test_the_covariance_is_the_sum_over_all_pairs_that_share_a_document(texts, data):
    docs = st.lists(st.integers(0, 7), min_size=texts, max_size=texts, unique=True)
    rows = data.draw(st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.integers(0, 4), docs), min_size=1))
    values, clusters, docs = zip(*rows, strict=True)
    shared = SharedDocuments(np.array(clusters, np.int32), np.array(docs, np.int32))
    assert shared.covariance(values) == covariance_oracle(values, clusters, docs)


def test_a_document_of_many_queries_counts_once():
    """Forty queries about the same two documents: every query says the same, but it is one observation."""
    pairs = [Pair(f"query {i}", ("long", "short")) for i in range(40)]
    contrasts = Contrasts.from_pairs(pairs)
    covariance = contrasts.shared.covariance(np.ones(40))
    assert covariance == 40 * 39
    assert sign_flip_p(np.ones(40), 1000) < 0.01
    assert sign_flip_p(np.ones(40), 1000, covariance=covariance) > 0.2


@pytest.mark.parametrize("texts_alone", [True, False])
def test_rankers_that_know_nothing_are_found_out_at_the_rate_of_the_level(texts_alone):
    """30 queries draw their pairs from 60 documents; scores are random by document, or by query and document."""
    draw, p, plain = np.random.default_rng(4), [], []
    for _ in range(300):
        query = np.repeat(np.arange(30), 6)
        docs = np.array([draw.choice(60, 2, replace=False) for _ in query], np.int32)
        docs.sort(axis=1)  # the study favours the same documents again and again
        scores = draw.random(60)[docs] if texts_alone else draw.random((30, 60))[query[:, None], docs]
        effects = np.sign(scores[:, 0] - scores[:, 1])
        sums = cluster_sums(effects, query).sums
        shared = SharedDocuments(query.astype(np.int32), docs)
        p.append(sign_flip_p(sums, 500, covariance=shared.covariance(effects)))
        plain.append(sign_flip_p(sums, 500))
    assert np.mean(np.array(p) < 0.05) < 0.08
    assert bool(np.mean(np.array(plain) < 0.05) > 0.12) is texts_alone


# sign_flip_p


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8), st.sampled_from([0.1, 1 / 3, 1e-9, 1e9]))
def test_ties_survive_rounding(sums, unit):
    assert sign_flip_p([s * unit for s in sums]) == sign_flip_oracle(sums)


def test_random_flips_of_equal_sums_are_the_sign_test():
    from scipy import stats

    expected = stats.binomtest(115, 200).pvalue
    assert sign_flip_p([1.0] * 115 + [-1.0] * 85, flips=40_000) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("sums", [[], [1.0, math.nan], [math.inf, 1.0]])
def test_p_is_undefined(sums):
    assert math.isnan(sign_flip_p(sums))


@given(SUMS, st.randoms(use_true_random=False), st.sampled_from([1, -1, 0.1]))
def test_p_depends_on_neither_order_nor_sign_nor_unit(sums, shuffling, unit):
    shuffled = [s * unit for s in sums]
    shuffling.shuffle(shuffled)
    assert sign_flip_p(shuffled, flips=200) == sign_flip_p(sums, flips=200)


# what clusters are for


def correlated_effects(draw, tilt, queries=40):
    """Each query leans to one side; most of its contrasts follow it."""
    lean = np.where(draw.random(queries) < 0.5 + tilt / 2, 1, -1)
    codes = np.repeat(np.arange(queries), 1 + draw.poisson(20, queries))
    follow = draw.random(len(codes)) < 0.8
    return np.where(follow, lean[codes], 0), codes


def naive_interval(effects) -> Interval:
    half = 1.96 * effects.std(ddof=1) / math.sqrt(len(effects))
    return Interval(effects.mean() - half, effects.mean() + half)


def test_the_clustered_interval_covers_and_the_naive_one_does_not():
    draw, tilt = np.random.default_rng(11), 0.2
    samples = [correlated_effects(draw, tilt) for _ in range(300)]
    clustered = [mean_interval(*sample, bounds=(-1, 1)) for sample in samples]
    naive = [naive_interval(effects) for effects, _ in samples]
    truth = 0.8 * tilt
    assert 0.92 <= np.mean([low <= truth <= high for low, high in clustered]) <= 0.99
    assert np.mean([low <= truth <= high for low, high in naive]) < 0.6


@pytest.mark.parametrize(
    ("queries", "least", "probabilities"),
    [(8, 0.91, (0.9, 0.0, 0.1)), (15, 0.93, (0.05, 0.75, 0.2)), (40, 0.93, (0.5, 0.0, 0.5))],
)
def test_the_interval_keeps_its_level_for_few_queries(queries, least, probabilities):
    """Queries of very different sizes, whose contrasts agree more than chance: see benchmarks/interval_coverage.py for more."""
    draw, truth, covered = np.random.default_rng(queries), probabilities[0] - probabilities[2], 0
    for _ in range(600):
        sizes = np.maximum(1, np.exp(draw.normal(2.5, 1.2, queries))).astype(int)
        leaning = draw.dirichlet(4 * np.maximum(probabilities, 1e-9), queries)
        effects = np.concatenate([draw.choice([1, 0, -1], n, p=p) for n, p in zip(sizes, leaning, strict=True)])
        low, high = mean_interval(effects, np.repeat(np.arange(queries), sizes), bounds=(-1, 1))
        covered += low <= truth <= high
    assert covered / 600 >= least - 0.02  # two standard errors of 600 trials


def test_sign_flips_keep_their_level_and_the_t_test_does_not():
    draw = np.random.default_rng(12)
    samples = [correlated_effects(draw, 0.0) for _ in range(300)]
    flipped = [sign_flip_p(cluster_sums(*sample).sums, flips=500) for sample in samples]
    naive = [paired_t_p(effects) for effects, _ in samples]
    assert np.mean(np.array(flipped) <= 0.05) < 0.09
    assert np.mean(np.array(naive) <= 0.05) > 0.4
