"""Pools: the documents of each query that a study may pair, analysed once for all studies."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from whyrank.core import Codes, Floats, Ints, WhyrankError
from whyrank.data import Collection, Run, open_run, ranking
from whyrank.rankers.lexical import kernels
from whyrank.studies.contrasts import Categories, Contrasts, Labels, TextIds, index_texts
from whyrank.text import Analyzer, Tokens, analyzers, cut_texts

_TOP = re.compile(r"top:([1-9]\d*)")
_made: WeakKeyDictionary[Collection, dict[Source, Pools]] = WeakKeyDictionary()


class Source(NamedTuple):
    """Where the documents of a query come from, and how they are analysed.

    `pairs` is `judged`, `top:K` of the run `candidates`, or `all`: what is judged or in that run (in any run of the
    collection when none is named). Of each text, the first `max_tokens` tokens are kept.
    """

    pairs: str = "judged"
    candidates: str | None = None
    analyzer: str = "lucene"
    max_tokens: int | None = None


@dataclass(frozen=True, eq=False)
class Pool:
    """The documents of one query: all that a characteristic, or a probe over pools, may use.

    Of n documents and t distinct query terms, `doc_ids`, `texts` and `titles` are lists of n strings. `relevance` is
    float64[n] (the grade, NaN where unjudged), `lengths` int64[n], `counts` float64[n, t]. `query_terms` is a list of
    t strings; `query_id` and `query` are strings. `judgement(i)` is the grade of document i and its group. `pools`
    has the collection and the analyzer, `rows` the numbers of the documents among `pools.texts`.

    Example:
        >>> from whyrank import Collection
        >>> docs = {"a": "cats purr and cats sleep", "b": "dogs and cats"}
        >>> made = Collection.of(docs, {"q": "dogs or cats"}, {"q": {"a": 2, "b": 0}})
        >>> [pool] = Pools.of(made, Source(analyzer="whitespace"))
        >>> pool.query, pool.doc_ids, pool.relevance.tolist(), pool.lengths.tolist()
        ('dogs or cats', ['a', 'b'], [2.0, 0.0], [5, 3])
        >>> pool.query_terms, pool.counts.tolist(), pool.judgement(0)
        (['dogs', 'or', 'cats'], [[0.0, 0.0, 2.0], [1.0, 0.0, 1.0]], (2, 'relevant'))
    """

    query_id: str
    query: str
    doc_ids: list[str]
    rows: Codes
    relevance: Floats
    pools: Pools

    @cached_property
    def texts(self) -> list[str]:
        """The document texts."""
        return [self.pools.texts[row] for row in self.rows]

    @cached_property
    def titles(self) -> list[str]:
        """The document titles; empty where there is none."""
        return [self.pools.collection.titles.get(doc_id, "") for doc_id in self.doc_ids]

    @cached_property
    def query_terms(self) -> list[str]:
        """The distinct terms of the query, in order of appearance."""
        return list(dict.fromkeys(self.pools.analyzer.query_terms(self.query)))

    @cached_property
    def counts(self) -> Floats:
        """How often each document has each distinct query term: [documents, terms]."""
        vocabulary, tokens = self.pools.analyzer.vocabulary, self.pools.tokens
        terms = np.array([vocabulary.id(term) for term in self.query_terms], dtype=np.int32)
        tf = np.zeros((len(self.rows), len(terms)), np.int32)
        kernels.scan(tokens.ids, tokens.offsets, self.rows, terms, np.full(len(vocabulary), -1, np.int32), tf)
        return tf.astype(np.float64)

    @cached_property
    def lengths(self) -> Ints:
        """Number of tokens of each document after analysis."""
        return np.asarray(np.diff(self.pools.tokens.offsets)[self.rows])

    def judgement(self, document: int) -> tuple[float, str]:
        """The grade of a document and the group that it belongs to; NaN and `unjudged` where there is none."""
        grade = float(self.relevance[document])
        if math.isnan(grade):
            return grade, "unjudged"
        return int(grade), self.pools.collection.grades.group(int(grade))


@dataclass(frozen=True, eq=False)
class Pools:
    """The pools of all queries of a collection, with their texts analysed in one go."""

    collection: Collection
    source: Source

    @classmethod
    def of(cls, collection: Collection, source: Source) -> Pools:
        """The pools of a collection; made once per source."""
        known = _made.setdefault(collection, {})
        if source not in known:
            known[source] = cls(collection, source)
        return known[source]

    @cached_property
    def analyzer(self) -> Analyzer:
        """The analyzer that counts terms."""
        return analyzers.create(self.source.analyzer)

    @cached_property
    def members(self) -> dict[str, list[str]]:
        """Document ids by query id, for queries and documents that exist."""
        found = candidates_of(self.collection, self.source.pairs, self.source.candidates)
        docs, queries = self.collection.docs, self.collection.queries
        return {q: [d for d in ids if d in docs] for q, ids in found.items() if q in queries}

    @property
    def text_ids(self) -> list[TextIds]:
        """The ids of every query with each of its documents."""
        return [TextIds(query_id, doc_id) for query_id, ids in self.members.items() for doc_id in ids]

    @cached_property
    def texts(self) -> list[str]:
        """The distinct texts of all pools."""
        return self._indexed[0]

    @cached_property
    def tokens(self) -> Tokens:
        """The distinct texts, analysed."""
        return self.analyzer.docs(self.texts)

    def __iter__(self) -> Iterator[Pool]:
        return iter(self._pools)

    @cached_property
    def _indexed(self) -> tuple[list[str], Codes]:
        docs = self.collection.docs
        texts, rows = index_texts(docs[d] for ids in self.members.values() for d in ids)
        if self.source.max_tokens is None:
            return texts, rows
        cut, renamed = index_texts(cut_texts(self.analyzer, texts, self.source.max_tokens))
        return cut, renamed[rows]

    @cached_property
    def _pools(self) -> list[Pool]:
        found, start = [], 0
        for query_id, doc_ids in self.members.items():
            judged, end = self.collection.qrels.get(query_id, {}), start + len(doc_ids)
            grades = np.array([judged.get(d, np.nan) for d in doc_ids], dtype=np.float64)
            query, rows = self.collection.queries[query_id], self._indexed[1][start:end]
            found.append(Pool(query_id, query, doc_ids, rows, grades, self))
            start = end
        return found


def candidates_of(collection: Collection, pairs: str = "judged", run: str | None = None) -> Mapping[str, list[str]]:
    """Document ids by query id: the judged ones, the first K of a run, or all that are judged or in a run."""
    if pairs == "judged":
        return {query_id: list(judged) for query_id, judged in collection.qrels.items()}
    if pairs == "all":
        runs = collection.runs.values() if run is None else [open_run(collection, run).run]
        found: dict[str, dict[str, None]] = {}
        for source in (collection.qrels, *runs):
            for query_id, docs in source.items():
                found.setdefault(query_id, {}).update(dict.fromkeys(docs))
        return {query_id: list(docs) for query_id, docs in found.items()}
    if not (top := _TOP.fullmatch(pairs)):
        raise WhyrankError(f"pairs {pairs!r} is none of 'judged', 'all' and 'top:K' (such as top:100)")
    only = only_run(collection, run, "pairs top:K needs --candidates RUN")
    return {query_id: ranking(scores)[: int(top[1])] for query_id, scores in only.items()}


def only_run(collection: Collection, run: str | None, otherwise: str) -> Run:
    """The named run, or the only one of a collection; an error that begins with `otherwise` where there is none."""
    if run is not None:
        return open_run(collection, run).run
    if len(collection.runs) == 1:
        return next(iter(collection.runs.values()))
    have = ", ".join(collection.runs) or "none"
    raise WhyrankError(f"{otherwise} (a run file, or a run of the collection: {have})")


# From the pairs (or triples) of every pool to contrasts over the texts of the collection.

Found = Sequence[tuple[Pool, Codes]]


def assemble(pools: Pools, found: Found, size: int = 2, dropped: Mapping[str, int] | None = None) -> Contrasts:
    """Join rows of document numbers, `size` per row and the winner first, into contrasts with ids and relevance."""
    by_pool: dict[Pool, list[Codes]] = {}  # a query is one cluster, in however many blocks its rows come
    for pool, rows in found:
        if len(rows):
            by_pool.setdefault(pool, []).append(rows)
    counts = [sum(map(len, blocks)) for blocks in by_pool.values()]
    which = np.repeat(np.arange(len(by_pool), dtype=np.int32), counts)
    doc, ids = (np.empty((len(which), size), np.int32) for _ in range(2))
    grades, end, start = np.empty((len(which), size)), 0, 0
    for (pool, blocks), count in zip(by_pool.items(), counts, strict=True):
        rows, part = np.concatenate(blocks), slice(end, end + count)
        doc[part], ids[part], grades[part] = pool.rows[rows], rows + start, pool.relevance[rows]
        end, start = end + count, start + len(pool.doc_ids)
    relevant, unjudged = np.zeros(len(grades), np.int32), np.zeros(len(grades), bool)
    for column in grades.T:  # by column: a sum along rows of two is ten times slower
        relevant += column >= pools.collection.grades.relevant
        unjudged |= np.isnan(column)
    groups = ["both non-relevant", "one relevant", "both relevant"]
    if size > 2:
        groups = [f"{n} of {size} relevant" for n in range(size + 1)]
    labels: dict[str, Labels] = {
        "query_id": Categories(which, [pool.query_id for pool in by_pool]),
        "doc_ids": Categories(ids, [doc_id for pool in by_pool for doc_id in pool.doc_ids]),
        "relevance": grades if unjudged.any() else grades.astype(np.int32),
        "relevance_group": Categories(np.where(unjudged, np.int32(size + 1), relevant), [*groups, "unjudged"]),
    }
    queries, query = index_texts(pool.query for pool in by_pool)
    return Contrasts(queries, pools.texts, query[which], doc, labels, dropped or {}).take(slice(None))
