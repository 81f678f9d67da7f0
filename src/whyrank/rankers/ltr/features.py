"""Lexical features of a query and a text, for rankers that are learned.

    features = open_features(("coverage", "bm25"), setting)
    features.matrix(["berlin wall"], ["The wall fell in 1989."])  # one row per pair, one column per name

All counts are of the analyzer's tokens. Every feature is finite for every pair, empty ones included; a share of
nothing is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit
from numpy.lib.stride_tricks import sliding_window_view

from whyrank.core import Codes, Floats, Ints, UnknownName, WhyrankError
from whyrank.data import open_collection
from whyrank.rankers.base import distinct, rows_by_code
from whyrank.rankers.lexical import BM25, QL, VARIANTS, Background, Formula, weighed
from whyrank.rankers.ltr.kneser_ney import KneserNey, language_model
from whyrank.rankers.opening import Setting, is_statistics_file
from whyrank.text import Analyzer, Tokens

Column = npt.NDArray[Any]
_BITS = 21  # of a character
_OF_LANGUAGE = frozenset({"language", "query_language"})


@dataclass(frozen=True, eq=False)
class Features:
    """Some of the features, in this order, with the analyzer and the counts of terms and bigrams that they need."""

    names: tuple[str, ...]
    analyzer: Analyzer
    background: Background
    language: KneserNey

    def matrix(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """The features of aligned pairs of texts, [pairs, features]; whatever depends on one text is done once."""
        query, doc = distinct(queries), distinct(docs)
        query_texts = AnalysedTexts(query.texts, self.analyzer.queries(query.texts), self)
        doc_texts = AnalysedTexts(doc.texts, self.analyzer.docs(doc.texts), self)
        found = np.empty((len(query.codes), len(self.names)))
        for number, rows in enumerate(rows_by_code(query.codes, len(query.texts))):
            matches = Matches(query_texts, number, doc_texts, doc.codes[rows])
            for column, name in enumerate(self.names):
                found[rows, column] = FEATURES[name](matches)
        return found

    @property
    def identity(self) -> str:
        """What the features depend on: the analyzer, and digests of the counts."""
        known = f"analyzer={self.analyzer.identity} statistics={self.background.digest}"
        return known if _OF_LANGUAGE.isdisjoint(self.names) else f"{known} language={self.language.digest}"


def open_features(
    names: Sequence[str], setting: Setting, analyzer: str | None = None, stats: str | None = None
) -> Features:
    """Features in a setting.

    Document frequencies come from `stats`, the setting's statistics or the collection at hand. Bigrams are counted in
    the same collection; in the one at hand where a file of statistics is given, which has no bigrams.
    """
    for name in names:
        if name not in FEATURES:
            raise UnknownName("feature", name, FEATURES)
    if not names or len(set(names)) < len(names):
        raise WhyrankError("give one or more features, each of them once")
    opened = setting.analyzer_for(analyzer)
    background, collection = setting.background(opened, stats), None
    if not _OF_LANGUAGE.isdisjoint(names):
        source = str(stats or setting.stats or "")
        counted = source and not is_statistics_file(source)
        collection = open_collection(source) if counted else setting.collection
    return Features(tuple(names), opened, background, language_model(collection, opened))


# What texts share with a query: where its terms occur, how often, and which character trigrams.


@dataclass(frozen=True, eq=False)
class AnalysedTexts:
    """Analysed texts; what depends on a text alone is computed once, and only when it is needed."""

    texts: Sequence[str]
    tokens: Tokens
    features: Features

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
        return self.features.language.per_token(self.tokens, self.features.analyzer.vocabulary.terms)

    @cached_property
    def trigrams(self) -> tuple[Ints, Ints]:
        """The distinct character trigrams of all texts, those of each ascending, and where those of each begin."""
        found = [character_trigrams(text) for text in self.texts]
        return np.concatenate([np.zeros(0, np.int64), *found]), np.cumsum([0, *map(len, found)])

    @cached_property
    def slots(self) -> Codes:
        """Room to number the terms of one query: -1 for each term id that the analyzer has given so far."""
        return np.full(len(self.features.analyzer.vocabulary), -1, np.int32)


class TermHits(NamedTuple):
    """Where texts have query terms: text `i` has `offsets[i]:offsets[i + 1]`, by position in the text."""

    offsets: Ints
    position: Codes
    term: Codes


class Matches:
    """What a query and some texts share; the distinct terms of the query are numbered in order of appearance.

    Attributes:
        ids: the term ids of the query's distinct terms; `terms` has the terms themselves.
        order: the query as numbers of its distinct terms, repeats included.
        hits: where the texts have the query's terms; `text_of_hit` has the number of the text of each hit.
        tf: how often each text has each distinct term, [texts, terms].
        present: how many distinct terms of the query each text has.
        lengths: tokens of each text.
    """

    def __init__(self, queries: AnalysedTexts, number: int, texts: AnalysedTexts, rows: Codes) -> None:
        self.queries, self.number, self.texts, self.rows = queries, number, texts, rows
        start, end = queries.tokens.offsets[number : number + 2]
        query: list[int] = queries.tokens.ids[start:end].tolist()
        numbers = {term: i for i, term in enumerate(dict.fromkeys(query))}
        vocabulary = texts.features.analyzer.vocabulary.terms
        self.ids, self.terms = np.array(list(numbers), np.int32), [vocabulary[i] for i in numbers]
        self.order = np.array([numbers[term] for term in query], np.int32)
        self.hits = TermHits(*_locate(*texts.tokens, rows, self.ids, texts.slots))
        self.text_of_hit = np.repeat(np.arange(len(rows)), np.diff(self.hits.offsets))
        cells = self.text_of_hit * len(numbers) + self.hits.term
        counts = np.bincount(cells, minlength=len(rows) * len(numbers))
        self.tf = counts.reshape(len(rows), len(numbers)).astype(np.int32)
        self.present = np.asarray((self.tf > 0).sum(axis=1))
        self.lengths, self.background = texts.lengths[rows], texts.features.background

    def __len__(self) -> int:
        return len(self.rows)


def character_trigrams(text: str) -> Ints:
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


# The features.


def overlap(m: Matches) -> Column:
    """How many distinct query terms the text has."""
    return m.present


def coverage(m: Matches) -> Column:
    """Share of the distinct query terms that the text has."""
    return _share(m.present, len(m.ids))


def idf_coverage(m: Matches) -> Column:
    """Share of the distinct query terms that the text has, each weighed by ln(1 + (N - df + 0.5) / (df + 0.5))."""
    df = m.background.frequencies(m.terms)[0].astype(np.float64)
    idf = VARIANTS["lucene"].idf(df, m.background.n_docs)
    whole, *part = np.vstack([idf, np.where(m.tf > 0, idf, 0.0)]).sum(axis=1)  # one way to add up, so 1 is just 1
    return _share(np.array(part), whole)


def occurrences(m: Matches) -> Column:
    """How often the text has query terms, all together."""
    return np.diff(m.hits.offsets)


def density(m: Matches) -> Column:
    """Share of the text's tokens that are query terms."""
    return _share(np.diff(m.hits.offsets), m.lengths)


def first(m: Matches) -> Column:
    """How many tokens stand before the first query term; the length of a text without any."""
    found, some = m.lengths.copy(), np.diff(m.hits.offsets) > 0
    found[some] = m.hits.position[m.hits.offsets[:-1][some]]
    return found


def span(m: Matches) -> Column:
    """Tokens of the shortest window that has all query terms which the text has at all; 0 without any."""
    return _spans(*m.hits, m.present, np.full(len(m.ids), -1, np.int32))


def phrase(m: Matches) -> Column:
    """1 where the text has the tokens of the query side by side, in order and complete; else 0."""
    n, (_, position, term), text = len(m.order), m.hits, m.text_of_hit
    found = np.zeros(len(m), np.int64)
    if 0 < n <= len(term):
        first, last = slice(0, len(term) - n + 1), slice(n - 1, None)
        beside = (text[first] == text[last]) & (position[last] - position[first] == n - 1)
        found[text[first][beside & (sliding_window_view(term, n) == m.order).all(axis=1)]] = 1
    return found


def neighbours(m: Matches) -> Column:
    """Share of the different pairs of neighbours in the query that are neighbours, in this order, in the text."""
    if len(m.order) < 2:
        return np.zeros(len(m))
    hits, text, size = m.hits, m.text_of_hit, len(m.ids)
    wanted = np.unique(m.order[:-1].astype(np.int64) * size + m.order[1:])
    beside = (text[1:] == text[:-1]) & (hits.position[1:] == hits.position[:-1] + 1)
    pairs = hits.term[:-1].astype(np.int64) * size + hits.term[1:]
    kept = beside & np.isin(pairs, wanted)
    unique = np.unique(text[:-1][kept] * size**2 + pairs[kept])
    return _share(np.bincount(unique // size**2, minlength=len(m)), len(wanted))


def bm25(m: Matches) -> Column:
    """BM25 (lucene, k1 = 0.9, b = 0.4)."""
    return _scores(BM25(), m)


def ql(m: Matches) -> Column:
    """Query likelihood (Dirichlet, mu = 1000)."""
    return _scores(QL(), m)


def length(m: Matches) -> Column:
    """Tokens of the text."""
    return m.lengths


def query_length(m: Matches) -> Column:
    """Tokens of the query."""
    return np.full(len(m), len(m.order))


def jaccard(m: Matches) -> Column:
    """Distinct terms that query and text share, among all that either has."""
    return _share(m.present, m.texts.distinct[m.rows] + len(m.ids) - m.present)


def trigrams(m: Matches) -> Column:
    """Share of the query's different character trigrams that the text has (lower case, one blank for white space)."""
    grams, offsets = m.queries.trigrams
    wanted = grams[offsets[m.number] : offsets[m.number + 1]]
    return _share(_common(*m.texts.trigrams, m.rows, wanted), len(wanted))


def language(m: Matches) -> Column:
    """Mean log probability of the text's tokens in the Kneser-Ney bigram model of the collection."""
    return m.texts.log_probability[m.rows]


def query_language(m: Matches) -> Column:
    """Mean log probability of the query's tokens in that model."""
    return np.full(len(m), m.queries.log_probability[m.number])


_ALL: tuple[Callable[[Matches], Column], ...] = (
    overlap, coverage, idf_coverage, occurrences, density, first, span, phrase, neighbours, bm25, ql, length,
    query_length, jaccard, trigrams, language, query_language,
)  # fmt: skip
FEATURES: Mapping[str, Callable[[Matches], Column]] = {feature.__name__: feature for feature in _ALL}
"""All features by name; the docstring of each says what it is."""


def _scores(formula: Formula, m: Matches) -> Floats:
    """Scores of a lexical ranker."""
    counts = np.bincount(m.order, minlength=len(m.ids))
    return weighed(formula.weights(m.background, m.terms, counts), m.tf, m.lengths)


def _share(part: Column, whole: Ints | float) -> Floats:
    """`part / whole`, and 0 where there is nothing."""
    return np.asarray(np.divide(part, whole, out=np.zeros(len(part)), where=np.asarray(whole) > 0))


@njit(cache=True, nogil=True)
def _spans(offsets: Ints, position: Codes, term: Codes, present: Ints, last: Codes) -> Ints:
    """The shortest window with `present[i]` distinct terms, for each text; `last` has room for every term."""
    found = np.zeros(len(present), np.int64)
    for i in range(len(present)):
        last[:] = -1
        seen = 0
        for k in range(offsets[i], offsets[i + 1]):
            seen += last[term[k]] < 0
            last[term[k]] = position[k]
            if seen == present[i]:
                opening = position[k]
                for j in range(len(last)):
                    if last[j] >= 0:
                        opening = min(opening, last[j])
                width = position[k] - opening + 1
                found[i] = width if found[i] == 0 else min(found[i], width)
    return found


@njit(cache=True, nogil=True)
def _common(grams: Ints, offsets: Ints, rows: Codes, wanted: Ints) -> Ints:
    """How many of the numbers `wanted`, ascending, each text has among its own."""
    found = np.zeros(len(rows), np.int64)
    for i in range(len(rows)):
        a, b = 0, offsets[rows[i]]
        while a < len(wanted) and b < offsets[rows[i] + 1]:
            found[i] += wanted[a] == grams[b]
            a, b = a + (wanted[a] <= grams[b]), b + (wanted[a] >= grams[b])
    return found
