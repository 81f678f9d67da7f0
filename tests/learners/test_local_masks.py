"""Changed texts and the weights of their terms, against lstsq, analysis and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from whyrank.data import Collection
from whyrank.evaluation.fidelity import dense_ranks, greedy
from whyrank.learners.local.explaining import (
    MaskedText,
    expansion,
    lime_masks,
    lime_weights,
    ridge,
)
from whyrank.rankers import Setting, open_ranker
from whyrank.text import analyzers

WORDS = st.sampled_from(["cat", "Cats,", "dog's", "the", "house-boat", "(mat)", "-", "Boat"])


@given(st.lists(WORDS, max_size=12), st.sampled_from(["lucene", "krovetz", "whitespace"]), st.randoms())
def test_a_text_loses_the_terms_that_are_taken_out_and_no_other_word(words, name, random):
    pytest.importorskip("krovetzstemmer") if name == "krovetz" else None
    analyzer, text = analyzers.create(name), " ".join(words)
    masked = MaskedText.of(text, analyzer, frozenset(["boat"]))
    kept_words = [word for word in words if "boat" in analyzer.terms(word)]
    assert masked.terms == list(
        dict.fromkeys(t for word in words if word not in kept_words for t in analyzer.terms(word))
    )
    assert masked.keep(np.ones(len(masked.terms), np.bool_)) == text
    mask = np.array([random.random() < 0.5 for _ in masked.terms], np.bool_)
    gone = {term for term, kept in zip(masked.terms, mask, strict=True) if not kept}
    expected = [word for word in words if word in kept_words or not gone & set(analyzer.terms(word))]
    assert masked.keep(mask) == " ".join(expected)
    assert analyzer.terms(masked.keep(mask)).count("boat") == analyzer.terms(text).count("boat")


@given(st.integers(1, 40), st.integers(2, 25), st.floats(0.01, 10), st.integers(0, 2**32))
def test_ridge_equals_lstsq_of_the_padded_system(columns, rows, alpha, seed):
    rng = np.random.default_rng(seed)
    x, v, w = rng.integers(0, 2, (rows, columns)).astype(float), rng.normal(size=rows), rng.uniform(0.01, 1, rows)
    root = np.sqrt(w)[:, None]
    padded = np.vstack(
        [np.hstack([root * x, root]), np.hstack([np.sqrt(alpha) * np.eye(columns), np.zeros((columns, 1))])]
    )
    expected = np.linalg.lstsq(padded, np.concatenate([root[:, 0] * v, np.zeros(columns)]), rcond=None)[0][:columns]
    assert ridge(x, v, w, alpha) == pytest.approx(expected, abs=1e-8)


def test_lime_weights_equal_a_plain_weighted_fit():
    rng = np.random.default_rng(4)
    masks = lime_masks(7, 60, rng)
    scores = rng.normal(size=60)
    scores[[3, 17]] = np.nan
    rows = [i for i in range(60) if i not in (3, 17)]
    total = np.zeros((8, 8))
    right = np.zeros(8)
    for i in rows:
        one = np.append(masks[i].astype(float), 1.0)
        cosine = masks[i].sum() / np.sqrt(max(masks[i].sum(), 1) * 7)
        weight = np.exp(-((1 - cosine) ** 2) / (2 * 0.25**2))
        total += weight * np.outer(one, one)
        right += weight * one * scores[i]
    total[:7, :7] += np.eye(7)
    assert lime_weights(masks, scores) == pytest.approx(np.linalg.solve(total, right)[:7], abs=1e-10)
    assert lime_weights(masks, np.full(60, np.nan)).tolist() == [0.0] * 7


@given(st.integers(1, 60), st.floats(-1e6, 1e6, allow_subnormal=False), st.integers(0, 2**32))
def test_equal_scores_give_no_term_a_weight(terms, score, seed):
    masks = lime_masks(terms, 40, np.random.default_rng(seed))
    assert not lime_weights(masks, np.full(40, score)).any()


def test_random_texts_lose_one_to_all_terms_each_number_alike():
    masks = lime_masks(4, 4001, np.random.default_rng(2))
    assert masks[0].all()
    taken = (~masks[1:]).sum(axis=1)
    assert scipy.stats.chisquare(np.bincount(taken, minlength=5)[1:]).pvalue > 1e-3
    assert scipy.stats.chisquare((~masks[1:]).sum(axis=0)).pvalue > 1e-3
    assert (lime_masks(4, 50, np.random.default_rng(2)) == lime_masks(4, 50, np.random.default_rng(2))).all()


def test_a_text_of_many_terms_needs_no_square_of_them():
    rng = np.random.default_rng(7)
    masks = lime_masks(60_000, 12, rng)  # a system with a line per term would take 29 GB
    found = lime_weights(masks, masks[:, 5] * 1.0)
    assert found.shape == (60_000,)
    assert found[5] == found.max() > 0


@given(st.integers(0, 2**32), st.integers(3, 12), st.integers(1, 5), st.integers(1, 4))
def test_greedy_choice_equals_plain_trying(seed, docs, columns, most):
    rng = np.random.default_rng(seed)
    target, base = rng.integers(0, 5, docs).astype(float), rng.integers(0, 3, docs).astype(float)
    gains = rng.integers(0, 4, (columns, docs)).astype(float)
    if target.min() == target.max():
        return

    def tau(scores):
        return 0.0 if scores.min() == scores.max() else scipy.stats.kendalltau(target, scores).statistic

    chosen, total, best = [], base.copy(), tau(base)
    while len(chosen) < most:
        taus = {j: tau(total + gains[j]) for j in range(columns) if j not in chosen}
        j = max(taus, key=lambda j: (round(taus[j], 9), -j), default=None)
        if j is None or taus[j] <= best + 1e-9:
            break
        chosen.append(j)
        best, total = taus[j], total + gains[j]
    assert greedy(dense_ranks(target), base, gains, most, 1e-9).tolist() == chosen


DOCS = {"1": "cat vehicle", "2": "cat road", "3": "cat vehicle road", "4": "cat", "5": "dog house"}


def test_the_expansion_that_makes_bm25_order_a_list():
    collection = Collection.of(DOCS, {"q": "cat"})
    bm25 = open_ranker("bm25", Setting(collection, "whitespace"))
    texts = ["cat vehicle", "cat vehicle road", "cat", "cat road"]
    scores = np.array([4.0, 4.0, 1.0, 1.0])
    assert expansion(bm25, "cat", texts, scores, top=2, pool=10, most=3)[0] == "vehicle"
    assert "cat" not in expansion(bm25, "cat", texts, scores, top=4, pool=10, most=9)
    every = expansion(bm25, "cat", texts, scores, top=4, pool=10, most=9)
    assert expansion(bm25, "cat", texts, scores, top=4, pool=10**20, most=10**20) == every
    assert expansion(bm25, "cat", texts, scores, top=4, pool=10, most=1) == ["vehicle"]
    assert expansion(bm25, "cat", texts, np.ones(4), top=2, pool=10, most=3) == []
    assert expansion(bm25, "cat", ["cat"], np.ones(1), top=2, pool=10, most=3) == []
    assert expansion(bm25, "cat", ["cat", "cat cat"], np.array([2.0, 1.0]), top=2, pool=10, most=3) == []
