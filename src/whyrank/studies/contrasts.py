"""A set of contrasts: questions to a ranker, each one query and two or three texts.

Texts are held once; a contrast is a row of integers. Fourteen million rows fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes, Ints, SharedDocuments, WhyrankError, seed_for
from whyrank.scoring import Scores

Label = str | int | float
Scorer = Callable[[Sequence[str], Sequence[str], Codes, Codes], Scores]  # of unique texts, and indices of pairs


class Pair(NamedTuple):
    """One contrast as its author thinks of it: the text that the study favours comes first.

    The labels `query_id` and `doc_ids` say which texts of the collection these are; others, such as `relevance`, are
    what findings can be broken down by.

    Example:
        >>> Pair("cats", ("cats purr", "cats purr!"), {"query_id": "q1", "doc_ids": ("d1", "d1!")}).docs[0]
        'cats purr'
    """

    query: str
    docs: tuple[str, ...]
    labels: Mapping[str, Label | tuple[Label, ...]] = {}


class TextIds(NamedTuple):
    """A text of a query, by their ids."""

    query_id: str
    doc_id: str


class Categories(NamedTuple):
    """A label column of strings: a code per row (or per row and text) and the names that the codes stand for."""

    codes: Codes
    names: Sequence[str]

    def values(self) -> npt.NDArray[Any]:
        """The strings themselves, in the shape of the codes."""
        return np.array(self.names, dtype=object)[self.codes] if len(self.names) else self.codes.astype(object)


Labels = Categories | npt.NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Contrasts:
    """Unique texts, and one row of indices per contrast.

    Attributes:
        queries: unique query texts.
        docs: unique document texts.
        query: index of the query, one per contrast.
        doc: indices of the texts, one row per contrast, the favoured text first.
        labels: named columns, one value per contrast or one per contrast and text.
        dropped: how many questions could not be asked, by reason.

    Example:
        >>> texts = [("cats purr", "dogs bark"), ("cats purr", "cows")]
        >>> found = Contrasts.from_pairs(Pair("cats", both) for both in texts)
        >>> len(found), found.docs, found.doc.tolist()
        (2, ['cats purr', 'dogs bark', 'cows'], [[0, 1], [0, 2]])
    """

    queries: Sequence[str]
    docs: Sequence[str]
    query: Codes
    doc: Codes
    labels: Mapping[str, Labels] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.doc.ndim != 2 or len(self.query) != len(self.doc):
            raise WhyrankError("contrasts need one row of document indices per query index")
        for name, column in self.labels.items():
            if len(column.codes if isinstance(column, Categories) else column) != len(self):
                raise WhyrankError(f"label column {name!r} has not one value per contrast")

    def __len__(self) -> int:
        return len(self.query)

    def __repr__(self) -> str:
        return f"Contrasts({len(self)} contrasts, {len(self.queries)} queries, {len(self.docs)} texts)"

    @property
    def size(self) -> int:
        """Number of texts in a contrast."""
        return int(self.doc.shape[1])

    @classmethod
    def from_pairs(cls, pairs: Iterable[Pair], size: int = 2, dropped: Mapping[str, int] | None = None) -> Contrasts:
        """Build contrasts from one `Pair` at a time."""
        rows = list(pairs)
        for row in rows:
            texts = (row.query, *row.docs) if isinstance(row, Pair) else ()
            if len(texts) < 3 or not all(isinstance(text, str) for text in texts):
                raise WhyrankError(
                    f"{row!r:.200} is no contrast; give Pair(query, (text, text)), all of them strings"
                )
        size = len(rows[0].docs) if rows else size
        if any(len(row.docs) != size for row in rows):
            raise WhyrankError(f"all contrasts of a study need the same number of texts ({size})")
        names = list(rows[0].labels) if rows else []
        if any(list(row.labels) != names for row in rows):
            raise WhyrankError("all contrasts of a study need the same labels")
        labels = {name: _column([row.labels[name] for row in rows]) for name in names}
        queries, query = index_texts(row.query for row in rows)
        docs, doc = index_texts(text for row in rows for text in row.docs)
        return cls(queries, docs, query, doc.reshape(-1, size), labels, dropped or {})

    def scored(self, score: Scorer) -> Scores:
        """The scores of all texts, a row per contrast; `score` is an engine's, for one ranker."""
        found = score(self.queries, self.docs, np.repeat(self.query, self.size), self.doc.ravel())
        return found._replace(values=found.values.reshape(-1, self.size))

    def take(self, rows: npt.NDArray[Any] | slice) -> Contrasts:
        """Some of the contrasts; texts that none of them uses are dropped."""
        labels: dict[str, Labels] = {
            name: column._replace(codes=column.codes[rows]) if isinstance(column, Categories) else column[rows]
            for name, column in self.labels.items()
        }
        queries, query = _compact(self.queries, self.query[rows])
        docs, doc = _compact(self.docs, self.doc[rows])
        return replace(self, queries=queries, docs=docs, query=query, doc=doc, labels=labels)

    @property
    def clusters(self) -> Codes:
        """The cluster of each contrast: its label `cluster` or `query_id` where there is one, else its query text."""
        ids = self.labels.get("cluster", self.labels.get("query_id"))
        return ids.codes if isinstance(ids, Categories) else self.query

    @cached_property
    def shared(self) -> SharedDocuments:
        """Which contrasts of different clusters have a document in common."""
        return SharedDocuments(self.clusters, self.doc)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the contrasts as a set: equal for equal questions, whatever their order."""
        rows, query_texts, doc_texts = self._canonical
        digest = sha256(f"{self.size}:{len(query_texts)}:{len(doc_texts)}\n".encode())
        for text in (*query_texts, *doc_texts):
            digest.update(sha256(text.encode("utf-8", "surrogatepass")).digest())
        digest.update(np.ascontiguousarray(rows[_order(rows)], dtype="<i4").tobytes())
        return digest.hexdigest()

    def sample(self, limit: int, seed: int) -> Contrasts:
        """The first `limit` contrasts in the order of `drawing_order`."""
        if len(self) <= limit:
            return self
        taken = self.draw(self.drawing_order(seed, limit))
        return replace(taken, dropped={**self.dropped, "not drawn": len(self) - limit})

    @property
    def units(self) -> int:
        """How many units can be drawn: the contrasts."""
        return len(self)

    def drawing_order(self, seed: int, most: int) -> Ints:
        """The first units in the order in which they are drawn.

        A contrast is drawn once all its texts are, and each text of a query has the same position in every study, so
        that studies share texts. The order of the contrasts themselves plays no part.
        """
        cells = self.cells(seed)
        last, rows = cells.max(axis=1, initial=0), np.arange(len(cells))
        if most < len(cells):
            rows = np.flatnonzero(last <= np.partition(last, most)[most])
        some = cells[rows]
        keys = (*some.T, *np.sort(some, axis=1).T)  # the last one decides, then the one before it
        return rows[np.lexsort(keys)][:most]

    def draw(self, units: Ints) -> Contrasts:
        """The contrasts of some units."""
        return self.take(np.sort(units))

    def cells(self, seed: int) -> npt.NDArray[np.uint64]:
        """The position of every text of every contrast: a hash of seed, query and document, of ids where known."""
        query, doc = self.labels.get("query_id"), self.labels.get("doc_ids")
        codes, names = (self.query, self.doc), (self.queries, self.docs)
        if isinstance(query, Categories) and isinstance(doc, Categories) and doc.codes.shape == self.doc.shape:
            codes, names = (query.codes, doc.codes), (query.names, doc.names)
        columns = [codes[1].ravel(), np.repeat(codes[0], self.size)]
        first, inverse = distinct_rows(columns)
        docs, queries = (column[first].tolist() for column in columns)
        pairs = zip(queries, docs, strict=True)
        found = np.array([text_position(seed, names[0][q], names[1][d]) for q, d in pairs], dtype=np.uint64)
        return found[inverse].reshape(self.doc.shape)

    @property
    def text_pairs(self) -> set[tuple[str, str]]:
        """The distinct pairs of a query and a text that have to be scored."""
        docs, queries = self.doc.ravel(), np.repeat(self.query, self.size)
        first, _ = distinct_rows([docs, queries])
        found = zip(queries[first].tolist(), docs[first].tolist(), strict=True)
        return {(self.queries[query], self.docs[doc]) for query, doc in found}

    @property
    def ids(self) -> list[tuple[str, ...]] | None:
        """Each contrast as the ids of its query and its texts; None where the labels have none."""
        query, doc = self.labels.get("query_id"), self.labels.get("doc_ids")
        if not isinstance(query, Categories) or not isinstance(doc, Categories) or doc.codes.shape != self.doc.shape:
            return None
        return [(q, *d) for q, d in zip(query.values().tolist(), doc.values().tolist(), strict=True)]

    @property
    def canonical_order(self) -> npt.NDArray[np.intp]:
        """Row numbers in an order that depends on the texts alone: equal contrasts of two sets are at equal ranks."""
        return _order(self._canonical[0])

    @cached_property
    def _canonical(self) -> tuple[Codes, list[str], list[str]]:
        """Each contrast as ranks of its texts among the sorted texts, and these texts."""
        query_rank, query_texts = _ranks(self.queries, self.query)
        doc_rank, doc_texts = _ranks(self.docs, self.doc)
        return np.column_stack([query_rank[self.query], doc_rank[self.doc]]), query_texts, doc_texts


def text_position(seed: int, query_id: str, doc_id: str) -> int:
    """Where a text of a query stands in the order in which texts are drawn: a number of 64 random bits."""
    return seed_for(seed, "sample", query_id, doc_id)


def distinct_rows(columns: Sequence[npt.NDArray[np.int32]]) -> tuple[Ints, Ints]:
    """The first row of each distinct row of some columns of codes, and which of these every row is.

    A column whose codes follow from those before it, as a text does from its id, costs no sorting.
    """
    codes = columns[0].astype(np.int64)
    for others in columns[1:] if len(codes) else ():
        follows = np.zeros(int(codes.max()) + 1, np.int32)
        follows[codes] = others
        if not np.array_equal(follows[codes], others):
            codes = np.unique(codes * (int(others.max()) + 1) + others, return_inverse=True)[1].astype(np.int64)
    row = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    row[codes[::-1]] = np.arange(len(codes))[::-1]
    return row[row >= 0], (np.cumsum(row >= 0) - 1)[codes]


def index_texts(texts: Iterable[str]) -> tuple[list[str], Codes]:
    """Unique texts in order of appearance, and the index of each given text among them."""
    found: dict[str, int] = {}
    codes = [found.setdefault(text, len(found)) for text in texts]
    return list(found), np.array(codes, dtype=np.int32)


def _column(values: Sequence[Any]) -> Labels:
    array = np.array(values)
    if array.dtype.kind in "biuf":
        return array
    names, codes = index_texts(str(value) for value in np.array(values, dtype=object).ravel())
    return Categories(codes.reshape(array.shape), names)


def _compact(texts: Sequence[str], codes: Codes) -> tuple[list[str], Codes]:
    """The texts that are used, in their order, and their new numbers."""
    used = np.zeros(len(texts), bool)
    used[codes] = True
    numbers = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return [texts[i] for i in np.flatnonzero(used).tolist()], numbers[codes]


def _ranks(texts: Sequence[str], codes: Codes) -> tuple[Codes, list[str]]:
    """The rank of every used text among the sorted distinct ones, and these; unused texts do not matter."""
    used = np.unique(codes)
    distinct = sorted({texts[i] for i in used})
    position = {text: i for i, text in enumerate(distinct)}
    ranks = np.full(len(texts), -1, dtype=np.int32)
    ranks[used] = [position[texts[i]] for i in used]
    return ranks, distinct


def _order(rows: Codes) -> npt.NDArray[np.intp]:
    """Row numbers in lexicographic order of the rows."""
    return np.lexsort(rows.T[::-1])
