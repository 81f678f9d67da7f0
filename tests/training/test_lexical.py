"""BM25 over token numbers equals a loop over the definition."""

from __future__ import annotations

from collections import Counter
from math import log

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.training.distilling import lexical_top

TOKENS = st.lists(st.integers(0, 11), max_size=8).map(lambda row: np.array(row, np.int32))


def oracle(query, docs, k1=0.9, b=0.4):
    mean = sum(map(len, docs)) / len(docs)
    scores = []
    for doc in docs:
        tf, total = Counter(doc.tolist()), 0.0
        for token in set(query.tolist()):
            having = sum(token in other for other in docs)
            weight = log(1 + (len(docs) - having + 0.5) / (having + 0.5))
            if tf[token]:
                total += weight * tf[token] / (tf[token] + k1 * (1 - b + b * len(doc) / mean))
        scores.append(total)
    return scores


@settings(deadline=None)
@given(st.lists(TOKENS, min_size=1, max_size=5), st.lists(TOKENS, min_size=1, max_size=9), st.integers(1, 12))
def test_the_best_texts_are_those_of_the_definition(queries, docs, depth):
    found = lexical_top(queries, docs, 12, depth)
    assert found.shape == (len(queries), min(depth, len(docs)))
    for query, row in zip(queries, found, strict=True):
        scores = oracle(query, docs)
        assert len(set(row.tolist())) == len(row)
        np.testing.assert_allclose([scores[d] for d in row], sorted(scores, reverse=True)[: len(row)], atol=1e-5)
