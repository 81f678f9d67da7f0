"""Neural Model 1 as a layer: T(q|d), how probable a query piece is as the translation of a piece of a text.

score = sum over the query's pieces q of ln(max(eps, sum over the text's pieces d of T(q|d) / |D|))

    T(q|d) = sigmoid(F3 relu(F2 relu(F1 [x; y; x * y])))  with x = Pq(tanh(LN(q))) and y = Pd(tanh(LN(d)))

for the vectors of q and d, or T(q|d) = (cos(q, d) + 1) / 2 in the `cosine` variant. With p_self, T(t|t) = p_self for
a piece and itself, and all other T are multiplied by 1 - p_self. T is not normalised over q.

Boytsov and Kolter, "Exploring classic and neural lexical translation models for information retrieval", ECIR 2021.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from whyrank.core.checks import check_number, check_whole
from whyrank.core.errors import UnknownName, WhyrankError
from whyrank.core.protocols import Floats
from whyrank.networks.batches import Arrays, tensors
from whyrank.networks.pieces import Ids, Pieces

VARIANTS = ("network", "cosine")
WIDTHS = (128, 128, 64)  # of Pq and Pd, of F1, of F2


class Compared(NamedTuple):
    """The pieces of n queries and n texts, each query beside its text.

    Attributes:
        translations: T(q|d), self-translation included, [n, q, d].
        query_ids: numbers of the query's pieces, [n, q].
        doc_ids: numbers of the text's pieces, [n, d].
        counts: how much each query piece counts, [n, q]; 0 where there is none.
        shares: P(d|D) of each piece of the text, [n, d]; 0 where there is none.
    """

    translations: Tensor
    query_ids: Tensor
    doc_ids: Tensor
    counts: Tensor
    shares: Tensor


class Matrix(NamedTuple):
    """What a network reads in one query and one text.

    Attributes:
        query_pieces: one for each row.
        doc_pieces: one for each column.
        translations: T(q|d), self-translation included.
        counts: how much each query piece counts.
        shares: P(d|D) of each piece of the text; they add up to 1.
    """

    query_pieces: list[str]
    doc_pieces: list[str]
    translations: Floats
    counts: Floats
    shares: Floats


class TranslatingNetwork(Protocol):
    """A network whose score is that of the layer."""

    pieces: Pieces

    def query_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Queries as pieces."""
        ...

    def doc_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Texts as pieces."""
        ...

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """A batch of pairs."""
        ...

    def compared(self, batch: Mapping[str, Tensor]) -> Compared:
        """The pieces of each pair, and T of each two."""
        ...


class Translating(nn.Module):
    """The layer, over vectors of some width."""

    def __init__(
        self, width: int, variant: str = "network", p_self: float | None = 0.3, widths: Sequence[int] = WIDTHS,
        eps: float = 1e-8, dropout: float = 0.0, start: float = -3.0,
    ) -> None:  # fmt: skip
        """Make the layer with new weights.

        Args:
            width: of the vectors that it compares.
            variant: `network` or `cosine`.
            p_self: T(t|t); None leaves that to the network.
            widths: of Pq and Pd, of F1, of F2.
            eps: the least probability of a query piece.
            dropout: of what is made of each vector alone.
            start: the bias of F3 in a new layer, about the logit of each T(q|d) before any training.
        """
        super().__init__()
        _check(variant, p_self, widths, eps, dropout, start)
        self.variant, self.p_self, self.widths, self.eps = variant, p_self, tuple(widths), float(eps)
        self.start = float(start)
        self.dropout = nn.Dropout(dropout)
        if variant == "network":
            self._build(width)

    def _build(self, width: int) -> None:
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

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments besides the width that make a layer of the same shape."""
        found = {"variant": self.variant, "p_self": self.p_self, "widths": list(self.widths), "eps": self.eps}
        return found | {"dropout": self.dropout.p, "start": self.start}

    def query(self, vectors: Tensor) -> Tensor:
        """What is made of the vectors of query pieces, whatever the text."""
        if self.variant == "cosine":
            return functional.normalize(vectors, dim=-1)
        found: Tensor = self.dropout(self.query_projection(torch.tanh(self.query_norm(vectors))))
        return found

    def doc(self, vectors: Tensor) -> Tensor:
        """What is made of the vectors of a text's pieces, whatever the query."""
        if self.variant == "cosine":
            return functional.normalize(vectors, dim=-1)
        found: Tensor = self.dropout(self.doc_projection(torch.tanh(self.doc_norm(vectors))))
        return found

    def every(self, query: Tensor, doc: Tensor) -> Tensor:
        """T(q|d) of each with each, before self-translation: [..., q, width] and [..., d, width] give [..., q, d].

        F1 [x; y; x * y] is (A x + b) + (B + C diag(x)) y, one matrix product for a query piece and all of a text.
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
        """T with p_self where a piece meets itself."""
        return found if self.p_self is None else torch.where(same, self.p_self, found * (1 - self.p_self))

    def forward(self, compared: Compared) -> Tensor:
        """One log score per query and text; the sums are in double precision."""
        real = (compared.counts > 0).unsqueeze(2) & (compared.shares > 0).unsqueeze(1)
        found = compared.translations.masked_fill(~real, 0.0).double()
        likely = (found @ compared.shares.double().unsqueeze(2)).squeeze(2)
        return (likely.clamp(min=self.eps).log() * compared.counts).sum(dim=1)


def matrix(network: TranslatingNetwork, query: str, text: str, device: Any = "cpu") -> Matrix:
    """What a network reads in a query and a text, and T for each two pieces."""
    batch = tensors(network.arrays(network.query_ids([query]), network.doc_ids([text])), device)
    found = Compared(*(part[0].detach().cpu() for part in network.compared(batch)))
    counts, shares, cells = (part.double().numpy() for part in (found.counts, found.shares, found.translations))
    rows, columns = np.flatnonzero(counts), np.flatnonzero(shares)
    asked, told = (
        network.pieces.spell(ids[at].tolist()) for ids, at in ((found.query_ids, rows), (found.doc_ids, columns))
    )
    return Matrix(asked, told, cells[np.ix_(rows, columns)], counts[rows], shares[columns])


def _check(
    variant: str, p_self: float | None, widths: Sequence[int], eps: float, dropout: float, start: float
) -> None:
    if variant not in VARIANTS:
        raise UnknownName("variant", str(variant), VARIANTS)
    if p_self is not None:
        check_number("p_self", p_self, 0, 1)
    if not isinstance(widths, Sequence) or isinstance(widths, str) or len(widths) != len(WIDTHS):
        raise WhyrankError(f"widths must be three whole numbers, such as {list(WIDTHS)}, not {widths!r}")
    for width in widths:
        check_whole("widths", width, 1)
    check_number("eps", eps, 0, 1, strict=True)
    check_number("dropout", dropout, 0, 1)
    check_number("start", start, -math.inf)
