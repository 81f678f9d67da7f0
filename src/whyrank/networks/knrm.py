"""Kernel pooling over word vectors, of words (K-NRM) and of n-grams (Conv-KNRM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from whyrank.core import Whole, WhyrankError, generator
from whyrank.networks.encoder import Encoder, WordEncoder
from whyrank.networks.network import Network
from whyrank.networks.separate import Encoded, SeparateNetwork
from whyrank.networks.tokens import Arrays, Ids, ModelTokenizer, Words, lengths_mask, padded

MUS = (-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
SIGMAS = (*(0.1,) * 10, 0.001)
NARROWEST = 1e-4  # a trained width that came closer to zero would divide by it
SMALL = 1e-6


def cosine_matrix(query: Tensor, doc: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
    """Cosines a . b / ((|a| + 1e-9) (|b| + 1e-9)) of [n, q, width] and [n, d, width]: [n, q, d], 0 at padding.

    Single precision even under autocast: the kernel for exact matches is narrower than a step of bfloat16.
    """
    with torch.autocast(query.device.type, enabled=False):
        a, b = (v.float() / (v.float().norm(dim=2, keepdim=True) + 1e-9) for v in (query, doc))
        real = query_mask.bool().unsqueeze(2) & doc_mask.bool().unsqueeze(1)
        return torch.bmm(a, b.transpose(1, 2)).masked_fill(~real, 0.0)


class KernelPooling(nn.Module):
    """K_k = sum over the query of log(sum over the text of exp(-(s - mu_k)^2 / (2 sigma_k^2)) + 1e-6).

    Padding counts neither in the query nor in the text, so that a batch does not change the features of a pair.

    Xiong et al., "End-to-end neural ad-hoc ranking with kernel pooling", SIGIR 2017.
    """

    def __init__(self, trainable: bool = False) -> None:
        """Kernels at `MUS` of widths `SIGMAS`; `trainable` lets training move both."""
        super().__init__()
        self.mus, self.sigmas = (
            nn.Parameter(torch.tensor(values), requires_grad=trainable) for values in (MUS, SIGMAS)
        )

    def __len__(self) -> int:
        return len(self.mus)

    def forward(self, similarity: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
        """[n, q, d] -> [n, kernels], or with channels [n, c, q, d] -> [n, c, kernels]; masks [n, q] and [n, d]."""
        with torch.autocast(similarity.device.type, enabled=False):
            similarity, query_mask, doc_mask = similarity.float(), query_mask.float(), doc_mask.float()
            if similarity.ndim == 4:
                query_mask, doc_mask = query_mask.unsqueeze(1), doc_mask.unsqueeze(1)
            found = []
            for k in range(len(self)):  # one kernel at a time saves memory
                factor = -0.5 / self.sigmas[k].abs().clamp(min=NARROWEST).square()
                near = ((similarity - self.mus[k]).square() * factor).exp()
                found.append(torch.matmul(near, doc_mask.unsqueeze(-1)).squeeze(-1))
            logs = (torch.stack(found, dim=-1) + SMALL).log()
            return (logs * query_mask.unsqueeze(-1)).sum(dim=-2)


class WordNetwork(SeparateNetwork):
    """What both have in common: words instead of tokens, and vectors that training moves at the encoder's rate.

    Attributes:
        trainable: whether training moves the kernels.
    """

    scale: ClassVar[str] = "logit"

    @classmethod
    def over(cls, words: Sequence[str], matrix: npt.ArrayLike, buckets: int = 1000, seed: int = 0,
             **settings: Any) -> Network:  # fmt: skip
        """A new network over the vectors of some words; those of unknown words are drawn with the same spread."""
        known = np.asarray(matrix, dtype=np.float32)
        if len(known) != len(words) or known.ndim != 2 or not known.size:
            raise WhyrankError(f"{len(words):,} words need as many vectors, not an array of shape {known.shape}")
        drawn = generator(seed, "word vectors").standard_normal((buckets, known.shape[1])) * known.std()
        rows = np.concatenate([np.zeros((1, known.shape[1])), known, drawn]).astype(np.float32)
        encoder = WordEncoder(*rows.shape)
        encoder.vectors.weight.data.copy_(torch.from_numpy(rows))
        return cls(encoder, Words(words, buckets), **settings)

    def query_arrays(self, queries: Sequence[Ids]) -> Arrays:
        """The words alone."""
        ids = padded(queries, 0)
        return {"ids": ids, "mask": lengths_mask(queries, ids.shape[1])}


class KnrmNetwork(WordNetwork):
    """score = w . K + b, where K are soft counts of the cosines of word vectors by 11 Gaussian kernels.

    K_k = sum over the query's words i of log(sum over the text's words j of exp(-(cos_ij - mu_k)^2 / 2 sigma_k^2) +
    1e-6), mu = -0.9, -0.7 ... 0.9 with sigma = 0.1, and mu = 1 with sigma = 0.001. Kernels are trained with
    `trainable`. The paper's tanh around the score is left out: it changes no order, but makes large scores alike.

    Xiong et al., "End-to-end neural ad-hoc ranking with kernel pooling", SIGIR 2017.
    """

    architecture: ClassVar[str] = "knrm"

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer,
        max_query: int = 32, max_doc: int = 477, trainable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc)
        self.trainable, self.kernels = trainable, KernelPooling(trainable=trainable)
        self.outer = nn.Linear(len(self.kernels), 1)

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The vector of each word."""
        return {"vectors": self.encoder.last(batch), "mask": batch["mask"].float()}

    def interact(self, queries: Encoded, docs: Encoded) -> Tensor:
        """The linear layer over soft counts, in single precision."""
        masks = queries["mask"], docs["mask"]
        cosines = cosine_matrix(queries["vectors"], docs["vectors"], *masks)
        return _linear(self.outer, self.kernels(cosines, *masks))


class ConvKnrmNetwork(WordNetwork):
    """score = w . K + b, where K are the soft counts of K-NRM for every pair of n-gram lengths of query and text.

    The n-gram at position i is g_i = relu(F_n [v_i ... v_i+n-1] + c_n) with `filters` numbers, n from 1 to `ngrams`;
    past the end of a text, vectors are 0. Kernels are one set for all pairs of lengths.

    Dai et al., "Convolutional neural networks for soft-matching n-grams in ad-hoc search", WSDM 2018.

    Attributes:
        ngrams: the greatest length of an n-gram.
        filters: numbers in the vector of an n-gram.
    """

    architecture: ClassVar[str] = "conv-knrm"

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477, ngrams: Whole = 3,
        filters: Whole = 128, trainable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc)
        self.ngrams, self.trainable, self.kernels = ngrams, trainable, KernelPooling(trainable=trainable)
        self.filters = nn.ModuleList(nn.Conv1d(encoder.width, filters, n + 1) for n in range(ngrams))
        self.outer = nn.Linear(ngrams**2 * len(self.kernels), 1)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that make a network of the same shape."""
        return super().settings | {"filters": self.filters[0].out_channels}

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The n-grams of each length at each position: [n, positions, lengths, filters]."""
        vectors = self.encoder.last(batch).transpose(1, 2)
        grams = [torch.relu(f(functional.pad(vectors, (0, n)))).transpose(1, 2) for n, f in enumerate(self.filters)]
        return {"grams": torch.stack(grams, dim=2), "mask": batch["mask"].float()}

    def interact(self, queries: Encoded, docs: Encoded) -> Tensor:
        """The linear layer over the soft counts of all pairs of lengths, in single precision."""
        masks = queries["mask"], docs["mask"]
        pairs = [(q, d) for q in queries["grams"].unbind(2) for d in docs["grams"].unbind(2)]
        counts = [self.kernels(cosine_matrix(q, d, *masks), *masks) for q, d in pairs]
        return _linear(self.outer, torch.cat(counts, dim=1))


def _linear(layer: nn.Linear, features: Tensor) -> Tensor:
    with torch.autocast(features.device.type, enabled=False):
        found: Tensor = layer(features)
    return found.squeeze(1)
