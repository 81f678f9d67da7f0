"""What texts share with a query: where its terms stand, how near each other, which character trigrams."""

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
    """What is known of the language: an analyzer, and in its terms counts of single terms and of pairs."""

    analyzer: Analyzer
    background: Background
    language: KneserNey


@dataclass(frozen=True, eq=False)
class Texts:
    """Analysed texts; what depends on a text alone is worked out once, and only when asked for."""

    texts: Sequence[str]
    tokens: Tokens
    statistics: Statistics

    @cached_property
    def lengths(self) -> Ints:
        """How many tokens each has."""
        return np.diff(self.tokens.offsets)

    @cached_property
    def distinct(self) -> Ints:
        """How many different terms each has."""
        text, size = np.repeat(np.arange(len(self.texts)), self.lengths), int(self.tokens.ids.max(initial=0)) + 1
        return np.bincount(np.unique(text * size + self.tokens.ids) // size, minlength=len(self.texts))

    @cached_property
    def usual(self) -> Floats:
        """Mean log probability of the tokens of each in the language model."""
        return self.statistics.language.per_token(self.tokens, self.statistics.analyzer.vocabulary.terms)

    @cached_property
    def trigrams(self) -> Grams:
        """The different character trigrams of each."""
        found = [trigrams(text) for text in self.texts]
        return Grams(np.concatenate([np.zeros(0, np.int64), *found]), np.cumsum([0, *map(len, found)]))

    @cached_property
    def slots(self) -> Codes:
        """Room to number the terms of one query: -1 for each term id that the analyzer has given so far."""
        return np.full(len(self.statistics.analyzer.vocabulary), -1, np.int32)


class Grams(NamedTuple):
    """Character trigrams: text `i` has `grams[offsets[i]:offsets[i + 1]]`, ascending."""

    grams: Ints
    offsets: Ints

    def of(self, text: int) -> Ints:
        """Those of one text."""
        return self.grams[self.offsets[text] : self.offsets[text + 1]]


class Hits(NamedTuple):
    """Where texts have query terms: text `i` has `offsets[i]:offsets[i + 1]`, by place in the text."""

    offsets: Ints
    place: Codes
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
        return np.array(list(dict.fromkeys(self._asked)), dtype=np.int32)

    @cached_property
    def order(self) -> Codes:
        """The query as numbers of its distinct terms, repeats included."""
        number = {term: i for i, term in enumerate(self.ids.tolist())}
        return np.array([number[term] for term in self._asked], dtype=np.int32)

    @cached_property
    def terms(self) -> list[str]:
        """The query's distinct terms."""
        return [self.statistics.analyzer.vocabulary.terms[i] for i in self.ids]

    @property
    def statistics(self) -> Statistics:
        """What is known of the language."""
        return self.texts.statistics

    @cached_property
    def lengths(self) -> Ints:
        """How many tokens each text has."""
        return self.texts.lengths[self.rows]

    @cached_property
    def hits(self) -> Hits:
        """Where the texts have the query's terms."""
        return Hits(*_locate(*self.texts.tokens, self.rows, self.ids, self.texts.slots))

    @cached_property
    def tf(self) -> Codes:
        """How often each text has each distinct term, [texts, terms]."""
        cells = self._text_of_hit * len(self.ids) + self.hits.term
        found = np.bincount(cells, minlength=len(self) * len(self.ids))
        return found.reshape(len(self), len(self.ids)).astype(np.int32)

    @cached_property
    def present(self) -> Ints:
        """How many distinct terms of the query each text has."""
        return np.asarray((self.tf > 0).sum(axis=1))

    @property
    def first(self) -> Ints:
        """Where the first term of the query stands in each text; the length of a text that has none."""
        found = self.lengths.copy()
        some = np.diff(self.hits.offsets) > 0
        found[some] = self.hits.place[self.hits.offsets[:-1][some]]
        return found

    @property
    def span(self) -> Ints:
        """Tokens of the shortest window with all those terms of the query that the text has; 0 without any."""
        return _spans(*self.hits, self.present, np.full(len(self.ids), -1, np.int32))

    @property
    def phrase(self) -> Ints:
        """Whether each text has all tokens of the query side by side, 1 or 0; 0 for a query without tokens."""
        return _phrases(*self.hits, self.order)

    @property
    def neighbours(self) -> Ints:
        """How many different pairs of neighbours in the query are neighbours, in this order, in each text."""
        hits, text, size = self.hits, self._text_of_hit, len(self.ids)
        beside = (text[1:] == text[:-1]) & (hits.place[1:] == hits.place[:-1] + 1)
        pairs = hits.term[:-1].astype(np.int64) * size + hits.term[1:]
        kept = beside & np.isin(pairs, self.order_pairs)
        unique = np.unique(text[:-1][kept] * size**2 + pairs[kept])
        return np.bincount(unique // max(size, 1) ** 2, minlength=len(self))

    @property
    def order_pairs(self) -> Ints:
        """The different pairs of neighbours in the query, each as one number."""
        return np.unique(self.order[:-1].astype(np.int64) * len(self.ids) + self.order[1:])

    @property
    def common_trigrams(self) -> Ints:
        """How many different character trigrams of the query each text has."""
        return _common(*self.texts.trigrams, self.rows, self.trigrams)

    @property
    def trigrams(self) -> Ints:
        """The different character trigrams of the query."""
        return self.queries.trigrams.of(self.number)

    @cached_property
    def _text_of_hit(self) -> Ints:
        return np.repeat(np.arange(len(self)), np.diff(self.hits.offsets))

    @cached_property
    def _asked(self) -> list[int]:
        start, end = self.queries.tokens.offsets[self.number : self.number + 2]
        found: list[int] = self.queries.tokens.ids[start:end].tolist()
        return found


def trigrams(text: str) -> Ints:
    """The different runs of three characters, in lower case and with one blank for all white space, ascending.

    Three code points of 21 bits make one number, so different trigrams never look the same.
    """
    tidy = " ".join(text.lower().split()).encode("utf-32-le", "surrogatepass")
    points = np.frombuffer(tidy, "<u4").astype(np.int64)
    return np.unique((points[:-2] << 2 * _BITS) | (points[1:-1] << _BITS) | points[2:])


@njit(cache=True, nogil=True)
def _locate(ids: Codes, offsets: Ints, rows: Codes, terms: Codes, slot: Codes) -> tuple[Ints, Codes, Codes]:
    """The places of query terms in the texts `rows`; `slot` is all -1 before and after."""
    for j in range(len(terms)):
        slot[terms[j]] = j
    found = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        found[i + 1] = found[i]
        for k in range(offsets[rows[i]], offsets[rows[i] + 1]):
            found[i + 1] += slot[ids[k]] >= 0
    place, term = np.empty(found[-1], np.int32), np.empty(found[-1], np.int32)
    at = 0
    for i in range(len(rows)):
        for k in range(offsets[rows[i]], offsets[rows[i] + 1]):
            if slot[ids[k]] >= 0:
                place[at], term[at] = k - offsets[rows[i]], slot[ids[k]]
                at += 1
    for j in range(len(terms)):
        slot[terms[j]] = -1
    return found, place, term


@njit(cache=True, nogil=True)
def _spans(offsets: Ints, place: Codes, term: Codes, present: Ints, last: Codes) -> Ints:
    """The shortest window with `present[i]` different terms, for each text; `last` has room for every term."""
    found = np.zeros(len(present), np.int64)
    for i in range(len(present)):
        last[:] = -1
        seen = 0
        for k in range(offsets[i], offsets[i + 1]):
            seen += last[term[k]] < 0
            last[term[k]] = place[k]
            if seen == present[i]:
                opening = place[k]
                for j in range(len(last)):
                    if last[j] >= 0:
                        opening = min(opening, last[j])
                width = place[k] - opening + 1
                found[i] = width if found[i] == 0 else min(found[i], width)
    return found


@njit(cache=True, nogil=True)
def _phrases(offsets: Ints, place: Codes, term: Codes, order: Codes) -> Ints:
    found = np.zeros(len(offsets) - 1, np.int64)
    if len(order) == 0:
        return found
    for i in range(len(found)):
        for k in range(offsets[i], offsets[i + 1] - len(order) + 1):
            same = place[k + len(order) - 1] - place[k] == len(order) - 1
            for j in range(len(order)):
                same = same and term[k + j] == order[j]
            if same:
                found[i] = 1
    return found


@njit(cache=True, nogil=True)
def _common(grams: Ints, offsets: Ints, rows: Codes, asked: Ints) -> Ints:
    """How many of the numbers `asked`, ascending, each text has among its own."""
    found = np.zeros(len(rows), np.int64)
    for i in range(len(rows)):
        a, b = 0, offsets[rows[i]]
        while a < len(asked) and b < offsets[rows[i] + 1]:
            found[i] += asked[a] == grams[b]
            a, b = a + (asked[a] <= grams[b]), b + (asked[a] >= grams[b])
    return found
