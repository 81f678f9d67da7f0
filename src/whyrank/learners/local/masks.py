"""Texts with some of their terms taken out, and what the scores of such texts say about each term.

A text is cut into words at white space; a word belongs to the terms that the analyzer makes of it. To take a term out
is to take out every word that belongs to it. Words with a term of the query stay: else "tenant" would have the credit
of the "landlord" that goes with it in "landlord-tenant".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from whyrank.core import Codes, Flags, Floats
from whyrank.evaluation.fidelity import dense_ranks, greedy
from whyrank.rankers.lexical import LexicalRanker, Weights, kernels
from whyrank.text import Analyzer, Tokens

# Which terms must be added to a query so that BM25 orders a list as another ranker does.
#
# After Llordes et al., "Explain like I am BM25: Interpreting a Dense Model's Ranked-List with a
# Sparse Approximation", SIGIR 2023: the terms of the best documents are tried, and the one that raises Kendall's
# tau-b
# between BM25 and the ranker most is added, again and again, as long as there is one that raises it.

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


WIDTH = 0.25  # of the kernel, in cosine distances from the whole text
ALPHA = 1.0  # of the ridge
ROUNDING = 1e-12  # of the largest score: a coefficient as small is rounding, as of scores that are all equal


@dataclass(frozen=True, eq=False)
class MaskedText:
    """A text and the terms that can be taken out of it, in the order in which they appear."""

    words: Sequence[str]
    owners: Sequence[Sequence[int]]
    terms: Sequence[str]

    @classmethod
    def of(cls, text: str, analyzer: Analyzer, kept: Collection[str]) -> MaskedText:
        """Cut a text into words; those with one of the terms `kept` cannot be taken out."""
        words = text.split()
        tokens = analyzer.docs(words)
        names, place = analyzer.vocabulary.terms, dict[str, int]()
        owners = []
        for i in range(len(words)):
            own = [names[t] for t in tokens.ids[tokens.offsets[i] : tokens.offsets[i + 1]].tolist()]
            stays = any(term in kept for term in own)
            owners.append([] if stays else [place.setdefault(term, len(place)) for term in own])
        return cls(words, owners, list(place))

    def text(self, mask: Flags) -> str:
        """The text with those terms alone that the mask keeps."""
        return " ".join(
            word for word, own in zip(self.words, self.owners, strict=True) if all(mask[term] for term in own)
        )


def occlusion_masks(terms: int) -> Iterator[Flags]:
    """The whole text, and then one text without each term; a long text has too many to hold all masks at once."""
    yield np.ones(terms, np.bool_)
    for term in range(terms):
        yield np.arange(terms) != term


def occlusion_weights(scores: Floats) -> Floats:
    """How far the score falls without each term; 0 where a score is missing."""
    found: Floats = np.nan_to_num(scores[0] - scores[1:], nan=0.0, posinf=0.0, neginf=0.0)
    return found


def lime_masks(terms: int, samples: int, random: np.random.Generator) -> Flags:
    """The whole text, and then random ones: 1 to all terms are taken out, each number as likely as the others."""
    taken = random.integers(1, terms + 1, size=samples - 1)
    order = random.permuted(np.tile(np.arange(terms), (samples - 1, 1)), axis=1)
    return np.concatenate([np.ones((1, terms), np.bool_), order >= taken[:, None]])


def lime_weights(masks: Flags, scores: Floats) -> Floats:
    """Coefficients of a linear model of the scores around the whole text; texts without a score are left out.

    A text counts exp(-d^2 / (2 width^2)) with d = 1 - sqrt(share of terms kept), its cosine distance from the whole
    one. Ribeiro, Singh and Guestrin, "Why Should I Trust You?", KDD 2016.
    """
    finite = np.isfinite(scores)
    if not finite.any():
        return np.zeros(masks.shape[1])
    kept, known = masks[finite].astype(np.float64), scores[finite]
    distance = 1 - np.sqrt(kept.mean(axis=1))
    found = ridge(kept, known, np.exp(-(distance**2) / (2 * WIDTH**2)), ALPHA)
    return np.where(np.abs(found) > ROUNDING * np.abs(known).max(), found, 0.0)


def ridge(columns: Floats, values: Floats, weights: Floats, alpha: float) -> Floats:
    """The b of weighted ridge regression: sum of w (v - c - x b)^2 + alpha |b|^2 is smallest; c is free.

    The system has a line for each column or each value, whichever are fewer: a long text has thousands of columns.
    """
    share, root = weights / weights.sum(), np.sqrt(weights)
    x, v = root[:, None] * (columns - share @ columns), root * (values - share @ values)
    rows, wide = x.shape
    if wide <= rows:
        return np.asarray(np.linalg.solve(x.T @ x + alpha * np.eye(wide), x.T @ v))
    return np.asarray(x.T @ np.linalg.solve(x @ x.T + alpha * np.eye(rows), v))
