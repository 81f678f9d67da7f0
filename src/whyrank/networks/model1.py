"""Neural Model 1: T(q|d) of tokens without context, or of tokens as BERT reads them, query and text together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from whyrank.core import Floats, Share, Whole, WhyrankError, Within, check
from whyrank.networks.chunks import ChunkedNetwork, reading
from whyrank.networks.encoder import Encoder, WordEncoder
from whyrank.networks.network import Network, arguments_of
from whyrank.networks.separate import Encoded, SeparateNetwork
from whyrank.networks.tokens import Arrays, Ids, ModelTokenizer, padded, tensors

# Neural Model 1 as a layer: T(q|d), how probable a query token is as the translation of a token of a text.
#
# score = sum over the query's tokens q of ln(max(eps, sum over the text's tokens d of T(q|d) / |D|))
#
#     T(q|d) = sigmoid(F3 relu(F2 relu(F1 [x; y; x * y])))  with x = Pq(tanh(LN(q))) and y = Pd(tanh(LN(d)))
#
# for the vectors of q and d, or T(q|d) = (cos(q, d) + 1) / 2 in the `cosine` variant. With p_self, T(t|t) = p_self
# for a token and itself, and all other T are multiplied by 1 - p_self. T is not normalised over q.
#
# Boytsov and Kolter, "Exploring classic and neural lexical translation models for information retrieval", ECIR 2021.

Variant = Literal["network", "cosine"]
WIDTHS = (128, 128, 64)  # of Pq and Pd, of F1, of F2


class TokenPairs(NamedTuple):
    """The tokens of n queries and n texts, each query beside its text.

    Attributes:
        translations: T(q|d), self-translation included, [n, q, d].
        query_ids: numbers of the query's tokens, [n, q].
        doc_ids: numbers of the text's tokens, [n, d].
        counts: how much each query token counts, [n, q]; 0 where there is none.
        shares: P(d|D) of each token of the text, [n, d]; 0 where there is none.
    """

    translations: Tensor
    query_ids: Tensor
    doc_ids: Tensor
    counts: Tensor
    shares: Tensor


class Matrix(NamedTuple):
    """The tokens that a network reads of one query and one text, and T for each two of them.

    Attributes:
        query_tokens: one for each row.
        doc_tokens: one for each column.
        translations: T(q|d), self-translation included.
        counts: how much each query token counts.
        shares: P(d|D) of each token of the text; they add up to 1.
    """

    query_tokens: list[str]
    doc_tokens: list[str]
    translations: Floats
    counts: Floats
    shares: Floats


class Translating(nn.Module):
    """The layer, over vectors of some width; its settings are those of `Model1Network`."""

    def __init__(
        self, width: int, variant: Variant = "network", p_self: Share | None = 0.3, widths: Sequence[int] = WIDTHS,
        eps: Within = 1e-8, dropout: Share = 0.0, start: float = -3.0,
    ) -> None:  # fmt: skip
        """Make the layer with new weights."""
        super().__init__()
        if not isinstance(widths, Sequence) or isinstance(widths, str) or len(widths) != len(WIDTHS):
            raise WhyrankError(f"widths must be three whole numbers, such as {list(WIDTHS)}, not {widths!r}")
        for each in widths:
            check("widths", each, Whole)
        self.variant, self.p_self, self.widths, self.eps = variant, p_self, list(widths), float(eps)
        self.start = float(start)
        self.dropout = nn.Dropout(dropout)
        if variant == "cosine":
            return
        projected, inner, outer = self.widths
        self.query_norm, self.doc_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_projection, self.doc_projection = nn.Linear(width, projected), nn.Linear(width, projected)
        self.first, self.second = nn.Linear(3 * projected, inner), nn.Linear(inner, outer)
        self.third = nn.Linear(outer, 1)
        for module in self.children():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.constant_(self.third.bias, self.start)

    def query(self, vectors: Tensor) -> Tensor:
        """X for the vectors of query tokens, whatever the text."""
        if self.variant == "cosine":
            return functional.normalize(vectors, dim=-1)
        found: Tensor = self.dropout(self.query_projection(torch.tanh(self.query_norm(vectors))))
        return found

    def doc(self, vectors: Tensor) -> Tensor:
        """Y for the vectors of a text's tokens, whatever the query."""
        if self.variant == "cosine":
            return functional.normalize(vectors, dim=-1)
        found: Tensor = self.dropout(self.doc_projection(torch.tanh(self.doc_norm(vectors))))
        return found

    def every(self, query: Tensor, doc: Tensor) -> Tensor:
        """T(q|d) of each with each, before self-translation: [..., q, width] and [..., d, width] give [..., q, d].

        F1 [x; y; x * y] is (A x + b) + (B + C diag(x)) y, one matrix product for a query token and all of a text.
        """
        if self.variant == "cosine":
            return (query @ doc.mT + 1) / 2
        a, b, c = self.first.weight.chunk(3, dim=1)
        turned = b + c * query.unsqueeze(-2)
        hidden = torch.unflatten(turned.flatten(-3, -2) @ doc.mT, -2, turned.shape[-3:-1])
        hidden = torch.relu(hidden + functional.linear(query, a, self.first.bias).unsqueeze(-1))
        hidden = torch.relu(self.second.weight @ hidden + self.second.bias[:, None])
        return torch.sigmoid((self.third.weight @ hidden).squeeze(-2) + self.third.bias)

    def aligned(self, query: Tensor, doc: Tensor, left: Tensor, right: Tensor) -> Tensor:
        """T(q|d) of the pairs (query[left[i]], doc[right[i]]), before self-translation."""
        if self.variant == "cosine":
            return ((query[left] * doc[right]).sum(dim=1) + 1) / 2
        a, b, c = self.first.weight.chunk(3, dim=1)
        hidden = functional.linear(query, a, self.first.bias)[left] + functional.linear(doc, b)[right]
        hidden = torch.relu(hidden + functional.linear(query[left] * doc[right], c))
        found: Tensor = self.third(torch.relu(self.second(hidden))).squeeze(1)
        return torch.sigmoid(found)

    def with_self(self, found: Tensor, same: Tensor) -> Tensor:
        """T with p_self where a token meets itself."""
        return found if self.p_self is None else torch.where(same, self.p_self, found * (1 - self.p_self))

    def forward(self, compared: TokenPairs) -> Tensor:
        """One log score per query and text; the sums are in double precision."""
        real = (compared.counts > 0).unsqueeze(2) & (compared.shares > 0).unsqueeze(1)
        found = compared.translations.masked_fill(~real, 0.0).double()
        likely = (found @ compared.shares.double().unsqueeze(2)).squeeze(2)
        return (likely.clamp(min=self.eps).log() * compared.counts).sum(dim=1)


def matrix(network: NeuralModel1Network | BertModel1Network, query: str, text: str, device: Any = "cpu") -> Matrix:
    """The tokens that a network reads of a query and a text, and T for each two of them."""
    batch = tensors(network.arrays(network.query_ids([query]), network.doc_ids([text])), device)
    found = TokenPairs(*(part[0].detach().cpu() for part in network.compare(batch)))
    counts, shares, cells = (part.double().numpy() for part in (found.counts, found.shares, found.translations))
    rows, columns = np.flatnonzero(counts), np.flatnonzero(shares)
    query_tokens, doc_tokens = found.query_ids[rows].tolist(), found.doc_ids[columns].tolist()
    spell = network.tokenizer.spell
    return Matrix(spell(query_tokens), spell(doc_tokens), cells[np.ix_(rows, columns)], counts[rows], shares[columns])


_AT_ONCE = {"cpu": 1 << 14, "cuda": 1 << 20}  # pairs of tokens that are compared at a time


class Model1Network(Network):
    """What both have in common: the layer `Translating`, and its settings.

    Attributes:
        variant: `network` or `cosine`.
        p_self: T(t|t); None leaves that to the network.
        widths: of Pq and Pd, of F1, of F2.
        eps: the least probability of a query token.
        dropout: of x and y.
        start: the bias of F3 in a new layer, about the logit of each T(q|d) before any training.
    """

    scale: ClassVar[str] = "log probability"
    layer: Translating

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that make a network of the same shape."""
        return super().settings | arguments_of(self.layer)


class NeuralModel1Network(Model1Network, SeparateNetwork):
    """Translation without context: a query token and a token of a text have one T(q|d), wherever they stand.

    The layer `Translating` is over two vectors for each token: one as part of queries, one as part of texts. Each
    distinct pair of tokens of a batch is compared once. The score is a logarithm with the base e.
    """

    architecture: ClassVar[str] = "neural-model1"

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477,
        variant: Variant = "network",
        p_self: Share | None = 0.3, widths: Sequence[int] = WIDTHS, eps: Within = 1e-8, dropout: Share = 0.0,
        start: float = -3.0,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc)
        if not isinstance(encoder, WordEncoder) or encoder.vectors.num_embeddings != 1 + 2 * len(tokenizer):
            raise WhyrankError(f"{self.architecture} has vectors of its own for {len(tokenizer):,} tokens, twice")
        self.layer = Translating(encoder.width, variant, p_self, widths, eps, dropout, start)

    @classmethod
    def over_tokenizer(cls, tokenizer: ModelTokenizer, dims: int = 128, **settings: Any) -> Network:
        """A new network with vectors of `dims` numbers for the tokens of a tokenizer."""
        check("dims", dims, Whole)
        encoder = WordEncoder(1 + 2 * len(tokenizer), dims)
        for side in encoder.vectors.weight.data[1:].chunk(2):
            nn.init.xavier_uniform_(side)
        return cls(encoder, tokenizer, **settings)

    def query_arrays(self, queries: Sequence[Ids]) -> Arrays:
        """The distinct tokens of each query, and how often it has them."""
        return _bags(queries)

    def doc_arrays(self, docs: Sequence[Ids]) -> Arrays:
        """The distinct tokens of each text, and what share of it they are."""
        found = _bags(docs)
        lengths = np.maximum(found["weights"].sum(axis=1, keepdims=True), 1)
        return found | {"weights": (found["weights"] / lengths).astype(np.float32)}

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The tokens: without context there is nothing to add."""
        return dict(batch)

    def interact(self, queries: Encoded, docs: Encoded) -> Tensor:
        """The log score of each pair, in single precision but for the sums."""
        found: Tensor = self.layer(self._compare(queries, docs))
        return found

    def compare(self, batch: Mapping[str, Tensor]) -> TokenPairs:
        """The distinct tokens of each pair, and T of each two."""
        return self._compare(*self.encode_pairs(batch))

    def vectors(self, queries: Tensor, docs: Tensor) -> tuple[Tensor, Tensor]:
        """The projected vectors of tokens of queries and of tokens of texts."""
        of_queries = self.encoder.last({"ids": 1 + queries})
        of_docs = self.encoder.last({"ids": 1 + len(self.tokenizer) + docs})
        return self.layer.query(of_queries), self.layer.doc(of_docs)

    def _compare(self, queries: Encoded, docs: Encoded) -> TokenPairs:
        """T of each two tokens of a pair; each distinct pair of tokens is computed once, some at a time."""
        query, doc = queries["ids"].unsqueeze(2), docs["ids"].unsqueeze(1)
        real = (queries["weights"] > 0).unsqueeze(2) & (docs["weights"] > 0).unsqueeze(1)
        found, size = torch.zeros(real.shape, device=real.device), len(self.tokenizer)
        pairs, which = torch.unique((query * size + doc)[real], return_inverse=True)
        with torch.autocast(real.device.type, enabled=False):
            query_ids, left = torch.unique(pairs // size, return_inverse=True)
            doc_ids, right = torch.unique(pairs % size, return_inverse=True)
            vectors = self.vectors(query_ids, doc_ids)
            step = _AT_ONCE.get(real.device.type, _AT_ONCE["cpu"])
            blocks = [slice(start, start + step) for start in range(0, max(len(pairs), 1), step)]
            translations = torch.cat([self.layer.aligned(*vectors, left[at], right[at]) for at in blocks])
            found = self.layer.with_self(found.masked_scatter(real, translations[which]), query == doc)
        return TokenPairs(found, queries["ids"], docs["ids"], queries["weights"], docs["weights"])


def _bags(rows: Sequence[Ids]) -> Arrays:
    """The distinct tokens of each row in order of appearance, and their counts; 0 where there is none."""
    ids, counts = [], []
    for row in rows:
        found, first, times = np.unique(row, return_index=True, return_counts=True)
        order = np.argsort(first)
        ids.append(found[order])
        counts.append(times[order].astype(np.int32))
    return {"ids": padded(ids, 0), "weights": padded(counts, 0).astype(np.float32)}


class BertModel1Network(Model1Network, ChunkedNetwork):
    """The layer `Translating` over the last hidden states of the tokens of query and text; [CLS] is not used.

    One chunk is the short form. With more, the columns of all chunks stand side by side, and the query's states are
    those read with the first chunk. The score is a logarithm with the base e.
    """

    architecture: ClassVar[str] = "bert-model1"

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477, chunks: Whole = 3,
        variant: Variant = "network", p_self: Share | None = 0.3, widths: Sequence[int] = WIDTHS, eps: Within = 1e-8,
        dropout: Share = 0.0, start: float = -3.0,
    ) -> None:  # fmt: skip
        super().__init__(encoder, tokenizer, max_query, max_doc, chunks)
        self.layer = Translating(encoder.width, variant, p_self, widths, eps, dropout, start)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The log score of each pair; everything after the encoder in single precision, but for the sums."""
        found: Tensor = self.layer(self.compare(batch))
        return found

    def compare(self, batch: Mapping[str, Tensor]) -> TokenPairs:
        """The tokens of each pair in their order, and T of each two."""
        read, ids = reading(self.encoder.last(batch).float(), batch), batch["ids"].flatten()
        query, doc = (ids[batch[name].clamp(min=0)] for name in ("query", "doc"))
        with torch.autocast(ids.device.type, enabled=False):
            found = self.layer.every(self.layer.query(read.query), self.layer.doc(read.doc))
            found = self.layer.with_self(found, query.unsqueeze(2) == doc.unsqueeze(1))
        shares = read.doc_mask / read.doc_mask.sum(dim=1, keepdim=True).clamp(min=1)
        return TokenPairs(found, query, doc, read.query_mask.float(), shares)
