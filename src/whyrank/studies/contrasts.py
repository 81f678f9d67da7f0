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

from whyrank.core import Codes, SharedDocuments, WhyrankError, generator, seed_for
from whyrank.scoring import Scores

Label = str | int | float
Scorer = Callable[[Sequence[str], Sequence[str], Codes, Codes], Scores]  # of unique texts, and indices of pairs


class Pair(NamedTuple):
    """One contrast as its author thinks of it: the text that the study favours comes first."""

    query: str
    docs: tuple[str, ...]
    labels: Mapping[str, Label | tuple[Label, ...]] = {}


class Categories(NamedTuple):
    """A label column of strings: a code per row (or per row and text) and the names that the codes stand for."""

    codes: Codes
    names: Sequence[str]

    def values(self) -> npt.NDArray[Any]:
        """The strings themselves, in the shape of the codes."""
        return np.array(self.names, dtype=object)[self.codes] if len(self.names) else self.codes.astype(object)


Labels = Categories | npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Unique texts, and one row of indices per contrast.

    Attributes:
        queries: unique query texts.
        docs: unique document texts.
        query: index of the query, one per contrast.
        doc: indices of the texts, one row per contrast, the favoured text first.
        labels: named columns, one value per contrast or one per contrast and text.
        dropped: how many questions could not be asked, by reason.
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

    @property
    def size(self) -> int:
        """Number of texts in a contrast."""
        return int(self.doc.shape[1])

    @classmethod
    def from_pairs(cls, pairs: Iterable[Pair], size: int = 2, dropped: Mapping[str, int] | None = None) -> Contrasts:
        """Build contrasts from one `Pair` at a time."""
        rows = list(pairs)
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
        """At most `limit` contrasts, drawn at random but independently of their order.

        Contrasts between forms of one document are drawn by query and document: all edits get the same documents.
        """
        if len(self) <= limit:
            return self
        order, doc = self.canonical_order, self.labels.get("doc_ids")
        one_document = isinstance(doc, Categories) and doc.codes.ndim == 2 and (doc.codes == doc.codes[:, :1]).all()
        if one_document and (ids := self.ids) is not None:
            keys = np.array([seed_for(seed, "sample", *pair[:2]) for pair in ids], dtype=np.uint64)
            drawn = np.argsort(keys[order], kind="stable")[:limit]
        else:
            drawn = generator(seed, "sample", self.fingerprint).choice(len(self), limit, replace=False)
        taken = self.take(np.sort(order[drawn]))
        return replace(taken, dropped={**self.dropped, "not drawn": len(self) - limit})

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
