"""What the score of a ranker is divided by for one query, so that long and short queries are on one footing."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from whyrank.core.protocols import Ranker
from whyrank.rankers.bm25 import BM25, VARIANTS
from whyrank.rankers.lexical import LexicalRanker
from whyrank.rankers.ql import QL


@runtime_checkable
class QueryScaled(Protocol):
    """A ranker that says itself what its scores are divided by."""

    def query_scale(self, query: str) -> float:
        """A positive number."""
        ...


def query_scale(ranker: Ranker, query: str) -> float:
    """The sum of IDFs for BM25, the number of query tokens that count for query likelihood, else 1; never 0.

    A ranker that has a method of its own is asked: neural Model 1 has the number of distinct query pieces.
    Each distinct term of the query that the collection has counts once, with the IDF of Lucene, whatever the variant.
    """
    if isinstance(ranker, QueryScaled):
        return float(ranker.query_scale(query)) or 1.0
    if not isinstance(ranker, LexicalRanker):
        return 1.0
    tokens = ranker.analyzer.query_terms(query)
    if isinstance(ranker.formula, QL):
        return float(len(set(tokens) if ranker.formula.variant == "parm" else tokens)) or 1.0
    return _idfs(ranker, tokens) or 1.0 if isinstance(ranker.formula, BM25) else 1.0


def _idfs(ranker: LexicalRanker, tokens: list[str]) -> float:
    df = ranker.background.frequencies(list(dict.fromkeys(tokens)))[0].astype(np.float64)
    known = df[df > 0]
    return float(VARIANTS["lucene"].idf(known, float(ranker.background.n_docs)).sum())
