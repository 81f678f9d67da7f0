"""Cross-encoders: query and text read together, the score from one position, of one input or of several chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from whyrank.core import Share, Whole
from whyrank.networks.chunks import ChunkedNetwork, first_states
from whyrank.networks.encoder import Encoder
from whyrank.networks.network import JointNetwork
from whyrank.networks.tokens import ModelTokenizer


class CrossNetwork(JointNetwork):
    """score = w2 . tanh(W1 h + b1) + b2, where h is the last hidden state of [CLS] in [CLS] query [SEP] text [SEP].

    Over a causal encoder h is the state of the last [SEP], which alone has seen query and text.

    Nogueira and Cho, "Passage re-ranking with BERT", arXiv 1901.04085; the hidden layer is BERT's own pooler.
    """

    architecture: ClassVar[str] = "cross"

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer,
        max_query: int = 32, max_doc: int = 477, dropout: Share = 0.1,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc)
        self.inner, self.outer = nn.Linear(encoder.width, encoder.width), nn.Linear(encoder.width, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """One logit per pair, in single precision: in half of it many candidates of a query would be tied."""
        first = self.encoder.pooled(batch, self.max_query + self.max_doc + 3)
        with torch.autocast(first.device.type, enabled=False):
            inner = torch.tanh(self.inner(self.dropout(first.float())))
            found: Tensor = self.outer(self.dropout(inner))
            return found.squeeze(1)


class VanillaNetwork(ChunkedNetwork):
    """score = w . h + b, where h is the mean of the last hidden states of [CLS] over the chunks of the text.

    Each chunk is read as [CLS] query [SEP] chunk [SEP]; the mean is over the chunks that the text has. `chunks=1`
    reads the first chunk only (the short form), `chunks=3` up to three (the full form). Over a causal encoder the
    last [SEP] stands for [CLS].

    MacAvaney et al., "CEDR: contextualized embeddings for document ranking", SIGIR 2019; Boytsov and Kolter,
    "Exploring classic and neural lexical translation models for information retrieval", ECIR 2021.
    """

    architecture: ClassVar[str] = "vanilla"

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477, chunks: Whole = 3,
        dropout: Share = 0.1,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc, chunks)
        self.dropout, self.outer = nn.Dropout(dropout), nn.Linear(encoder.width, 1)
        nn.init.xavier_uniform_(self.outer.weight)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """One logit per pair, in single precision: in half of it many candidates of a query would be tied."""
        first = self.encoder.pooled(batch)
        with torch.autocast(first.device.type, enabled=False):
            found: Tensor = self.outer(self.dropout(first_states(first.float(), batch)))
            return found.squeeze(1)
