"""Neural Model 1 over contextual vectors: T(q|d) of pieces as BERT reads them, query and text together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from whyrank.networks.chunks import ChunkedNetwork, reading
from whyrank.networks.encoder import Encoder
from whyrank.networks.pieces import Pieces
from whyrank.networks.translating import WIDTHS, Compared, Translating


class BertModel1(ChunkedNetwork):
    """The layer of `translating` over the last hidden states of the pieces of query and text; [CLS] is not used.

    One chunk is the short form. With more, the columns of all chunks stand side by side, and the query's states are
    those read with the first chunk. The score is a logarithm with the base e.
    """

    architecture: ClassVar[str] = "bert-model1"
    scale: ClassVar[str] = "log probability"

    def __init__(
        self, encoder: Encoder, pieces: Pieces, max_query: int = 32, max_doc: int = 477, chunks: int = 3,
        variant: str = "network", p_self: float | None = 0.3, widths: Sequence[int] = WIDTHS, eps: float = 1e-8,
        dropout: float = 0.0, start: float = -3.0,
    ) -> None:  # fmt: skip
        super().__init__(encoder, pieces, max_query, max_doc, chunks)
        self.layer = Translating(encoder.width, variant, p_self, widths, eps, dropout, start)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that make a network of the same shape."""
        return super().settings | self.layer.settings

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The log score of each pair; everything after the encoder in single precision, but for the sums."""
        found: Tensor = self.layer(self.compared(batch))
        return found

    def compared(self, batch: Mapping[str, Tensor]) -> Compared:
        """The pieces of each pair in their order, and T of each two."""
        read, ids = reading(self.encoder.last(batch).float(), batch), batch["ids"].flatten()
        query, doc = (ids[batch[name].clamp(min=0)] for name in ("query", "doc"))
        with torch.autocast(ids.device.type, enabled=False):
            found = self.layer.every(self.layer.query(read.query), self.layer.doc(read.doc))
            found = self.layer.with_self(found, query.unsqueeze(2) == doc.unsqueeze(1))
        shares = read.doc_mask / read.doc_mask.sum(dim=1, keepdim=True).clamp(min=1)
        return Compared(found, query, doc, read.query_mask.float(), shares)
