"""Explanations of the lexical rankers: a document term gives to the query term that is the same word, or related."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from whyrank.core.explanations import Explanation
from whyrank.core.protocols import Floats
from whyrank.rankers import kernels
from whyrank.rankers.lexical import LexicalRanker, Weights, counted


class _Cells(NamedTuple):
    """A matrix and what each of its rows has without any document term."""

    cells: Floats
    background: Floats


def explain(ranker: LexicalRanker, query: str, text: str) -> Explanation:
    """The matrix behind the score of one text."""
    asked, weights = ranker.query(query)
    told = counted(ranker.analyzer.docs([text]).ids)
    tf, notes = ranker.parts(asked, told), tuple(ranker.notes(asked))
    names = ranker.analyzer.vocabulary.terms
    terms, words = ([names[i] for i in ids.tolist()] for ids in (asked, told.ids))
    score = float(ranker.score([query], [text])[0])
    if weights.kind == kernels.SATURATED:
        return Explanation.additive(terms, words, _saturated(weights, tf, int(told.counts.sum())), score, notes)
    found = _likelihoods(weights, tf, int(told.counts.sum()))
    return Explanation.log(terms, words, found.cells, score, found.background, weights.weights, notes=notes)


def _saturated(weights: Weights, tf: Floats, length: int) -> Floats:
    """Term weights times saturated frequencies, each shared out among the document terms that it is made of."""
    compared = tf.sum(axis=1, keepdims=True) + (weights.a + weights.b * length)
    saturated = np.divide(tf, compared, out=np.zeros_like(tf), where=tf > 0)
    return np.asarray(weights.weights[:, None] * saturated)


def _likelihoods(weights: Weights, tf: Floats, length: int) -> _Cells:
    """What text and collection give to the smoothed probability of each term."""
    if weights.kind == kernels.DIRICHLET:
        whole = length + weights.a
        return _Cells(tf / whole, weights.a * weights.priors / whole)
    return _Cells((1 - weights.a) * tf / max(length, 1), weights.a * weights.priors)
