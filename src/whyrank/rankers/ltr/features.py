"""Lexical features of a query and a text, for rankers that are learned.

    features = open_features(("coverage", "bm25"), setting)
    features.matrix(["berlin wall"], ["The wall fell in 1989."])  # one row per pair, one column per name

All counts are of the analyzer's tokens. Every feature is finite for every pair, empty ones included; a share of
nothing is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Codes, Floats, Ints, UnknownName, WhyrankError
from whyrank.data import open_collection
from whyrank.rankers.grouping import distinct, rows_by_code
from whyrank.rankers.lexical import BM25, QL, Formula, weighed
from whyrank.rankers.ltr.kneser_ney import KneserNey, language_model
from whyrank.rankers.ltr.matches import Matches, Statistics, Texts
from whyrank.rankers.opening import Setting

Column = npt.NDArray[Any]
Feature = Callable[[Matches], Column]


def overlap(m: Matches) -> Column:
    """How many distinct query terms the text has."""
    return m.present


def coverage(m: Matches) -> Column:
    """Share of the distinct query terms that the text has."""
    return _share(m.present, len(m.ids))


def idf_coverage(m: Matches) -> Column:
    """The same, each term weighed by ln(1 + (N - df + 0.5) / (df + 0.5))."""
    df = m.background.frequencies(m.terms)[0].astype(np.float64)
    idf = np.log1p((m.background.n_docs - df + 0.5) / (df + 0.5))
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
    return _phrases(*m.hits, m.order)


def neighbours(m: Matches) -> Column:
    """Share of the different pairs of neighbours in the query that are neighbours, in this order, in the text."""
    if len(m.order) < 2:
        return np.zeros(len(m))
    hits, text, size = m.hits, m.text_of_hit, len(m.ids)
    beside = (text[1:] == text[:-1]) & (hits.position[1:] == hits.position[:-1] + 1)
    pairs = hits.term[:-1].astype(np.int64) * size + hits.term[1:]
    kept = beside & np.isin(pairs, m.bigrams)
    unique = np.unique(text[:-1][kept] * size**2 + pairs[kept])
    return _share(np.bincount(unique // size**2, minlength=len(m)), len(m.bigrams))


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
    return _share(_common(*m.texts.trigrams, m.rows, m.trigrams), len(m.trigrams))


def language(m: Matches) -> Column:
    """Mean log probability of the text's tokens in the Kneser-Ney bigram model of the collection."""
    return m.texts.log_probability[m.rows]


def query_language(m: Matches) -> Column:
    """Mean log probability of the query's tokens in that model."""
    return np.full(len(m), m.queries.log_probability[m.number])


_ALL: tuple[Feature, ...] = (
    overlap, coverage, idf_coverage, occurrences, density, first, span, phrase, neighbours, bm25, ql, length,
    query_length, jaccard, trigrams, language, query_language,
)  # fmt: skip
FEATURES: Mapping[str, Feature] = {feature.__name__: feature for feature in _ALL}
"""All features by name; the docstring of each says what it is."""

_OF_LANGUAGE = frozenset({"language", "query_language"})


@dataclass(frozen=True, eq=False)
class Features:
    """Some of the features, in this order, with the statistics that they need."""

    names: tuple[str, ...]
    statistics: Statistics

    def matrix(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """The features of aligned pairs of texts, [pairs, features]; whatever depends on one text is done once."""
        query, doc = distinct(queries), distinct(docs)
        analyzer = self.statistics.analyzer
        query_texts = Texts(query.texts, analyzer.queries(query.texts), self.statistics)
        doc_texts = Texts(doc.texts, analyzer.docs(doc.texts), self.statistics)
        found = np.empty((len(query.codes), len(self.names)))
        for number, rows in enumerate(rows_by_code(query.codes, len(query.texts))):
            matches = Matches(query_texts, number, doc_texts, doc.codes[rows])
            for column, name in enumerate(self.names):
                found[rows, column] = FEATURES[name](matches)
        return found

    @property
    def identity(self) -> str:
        """What the features depend on: the analyzer, and digests of the counts."""
        known = f"analyzer={self.statistics.analyzer.identity} statistics={self.statistics.background.digest}"
        return known if _OF_LANGUAGE.isdisjoint(self.names) else f"{known} language={self.statistics.language.digest}"


def open_features(
    names: Sequence[str], setting: Setting, analyzer: str | None = None, stats: str | None = None
) -> Features:
    """Features in a setting.

    Document frequencies come from `stats`, the setting's statistics or the collection at hand. Bigrams are counted in
    the same collection; in the one at hand where a file of statistics is given, which has no bigrams.
    """
    check_names(names)
    opened = setting.analyzer_for(analyzer)
    background = setting.background(opened, stats)
    if _OF_LANGUAGE.isdisjoint(names):
        return Features(tuple(names), Statistics(opened, background, KneserNey.of({}, opened)))
    source = str(stats or setting.stats or "")
    counted = source and not source.endswith(".parquet") and not Path(source).is_file()
    collection = open_collection(source) if counted else setting.collection
    return Features(tuple(names), Statistics(opened, background, language_model(collection, opened)))


def check_names(names: Sequence[str]) -> None:
    """Raise an error for a feature that is unknown or given twice, and where there is none."""
    for name in names:
        if name not in FEATURES:
            raise UnknownName("feature", name, FEATURES)
    if not names or len(set(names)) < len(names):
        raise WhyrankError("give one or more features, each of them once")


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
def _phrases(offsets: Ints, position: Codes, term: Codes, order: Codes) -> Ints:
    """Whether each text has the terms `order` side by side, 1 or 0; 0 for a query without terms."""
    found = np.zeros(len(offsets) - 1, np.int64)
    if len(order) == 0:
        return found
    for i in range(len(found)):
        for k in range(offsets[i], offsets[i + 1] - len(order) + 1):
            same = position[k + len(order) - 1] - position[k] == len(order) - 1
            for j in range(len(order)):
                same = same and term[k + j] == order[j]
            if same:
                found[i] = 1
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
