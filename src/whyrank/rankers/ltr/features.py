"""Lexical features of a query and a text, for rankers that are learned.

    features = Features(("coverage", "bm25"), statistics)
    features.matrix(["berlin wall"], ["The wall fell in 1989."])  # one row per pair, one column per name

All counts are of the analyzer's tokens. Every feature is finite for every pair, empty ones included; a share of
nothing is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from whyrank.core import Floats, Ints, UnknownName, WhyrankError
from whyrank.data import Collection, open_collection
from whyrank.rankers.grouping import distinct, places
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
    df = m.statistics.background.frequencies(m.terms)[0].astype(np.float64)
    idf = np.log1p((m.statistics.background.n_docs - df + 0.5) / (df + 0.5))
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
    return m.first


def span(m: Matches) -> Column:
    """Tokens of the shortest window that has all query terms which the text has at all; 0 without any."""
    return m.span


def phrase(m: Matches) -> Column:
    """1 where the text has the tokens of the query side by side, in order and complete; else 0."""
    return m.phrase


def neighbours(m: Matches) -> Column:
    """Share of the different pairs of neighbours in the query that are neighbours, in this order, in the text."""
    return _share(m.neighbours, len(m.order_pairs) if len(m.order) > 1 else 0)


def bm25(m: Matches) -> Column:
    """BM25 (lucene, k1 = 0.9, b = 0.4)."""
    return _weighed(BM25(), m)


def ql(m: Matches) -> Column:
    """Query likelihood (Dirichlet, mu = 1000)."""
    return _weighed(QL(), m)


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
    return _share(m.common_trigrams, len(m.trigrams))


def language(m: Matches) -> Column:
    """Mean log probability of the text's tokens in the Kneser-Ney bigram model of the collection."""
    return m.texts.usual[m.rows]


def query_language(m: Matches) -> Column:
    """Mean log probability of the query's tokens in that model."""
    return np.full(len(m), m.queries.usual[m.number])


_ALL: tuple[Feature, ...] = (
    overlap,
    coverage,
    idf_coverage,
    occurrences,
    density,
    first,
    span,
    phrase,
    neighbours,
    bm25,
    ql,
    length,
    query_length,
    jaccard,
    trigrams,
    language,
    query_language,
)
FEATURES: Mapping[str, Feature] = MappingProxyType({feature.__name__: feature for feature in _ALL})
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
        asked = Texts(query.texts, analyzer.queries(query.texts), self.statistics)
        texts = Texts(doc.texts, analyzer.docs(doc.texts), self.statistics)
        found = np.empty((len(query.codes), len(self.names)))
        for number, rows in enumerate(places(query.codes, len(query.texts))):
            matches = Matches(asked, number, texts, doc.codes[rows])
            for column, name in enumerate(self.names):
                found[rows, column] = FEATURES[name](matches)
        return found

    @property
    def identity(self) -> str:
        """What the features depend on: the analyzer, and digests of the counts."""
        kept = f"analyzer={self.statistics.analyzer.identity} statistics={self.statistics.background.digest}"
        used = _OF_LANGUAGE.intersection(self.names)
        return f"{kept} language={self.statistics.language.digest}" if used else kept


def open_features(
    names: Sequence[str], setting: Setting, analyzer: str | None = None, stats: str | None = None
) -> Features:
    """Features in a setting.

    Document frequencies come from `stats`, the setting's statistics or the collection at hand. Pairs of terms are
    counted in the same collection; in the one at hand where a file of statistics is given, which has no pairs.
    """
    check_names(names)
    parts = setting.analyzer_for(analyzer)
    background = setting.background(parts, stats)
    used = _OF_LANGUAGE.intersection(names)
    counted = language_model(_collection(setting, stats), parts) if used else KneserNey.of({}, parts)
    return Features(tuple(names), Statistics(parts, background, counted))


def check_names(names: Sequence[str]) -> None:
    """Raise an error for a feature that is unknown or given twice, and where there is none."""
    for name in names:
        if name not in FEATURES:
            raise UnknownName("feature", name, FEATURES)
    if not names or len(set(names)) < len(names):
        raise WhyrankError("give one or more features, each of them once")


def _collection(setting: Setting, own: str | None) -> Collection | None:
    source = str(own or setting.stats or "")
    is_file = source.endswith(".parquet") or Path(source).is_file()
    return setting.collection if not source or is_file else open_collection(source)


def _weighed(formula: Formula, m: Matches) -> Floats:
    counts = np.bincount(m.order, minlength=len(m.ids))
    return weighed(formula.weights(m.statistics.background, m.terms, counts), m.tf, m.lengths)


def _share(part: Column, whole: Ints | float) -> Floats:
    """`part / whole`, and 0 where there is nothing."""
    return np.asarray(np.divide(part, whole, out=np.zeros(len(part)), where=np.asarray(whole) > 0))
