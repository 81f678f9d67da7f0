"""Neural Model 1 without context: a query piece and a piece of a text have one T(q|d), wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from whyrank.core.checks import check_whole
from whyrank.core.errors import WhyrankError
from whyrank.networks.batches import Arrays, padded
from whyrank.networks.encoder import Encoder, WordEncoder
from whyrank.networks.network import Network
from whyrank.networks.pieces import Ids, Pieces
from whyrank.networks.separate import Encoded, SeparateNetwork
from whyrank.networks.translating import WIDTHS, Compared, Translating

_AT_ONCE = {"cpu": 1 << 14, "cuda": 1 << 20}  # pairs of pieces that are compared at a time


class NeuralModel1(SeparateNetwork):
    """The layer of `translating` over two vectors for each piece: one as part of queries, one as part of texts.

    Each distinct pair of pieces of a batch is compared once. The score is a logarithm with the base e.
    """

    architecture: ClassVar[str] = "neural-model1"
    scale: ClassVar[str] = "log probability"

    def __init__(
        self, encoder: Encoder, pieces: Pieces, max_query: int = 32, max_doc: int = 477, variant: str = "network",
        p_self: float | None = 0.3, widths: Sequence[int] = WIDTHS, eps: float = 1e-8, dropout: float = 0.0,
        start: float = -3.0,
    ) -> None:  # fmt: skip
        super().__init__(encoder, pieces, max_query, max_doc)
        if not isinstance(encoder, WordEncoder) or encoder.vectors.num_embeddings != 1 + 2 * len(pieces):
            raise WhyrankError(f"{self.architecture} stands on vectors of its own for {len(pieces):,} pieces, twice")
        self.layer = Translating(encoder.width, variant, p_self, widths, eps, dropout, start)

    @classmethod
    def begin(cls, source: str | Path, layers: Sequence[int] | None = None, **settings: Any) -> Network:
        """A new network over the pieces of a model's tokenizer."""
        if layers is not None:
            raise WhyrankError(f"layers {list(layers)}: {cls.architecture} stands on pieces, which have none")
        return cls.over_pieces(Pieces(source), **settings)

    @classmethod
    def over_pieces(cls, pieces: Pieces, dims: int = 128, **settings: Any) -> Network:
        """A new network with vectors of `dims` numbers for the pieces of a tokenizer."""
        check_whole("dims", dims, 1)
        encoder = WordEncoder(1 + 2 * len(pieces), dims)
        for side in encoder.vectors.weight.data[1:].chunk(2):
            nn.init.xavier_uniform_(side)
        return cls(encoder, pieces, **settings)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that make a network of the same shape."""
        return super().settings | self.layer.settings

    def query_arrays(self, queries: Sequence[Ids]) -> Arrays:
        """The distinct pieces of each query, and how often it has them."""
        return _bags(queries)

    def doc_arrays(self, docs: Sequence[Ids]) -> Arrays:
        """The distinct pieces of each text, and what share of it they are."""
        found = _bags(docs)
        lengths = np.maximum(found["weights"].sum(axis=1, keepdims=True), 1)
        return found | {"weights": (found["weights"] / lengths).astype(np.float32)}

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The pieces: without context there is nothing to add."""
        return dict(batch)

    def encode_docs(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The pieces: without context there is nothing to add."""
        return dict(batch)

    def interact(self, queries: Encoded, docs: Encoded) -> Tensor:
        """The log score of each pair, in single precision but for the sums."""
        found: Tensor = self.layer(self._compared(queries, docs))
        return found

    def compared(self, batch: Mapping[str, Tensor]) -> Compared:
        """The distinct pieces of each pair, and T of each two."""
        return self._compared(*self.encoded(batch))

    def vectors(self, queries: Tensor, docs: Tensor) -> tuple[Tensor, Tensor]:
        """What the layer makes of pieces of queries and of pieces of texts."""
        asked, told = (self.encoder.last({"ids": 1 + ids}) for ids in (queries, len(self.pieces) + docs))
        return self.layer.query(asked), self.layer.doc(told)

    def _compared(self, queries: Encoded, docs: Encoded) -> Compared:
        query, doc = queries["ids"].unsqueeze(2), docs["ids"].unsqueeze(1)
        real = (queries["weights"] > 0).unsqueeze(2) & (docs["weights"] > 0).unsqueeze(1)
        found = torch.zeros(real.shape, device=real.device)
        keys = (query * len(self.pieces) + doc)[real]
        with torch.autocast(real.device.type, enabled=False):
            found = found.masked_scatter(real, self._translated(keys))
            found = self.layer.with_self(found, query == doc)
        return Compared(found, queries["ids"], docs["ids"], queries["weights"], docs["weights"])

    def _translated(self, keys: Tensor) -> Tensor:
        """T of pairs of pieces, each distinct pair computed once, some at a time."""
        pairs, place = torch.unique(keys, return_inverse=True)
        queries, left = torch.unique(pairs // len(self.pieces), return_inverse=True)
        docs, right = torch.unique(pairs % len(self.pieces), return_inverse=True)
        asked, told = self.vectors(queries, docs)
        step = _AT_ONCE.get(keys.device.type, _AT_ONCE["cpu"])
        blocks = [slice(start, start + step) for start in range(0, max(len(pairs), 1), step)]
        return torch.cat([self.layer.aligned(asked, told, left[at], right[at]) for at in blocks])[place]


def _bags(rows: Sequence[Ids]) -> Arrays:
    """The distinct pieces of each row in order of appearance, and their counts; 0 where there is none."""
    bags = [_bag(row) for row in rows]
    ids, counts = (padded([bag[side] for bag in bags], 0) for side in (0, 1))
    return {"ids": ids, "weights": counts.astype(np.float32)}


def _bag(row: Ids) -> tuple[Ids, Ids]:
    found, first, counts = np.unique(row, return_index=True, return_counts=True)
    order = np.argsort(first)
    return found[order], counts[order].astype(np.int32)
