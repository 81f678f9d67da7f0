"""From the pairs (or triples) of every pool to contrasts over the texts of the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from whyrank.contrasts.contrasts import Categories, Contrasts, Labels, index_texts
from whyrank.contrasts.pools import Pool, Pools
from whyrank.core.protocols import Codes, Floats
from whyrank.data import Grades

Found = Sequence[tuple[Pool, Codes]]


def assembled(pools: Pools, found: Found, size: int = 2, dropped: Mapping[str, int] | None = None) -> Contrasts:
    """Join rows of document numbers, `size` per row and the winner first, into contrasts with ids and relevance."""
    filled = _by_pool(found)
    which = np.repeat(np.arange(len(filled), dtype=np.int32), [len(rows) for _, rows in filled])
    doc = np.concatenate([np.empty((0, size), np.int32), *(pool.rows[rows] for pool, rows in filled)])
    grades = np.concatenate([np.empty((0, size)), *(pool.relevance[rows] for pool, rows in filled)])
    labels: dict[str, Labels] = {
        "query_id": Categories(which, [pool.query_id for pool, _ in filled]),
        "doc_ids": _doc_ids(filled, size),
        "relevance": grades if np.isnan(grades).any() else grades.astype(np.int32),
        "relevance_group": _groups(grades, pools.collection.grades),
    }
    queries, query = index_texts(pool.query for pool, _ in filled)
    return Contrasts(queries, pools.texts, query[which], doc, labels, dropped or {}).take(slice(None))


def _by_pool(found: Found) -> list[tuple[Pool, Codes]]:
    """The rows of each pool together: a query is one cluster, in however many blocks its rows come."""
    parts: dict[Pool, list[Codes]] = {}
    for pool, rows in found:
        if len(rows):
            parts.setdefault(pool, []).append(rows)
    return [(pool, rows[0] if len(rows) == 1 else np.concatenate(rows)) for pool, rows in parts.items()]


def _doc_ids(found: Found, size: int) -> Categories:
    starts = np.cumsum([0, *(len(pool.doc_ids) for pool, _ in found)], dtype=np.int32)
    parts = [rows + start for (_, rows), start in zip(found, starts, strict=False)]
    codes = np.concatenate([np.empty((0, size), np.int32), *parts])
    return Categories(codes, [doc_id for pool, _ in found for doc_id in pool.doc_ids])


def _groups(grades: Floats, scale: Grades) -> Categories:
    """Whether all, some or none of the texts are relevant."""
    size = grades.shape[1]
    codes, unjudged = np.zeros(len(grades), np.int32), np.zeros(len(grades), bool)
    for column in grades.T:  # by column: a sum along rows of two is ten times slower
        codes += column >= scale.relevant
        unjudged |= np.isnan(column)
    codes[unjudged] = size + 1
    names = ["both non-relevant", "one relevant", "both relevant"]
    if size > 2:
        names = [f"{n} of {size} relevant" for n in range(size + 1)]
    return Categories(codes, [*names, "unjudged"])
