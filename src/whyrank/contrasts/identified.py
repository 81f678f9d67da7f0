"""Scores by ids: for a ranker that knows documents by id, where contrasts say which documents they compare."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from whyrank.contrasts.contrasts import Categories, Contrasts
from whyrank.core.protocols import Flags, Floats, Ints
from whyrank.scoring import Failure, Scores


@runtime_checkable
class ScoresIds(Protocol):
    """A ranker that scores pairs of ids, and can tell whether a text is what an id names."""

    def score_ids(self, query_ids: Sequence[str], doc_ids: Sequence[str]) -> Floats:
        """Scores of aligned pairs of ids; NaN where there is none."""
        ...

    def is_query(self, query_id: str, text: str) -> bool:
        """Whether the query of this id has this text."""
        ...

    def is_doc(self, doc_id: str, text: str, whole: bool = False) -> bool:
        """Whether a text is the document of this id, or unless it must be `whole`, its beginning."""
        ...


class _Asked(NamedTuple):
    """Distinct pairs with their ids and texts; `inverse` has the pair of each text of each contrast."""

    query_ids: list[str]
    doc_ids: list[str]
    queries: list[str]
    docs: list[str]
    inverse: Ints


def scores_by_ids(ranker: object, contrasts: Contrasts) -> Scores | None:
    """Scores of all texts of all contrasts; None where the ranker knows no ids, or the contrasts have none.

    An edited text may carry the id of the text that it was made from: a text that is not the document of its id has
    no score. Where every id stands for one text, a document cut to its beginning counts as the document.
    """
    query_ids, doc_ids = (contrasts.labels.get(name) for name in ("query_id", "doc_ids"))
    if not isinstance(ranker, ScoresIds) or not _names(query_ids, 1) or not _names(doc_ids, 2):
        return None
    start, asked = time.perf_counter(), _asked(contrasts, query_ids, doc_ids)
    genuine = _genuine(ranker, asked)
    values = np.where(genuine, ranker.score_ids(asked.query_ids, asked.doc_ids), np.nan)
    failures = [_failure(asked, i, bool(genuine[i])) for i in np.flatnonzero(~np.isfinite(values)).tolist()]
    return Scores(values[asked.inverse], failures, len(values), 0, time.perf_counter() - start)


def _names(column: object, dimensions: int) -> TypeGuard[Categories]:
    return isinstance(column, Categories) and column.codes.ndim == dimensions


def _asked(contrasts: Contrasts, query_ids: Categories, doc_ids: Categories) -> _Asked:
    of_query = [np.repeat(codes, contrasts.size) for codes in (query_ids.codes, contrasts.query)]
    columns = [doc_ids.codes.ravel(), contrasts.doc.ravel(), *of_query]
    pair = columns[0].astype(np.int64)
    for column in columns[1:]:
        pair = _joined(pair, column)
    first, inverse = _first_rows(pair)
    names = (doc_ids.names, contrasts.docs, query_ids.names, contrasts.queries)
    doc_id, doc, query_id, query = (
        [texts[i] for i in column[first].tolist()] for texts, column in zip(names, columns, strict=True)
    )
    return _Asked(query_id, doc_id, query, doc, inverse)


def _joined(codes: Ints, others: npt.NDArray[np.int32]) -> Ints:
    """A code per distinct pair of codes; the first ones themselves where the second follow from them."""
    if not len(codes):
        return codes
    follows = np.zeros(int(codes.max()) + 1, np.int32)
    follows[codes] = others
    if np.array_equal(follows[codes], others):
        return codes
    _, joined = np.unique(codes * (int(others.max()) + 1) + others, return_inverse=True)
    return np.asarray(joined, dtype=np.int64)


def _first_rows(codes: Ints) -> tuple[Ints, Ints]:
    """A row of each code that occurs, and the place of each row's code among them."""
    row = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    row[codes[::-1]] = np.arange(len(codes))[::-1]
    place = np.cumsum(row >= 0) - 1
    return row[row >= 0], place[codes]


def _genuine(ranker: ScoresIds, asked: _Asked) -> Flags:
    """Whether the texts of each pair are what its ids name."""
    texts: dict[str, set[str]] = {}
    for doc_id, doc in zip(asked.doc_ids, asked.docs, strict=True):
        texts.setdefault(doc_id, set()).add(doc)
    known = {
        (doc_id, doc): ranker.is_doc(doc_id, doc, whole=len(found) > 1)
        for doc_id, found in texts.items()
        for doc in found
    }
    rows = zip(asked.query_ids, asked.queries, asked.doc_ids, asked.docs, strict=True)
    return np.array([known[d, doc] and ranker.is_query(q, query) for q, query, d, doc in rows], dtype=np.bool_)


def _failure(asked: _Asked, i: int, genuine: bool) -> Failure:
    query_id, doc_id = asked.query_ids[i], asked.doc_ids[i]
    reason = f"no score for query {query_id} and document {doc_id}"
    other = f"the texts are not query {query_id} and document {doc_id} of the collection"
    return Failure(asked.queries[i], asked.docs[i], reason if genuine else other)
