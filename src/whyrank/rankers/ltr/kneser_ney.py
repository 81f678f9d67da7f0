"""A bigram language model of a collection: how probable the tokens of a text are in it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from whyrank.core import Codes, Floats, Ints
from whyrank.data import Collection
from whyrank.rankers.base import analyse
from whyrank.text import Analyzer, Tokens

_DEFAULT_DISCOUNT = 0.75  # where the counts are too few to estimate one
_computed: WeakKeyDictionary[Collection, dict[Analyzer, KneserNey]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class KneserNey:
    """Bigrams with interpolated Kneser-Ney smoothing; probabilities of what may follow any word add up to one.

    P(w | v) = max(c(v w) - D, 0) / c(v .) + D N(v .) / c(v .) P(w); just P(w) where v never stood before anything
    P(w) = max(N(. w) - E, 0) / N(. .) + E W / N(. .) / (W + 1)
    c counts occurrences and N different pairs; W is the number of known terms, and one more stands for all others.
    The discounts D and E are n1 / (n1 + 2 n2), where n1 and n2 counts were one and two. The first term of a
    text follows its start.
    Kneser and Ney, "Improved backing-off for m-gram language modeling", ICASSP 1995; Ney, Essen and Kneser, "On
    structuring probabilistic dependences in stochastic language modelling", 1994; Chen and Goodman, "An empirical
    study of smoothing techniques for language modeling", 1999.

    Attributes:
        analyzer: identity of the analyzer whose terms these are.
        terms: known terms, sorted; a term's number is its position.
        left: the first term of each pair that occurs, ascending, or `start`.
        right: the second term of each pair, ascending for each `left`.
        counts: how often each pair occurs.
    """

    analyzer: str
    terms: Sequence[str]
    left: Ints
    right: Ints
    counts: Ints

    @classmethod
    def of(cls, docs: Mapping[str, str], analyzer: Analyzer) -> KneserNey:
        """Count the pairs of neighbouring terms in all documents, a chunk at a time."""
        parts = [csr_array((1, 0), dtype=np.int64)]  # rows: left terms after the start of a text; columns: right ones
        for tokens in analyse(docs, analyzer, "counting pairs of terms"):
            size = len(analyzer.vocabulary)
            left = np.concatenate([[-1], tokens.ids])[:-1]
            left[tokens.offsets[:-1][np.diff(tokens.offsets) > 0]] = -1
            ones = np.ones(len(left), np.int64)
            parts.append(csr_array((ones, (left + 1, tokens.ids)), shape=(size + 1, size)))
            while len(parts) > 1 and parts[-2].nnz <= 2 * parts[-1].nnz:
                parts.append(_add(parts.pop(), parts.pop()))
        counted = reduce(_add, reversed(parts)).tocoo()
        # the order of terms and pairs must not depend on what the process met before
        names = analyzer.vocabulary.terms
        used = sorted(np.unique(counted.col).tolist(), key=names.__getitem__)
        number = np.full(len(names) + 1, len(used) + 1, np.int64)  # the last one is for -1, the start
        number[used] = np.arange(len(used))
        left, right = number[counted.row - 1], number[counted.col]
        order = np.lexsort((right, left))
        return cls(analyzer.identity, [names[i] for i in used], left[order], right[order], counted.data[order])

    def numbers(self, terms: Sequence[str]) -> Ints:
        """The number of each term; that of unknown ones is the number of terms."""
        return np.array([self._rows.get(term, len(self.terms)) for term in terms], dtype=np.int64)

    def probability(self, left: Ints, right: Ints) -> Floats:
        """P(right | left) for aligned numbers of terms; the left side may be `start`."""
        counts, totals = np.zeros_like(left), self._totals[left]
        if len(self._keys):
            wanted = left * (self.start + 1) + right
            row = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
            counts = np.where(self._keys[row] == wanted, self.counts[row], 0)
        some = np.maximum(totals, 1)
        kept = np.maximum(counts - self._discount, 0) / some
        spread = np.where(totals > 0, self._discount * self._followers[left] / some, 1.0)
        return np.asarray(kept + spread * self._single[right])

    def per_token(self, tokens: Tokens, terms: Sequence[str]) -> Floats:
        """Mean log probability of the tokens of each text, whose ids `terms` spells; 0 for a text without any."""
        seen, row = np.unique(tokens.ids, return_inverse=True)
        right = self.numbers([terms[i] for i in seen])[row] if len(seen) else np.zeros(0, np.int64)
        left = np.concatenate([[self.start], right])[:-1]
        lengths, found = np.diff(tokens.offsets), np.zeros(len(tokens.offsets) - 1)
        starts = tokens.offsets[:-1][lengths > 0]
        left[starts] = self.start
        if len(starts):
            found[lengths > 0] = np.add.reduceat(np.log(self.probability(left, right)), starts)
        return np.asarray(found / np.maximum(lengths, 1))

    @property
    def start(self) -> int:
        """The number of the start of a text, as a left side."""
        return len(self.terms) + 1

    @cached_property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) over the analyzer, the terms and every count."""
        found = sha256(json.dumps([self.analyzer, *self.terms]).encode("utf-8", "surrogatepass"))
        for numbers in (self.left, self.right, self.counts):
            found.update(np.ascontiguousarray(numbers, dtype="<i8").tobytes())
        return found.hexdigest()[:16]

    @cached_property
    def _keys(self) -> Ints:
        return np.asarray(self.left * (self.start + 1) + self.right)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {term: i for i, term in enumerate(self.terms)}

    @cached_property
    def _totals(self) -> Ints:
        """How often each left side occurs."""
        return np.bincount(self.left, self.counts, self.start + 1).astype(np.int64)

    @cached_property
    def _followers(self) -> Ints:
        """How many different terms follow each left side."""
        return np.bincount(self.left, minlength=self.start + 1)

    @cached_property
    def _discount(self) -> float:
        return _discount_of(self.counts)

    @cached_property
    def _single(self) -> Floats:
        """P(w) of each term, that of all unknown ones last."""
        before = np.append(np.bincount(self.right, minlength=len(self.terms)), 0)
        if not before.any():
            return np.ones(1)
        discount = _discount_of(before)
        spread = discount * len(self.terms) / before.sum()
        return np.asarray(np.maximum(before - discount, 0) / before.sum() + spread / len(before))


def language_model(collection: Collection | None, analyzer: Analyzer) -> KneserNey:
    """The model of a collection, made once per analyzer; without a collection, every term is unknown."""
    if collection is None:
        return KneserNey.of({}, analyzer)
    known = _computed.setdefault(collection, {})
    if analyzer not in known:
        known[analyzer] = KneserNey.of(collection.docs, analyzer)
    return known[analyzer]


def _add(larger: Any, smaller: Any) -> Any:
    """The sum of two matrices of counts; the vocabulary has grown between them."""
    smaller.resize(larger.shape)
    return larger + smaller


def _discount_of(counts: Ints | Codes) -> float:
    ones, twos = int((counts == 1).sum()), int((counts == 2).sum())
    return ones / (ones + 2 * twos) if ones and twos else _DEFAULT_DISCOUNT
