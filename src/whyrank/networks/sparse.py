"""Texts as vectors over the vocabulary: the head of a masked language model, its maximum over a text, and SPLADE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from whyrank.core import Natural, NonNegative, WhyrankError
from whyrank.networks.encoder import Encoder, stored_tensors
from whyrank.networks.network import Network
from whyrank.networks.separate import Encoded, SeparateNetwork
from whyrank.networks.tokens import ModelTokenizer

Activation = Callable[[Tensor], Tensor]
CELLS = 1 << 25  # of texts x tokens x vocabulary that are computed at a time
_PARTS = ("inner.weight", "inner.bias", "norm.weight", "norm.bias", "bias")
_SPELLINGS = (  # of the inner layer, the norm and the bias in checkpoints of BERT, DistilBERT, RoBERTa and their like
    ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"),
    ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
    ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
)


class VocabularyHead(nn.Module):
    """logit of word v at a position with state h: E_v . t(h) + b_v, with the encoder's own word embeddings E.

    t is the layer of a masked language model, LayerNorm(gelu(W h + c)), or nothing (`transform=False`).
    """

    def __init__(self, encoder: Encoder, transform: bool = False) -> None:
        """A new head for an encoder; the embeddings stay the encoder's."""
        super().__init__()
        rows, width = embeddings(encoder).shape
        if width != encoder.width:
            raise WhyrankError(f"the encoder's word embeddings have {width} numbers and its states {encoder.width}; "
                               "a network over its vocabulary needs as many of both")  # fmt: skip
        eps = float(getattr(encoder.model.config, "layer_norm_eps", 1e-12))
        self.inner = nn.Linear(width, width) if transform else None
        self.norm = nn.LayerNorm(width, eps=eps) if transform else None
        self.bias = nn.Parameter(torch.zeros(rows))

    def forward(self, states: Tensor) -> Tensor:
        """The states that the embeddings are held against."""
        if self.inner is None or self.norm is None:
            return states
        found: Tensor = self.norm(functional.gelu(self.inner(states)))
        return found


class VocabularyNetwork(SeparateNetwork):
    """A network whose texts are vectors over the vocabulary; its `head` gives the logits.

    Attributes:
        head: over the encoder's word embeddings.
        transform: whether the head has the layer of a masked language model before the embeddings.
    """

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer,
        max_query: int = 32, max_doc: int = 477, transform: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc)
        self.transform, self.head = transform, VocabularyHead(encoder, transform)

    @classmethod
    def begin(cls, source: str | Path, layers: Sequence[int] | None = None, **settings: Any) -> Network:
        """A new network over an encoder and, where it has one, its head as a masked language model."""
        found = masked_head(source)
        made = super().begin(source, layers, **{"transform": found is not None} | settings)
        if found is not None and isinstance(made, cls) and made.head.inner is not None:
            made.head.load_state_dict(found)
        return made

    def peaks(self, states: Tensor, mask: Tensor, activation: Activation, importance: Tensor | None = None) -> Tensor:
        """The largest importance_j * activation(logit_j) over the positions j of `mask`; 0 where there are none.

        `activation` rises and is never negative. Only the logits at the maximum are kept for the gradient.
        """
        words = embeddings(self.encoder)
        inner, bias = self.head(states).to(words.dtype), self.head.bias.to(words.dtype)
        size = max(1, CELLS // (max(inner.shape[1], 1) * len(words)))  # texts whose logits are computed at a time
        found = []
        for rows in (slice(start, start + size) for start in range(0, max(len(inner), 1), size)):
            logits, real = functional.linear(inner[rows], words, bias), mask[rows].bool()
            weights = None if importance is None else importance[rows]
            with torch.no_grad():
                weighted = logits if weights is None else activation(logits) * weights.unsqueeze(2)
                best = weighted.masked_fill(~real.unsqueeze(2), -torch.inf).max(dim=1).indices
            peak = activation(logits.gather(1, best.unsqueeze(1)).squeeze(1).float())
            peak = peak if weights is None else peak * weights.gather(1, best)
            found.append(peak * real.any(dim=1, keepdim=True))
        return torch.cat(found)


def embeddings(encoder: Encoder) -> Tensor:
    """The matrix of an encoder's word embeddings, [vocabulary, width]."""
    found: Tensor = encoder.model.get_input_embeddings().weight
    return found


def masked_head(source: str | Path) -> dict[str, Tensor] | None:
    """The weights of a `VocabularyHead` from a pre-trained masked language model; None where it has no such head."""
    for inner, norm, bias in _SPELLINGS:
        names = [f"{inner}.weight", f"{inner}.bias", f"{norm}.weight", f"{norm}.bias", bias]
        if (found := stored_tensors(source, names)) is not None:
            return dict(zip(_PARTS, found, strict=True))
    return None


def flops(activations: Tensor) -> Tensor:
    """Sum over the vocabulary of the squared mean activation of a batch: [texts, vocabulary] -> a number.

    Paria et al., "Minimizing FLOPs to learn efficient sparse representations", ICLR 2020.
    """
    return (activations.abs().mean(dim=0) ** 2).sum()


class SparseNetwork(VocabularyNetwork):
    """score = sum over the vocabulary of w_q(v) * w_d(v), with w(v) = max over positions of log(1 + relu(x_v)).

    x_v = E_v . t(h) + b_v is the logit of word v at a position, special tokens included. E are the encoder's word
    embeddings; t and b are those of a masked language model where the encoder comes with one (`transform`), else the
    identity and a constant. In training, `query_weight` * FLOPS(queries) + `doc_weight` * FLOPS(texts) is added to
    the loss; both weights grow as the square of time over the first `ramp` batches.

    Formal et al., "SPLADE v2: sparse lexical and expansion model for information retrieval", arXiv 2109.10086.

    Attributes:
        query_weight: weight of the penalty on dense queries in training.
        doc_weight: weight of the penalty on dense texts in training.
        ramp: batches over which both weights grow to their full size.
    """

    architecture: ClassVar[str] = "sparse"
    batches: Tensor  # how many were trained on

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477,
        transform: bool = False, query_weight: NonNegative = 3e-4,
        doc_weight: NonNegative = 1e-4, ramp: Natural = 0,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc, transform)
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

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """Weights of the words: [n, vocabulary]."""
        return self._weights(batch, "query")

    def encode_docs(self, batch: Mapping[str, Tensor]) -> Encoded:
        """Weights of the words: [n, vocabulary]."""
        return self._weights(batch, "doc")

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

    def _weights(self, batch: Mapping[str, Tensor], side: str) -> Encoded:
        found = self.peaks(self.encoder.last(batch), batch["mask"], log_relu)
        if self.training:
            self._seen[side].append(found)
        return {"weights": found}


def log_relu(x: Tensor) -> Tensor:
    """log(1 + max(0, x))."""
    return torch.log1p(torch.relu(x))
