"""Which terms must be added to a query so that BM25 orders a list as another ranker does.

After Llordes et al., "Explain like I am BM25: Interpreting a Dense Model's Ranked-List with a
Sparse Approximation", SIGIR 2023: the terms of the best documents are tried, and the one that raises Kendall's tau-b
between BM25 and the ranker most is added, again and again, as long as there is one that raises it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whyrank.core.protocols import Codes, Floats
from whyrank.rankers import kernels
from whyrank.rankers.lexical import LexicalRanker, Weights
from whyrank.tables.fidelity_kernels import dense_ranks, greedy
from whyrank.text import Tokens

GAIN = 1e-9  # a smaller rise of tau-b is rounding


def expansion(
    bm25: LexicalRanker, query: str, texts: Sequence[str], scores: Floats, top: int, pool: int, most: int
) -> list[str]:
    """The terms, best first.

    Args:
        bm25: whose order is to be brought near.
        query: the query.
        texts: the list, best first.
        scores: what the ranker to be explained gave them.
        top: terms come from so many of the best texts.
        pool: so many of them are tried, by what they would add to the BM25 scores of these texts.
        most: so many are given at most.
    """
    if len(texts) < 2 or scores.min() == scores.max():
        return []
    tokens, rows = bm25.analyzer.docs(texts), np.arange(len(texts), dtype=np.int32)
    terms = _pool(bm25, query, tokens, min(top, len(texts)), pool)
    if not len(terms):
        return []
    base = bm25.scorer(tokens).score(query, rows)
    columns = np.ascontiguousarray(_gains(bm25, tokens, rows, terms).T)
    chosen = greedy(dense_ranks(scores), base, columns, min(most, len(terms)), GAIN)
    return [bm25.analyzer.vocabulary.terms[terms[i]] for i in chosen]


def _pool(bm25: LexicalRanker, query: str, tokens: Tokens, top: int, size: int) -> Codes:
    """The terms of the best texts, but those of the query, by what they add to the scores of these texts."""
    asked = bm25.analyzer.queries([query]).ids
    terms = np.setdiff1d(tokens.ids[: tokens.offsets[top]], asked).astype(np.int32)
    total = _gains(bm25, tokens, np.arange(top, dtype=np.int32), terms).sum(axis=0)
    names = bm25.analyzer.vocabulary.terms
    order = sorted(range(len(terms)), key=lambda i: (-round(float(total[i]), 9), names[terms[i]]))
    return terms[order[:size]]


def _gains(bm25: LexicalRanker, tokens: Tokens, rows: Codes, terms: Codes) -> Floats:
    """What each term adds to the BM25 score of each text."""
    names = [bm25.analyzer.vocabulary.terms[i] for i in terms]
    weights: Weights = bm25.formula.weights(bm25.background, names, np.ones(len(terms), np.int64))
    tf = np.zeros((len(rows), len(terms)), np.int32)
    slots = np.full(len(bm25.analyzer.vocabulary), -1, np.int32)
    kernels.scan(tokens.ids, tokens.offsets, rows, terms, slots, tf)
    norms = weights.a + weights.b * np.diff(tokens.offsets)[rows]
    found: Floats = weights.weights * (tf / (tf + norms[:, None]))
    return found
