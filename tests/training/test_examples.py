"""Which examples are drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.training import Examples, Texts
from whyrank.training.data import Fixed, Judged


def numbers(rows):
    return [np.array(row, np.int32) for row in rows]


@st.composite
def judged(draw):
    """Queries with some positive and some negative texts, possibly none of either."""
    n = draw(st.integers(1, 8))
    rows = []
    for _ in range(n):
        texts = draw(st.lists(st.integers(0, 40), unique=True, max_size=12))
        cut = draw(st.integers(0, len(texts)))
        rows.append((texts[:cut], texts[cut:]))
    good, bad = zip(*rows, strict=True)
    return Judged(numbers(good), numbers(bad), draw(st.integers(1, 5)))


def same(a: Examples, b: Examples) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@given(judged(), st.integers(0, 3), st.integers(0, 3))
def test_one_positive_and_n_negatives_of_each_query_and_epoch(sampler, seed, epoch):
    found = sampler.epoch(seed, epoch)
    usable = [q for q, p in enumerate(sampler.positives) if len(p) and len(sampler.negatives[q])]
    assert sorted(found.query.tolist()) == usable
    assert found.doc.shape == found.target.shape == (len(usable), 1 + sampler.n)
    for query, docs, targets in zip(*found, strict=True):
        assert docs[0] in sampler.positives[query]
        assert set(docs[1:].tolist()) <= set(sampler.negatives[query].tolist())
        assert not set(docs[1:].tolist()) & set(sampler.positives[query].tolist())
        if len(sampler.negatives[query]) >= sampler.n:
            assert len(set(docs[1:].tolist())) == sampler.n
        assert targets.tolist() == [1.0] + [0.0] * sampler.n


@given(judged(), st.integers(0, 5))
def test_a_seed_draws_the_same_examples(sampler, seed):
    assert same(sampler.epoch(seed, 2), sampler.epoch(seed, 2))


def test_epochs_and_seeds_draw_different_examples():
    sampler = Judged(numbers([[0, 1, 2]] * 20), numbers([range(3, 40)] * 20), 3)
    first = sampler.epoch(0, 0)
    assert not same(first, sampler.epoch(0, 1))
    assert not same(first, sampler.epoch(1, 0))


def test_over_many_epochs_every_text_is_drawn():
    sampler = Judged(numbers([[0, 1]]), numbers([[2, 3, 4]]), 1)
    drawn = np.concatenate([sampler.epoch(0, epoch).doc for epoch in range(40)])
    assert set(drawn[:, 0].tolist()) == {0, 1}
    assert set(drawn[:, 1].tolist()) == {2, 3, 4}


def test_fixed_examples_come_in_a_new_order_each_epoch():
    table = np.arange(30, dtype=np.int32).reshape(10, 3)
    sampler = Fixed(Examples(table[:, 0], table[:, 1:], np.ones((10, 2), np.float32)))
    orders = [sampler.epoch(0, epoch) for epoch in range(3)]
    for found in orders:
        assert sorted(found.query.tolist()) == table[:, 0].tolist()
        np.testing.assert_array_equal(found.doc, found.query[:, None] + [1, 2])
    assert not same(orders[0], orders[1])
    assert same(orders[1], sampler.epoch(0, 1))


def test_texts_have_one_number_each():
    texts = Texts()
    assert texts.numbers(["b", "a", "b", ""]).tolist() == [0, 1, 0, 2]
    assert list(texts.found) == ["b", "a", ""]


@pytest.mark.parametrize("n", [1, 4])
def test_with_fewer_negatives_than_asked_for_some_come_twice(n):
    found = Judged(numbers([[0]]), numbers([[1, 2]]), n).epoch(0, 0)
    assert found.doc.shape == (1, 1 + n)
    assert set(found.doc[0, 1:].tolist()) <= {1, 2}
