"""CEDR: classic interaction networks over the contextual states of every layer, together with [CLS].

MacAvaney et al., "CEDR: contextualized embeddings for document ranking", SIGIR 2019. Each layer of the encoder, its
embeddings included, gives one channel: the matrix of cosines between the tokens of query and text. For a text of
several chunks the columns of all chunks stand side by side, the query's states are those read with the first chunk,
and [CLS] is the mean over the chunks; over a causal encoder the last [SEP] stands for [CLS]. Padding counts nowhere,
so that a pair has the same score in any batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from whyrank.core import Whole
from whyrank.networks.chunks import ChunkedNetwork, first_states, reading
from whyrank.networks.encoder import Encoder
from whyrank.networks.knrm import KernelPooling, cosine_matrix
from whyrank.networks.tokens import ModelTokenizer

BINS = 11
_HIDDEN = 5  # of the DRMM head
_NGRAMS, _FILTERS, _BEST, _LAYER = (1, 2, 3), 32, 2, 32  # of the PACRR head


class CedrNetwork(ChunkedNetwork):
    """What the three have in common: channels of cosines, and [CLS]. An architecture overrides `build` and `head`.

    Attributes:
        through: whether the loss reaches the encoder through the cosines, besides through [CLS].
    """

    through: ClassVar[bool] = True

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477, chunks: Whole = 3
    ) -> None:
        super().__init__(encoder, tokenizer, max_query, max_doc, chunks)
        self.channels = encoder.depth + 1
        self.build(encoder.width)

    def build(self, width: int) -> None:
        """Make the layers of the head, for [CLS] states of some width."""
        raise NotImplementedError

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """One logit per pair; everything after the encoder in single precision."""
        layers = self.encoder.all(batch)
        with torch.autocast(layers[-1].device.type, enabled=False):
            with torch.set_grad_enabled(torch.is_grad_enabled() and self.through):
                read = [reading(states, batch) for states in layers]
                cosines = [cosine_matrix(r.query, r.doc, r.query_mask, r.doc_mask) for r in read]
                similarity = torch.stack(cosines, dim=1)
            first = first_states(self.encoder.pool(layers[-1], batch).float(), batch)
            return self.head(first, similarity, batch["query"] >= 0, batch["doc"] >= 0)

    def head(self, first: Tensor, similarity: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
        """Scores from [CLS] [n, width] and cosines [n, channels, q, d]."""
        raise NotImplementedError


class CedrKnrmNetwork(CedrNetwork):
    """score = w . [kernels of every channel, h] + b with 11 trained Gaussian kernels and h the state of [CLS].

    The kernels (one set for all channels) lie at -0.9, -0.7 ... 0.9 with width 0.1, and at 1 with width 0.001.
    """

    architecture: ClassVar[str] = "cedr-knrm"

    def build(self, width: int) -> None:
        """Make the layers of the head."""
        self.kernels = KernelPooling(trainable=True)
        self.outer = nn.Linear(self.channels * len(self.kernels) + width, 1)

    def head(self, first: Tensor, similarity: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
        """The linear layer over soft counts and [CLS]."""
        counts = self.kernels(similarity, query_mask, doc_mask).flatten(1)
        found: Tensor = self.outer(torch.cat([counts, first], dim=1))
        return found.squeeze(1)


class CedrDrmmNetwork(CedrNetwork):
    """score = sum over the query's tokens of MLP([log counts of every channel, h]), h the state of [CLS].

    The log counts of a token are log(c + 1e-5) for the number c of cosines in each of 11 bins (`log_counts`); the MLP
    has 5 hidden units with ReLU. Counts have no gradient: the loss reaches the encoder through [CLS] alone. A cosine
    that lies within rounding of the edge of a bin may change it with the batch, as in any histogram.

    The head: Guo et al., "A deep relevance matching model for ad-hoc retrieval", CIKM 2016.
    """

    architecture: ClassVar[str] = "cedr-drmm"
    through: ClassVar[bool] = False

    def build(self, width: int) -> None:
        """Make the layers of the head."""
        self.inner = nn.Linear(self.channels * BINS + width, _HIDDEN)
        self.outer = nn.Linear(_HIDDEN, 1)

    def head(self, first: Tensor, similarity: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
        """The sum over the query's own tokens."""
        counts = log_counts(similarity, doc_mask).transpose(1, 2).flatten(2)
        features = torch.cat([counts, first.unsqueeze(1).expand(-1, counts.shape[1], -1)], dim=2)
        found: Tensor = self.outer(torch.relu(self.inner(features))).squeeze(2)
        return (found * query_mask).sum(dim=1)


class CedrPacrrNetwork(CedrNetwork):
    """score = MLP([best 2 matches of every n-gram and query token, h]), h the state of [CLS].

    For n = 1, 2, 3: 32 filters of n x n over all channels with ReLU, the best filter at each position, the best 2
    positions of the text for each of `max_query` tokens of the query; windows may reach over the end of query or
    text, where cosines are 0, and positions without a token of both give 0. The MLP has layers of 32, 32 and 1 with
    ReLU between.

    The head: Hui et al., "PACRR: a position-aware neural IR model for relevance matching", EMNLP 2017.
    """

    architecture: ClassVar[str] = "cedr-pacrr"

    def build(self, width: int) -> None:
        """Make the layers of the head."""
        self.filters = nn.ModuleList(nn.Conv2d(self.channels, _FILTERS, n) for n in _NGRAMS)
        features = self.max_query * len(_NGRAMS) * _BEST + width
        self.mlp = nn.Sequential(
            nn.Linear(features, _LAYER), nn.ReLU(), nn.Linear(_LAYER, _LAYER), nn.ReLU(), nn.Linear(_LAYER, 1)
        )

    def head(self, first: Tensor, similarity: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
        """The MLP over the best matches and [CLS]."""
        real = query_mask.unsqueeze(2) & doc_mask.unsqueeze(1)
        best = []
        for n, filters in zip(_NGRAMS, self.filters, strict=True):
            matches = torch.relu(filters(functional.pad(similarity, (0, n - 1, 0, n - 1)))).amax(dim=1)
            wide = functional.pad(matches.masked_fill(~real, 0.0), (0, max(0, _BEST - matches.shape[2])))
            best.append(wide.topk(_BEST, dim=2).values)
        by_token = torch.cat(best, dim=2)
        missing = self.max_query - by_token.shape[1]
        features = torch.cat([functional.pad(by_token, (0, 0, 0, missing)).flatten(1), first], dim=1)
        found: Tensor = self.mlp(features)
        return found.squeeze(1)


def log_counts(similarity: Tensor, doc_mask: Tensor) -> Tensor:
    """log(c + 1e-5) of how many cosines of a row fall into each bin, [n, channels, q, bins].

    The bin of s is floor((s + 1.000001) / 2 * (BINS - 1)): the last one is for exact matches, rounding allowed.
    """
    with torch.no_grad():
        positions = ((similarity + 1.000001) / 2 * (BINS - 1)).long().clamp(0, BINS - 1)
        ones = doc_mask.to(similarity.dtype)[:, None, None].expand_as(similarity)
        counts = similarity.new_zeros((*similarity.shape[:3], BINS)).scatter_add_(3, positions, ones)
        return (counts + 1e-5).log()
