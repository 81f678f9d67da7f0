"""The vocabulary of a term table: terms of collections under an analyzer, the most frequent ones first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from whyrank.core import Ints, WhyrankError, check_whole
from whyrank.data import Collection
from whyrank.rankers.lexical import Background
from whyrank.text import Analyzer, analyzers

QUERY_TERMS, DOC_TERMS = 10_000, 100_000
_Counted = tuple[int, int]  # texts and occurrences of a term


class TermCounts(NamedTuple):
    """Terms, in how many texts each occurs and how often, the most frequent by texts first; ties go by spelling."""

    terms: list[str]
    texts: Ints
    occurrences: Ints

    def first(self, n: int) -> TermCounts:
        """The most frequent ones."""
        return TermCounts(self.terms[:n], self.texts[:n], self.occurrences[:n])

    def by_term(self) -> dict[str, _Counted]:
        """Both counts of each term."""
        both = zip(self.texts.tolist(), self.occurrences.tolist(), strict=True)
        return dict(zip(self.terms, both, strict=True))


_NONE = TermCounts([], np.empty(0, np.int64), np.empty(0, np.int64))


class TermVocabulary(NamedTuple):
    """Query terms and document terms, each with the number of texts that have it."""

    queries: TermCounts
    docs: TermCounts
    audited: list[int]


def term_counts(collections: Sequence[Collection], analyzer: Analyzer) -> TermCounts:
    """All terms of some collections; a text of two collections counts twice."""
    totals: dict[str, _Counted] = {}
    for collection in collections:
        counted = Background.of(collection.docs, analyzer)
        for term, df, cf in zip(counted.terms, counted.df.tolist(), counted.cf.tolist(), strict=True):
            before = totals.get(term, (0, 0))
            totals[term] = before[0] + df, before[1] + cf
    return _ordered(totals)


def make_vocabulary(
    collections: Sequence[Collection], analyzer: Analyzer | str, query_terms: int = QUERY_TERMS,
    doc_terms: int = DOC_TERMS, from_queries: bool = False, audited: Sequence[str] = (),
    queries_of: Sequence[Collection] = (), doc_words: Sequence[str] = (),
) -> TermVocabulary:  # fmt: skip
    """The terms of a table.

    Args:
        collections: their texts are counted.
        analyzer: makes the terms, and drops stop words where it does.
        query_terms: so many, the most frequent in the texts.
        doc_terms: so many on the document side.
        from_queries: query terms are those of the collections' queries only.
        audited: words whose terms are query terms in any case.
        queries_of: collections whose queries have all their terms among the query terms, on top of the others.
        doc_words: words whose terms are document terms, on top of the others, whether a text has them or not.
    """
    check_whole("query_terms", query_terms, 1)
    check_whole("doc_terms", doc_terms, 1)
    made = analyzers.create(analyzer) if isinstance(analyzer, str) else analyzer
    counted = term_counts(collections, made)
    if not counted.terms:
        raise WhyrankError(f"no text has a word under {made.id}; choose another --analyzer or collection")
    asked = counted
    if from_queries:  # those that no text has come last
        asked = _with(_NONE, counted, _terms_of_queries(collections, made, "--from-queries"))
    needed = _terms_of_queries(queries_of, made, "--queries-of") if queries_of else set()
    queries = _with(asked.first(query_terms), counted, [*needed, *(_term(made, word) for word in audited)])
    places = {term: i for i, term in enumerate(queries.terms)}
    kept = list(dict.fromkeys(places[_term(made, word)] for word in audited))
    more = dict.fromkeys(term for word in doc_words for term in made.terms(word))
    return TermVocabulary(queries, _with(counted.first(doc_terms), counted, list(more)), kept)


def _terms_of_queries(collections: Sequence[Collection], analyzer: Analyzer, option: str) -> set[str]:
    """The terms of the queries of some collections."""
    texts = [query for collection in collections for query in collection.queries.values()]
    names = analyzer.vocabulary.terms
    own = {names[i] for i in np.unique(analyzer.queries(texts).ids)} if texts else set()
    if not own:
        raise WhyrankError(f"the collections have no queries with words; leave out {option}")
    return own


def _with(chosen: TermCounts, counted: TermCounts, terms: Iterable[str]) -> TermCounts:
    """Some terms besides, each in its place by frequency."""
    known = counted.by_term()
    return _ordered(chosen.by_term() | {term: known.get(term, (0, 0)) for term in terms})


def _ordered(totals: Mapping[str, _Counted]) -> TermCounts:
    terms = sorted(totals, key=lambda term: (-totals[term][0], term))
    columns = np.array([totals[term] for term in terms], np.int64).reshape(-1, 2)
    return TermCounts(terms, columns[:, 0], columns[:, 1])


def _term(analyzer: Analyzer, word: str) -> str:
    terms = analyzer.query_terms(word)
    if len(terms) != 1:
        found = "drops it" if not terms else f"makes {len(terms)} terms of it"
        raise WhyrankError(f"--audit {word!r}: the analyzer {analyzer.id} {found}; name one word that it keeps")
    return terms[0]
