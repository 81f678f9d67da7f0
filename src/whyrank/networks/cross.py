"""The cross-encoder: query and text read together, the score from one position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from whyrank.core.checks import check_number
from whyrank.networks.encoder import Encoder
from whyrank.networks.pieces import Pieces
from whyrank.networks.together import JointNetwork


class CrossNetwork(JointNetwork):
    """score = w2 . tanh(W1 h + b1) + b2, where h is the last hidden state of [CLS] in [CLS] query [SEP] text [SEP].

    Over a causal encoder h is the state of the last [SEP], which alone has seen query and text.

    Nogueira and Cho, "Passage re-ranking with BERT", arXiv 1901.04085; the hidden layer is BERT's own pooler.
    """

    architecture: ClassVar[str] = "cross"

    def __init__(
        self, encoder: Encoder, pieces: Pieces, max_query: int = 32, max_doc: int = 477, dropout: float = 0.1
    ) -> None:
        super().__init__(encoder, pieces, max_query, max_doc)
        check_number("dropout", dropout, 0, 1)
        self.inner, self.outer = nn.Linear(encoder.width, encoder.width), nn.Linear(encoder.width, 1)
        self.dropout = nn.Dropout(dropout)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that make a network of the same shape."""
        return super().settings | {"dropout": self.dropout.p}

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """One logit per pair, in single precision: in half of it many candidates of a query would be tied."""
        first = self.encoder.pooled(batch, self.max_query + self.max_doc + 3)
        with torch.autocast(first.device.type, enabled=False):
            inner = torch.tanh(self.inner(self.dropout(first.float())))
            found: Tensor = self.outer(self.dropout(inner))
            return found.squeeze(1)
