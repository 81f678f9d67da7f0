"""Distinct (query text, document text) pairs in an order that depends on the texts alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes, Ints, digest

Digests = npt.NDArray[np.uint64]
Objects = npt.NDArray[np.object_]
DIGEST_BYTES = 16
DIGEST_TYPE = np.dtype("<u8")
_DENSE = 8  # up to so many cells of the query x document grid per requested row, a grid of flags beats sorting


class Texts(NamedTuple):
    """Distinct texts, ascending by digest; `digests` has one row of two 64-bit halves per text."""

    texts: Objects
    digests: Digests


class Pairs(NamedTuple):
    """Distinct pairs of texts, ascending by (query digest, document digest).

    `query` and `doc` index `queries` and `docs`; `keys` is `query * len(docs.texts) + doc`; `inverse` maps
    each requested row to its pair.
    """

    queries: Texts
    docs: Texts
    keys: Ints
    query: Ints
    doc: Ints
    inverse: Ints

    def query_texts(self, rows: Ints) -> list[str]:
        """The query texts of some pairs."""
        return list(self.queries.texts[self.query[rows]])

    def doc_texts(self, rows: Ints) -> list[str]:
        """The document texts of some pairs."""
        return list(self.docs.texts[self.doc[rows]])

    def by_length(self, rows: Ints) -> Ints:
        """The given pairs by query, then by length of the document, so that batches need little padding."""
        if not len(rows):
            return rows
        lengths = np.fromiter(map(len, self.docs.texts), np.int64, len(self.docs.texts))
        position = np.empty(len(lengths), np.int64)
        position[np.argsort(lengths, kind="stable")] = np.arange(len(lengths))
        key = self.query[rows] * len(lengths) + position[self.doc[rows]]
        return rows[np.argsort(key, kind="stable")]


def unique_pairs(queries: Sequence[str], docs: Sequence[str], query: Codes, doc: Codes) -> Pairs:
    """The distinct pairs among `(queries[query[i]], docs[doc[i]])`; equal texts count as one."""
    query_texts, query_rank = _distinct(queries, query)
    doc_texts, doc_rank = _distinct(docs, doc)
    width = max(1, len(doc_texts.texts))
    keys, inverse = distinct_keys(query_rank[query] * width + doc_rank[doc], len(query_texts.texts) * width)
    return Pairs(query_texts, doc_texts, keys, keys // width, keys % width, inverse)


def distinct_keys(keys: Ints, n: int) -> tuple[Ints, Ints]:
    """The distinct keys among some from 0 up to `n`, ascending, and the position of each key among them."""
    if n > _DENSE * len(keys):
        found, inverse = np.unique(keys, return_inverse=True)
        return found, inverse
    flags = np.zeros(n, np.bool_)
    flags[keys] = True
    position = np.cumsum(flags) - 1
    return np.flatnonzero(flags), position[keys]


def _distinct(texts: Sequence[str], codes: Codes) -> tuple[Texts, Ints]:
    """The distinct texts that `codes` refer to, and the position of each text among them."""
    flags = np.zeros(len(texts), np.bool_)
    flags[codes] = True
    used = np.flatnonzero(flags)
    chosen = np.empty(len(used), np.object_)
    chosen[:] = [texts[i] for i in used.tolist()]
    digests: Digests = np.frombuffer(b"".join(map(digest, chosen.tolist())), DIGEST_TYPE).reshape(-1, 2)
    order = np.lexsort((digests[:, 1], digests[:, 0]))
    digests = digests[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (digests[1:] != digests[:-1]).any(axis=1)
    rank = np.zeros(len(texts), np.int64)
    rank[used[order]] = np.cumsum(new) - 1
    return Texts(chosen[order][new], digests[new]), rank
