"""Texts with some of their terms taken out, and what the scores of such texts say about each term.

A text is cut into words at white space; a word belongs to the terms that the analyzer makes of it. To take a term out
is to take out every word that belongs to it. Words with a term of the query stay: else "tenant" would have the credit
of the "landlord" that goes with it in "landlord-tenant".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from whyrank.core import Flags, Floats
from whyrank.text import Analyzer

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
        names, number = analyzer.vocabulary.terms, dict[str, int]()
        owners = []
        for i in range(len(words)):
            own = [names[t] for t in tokens.ids[tokens.offsets[i] : tokens.offsets[i + 1]].tolist()]
            stays = any(term in kept for term in own)
            owners.append([] if stays else [number.setdefault(term, len(number)) for term in own])
        return cls(words, owners, list(number))

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
