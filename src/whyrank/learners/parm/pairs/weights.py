"""The weights of a PaRM over a BERT-like encoder as the scorer of term pairs wants them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from whyrank.core import WhyrankError
from whyrank.networks import Network, is_plain

Map = Callable[[Tensor], Tensor]


class Linear(NamedTuple):
    """x -> x weight' + bias."""

    weight: Tensor
    bias: Tensor


class Norm(NamedTuple):
    """Layer normalisation."""

    weight: Tensor
    bias: Tensor
    eps: float


class Layer(NamedTuple):
    """One layer of the encoder; `qkv` makes queries, keys and values in one product."""

    qkv: Linear
    out: Linear
    norm_out: Norm
    up: Linear
    down: Linear
    norm_down: Norm


class Weights(NamedTuple):
    """All that scoring needs.

    Attributes:
        layers: of the encoder.
        heads: of its attention.
        activation: between the two products of a layer.
        erf: whether that is GELU by the error function.
        embed: embeddings of (pieces, positions, types), normalised.
        head: from the last states of [CLS] to logits, as a list of layers and what comes after each; the last one is
            in single precision, so that pairs are not tied.
    """

    layers: list[Layer]
    heads: int
    activation: Map
    erf: bool
    embed: Callable[[Tensor, Tensor, Tensor], Tensor]
    head: list[tuple[Linear, Map]]

    @property
    def width(self) -> int:
        """Of the hidden states."""
        return int(self.layers[0].out.weight.shape[0])


def can_be_fused(network: Network) -> bool:
    """Whether the encoder is a stack of BERT's layers, and the head one of PaRM's."""
    model = getattr(network.encoder, "model", None)
    return network.architecture == "parm" and model is not None and is_plain(model)


def weights_of(network: Any, device: str, kind: torch.dtype) -> Weights:
    """The weights of a network on a device."""
    if not can_be_fused(network):
        raise WhyrankError("term pairs are scored fast for a parm network over a BERT-like encoder only")
    model = network.encoder.model

    def put(tensor: Tensor) -> Tensor:
        return tensor.detach().to(device, kind).contiguous()

    def linear(*modules: Any) -> Linear:
        return Linear(put(torch.cat([m.weight for m in modules])), put(torch.cat([m.bias for m in modules])))

    layers = [_layer(layer, linear, put) for layer in model.encoder.layer]
    act, name = model.encoder.layer[0].intermediate.intermediate_act_fn, model.config.hidden_act
    heads = model.encoder.layer[0].attention.self.num_attention_heads
    return Weights(layers, heads, act, name == "gelu", _embedder(model, device, kind), _head(network, linear, device))


def _layer(layer: Any, linear: Callable[..., Linear], put: Map) -> Layer:
    own, after, ffn = layer.attention.self, layer.attention.output, layer.output

    def norm(module: Any) -> Norm:
        return Norm(put(module.weight), put(module.bias), float(module.eps))

    qkv = linear(own.query, own.key, own.value)
    up, down = linear(layer.intermediate.dense), linear(ffn.dense)
    return Layer(qkv, linear(after.dense), norm(after.LayerNorm), up, down, norm(ffn.LayerNorm))


def _embedder(model: Any, device: str, kind: torch.dtype) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Embeddings in single precision, then in the format of all else."""
    own = model.embeddings
    words, places, types = (
        part.weight.detach().to(device, torch.float32)
        for part in (own.word_embeddings, own.position_embeddings, own.token_type_embeddings)
    )
    weight, bias = (part.detach().to(device, torch.float32) for part in (own.LayerNorm.weight, own.LayerNorm.bias))

    def embed(pieces: Tensor, positions: Tensor, kinds: Tensor) -> Tensor:
        sums = words[pieces] + places[positions] + types[kinds.clamp(max=len(types) - 1)]
        return torch.nn.functional.layer_norm(sums, weight.shape, weight, bias, own.LayerNorm.eps).to(kind)

    return embed


def _head(network: Any, linear: Callable[..., Linear], device: str) -> list[tuple[Linear, Map]]:
    deep: list[tuple[Linear, Map]] = []
    if network.head == "deep":
        deep = [(linear(network.inner), torch.tanh), (linear(network.middle), torch.relu)]
    parts = network.outer.weight, network.outer.bias
    exact = Linear(*(part.detach().to(device, torch.float32) for part in parts))
    return [*deep, (exact, _same)]


def _same(states: Tensor) -> Tensor:
    return states
