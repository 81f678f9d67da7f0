"""A PaRM over pairs of one length, without anything that a score does not need.

Queries, keys and values of the first layer are looked up: they depend on (piece, position, type) alone. The last
layer computes [CLS] only. Nothing is padded or masked. What some device does best in another way is a method of
`Operations`.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from whyrank.learners.parm.pairs.weights import Layer, Linear, Norm, Weights


class Operations:
    """The steps of a layer in plain torch, which runs everywhere; `attention` is matmul or broadcast."""

    def __init__(self, weights: Weights, attention: str = "matmul") -> None:
        self.weights, self.attention = weights, attention
        self.size = weights.width // weights.heads

    def attend(self, qkv: Tensor, length: int) -> Tensor:
        """What the `length` positions of each text take from each other: [tokens, 3 widths] to [tokens, width]."""
        query, key, value = qkv.view(-1, length, 3, self.weights.heads, self.size).unbind(2)
        return self._mixed(query, key, value).flatten(0, 1)

    def attend_rows(self, table: Tensor, rows: Tensor) -> Tensor:
        """The same where queries, keys and values are rows of a table: `rows` is [texts, length]."""
        return self.attend(table[rows.flatten()], rows.shape[1])

    def attend_first(self, query: Tensor, keys: Tensor, length: int) -> Tensor:
        """What the first position of each text takes: query [texts, width], keys and values [tokens, 2 widths]."""
        key, value = keys.view(-1, length, 2, self.weights.heads, self.size).unbind(2)
        return self._mixed(query.view(-1, 1, self.weights.heads, self.size), key, value).squeeze(1)

    def project(self, mixed: Tensor, linear: Linear, residual: Tensor, norm: Norm) -> Tensor:
        """Norm(residual + linear(mixed))."""
        return normed(residual + functional.linear(mixed, *linear), norm)

    def project_rows(self, mixed: Tensor, linear: Linear, table: Tensor, rows: Tensor, norm: Norm) -> Tensor:
        """The same where the residual states are rows of a table."""
        return self.project(mixed, linear, table[rows.flatten()], norm)

    def feed(self, states: Tensor, layer: Layer) -> Tensor:
        """The second half of a layer."""
        inner = self.weights.activation(functional.linear(states, *layer.up))
        return self.project(inner, layer.down, states, layer.norm_down)

    def _mixed(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attention over [texts, positions, heads, size]; gives [texts, positions, width]."""
        scale = self.size**-0.5
        if self.attention == "broadcast":  # one kernel where torch.compile fuses it, much memory where it does not
            shares = torch.softmax((query.unsqueeze(2) * key.unsqueeze(1)).sum(-1) * scale, dim=2)
            return (shares.unsqueeze(-1) * value.unsqueeze(1)).sum(2).flatten(-2)
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        shares = torch.softmax(query @ key.transpose(-1, -2) * scale, dim=-1)
        return (shares @ value).transpose(1, 2).flatten(-2)


def normed(states: Tensor, norm: Norm) -> Tensor:
    """Layer normalisation."""
    return functional.layer_norm(states, norm.weight.shape, norm.weight, norm.bias, norm.eps)


def logits(operations: Operations, qkv: Tensor, states: Tensor, rows: Tensor) -> Tensor:
    """One logit per text in single precision.

    Args:
        operations: how the steps are computed.
        qkv: queries, keys and values of the first layer: a row for each (piece, position, type).
        states: the embeddings, in the same rows.
        rows: [texts, length].
    """
    weights, (texts, length) = operations.weights, rows.shape
    *inner, last = weights.layers
    if not inner:
        query, keys = qkv[rows[:, 0]][:, : weights.width], qkv[rows.flatten()][:, weights.width :]
        return _scored(operations, query, keys.contiguous(), states[rows[:, 0]], length)
    x = operations.attend_rows(qkv, rows)
    x = operations.project_rows(x, inner[0].out, states, rows, inner[0].norm_out)
    x = operations.feed(x, inner[0])
    for layer in inner[1:]:
        mixed = operations.attend(functional.linear(x, *layer.qkv), length)
        x = operations.feed(operations.project(mixed, layer.out, x, layer.norm_out), layer)
    first = x.view(texts, length, -1)[:, 0].contiguous()
    asking, answering = _split(last.qkv, weights.width)
    return _scored(operations, functional.linear(first, *asking), functional.linear(x, *answering), first, length)


def _scored(operations: Operations, query: Tensor, keys: Tensor, first: Tensor, length: int) -> Tensor:
    """The last layer at the first position, and the head."""
    last = operations.weights.layers[-1]
    mixed = operations.attend_first(query, keys, length)
    x = operations.feed(operations.project(mixed, last.out, first, last.norm_out), last)
    for linear, after in operations.weights.head:
        x = after(functional.linear(x.to(linear.weight.dtype), *linear))
    return x.squeeze(1)


def _split(qkv: Linear, width: int) -> tuple[Linear, Linear]:
    return Linear(qkv.weight[:width], qkv.bias[:width]), Linear(qkv.weight[width:], qkv.bias[width:])
