"""Learned sparse vectors: queries and texts as weighted words of the vocabulary (SPLADE)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from whyrank.core import check_number, check_whole
from whyrank.networks.encoder import Encoder
from whyrank.networks.network import Network
from whyrank.networks.separate import Encoded
from whyrank.networks.tokens import ModelTokenizer
from whyrank.networks.vocabulary import VocabularyNetwork, flops


class SparseNetwork(VocabularyNetwork):
    """score = sum over the vocabulary of w_q(v) * w_d(v), with w(v) = max over positions of log(1 + relu(x_v)).

    x_v = E_v . t(h) + b_v is the logit of word v at a position, special tokens included. E are the encoder's word
    embeddings; t and b are those of a masked language model where the encoder comes with one (`transform`), else the
    identity and a constant. In training, `query_weight` * FLOPS(queries) + `doc_weight` * FLOPS(texts) is added to
    the loss; both weights grow as the square of time over the first `ramp` batches.

    Formal et al., "SPLADE v2: sparse lexical and expansion model for information retrieval", arXiv 2109.10086.
    """

    architecture: ClassVar[str] = "sparse"
    batches: Tensor  # how many were trained on

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477,
        query_weight: float = 3e-4,
        doc_weight: float = 1e-4, ramp: int = 0, transform: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc, transform)
        check_number("query_weight", query_weight, 0)
        check_number("doc_weight", doc_weight, 0)
        check_whole("ramp", ramp, 0)
        self.query_weight, self.doc_weight, self.ramp = query_weight, doc_weight, ramp
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))
        self._seen: dict[str, list[Tensor]] = {"query": [], "doc": []}  # weights since the last penalty

    @classmethod
    def begin(
        cls, source: str | Path, layers: Sequence[int] | None = None, bias: float = -2.0, **settings: Any
    ) -> Network:
        """A new network over an encoder; where that has no head, all words start with `bias`: with sparse vectors."""
        made = super().begin(source, layers, **settings)
        if isinstance(made, cls) and made.head.inner is None:
            made.head.bias.data.fill_(bias)
        return made

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that make a network of the same shape."""
        own = {"query_weight": self.query_weight, "doc_weight": self.doc_weight, "ramp": self.ramp}
        return super().settings | own

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """Weights of the words: [n, vocabulary]."""
        return self._encoded(batch, "query")

    def encode_docs(self, batch: Mapping[str, Tensor]) -> Encoded:
        """Weights of the words: [n, vocabulary]."""
        return self._encoded(batch, "doc")

    def interact(self, queries: Encoded, docs: Encoded) -> Tensor:
        """The product of the two vectors."""
        return (queries["weights"] * docs["weights"]).sum(dim=1)

    def penalty(self) -> Tensor | None:
        """The FLOPS of all that was read in training since the last call, whatever its parts, weighed."""
        sides = ((self.query_weight, self._seen["query"]), (self.doc_weight, self._seen["doc"]))
        found = [weight * flops(torch.cat(parts)) for weight, parts in sides if parts]
        self._seen = {"query": [], "doc": []}
        if not found:
            return None
        self.batches += 1
        share = (self.batches / max(self.ramp, 1)).clamp(max=1) ** 2
        return torch.stack(found).sum() * share

    def _encoded(self, batch: Mapping[str, Tensor], side: str) -> Encoded:
        found = self.peaks(self.encoder.last(batch), batch["mask"], log_relu)
        if self.training:
            self._seen[side].append(found)
        return {"weights": found}


def log_relu(x: Tensor) -> Tensor:
    """log(1 + max(0, x))."""
    return torch.log1p(torch.relu(x))
