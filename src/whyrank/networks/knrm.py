"""Kernel pooling over word vectors, of words (K-NRM) and of n-grams (Conv-KNRM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from whyrank.core.checks import check_flag, check_whole
from whyrank.core.errors import WhyrankError
from whyrank.core.seeds import generator
from whyrank.networks.batches import Arrays, lengths_mask, padded
from whyrank.networks.encoder import Encoder, WordEncoder
from whyrank.networks.kernels import KernelPooling, cosine_matrix
from whyrank.networks.network import Network
from whyrank.networks.pieces import Ids, Pieces
from whyrank.networks.separate import Encoded, SeparateNetwork
from whyrank.networks.words import Words


class WordNetwork(SeparateNetwork):
    """What both have in common: words instead of pieces, and vectors that training moves at the encoder's rate."""

    scale: ClassVar[str] = "logit"

    @classmethod
    def begin(cls, source: str | Path, layers: Sequence[int] | None = None, most: int | None = None,
              buckets: int = 1000, **settings: Any) -> Network:  # fmt: skip
        """A new network over word vectors, or over the first `most` of them, from what `open_vectors` can open."""
        from whyrank.text.vectors import open_vectors

        if layers is not None:
            raise WhyrankError(f"layers {list(layers)}: {cls.architecture} stands on word vectors, which have none")
        found = open_vectors(str(source))
        return cls.over(found.words[:most], found.matrix[:most], buckets, **settings)

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
        return _word_arrays(queries)

    def doc_arrays(self, docs: Sequence[Ids]) -> Arrays:
        """The words alone."""
        return _word_arrays(docs)

    def encode_docs(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The same as for queries."""
        return self.encode_queries(batch)


class Knrm(WordNetwork):
    """score = w . K + b, where K are soft counts of the cosines of word vectors by 11 Gaussian kernels.

    K_k = sum over the query's words i of log(sum over the text's words j of exp(-(cos_ij - mu_k)^2 / 2 sigma_k^2) +
    1e-6), mu = -0.9, -0.7 ... 0.9 with sigma = 0.1, and mu = 1 with sigma = 0.001. Kernels are trained with
    `trainable`. The paper's tanh around the score is left out: it changes no order, but makes large scores alike.

    Xiong et al., "End-to-end neural ad-hoc ranking with kernel pooling", SIGIR 2017.
    """

    architecture: ClassVar[str] = "knrm"

    def __init__(
        self, encoder: Encoder, pieces: Pieces, max_query: int = 32, max_doc: int = 477, trainable: bool = False
    ) -> None:
        super().__init__(encoder, pieces, max_query, max_doc)
        check_flag("trainable", trainable)
        self.trainable, self.kernels = trainable, KernelPooling(trainable=trainable)
        self.outer = nn.Linear(len(self.kernels), 1)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that make a network of the same shape."""
        return super().settings | {"trainable": self.trainable}

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The vector of each word."""
        return {"vectors": self.encoder.last(batch), "mask": batch["mask"].float()}

    def interact(self, queries: Encoded, docs: Encoded) -> Tensor:
        """The linear layer over soft counts, in single precision."""
        masks = queries["mask"], docs["mask"]
        cosines = cosine_matrix(queries["vectors"], docs["vectors"], *masks)
        return _linear(self.outer, self.kernels(cosines, *masks))


class ConvKnrm(WordNetwork):
    """score = w . K + b, where K are the soft counts of `Knrm` for every pair of n-gram lengths of query and text.

    The n-gram at place i is g_i = relu(F_n [v_i ... v_i+n-1] + c_n) with `filters` numbers, n from 1 to `ngrams`;
    past the end of a text, vectors are 0. Kernels are one set for all pairs of lengths.

    Dai et al., "Convolutional neural networks for soft-matching n-grams in ad-hoc search", WSDM 2018.
    """

    architecture: ClassVar[str] = "conv-knrm"

    def __init__(
        self, encoder: Encoder, pieces: Pieces, max_query: int = 32, max_doc: int = 477, ngrams: int = 3,
        filters: int = 128, trainable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(encoder, pieces, max_query, max_doc)
        check_whole("ngrams", ngrams, 1)
        check_whole("filters", filters, 1)
        check_flag("trainable", trainable)
        self.trainable, self.kernels = trainable, KernelPooling(trainable=trainable)
        self.filters = nn.ModuleList(nn.Conv1d(encoder.width, filters, n + 1) for n in range(ngrams))
        self.outer = nn.Linear(ngrams**2 * len(self.kernels), 1)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that make a network of the same shape."""
        filters = self.filters[0].out_channels
        return super().settings | {"ngrams": len(self.filters), "filters": filters, "trainable": self.trainable}

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The n-grams of each length at each place: [n, places, lengths, filters]."""
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


def _word_arrays(texts: Sequence[Ids]) -> Arrays:
    ids = padded(texts, 0)
    return {"ids": ids, "mask": lengths_mask(texts, ids.shape[1])}
