"""What texts share with a query: where its terms occur, how often, and which character trigrams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit

from whyrank.core import Codes, Floats, Ints
from whyrank.rankers.lexical import Background
from whyrank.rankers.ltr.kneser_ney import KneserNey
from whyrank.text import Analyzer, Tokens

_BITS = 21  # of a character


@dataclass(frozen=True, eq=False)
class Statistics:
    """What is known of the language: an analyzer, and in its terms the counts of single terms and of bigrams."""

    analyzer: Analyzer
    background: Background
    language: KneserNey


class Trigrams(NamedTuple):
    """Character trigrams: text `i` has `grams[offsets[i]:offsets[i + 1]]`, ascending."""

    grams: Ints
    offsets: Ints


@dataclass(frozen=True, eq=False)
class Texts:
    """Analysed texts; what depends on a text alone is computed once, and only when it is needed."""

    texts: Sequence[str]
    tokens: Tokens
    statistics: Statistics

    @cached_property
    def lengths(self) -> Ints:
        """Tokens of each text."""
        return np.diff(self.tokens.offsets)

    @cached_property
    def distinct(self) -> Ints:
        """Distinct terms of each text."""
        text, size = np.repeat(np.arange(len(self.texts)), self.lengths), int(self.tokens.ids.max(initial=0)) + 1
        return np.bincount(np.unique(text * size + self.tokens.ids) // size, minlength=len(self.texts))

    @cached_property
    def log_probability(self) -> Floats:
        """Mean log probability of the tokens of each text in the language model."""
        return self.statistics.language.per_token(self.tokens, self.statistics.analyzer.vocabulary.terms)

    @cached_property
    def trigrams(self) -> Trigrams:
        """The distinct character trigrams of each text."""
        found = [trigrams(text) for text in self.texts]
        return Trigrams(np.concatenate([np.zeros(0, np.int64), *found]), np.cumsum([0, *map(len, found)]))

    @cached_property
    def slots(self) -> Codes:
        """Room to number the terms of one query: -1 for each term id that the analyzer has given so far."""
        return np.full(len(self.statistics.analyzer.vocabulary), -1, np.int32)


class Hits(NamedTuple):
    """Where texts have query terms: text `i` has `offsets[i]:offsets[i + 1]`, by position in the text."""

    offsets: Ints
    position: Codes
    term: Codes


@dataclass(frozen=True, eq=False)
class Matches:
    """Query `number` and the texts `rows`; the distinct terms of the query are numbered in order of appearance."""

    queries: Texts
    number: int
    texts: Texts
    rows: Codes

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def ids(self) -> Codes:
        """The term ids of the query's distinct terms."""
        return np.array(list(dict.fromkeys(self._query_ids)), dtype=np.int32)

    @cached_property
    def order(self) -> Codes:
        """The query as numbers of its distinct terms, repeats included."""
        number = {term: i for i, term in enumerate(self.ids.tolist())}
        return np.array([number[term] for term in self._query_ids], dtype=np.int32)

    @cached_property
    def bigrams(self) -> Ints:
        """The distinct pairs of neighbours in the query, each as one number."""
        return np.unique(self.order[:-1].astype(np.int64) * len(self.ids) + self.order[1:])

    @cached_property
    def terms(self) -> list[str]:
        """The query's distinct terms."""
        return [self.texts.statistics.analyzer.vocabulary.terms[i] for i in self.ids]

    @cached_property
    def trigrams(self) -> Ints:
        """The distinct character trigrams of the query."""
        grams, offsets = self.queries.trigrams
        return grams[offsets[self.number] : offsets[self.number + 1]]

    @property
    def background(self) -> Background:
        """Document frequencies."""
        return self.texts.statistics.background

    @cached_property
    def lengths(self) -> Ints:
        """Tokens of each text."""
        return self.texts.lengths[self.rows]

    @cached_property
    def hits(self) -> Hits:
        """Where the texts have the query's terms."""
        return Hits(*_locate(*self.texts.tokens, self.rows, self.ids, self.texts.slots))

    @cached_property
    def text_of_hit(self) -> Ints:
        """The number of the text of each hit."""
        return np.repeat(np.arange(len(self)), np.diff(self.hits.offsets))

    @cached_property
    def tf(self) -> Codes:
        """How often each text has each distinct term, [texts, terms]."""
        cells = self.text_of_hit * len(self.ids) + self.hits.term
        found = np.bincount(cells, minlength=len(self) * len(self.ids))
        return found.reshape(len(self), len(self.ids)).astype(np.int32)

    @cached_property
    def present(self) -> Ints:
        """How many distinct terms of the query each text has."""
        return np.asarray((self.tf > 0).sum(axis=1))

    @cached_property
    def _query_ids(self) -> list[int]:
        start, end = self.queries.tokens.offsets[self.number : self.number + 2]
        found: list[int] = self.queries.tokens.ids[start:end].tolist()
        return found


def trigrams(text: str) -> Ints:
    """The distinct runs of three characters, in lower case and with one blank for all white space, ascending.

    Three code points of 21 bits make one number, so distinct trigrams never look the same.
    """
    tidy = " ".join(text.lower().split()).encode("utf-32-le", "surrogatepass")
    points = np.frombuffer(tidy, "<u4").astype(np.int64)
    return np.unique((points[:-2] << 2 * _BITS) | (points[1:-1] << _BITS) | points[2:])


@njit(cache=True, nogil=True)
def _locate(ids: Codes, offsets: Ints, rows: Codes, terms: Codes, slot: Codes) -> tuple[Ints, Codes, Codes]:
    """The positions of query terms in the texts `rows`; `slot` is all -1 before and after."""
    for j in range(len(terms)):
        slot[terms[j]] = j
    found = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        found[i + 1] = found[i]
        for k in range(offsets[rows[i]], offsets[rows[i] + 1]):
            found[i + 1] += slot[ids[k]] >= 0
    position, term = np.empty(found[-1], np.int32), np.empty(found[-1], np.int32)
    at = 0
    for i in range(len(rows)):
        for k in range(offsets[rows[i]], offsets[rows[i] + 1]):
            if slot[ids[k]] >= 0:
                position[at], term[at] = k - offsets[rows[i]], slot[ids[k]]
                at += 1
    for j in range(len(terms)):
        slot[terms[j]] = -1
    return found, position, term
