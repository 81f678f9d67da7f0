"""Scoring with networks that read queries and texts apart: each distinct one is encoded once per call.

Queries and texts that are the same tokens to the network are one, so that their scores are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whyrank.core import Floats, Ints
from whyrank.networks import Arrays, Ids, tensors
from whyrank.rankers.neural.computing import Computing, Kept, ahead, by_length
from whyrank.rankers.neural.joint import KEPT
from whyrank.rankers.neural.passages import TextPairs

if TYPE_CHECKING:
    from torch import Tensor

    from whyrank.networks import Encoded, SeparateNetwork

_AT_ONCE = 512  # pairs that are compared at a time: encodings may be as wide as the vocabulary


class _Coded(NamedTuple):
    """Pairs as numbers of distinct queries and distinct texts, each of them tokens."""

    queries: list[Ids]
    docs: list[Ids]
    query: Ints
    doc: Ints


class _Batch(NamedTuple):
    """Some texts, and the arrays that the network makes of them."""

    docs: Ints
    arrays: Arrays


@dataclass(frozen=True, eq=False)
class SeparateScorer:
    """Puts queries to a network, then texts, and lets it compare the encodings of each pair."""

    network: SeparateNetwork
    computing: Computing
    tokens: int | None = None
    kept: Kept = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is scored yet."""
        object.__setattr__(self, "kept", Kept(KEPT))

    def __call__(self, pairs: TextPairs) -> Floats:
        """One score per pair."""
        from whyrank.networks import distinct

        queries, query = distinct(self.network.query_ids(pairs.queries))
        docs, doc = distinct(self.network.doc_ids(pairs.docs))
        coded = _Coded(queries, docs, query[pairs.query], doc[pairs.doc])
        keys = [_key(queries[q], docs[d]) for q, d in zip(coded.query.tolist(), coded.doc.tolist(), strict=True)]
        known = dict[bytes, Any]()
        if new := self.kept.missing(keys, known):
            scores = self._scored(coded._replace(query=coded.query[new], doc=coded.doc[new]))
            known |= zip([keys[i] for i in new], scores.tolist(), strict=True)
        for key, score in known.items():
            self.kept.add(key, score, 1)
        return np.array([known[key] for key in keys], dtype=np.float64)

    def _scored(self, pairs: _Coded) -> Floats:
        from whyrank.networks import encode

        found, read = np.empty(len(pairs.query)), list[tuple[Ints, Any]]()
        with self.computing.running():
            queries = encode(self.network, "query", pairs.queries, device=self.computing.device)
            for docs, arrays in ahead(self._batches(pairs)):
                encoded = self.network.encode_docs(tensors(arrays, self.computing.device))
                read += [(rows, self._compare(pairs, rows, queries, encoded, docs)) for rows in _of(pairs, docs)]
        for rows, scores in read:
            found[rows] = scores.cpu().numpy()
        return found

    def exact(self) -> SeparateScorer:
        """The same network in fp32."""
        return replace(self, computing=self.computing.exact)

    def _compare(self, pairs: _Coded, rows: Ints, queries: Encoded, encoded: Encoded, docs: Ints) -> Tensor:
        import torch

        from whyrank.networks import take

        order = np.argsort(docs)
        places = order[np.searchsorted(docs[order], pairs.doc[rows])]
        query, doc = (
            torch.from_numpy(np.asarray(numbers, np.int64)).to(self.computing.device)
            for numbers in (pairs.query[rows], places)
        )
        return self.network.interact(take(queries, query), take(encoded, doc)).double()

    def _batches(self, pairs: _Coded) -> Iterator[_Batch]:
        used = np.unique(pairs.doc)
        for some in by_length(np.array([len(pairs.docs[i]) for i in used]), self.tokens or self.computing.tokens):
            yield _Batch(used[some], self.network.doc_arrays([pairs.docs[i] for i in used[some]]))


def _key(query: Ids, doc: Ids) -> bytes:
    """A digest of the tokens of a pair."""
    return blake2b(f"{len(query)} ".encode() + query.tobytes() + doc.tobytes(), digest_size=16).digest()


def _of(pairs: _Coded, docs: Ints) -> Iterator[Ints]:
    """The pairs of some texts, a part at a time."""
    rows = np.flatnonzero(np.isin(pairs.doc, docs))
    return (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))
