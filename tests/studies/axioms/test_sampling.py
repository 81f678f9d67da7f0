"""The sampler holds all instances up to a limit, and beyond it a sample that depends on seed and documents alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyrank.data import Collection
from whyrank.studies import Pools, Source
from whyrank.studies.axioms.axiom import Sampler
from whyrank.studies.axioms.view import Views

SIZE = 60


def made_views(doc_ids):
    docs = {doc_id: f"text {doc_id}" for doc_id in doc_ids}
    queries = {"q1": "one", "q2": "two"}
    collection = Collection.of(docs, queries, {query: dict.fromkeys(docs, 0) for query in queries})
    return list(Views.of(Pools(collection, Source(analyzer="whitespace"))))


VIEWS = made_views([f"d{i}" for i in range(SIZE)])


def all_rows():
    """Every ordered pair of different documents."""
    return np.array([(a, b) for a in range(SIZE) for b in range(SIZE) if a != b], dtype=np.int32)


def offered(blocks, most, seed=0):
    """A sampler that was given all blocks, and what it holds: (query id, ids of the documents)."""
    sampler = Sampler(most, seed)
    for view, rows in blocks:
        sampler.offer(view, rows)
    return sampler, named(sampler)


def named(sampler):
    return [(pool.query_id, *(pool.doc_ids[i] for i in row)) for pool, rows in sampler.blocks() for row in rows]


def names(blocks):
    return {(view.pool.query_id, *(view.pool.doc_ids[i] for i in row)) for view, rows in blocks for row in rows}


numbers = st.integers(0, SIZE - 1)
pairs = st.sets(st.tuples(st.integers(0, 1), numbers, numbers), max_size=80)


@given(pairs, st.integers(1, 100), st.integers(0, 3), st.randoms(use_true_random=False))
def test_the_order_and_the_blocks_do_not_matter(found, most, seed, random):
    def in_blocks():
        rows = list(found)
        random.shuffle(rows)
        cuts = sorted(random.randint(0, len(rows)) for _ in range(4))
        parts = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
        return [block for part in parts for block in by_view(part)]

    first, second = offered(in_blocks(), most, seed), offered(in_blocks(), most, seed)
    assert sorted(first[1]) == sorted(second[1])
    assert first[0].drop_counts() == second[0].drop_counts()


def by_view(rows):
    """The rows of each view, as a block; empty ones included."""
    picked = [[row[1:] for row in rows if row[0] == which] for which in (0, 1)]
    return [(view, np.array(part, dtype=np.int32).reshape(-1, 2)) for view, part in zip(VIEWS, picked, strict=True)]


@given(pairs, st.integers(1, 100), st.integers(0, 3))
def test_a_subset_never_above_the_limit_with_the_rate_it_says(found, most, seed):
    blocks = by_view(sorted(found))
    sampler, held = offered(blocks, most, seed)
    assert len(held) == len(set(held)) <= most
    assert set(held) <= names(blocks)
    assert sampler.found == len(found)
    if len(found) <= most:
        assert (set(held), sampler.drop_counts()) == (names(blocks), {})
    else:
        assert sampler.drop_counts() == {
            f"not drawn (rate 1/{2**sampler.halvings}, seed {seed})": len(found) - len(held)
        }


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("halvings", [1, 2, 4])
def test_about_the_stated_share_is_kept_of_every_document_and_query(halvings, seed):
    rows = all_rows()
    sampler = Sampler(1 << 30, seed)
    sampler.halvings = halvings
    for view in VIEWS:
        sampler.offer(view, rows)
    rate, (one, two) = 2.0**-halvings, sampler.blocks()
    for _, kept in (one, two):
        assert abs(len(kept) - rate * len(rows)) < 5 * np.sqrt(rate * (1 - rate) * len(rows))
        for column in (0, 1):
            share = np.bincount(kept[:, column], minlength=SIZE) / (SIZE - 1)
            assert np.abs(share - rate).max() < 5 * np.sqrt(rate * (1 - rate) / (SIZE - 1))
    assert set(map(tuple, one[1])) != set(map(tuple, two[1]))  # queries are drawn apart


def test_the_seed_decides_and_the_position_of_a_document_in_its_pool_does_not():
    turned = made_views([f"d{i}" for i in reversed(range(SIZE))])
    first, again, other = (
        set(offered([(view, all_rows())], 500, seed)[1])
        for view, seed in ((VIEWS[0], 0), (turned[0], 0), (VIEWS[0], 1))
    )
    assert first == again != other


@pytest.mark.parametrize("most", [1, 1000])
def test_memory_stays_bounded_while_blocks_come(most):
    sampler, rows = Sampler(most, 0), all_rows()
    for start in range(0, len(rows), 100):
        for view in VIEWS:
            sampler.offer(view, rows[start : start + 100])
            assert sampler.held == sum(len(kept) for _, kept in sampler.blocks()) <= most
    assert sum(sampler.drop_counts().values()) == 2 * len(rows) - sampler.held
