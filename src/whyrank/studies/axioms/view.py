"""What axioms see of a query and its documents: counts, lengths, positions of query terms, rarity; computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit

from whyrank.core import Codes, Flags, Floats, Ints
from whyrank.data import Collection
from whyrank.rankers import Setting
from whyrank.rankers.lexical import Background
from whyrank.studies.pools import Pool, Pools

T = TypeVar("T")
_made: WeakKeyDictionary[Pools, dict[str | None, Views]] = WeakKeyDictionary()


class _Memo:
    """Something that features are computed for, each once."""

    memo: dict[Any, Any]

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` gives, computed once: for features of one's own."""
        if key not in self.memo:
            self.memo[key] = make()
        found: T = self.memo[key]
        return found


class Hits(NamedTuple):
    """Where the documents have query terms: document `i` has `offsets[i]:offsets[i + 1]`, by position in the text.

    `position` counts the tokens of the document from 0; `term` is the number of the query term.
    """

    offsets: Ints
    position: Codes
    term: Codes


@dataclass(frozen=True, eq=False)
class View(_Memo):
    """One query and its documents: all that an axiom may use. `a`, `b` in axioms are arrays of document numbers.

    Of n documents and t distinct query terms, `lengths`, `total` and `distinct` are int64[n], `counts` int32[n, t],
    `present` bool[n, t]. By query term, `in_query`, `df` and `cf` are int64[t], `idf` is float64[t], and `terms` is
    a list of t strings. `query` is int32[words of the query], `hits` has the positions of query terms, `tokens(i)`
    the term ids of document i. `pool` has ids, texts, titles and grades. `once(key, make)` keeps a feature of one's
    own for later calls.

    Example:
        >>> from whyrank import Collection
        >>> from whyrank.studies import Pools, Source
        >>> from whyrank.studies.axioms import Views
        >>> docs = {"a": "cats purr and cats sleep", "b": "dogs and cats"}
        >>> made = Collection.of(docs, {"q": "dogs or cats"}, {"q": {"a": 2, "b": 0}})
        >>> [view] = Views.of(Pools.of(made, Source(analyzer="whitespace")))
        >>> view.terms, view.counts.tolist(), view.lengths.tolist()
        (['dogs', 'or', 'cats'], [[0, 0, 2], [1, 0, 1]], [5, 3])
        >>> view.total.tolist(), view.distinct.tolist(), view.df.tolist()
        ([2, 2], [1, 2], [1, 0, 2])
        >>> view.hits.position.tolist(), view.hits.term.tolist(), view.hits.offsets.tolist()
        ([0, 3, 0, 2], [2, 2, 0, 2], [0, 2, 4])
        >>> view.once("digits", lambda: [sum(c.isdigit() for c in text) for text in view.pool.texts])
        [0, 0]
    """

    pool: Pool
    views: Views
    memo: dict[Any, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.pool.rows)

    @cached_property
    def counts(self) -> Codes:
        """c(q, D): how often each document has each distinct query term, [documents, terms]."""
        return self.pool.counts.astype(np.int32)

    @cached_property
    def total(self) -> Ints:
        """How many query-term occurrences each document has."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.int64)

    @cached_property
    def present(self) -> Flags:
        """Which query terms each document has, [documents, terms]."""
        return np.asarray(self.counts > 0)

    @cached_property
    def distinct(self) -> Ints:
        """How many distinct query terms each document has."""
        return np.asarray(self.present.sum(axis=1), dtype=np.int64)

    @property
    def lengths(self) -> Ints:
        """|D|: number of tokens of each document."""
        return self.pool.lengths

    @property
    def terms(self) -> list[str]:
        """The distinct query terms, in order of appearance: the columns of `counts`."""
        return self.pool.query_terms

    @cached_property
    def query(self) -> Codes:
        """The whole query as numbers of its terms, repetitions included."""
        number = {term: i for i, term in enumerate(self.terms)}
        terms = self.pool.pools.analyzer.query_terms(self.pool.query)
        return np.array([number[term] for term in terms], dtype=np.int32)

    @cached_property
    def in_query(self) -> Ints:
        """c(q, Q): how often the query has each of its terms."""
        return np.bincount(self.query, minlength=len(self.terms))

    @cached_property
    def df(self) -> Ints:
        """Number of documents of the collection that have each query term."""
        return self.views.background.frequencies(self.terms)[0]

    @cached_property
    def cf(self) -> Ints:
        """Occurrences of each query term in the collection."""
        return self.views.background.frequencies(self.terms)[1]

    @cached_property
    def idf(self) -> Floats:
        """ln((N + 1) / max(df, 1)) of each query term; N documents in the collection."""
        return np.log((self.views.background.n_docs + 1) / np.maximum(self.df, 1))

    def tokens(self, document: int) -> Codes:
        """The term ids of one document."""
        tokens, row = self.pool.pools.tokens, self.pool.rows[document]
        return tokens.ids[tokens.offsets[row] : tokens.offsets[row + 1]]

    @cached_property
    def term_ids(self) -> Codes:
        """The ids of the query terms in the analyzer's vocabulary."""
        vocabulary = self.pool.pools.analyzer.vocabulary
        return np.array([vocabulary.id(term) for term in self.terms], dtype=np.int32)

    @cached_property
    def hits(self) -> Hits:
        """Where each document has query terms."""
        tokens = self.pool.pools.tokens
        offsets = np.concatenate([[0], np.cumsum(self.total)]).astype(np.int64)
        slot = np.full(len(self.pool.pools.analyzer.vocabulary), -1, np.int32)
        slot[self.term_ids] = np.arange(len(self.terms), dtype=np.int32)
        return Hits(offsets, *_locate(tokens.ids, tokens.offsets, self.pool.rows, slot, offsets[-1]))


@dataclass(frozen=True, eq=False)
class Views(_Memo):
    """The views of all queries of some pools.

    Document and collection frequencies are those of the collection `statistics`, or of the source `stats`: a file of
    `whyrank data stats`, or a collection.
    """

    pools: Pools
    statistics: Collection
    stats: str | None = None
    memo: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, pools: Pools, stats: str | None = None) -> Views:
        """The views of some pools over their own collection; made once per source of statistics."""
        known = _made.setdefault(pools, {})
        if stats not in known:
            known[stats] = cls(pools, pools.collection, stats)
        return known[stats]

    @cached_property
    def background(self) -> Background:
        """Document and collection frequencies."""
        return Setting(self.statistics, stats=self.stats).background(self.pools.analyzer, None)

    def __iter__(self) -> Iterator[View]:
        return iter(self.once("views", lambda: [View(pool, self) for pool in self.pools]))


def surface_form(term: str) -> str:
    """A term as a word: tokens that continue a word have a mark in front."""
    return term.removeprefix("##") or term


@njit(cache=True, nogil=True)
def _locate(ids: Codes, offsets: Ints, rows: Codes, slot: Codes, size: int) -> tuple[Codes, Codes]:
    """The positions and the query terms of all hits, document by document."""
    position, term, n = np.empty(size, np.int32), np.empty(size, np.int32), 0
    for row in rows:
        for at in range(offsets[row], offsets[row + 1]):
            found = slot[ids[at]]
            if found >= 0:
                position[n], term[n] = at - offsets[row], found
                n += 1
    return position, term
