"""EPIC: importance of the query's terms against an expansion of the text over the whole vocabulary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from whyrank.core import Share, Whole
from whyrank.networks.encoder import Encoder
from whyrank.networks.separate import Encoded
from whyrank.networks.sparse import VocabularyNetwork
from whyrank.networks.tokens import Arrays, Ids, ModelTokenizer


class EpicNetwork(VocabularyNetwork):
    """score = sum over the query's tokens i of a(u . h_i) * phi(q_i), with a(x) = log(1 + softplus(x)).

    phi(v) = sigmoid(c . h_CLS) * max over the text's tokens j of a(w . h_j) * a(E_v . t(h_j) + b_v): the quality of
    the text, the importance of its tokens and what each of them expands to. E are the encoder's word embeddings; t
    and b are those of a masked language model where the encoder comes with one (`transform`), else the identity and
    0. Over a causal encoder [SEP] stands for [CLS]. With `top`, only so many largest values of phi are kept, and the
    rest are 0. u, w and c have a bias each.

    MacAvaney et al., "Expansion via prediction of importance with contextualization", SIGIR 2020; a() around the
    expansion is what its released code does.

    Attributes:
        top: how many values of the expansion of a text are kept, the largest; by default all.
    """

    architecture: ClassVar[str] = "epic"

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477,
        transform: bool = False, top: Whole | None = None, dropout: Share = 0.1,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc, transform)
        self.top, self.dropout = top, nn.Dropout(dropout)
        self.query_importance, self.doc_importance, self.quality = (_even(encoder.width) for _ in range(3))

    def query_arrays(self, queries: Sequence[Ids]) -> Arrays:
        """[CLS] query [SEP], or text instead of query; `own` says which positions are not [CLS] and [SEP]."""
        arrays = super().query_arrays(queries)
        own = arrays["mask"].copy()
        own[:, 0] = 0
        own[range(len(queries)), [len(ids) + 1 for ids in queries]] = 0
        return arrays | {"own": own}

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The tokens of each query, and their importance."""
        states = self.encoder.last(batch)
        importance = log_softplus(self.query_importance(self.dropout(states)).squeeze(2).float())
        return {"ids": batch["ids"] * batch["own"], "importance": importance * batch["own"]}

    def encode_docs(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The vector phi of each text: [n, vocabulary]."""
        states = self.encoder.last(batch)
        importance = log_softplus(self.doc_importance(self.dropout(states)).squeeze(2).float())
        quality = torch.sigmoid(self.quality(self.encoder.pool(states, batch)).float())
        found = quality * self.peaks(states, batch["own"], log_softplus, importance)
        if self.top is not None:
            best = found.topk(min(self.top, found.shape[1]), dim=1)
            found = torch.zeros_like(found).scatter(1, best.indices, best.values)
        return {"weights": found}

    def interact(self, queries: Encoded, docs: Encoded) -> Tensor:
        """The product of the two vectors over the vocabulary, taken at the tokens of the query."""
        return (docs["weights"].gather(1, queries["ids"]) * queries["importance"]).sum(dim=1)


def log_softplus(x: Tensor) -> Tensor:
    """a(x) = log(1 + log(1 + exp(x))): never negative, without an upper end, and slow to grow."""
    return torch.log1p(functional.softplus(x))


def _even(width: int) -> nn.Linear:
    """A layer that at first gives every state the same value, so that an encoder's expansions rank from the start."""
    made = nn.Linear(width, 1)
    nn.init.zeros_(made.weight)
    nn.init.zeros_(made.bias)
    return made
