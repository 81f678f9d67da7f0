"""Validation gives what ir_measures gives."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from whyrank.training.validation import Validation

MEASURES = ("nDCG@10", "nDCG@3", "RR@10", "RR(rel=2)@10", "RR@2")


class Given:
    """A network whose score of query i and text j is a given number."""

    def __init__(self, scores):
        self.scores = scores

    def query_ids(self, texts):
        return [np.array([int(text)]) for text in texts]

    doc_ids = query_ids

    def arrays(self, queries, docs):
        return {"query": np.array([q[0] for q in queries]), "doc": np.array([d[0] for d in docs])}

    def __call__(self, batch):
        return torch.tensor([self.scores[int(q), int(d)] for q, d in zip(batch["query"], batch["doc"], strict=True)])


@st.composite
def judged_runs(draw):
    """Grades of texts by query, which texts are candidates, and different scores for them."""
    queries, docs = draw(st.integers(1, 4)), draw(st.integers(1, 14))
    grades = draw(
        st.lists(st.lists(st.integers(0, 3), min_size=docs, max_size=docs), min_size=queries, max_size=queries)
    )
    candidates = [draw(st.lists(st.integers(0, docs - 1), unique=True, min_size=1)) for _ in range(queries)]
    scores = np.array(draw(st.permutations(range(queries * docs))), dtype=np.float64).reshape(queries, docs)
    return grades, candidates, scores


@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=25)
@given(judged_runs())
def test_the_mean_is_that_of_ir_measures(measure, case):
    grades, candidates, scores = case
    rows = [(q, d, grades[q][d]) for q, docs in enumerate(candidates) for d in docs]
    query, doc, grade = (np.array(column) for column in zip(*rows, strict=True))
    n, m = scores.shape
    check = Validation([str(q) for q in range(n)], [str(d) for d in range(m)], query, doc, grade, grades, measure, 3)
    qrels = {str(q): {str(d): g for d, g in enumerate(row)} for q, row in enumerate(grades)}
    run = {str(q): {str(d): scores[q, d] for d in docs} for q, docs in enumerate(candidates)}
    parsed = ir_measures.parse_measure(measure)
    expected = ir_measures.calc_aggregate([parsed], qrels, run)[parsed]
    assert check(Given(scores)) == pytest.approx(expected, abs=1e-9)


def test_equal_scores_keep_the_order_of_the_candidates():
    check = Validation(["0"], ["0", "1"], np.array([0, 0]), np.array([0, 1]), np.array([1, 0]), [[1, 0]], "RR@10")
    assert check(Given(np.zeros((1, 2)))) == 1.0
