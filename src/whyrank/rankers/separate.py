"""Scoring with networks that read queries and texts apart: each distinct one is encoded once per call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whyrank.core.protocols import Floats, Ints
from whyrank.networks.batches import Arrays, tensors
from whyrank.rankers.computing import Computing, ahead, by_length
from whyrank.rankers.joint import CHUNK
from whyrank.rankers.passages import TextPairs

if TYPE_CHECKING:
    from torch import Tensor

    from whyrank.networks.separate import Encoded, SeparateNetwork

_AT_ONCE = 512  # pairs that are compared at a time: encodings may be as wide as the vocabulary


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

    def __call__(self, pairs: TextPairs) -> Floats:
        """One score per pair."""
        from whyrank.networks.separate import encode

        found, read = np.empty(len(pairs.query)), list[tuple[Ints, Any]]()
        with self.computing.running():
            ids = self.network.query_ids(pairs.queries)
            queries = encode(self.network, "query", ids, device=self.computing.device)
            for docs, arrays in ahead(self._batches(pairs)):
                encoded = self.network.encode_docs(tensors(arrays, self.computing.device))
                read += [(rows, self._compare(pairs, rows, queries, encoded, docs)) for rows in _of(pairs, docs)]
        for rows, scores in read:
            found[rows] = scores.cpu().numpy()
        return found

    def exact(self) -> SeparateScorer:
        """The same network in fp32."""
        return replace(self, computing=self.computing.exact)

    def _compare(self, pairs: TextPairs, rows: Ints, queries: Encoded, encoded: Encoded, docs: Ints) -> Tensor:
        import torch

        from whyrank.networks.separate import take

        order = np.argsort(docs)
        places = order[np.searchsorted(docs[order], pairs.doc[rows])]
        query, doc = (
            torch.from_numpy(np.asarray(numbers, np.int64)).to(self.computing.device)
            for numbers in (pairs.query[rows], places)
        )
        return self.network.interact(take(queries, query), take(encoded, doc)).double()

    def _batches(self, pairs: TextPairs) -> Iterator[_Batch]:
        order = np.argsort([-len(text) for text in pairs.docs], kind="stable")
        for chunk in (order[start : start + CHUNK] for start in range(0, len(order), CHUNK)):
            ids = self.network.doc_ids([pairs.docs[i] for i in chunk])
            for some in by_length(np.array([len(row) for row in ids]), self.tokens or self.computing.tokens):
                yield _Batch(chunk[some], self.network.doc_arrays([ids[i] for i in some]))


def _of(pairs: TextPairs, docs: Ints) -> Iterator[Ints]:
    """The pairs of some texts, a part at a time."""
    rows = np.flatnonzero(np.isin(pairs.doc, docs))
    return (rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE))
