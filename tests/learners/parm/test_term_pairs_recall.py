"""The bound on what a cascade missed: against scipy, and against planted scores whose recall is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from whyrank.learners.parm.pairs import Entries, Settings, Task, distinct
from whyrank.learners.parm.pairs.cascade import (
    Student,
    Tally,
    Terms,
    at_best,
    bound,
    certificate,
    certify,
    choose_cut,
    everything,
    incomplete_beta,
    needed,
    train_student,
    upper_rate,
)
from whyrank.networks import FRAMES, around

torch.set_num_threads(1)


@settings(max_examples=300)
@given(st.floats(0.5, 1e7), st.floats(0.5, 1e7), st.floats(0, 1))
def test_the_incomplete_beta_function_is_scipys(a, b, x):
    rounding = 4e-16 * (a + b) * np.log(a + b + 2)  # of the logarithms of gamma functions, which are so large
    assert incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), abs=1e-9 + rounding)


@settings(max_examples=200)
@example(9_995_632, 0.0001, 0.03125)  # where the inverse of scipy 1.17 is wrong by 2e-6
@given(st.integers(1, 10**7), st.floats(0, 1), st.floats(1e-4, 0.5))
def test_the_upper_rate_is_that_of_clopper_and_pearson(drawn, share, error):
    hits = int(share * drawn)
    found = upper_rate(hits, drawn, error)
    if hits == drawn:
        assert found == 1
        return
    rounding = 4e-16 * (drawn + 1) * np.log(drawn + 3)  # as above
    assert special.betainc(hits + 1, drawn - hits, found) == pytest.approx(1 - error, abs=1e-9 + rounding)
    inverse = stats.beta.ppf(1 - error, hits + 1, drawn - hits)
    if abs(special.betainc(hits + 1, drawn - hits, inverse) - (1 - error)) < 1e-9:  # scipy's own inverse may be off
        assert found == pytest.approx(inverse, rel=1e-6)


def test_no_hit_is_the_rule_of_three():
    assert upper_rate(0, 543_000, 0.05) == pytest.approx(3 / 543_000, rel=2e-3)
    found = bound(Tally(10**9, 553_864, 543_000, 0), 0.05)
    assert found.recall == pytest.approx(553_864 / (553_864 + 1e9 * 3 / 543_000), rel=1e-4)
    assert bound(Tally(10**9, 553_864, 543_000, 0), 0.05).recall > 0.99


def test_bounds_of_nothing():
    assert bound(Tally(100, 0, 10, 0), 0.05).recall == 0
    assert bound(Tally(100, 30, 0, 0), 0.05).missed_at_most == 70
    assert bound(Tally(100, 100, 50, 0), 0.05).recall == 1


def test_the_whole_is_the_better_of_two_ways():
    strata = [Tally(10**6, 1000, 10**5, 0), Tally(10**6, 1000, 10**5, 0)]
    found = certificate(strata, 0.05)
    pooled = 2000 / (2000 + 2e6 * stats.beta.ppf(1 - 0.025, 1, 2 * 10**5))
    assert found.recall == pytest.approx(pooled, rel=1e-6)
    assert found.strata[0].recall == pytest.approx(
        1000 / (1000 + 1e6 * stats.beta.ppf(1 - 0.0125, 1, 10**5)), rel=1e-6
    )
    assert found.facts()["recall"] == found.recall
    # a stratum that was drawn whole bounds better than all together
    skewed = certificate([Tally(10, 5, 10**5, 0), Tally(10**6, 1000, 10**6, 3)], 0.05)
    assert skewed.recall >= skewed.whole.recall


class Planted:
    """A grid of weights, and a student that sees them through noise: more of it for rare query terms."""

    def __init__(self, seed: int, queries: int = 60, docs: int = 400) -> None:
        rng = np.random.default_rng(seed)
        self.weights = np.where(rng.random((queries, docs)) < 0.03, 0.1 + 0.9 * rng.random((queries, docs)), 0.05)
        noise = np.linspace(0.5, 3.0, queries)[:, None] * rng.standard_normal((queries, docs))
        self.student = (self.weights >= 0.1) * 3.0 + noise
        query_of, doc_of = np.arange(queries), np.r_[np.arange(docs), np.zeros(50, int), np.full(30, docs - 1)]
        stratum = (np.arange(queries) * 3 // queries).astype(np.int32)
        nothing = np.full(queries, -1, np.int32)
        self.terms = Terms(query_of.astype(np.int32), doc_of.astype(np.int32), stratum, 3, nothing)

    def exact(self, query, doc):
        return self.weights[query, doc]

    def cascade(self, seed: int, sample: int, recall: float | None = None):
        """What is found with a cut from one sample, the bound from another, and the true recall of each stratum.

        With `recall`, the second sample is as large as what was found says.
        """
        rng = np.random.default_rng([seed, 7])
        query, doc = rng.integers(60, size=sample), rng.integers(400, size=sample)
        cut = choose_cut(self.student[query, doc], self.weights[query, doc] >= 0.1, 0.9)
        kept = (self.student >= cut) & (self.weights >= 0.1)
        q, d = kept.nonzero()
        found = Entries(q.astype(np.int32), d.astype(np.int32), self.weights[kept], {})
        if recall is not None:
            pairs = int(self.terms.pairs().sum())
            sample = needed(pairs, int(self.terms.found(found.queries, found.docs).sum()), recall, 0.05)
        proof = certify(self.terms, found, self.exact, 0.1, sample, 0.05, rng, lambda a, b: self.student[a, b] >= cut)
        times = np.bincount(self.terms.doc_of, minlength=400)
        belongs = (self.weights >= 0.1) @ times
        held = kept @ times
        by = [(held[i : i + 20].sum(), belongs[i : i + 20].sum()) for i in (0, 20, 40)]
        return proof, [a / b for a, b in by], held.sum() / belongs.sum()


def test_the_bound_holds_as_often_as_it_says():
    """All four statements at once, over 300 planted grids: at most 5% may fail, give or take."""
    fails, bounds, truths = 0, [], []
    for seed in range(300):
        proof, strata, whole = Planted(seed).cascade(seed, 1500)
        holds = proof.recall <= whole and all(s.recall <= t for s, t in zip(proof.strata, strata, strict=True))
        fails += not holds
        bounds.append(proof.recall)
        truths.append(whole)
    assert fails <= stats.binom.ppf(0.999, 300, 0.05)
    assert np.mean(bounds) > 0.5  # and it says something
    assert np.mean(truths) < 0.99


def test_the_bound_holds_with_samples_whose_size_follows_from_what_was_found():
    fails, sizes = 0, []
    for seed in range(300):
        proof, strata, whole = Planted(seed).cascade(seed, 1500, recall=0.8)
        fails += not (proof.recall <= whole and all(s.recall <= t for s, t in zip(proof.strata, strata, strict=True)))
        sizes.append(proof.whole.tally.drawn)
    assert fails <= stats.binom.ppf(0.999, 300, 0.05)
    assert len(set(sizes)) > 20


def test_the_bound_is_of_pairs_of_two_terms():
    """A table ties no term to itself: such pairs are found easily, and prove nothing of the others."""
    fails, others, each = 0, ~np.eye(200, dtype=bool), np.arange(200, dtype=np.int32)
    terms = Terms(each, each, np.zeros(200, np.int32), 1, each)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        weights = np.where((rng.random((200, 200)) < 0.004) | ~others, 0.5, 0.05)
        kept = (weights >= 0.1) & ((rng.random((200, 200)) < 0.7) | ~others)
        q, d = (side.astype(np.int32) for side in kept.nonzero())
        proof = certify(
            terms, Entries(q, d, weights[kept], {}), lambda a, b, w=weights: w[a, b], 0.1, 4000, 0.05, rng
        )
        assert proof.whole.tally.found == (kept & others).sum()
        fails += proof.recall > (kept & others).sum() / ((weights >= 0.1) & others).sum()
    assert fails <= stats.binom.ppf(0.999, 200, 0.05)


@pytest.mark.parametrize("frame", FRAMES)
def test_a_term_is_known_on_the_other_side_whatever_stands_around_it(frame):
    """By its pieces; the third query term has lost its end."""
    queries, docs = [[5], [5, 6], [7, 8, 9], [4], [5]], [[7, 8, 9, 3], [5, 6], [5], [11], [6, 5], [5]]
    sides = zip((queries, docs), FRAMES[frame], strict=True)
    asked, told = (distinct(around([np.array(row, np.int32) for row in rows], masks, 103)) for rows, masks in sides)
    terms = Terms.of(Task(asked, told, Settings(strata=2)), 103)
    assert terms.own.tolist() == [2, 1, 0, -1, 2]
    assert terms.found(np.array([0, 0], np.int32), np.array([2, 4], np.int32)).tolist() == [3 - 1, 3 - 1]


@pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("share", [0.3, 0.01, 0.0005])
def test_the_draws_that_are_needed_are_enough_and_not_many_more(recall, share):
    pairs, error = 10**9, 0.025
    drawn = needed(pairs, share * pairs, recall, error)
    rate = share * (1 - recall) / recall
    rng = np.random.default_rng(0)
    misses = rng.binomial(drawn, rate / 2, size=400)  # half of what may be missed
    shown = np.mean([stats.beta.ppf(1 - error / 2, h + 1, drawn - h) <= rate * 1.0001 for h in misses])
    assert shown > 0.78  # the mean and a standard deviation: 84% of a normal distribution
    fewer = int(0.9 * drawn)
    hits = np.ceil(fewer * rate / 2 + np.sqrt(fewer * rate / 2))
    assert stats.beta.ppf(1 - error / 2, hits + 1, fewer - hits) > rate


@settings(max_examples=60)
@given(st.integers(1, 10**10), st.floats(0, 1), st.floats(0.01, 0.999), st.floats(1e-4, 0.5))
def test_the_best_that_draws_can_show_is_without_a_miss(pairs, share, recall, error):
    drawn = needed(pairs, share * pairs, recall, error)
    assert 1 <= drawn <= pairs
    best = at_best(pairs, share * pairs, drawn, error)
    if drawn < pairs:
        assert best >= recall * 0.9999
    rate = -np.expm1(np.log(error / 2) / drawn)
    assert best == pytest.approx(share / (share + rate) if share else 0, rel=1e-6)


def test_nothing_is_missed_where_all_is_scored():
    found = everything(700).facts()
    assert (found["recall"], found["level"], found["pairs"]) == (1.0, 1.0, 700)
    assert "all pairs were scored" in found["rule"]


def test_a_hit_that_was_proposed_is_no_miss_and_tallies_count_terms():
    planted = Planted(0)
    nothing = Entries(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), {})
    rng = np.random.default_rng(1)
    none = certify(planted.terms, nothing, planted.exact, 0.1, 4000, 0.05, rng, lambda a, b: np.ones(len(a), bool))
    assert none.whole.tally.missed == 0
    rng = np.random.default_rng(1)
    missed = certify(planted.terms, nothing, planted.exact, 0.1, 4000, 0.05, rng)
    share = (planted.weights >= 0.1)[:, planted.terms.doc_of].mean()
    assert missed.whole.tally.missed == pytest.approx(4000 * share, abs=5 * np.sqrt(4000 * share))
    assert missed.whole.tally.pairs == 60 * len(planted.terms.doc_of)
    q, d = (planted.weights >= 0.1).nonzero()
    counted = planted.terms.found(q.astype(np.int32), d.astype(np.int32))
    assert counted.sum() == (planted.weights >= 0.1)[:, planted.terms.doc_of].sum()


def test_the_cut_keeps_what_a_sample_says():
    scores, belongs = np.arange(2000.0), np.arange(2000) % 2 == 0
    cut = choose_cut(scores, belongs, 0.9)
    assert (scores[belongs] < cut).mean() == pytest.approx(0.05, abs=0.002)
    assert choose_cut(scores, belongs, 0.9, 2) < cut
    assert choose_cut(scores, np.zeros(2000, bool), 0.9) == pytest.approx(1960, abs=2)


def test_a_student_learns_what_is_a_product():
    """Planted weights that follow from the terms' states: few proposals hold nearly all that belong."""
    rng = np.random.default_rng(0)
    queries, docs = rng.standard_normal((40, 12)), rng.standard_normal((300, 12))
    logits = 2 * queries @ docs.T - 6
    states = tuple(torch.from_numpy(side.astype(np.float32)) for side in (queries, docs))
    exact = lambda q, d: 1 / (1 + np.exp(-logits[q, d]))  # noqa: E731
    student = train_student(states, exact, 0.1, 4000, 0, dims=16)
    assert isinstance(student, Student)
    scores = student.scores(np.arange(40)).numpy()
    np.testing.assert_allclose(student.pairs([3, 5], [7, 9]), scores[[3, 5], [7, 9]], atol=1e-4)
    belongs = 1 / (1 + np.exp(-logits)) >= 0.1
    proposed = scores >= np.quantile(scores, 1 - 2 * belongs.mean())
    assert belongs.mean() < 0.4
    assert (proposed & belongs).sum() / belongs.sum() > 0.97
    again = train_student(states, exact, 0.1, 4000, 0, dims=16)
    assert torch.equal(student.queries, again.queries)
