"""A PaRM over a BERT-like encoder, computed for pairs of one length without anything that a score does not need.

Queries, keys and values of the first layer are looked up: they depend on (token, position, type) alone. The last
layer computes [CLS] only. Nothing is padded or masked. Attention, and sums with layer normalisation, are Triton
kernels of our own (`kernels`); each length is one static shape, which a GPU replays as a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from whyrank.networks import Network

Map = Callable[[Tensor], Tensor]
_ATTEND = {"tile": 64, "num_warps": 4, "num_stages": 3}
_NORM = {"tile": 8, "num_warps": 4}


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


class NetworkWeights(NamedTuple):
    """All weights that scoring needs."""

    layers: list[Layer]  # of the encoder
    heads: int  # of its attention
    activation: Map  # between the two products of a layer
    embed: Callable[[Tensor, Tensor, Tensor], Tensor]  # embeddings of (tokens, positions, types), normalised
    # from the last states of [CLS] to logits, as a list of layers and what comes after each; the last one is in
    # single precision, so that pairs are not tied
    head: list[tuple[Linear, Map]]

    @property
    def width(self) -> int:
        """Size of the hidden states."""
        return int(self.layers[0].out.weight.shape[0])


def is_supported(network: Network) -> bool:
    """Whether the encoder is a stack of BERT's layers whose attention heads fit the kernels."""
    model = getattr(network.encoder, "model", None)
    if model is None or model.config.model_type not in ("bert", "electra") or hasattr(model, "embeddings_project"):
        return False
    config = model.config
    absolute = getattr(config, "position_embedding_type", "absolute") in ("absolute", None)
    size = config.hidden_size // config.num_attention_heads
    return absolute and not getattr(config, "is_decoder", False) and size >= 16 and size & (size - 1) == 0


def weights_of(network: Any, device: str, kind: torch.dtype) -> NetworkWeights:
    """The weights of a network on a device, in a number format."""
    model = network.encoder.model

    def put(tensor: Tensor) -> Tensor:
        return tensor.detach().to(device, kind).contiguous()

    def linear(*modules: Any) -> Linear:
        return Linear(put(torch.cat([m.weight for m in modules])), put(torch.cat([m.bias for m in modules])))

    def norm(module: Any) -> Norm:
        return Norm(put(module.weight), put(module.bias), float(module.eps))

    layers = []
    for layer in model.encoder.layer:
        own, after, last = layer.attention.self, layer.attention.output, layer.output
        layers.append(Layer(
            linear(own.query, own.key, own.value), linear(after.dense), norm(after.LayerNorm),
            linear(layer.intermediate.dense), linear(last.dense), norm(last.LayerNorm),
        ))  # fmt: skip
    head: list[tuple[Linear, Map]] = []
    if network.head == "deep":
        head = [(linear(network.inner), torch.tanh), (linear(network.middle), torch.relu)]
    outer = Linear(*(part.detach().to(device, torch.float32) for part in (network.outer.weight, network.outer.bias)))
    first = model.encoder.layer[0]
    heads, activation = first.attention.self.num_attention_heads, first.intermediate.intermediate_act_fn
    return NetworkWeights(
        layers, heads, activation, _embedder(model, device, kind), [*head, (outer, lambda states: states)]
    )


def _embedder(model: Any, device: str, kind: torch.dtype) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Embeddings in single precision, then in the format of all else."""
    own = model.embeddings
    parts = own.word_embeddings.weight, own.position_embeddings.weight, own.token_type_embeddings.weight
    words, by_position, types, weight, bias = (
        part.detach().to(device, torch.float32) for part in (*parts, own.LayerNorm.weight, own.LayerNorm.bias)
    )

    def embed(tokens: Tensor, positions: Tensor, kinds: Tensor) -> Tensor:
        sums = words[tokens] + by_position[positions] + types[kinds.clamp(max=len(types) - 1)]
        return functional.layer_norm(sums, weight.shape, weight, bias, own.LayerNorm.eps).to(kind)

    return embed


class Layers:
    """The layers over pairs of one length; the three steps that are kernels are methods of their own."""

    def __init__(self, weights: NetworkWeights) -> None:
        """Take the weights of a network."""
        self.weights, self.size = weights, weights.width // weights.heads

    def logits(self, qkv: Tensor, states: Tensor, rows: Tensor) -> Tensor:
        """One logit per pair in single precision.

        Args:
            qkv: queries, keys and values of the first layer: a row for each (token, position, type).
            states: the embeddings, in the same rows.
            rows: [pairs, length].
        """
        (pairs, length), width = rows.shape, self.weights.width
        *inner, last = self.weights.layers
        if inner:
            flat = rows.reshape(-1)
            x = self.attend(qkv, flat, length)
            x = self.add_norm(functional.linear(x, *inner[0].out), states, flat, inner[0].norm_out)
            x = self._feed(x, inner[0])
            for layer in inner[1:]:
                mixed = self.attend(functional.linear(x, *layer.qkv), None, length)
                x = self._feed(self._project(mixed, layer.out, x, layer.norm_out), layer)
            first = x.view(pairs, length, -1)[:, 0].contiguous()
            query = functional.linear(first, last.qkv.weight[:width], last.qkv.bias[:width])
            keys = functional.linear(x, last.qkv.weight[width:], last.qkv.bias[width:])
        else:
            first, query = states[rows[:, 0]], qkv[rows[:, 0]][:, :width].contiguous()
            keys = qkv[rows.flatten()][:, width:].contiguous()
        x = self._project(self.attend_first(query, keys, length), last.out, first, last.norm_out)
        x = self._feed(x, last)
        for linear, after in self.weights.head:
            x = after(functional.linear(x.to(linear.weight.dtype), *linear))
        return x.squeeze(1)

    def attend(self, qkv: Tensor, rows: Tensor | None, length: int) -> Tensor:
        """Attention within texts of `length` tokens that lie end to end; `rows` picks their tokens from a table."""
        from whyrank.learners.parm.pairs import kernels

        tokens, tile = len(qkv) if rows is None else len(rows), max(_ATTEND["tile"], _power(length))
        out = qkv.new_empty(tokens, self.weights.width)
        kernels.attend[(-(-tokens // (tile // length * length)),)](
            qkv, qkv if rows is None else rows, out, tokens, length, self.size**-0.5, WIDTH=self.weights.width,
            HEADS=self.weights.heads, SIZE=self.size, TILE=tile, GATHERED=rows is not None,
            num_warps=_ATTEND["num_warps"], num_stages=_ATTEND["num_stages"],
        )  # fmt: skip
        return out

    def attend_first(self, query: Tensor, keys: Tensor, length: int) -> Tensor:
        """Attention of the first position of each text: query [texts, width], keys and values [tokens, 2 widths]."""
        from whyrank.learners.parm.pairs import kernels

        tile, out = max(_ATTEND["tile"], _power(length)), torch.empty_like(query)
        kernels.attend_first[(-(-len(query) // (tile // length)),)](
            query, keys, out, len(query), length, self.size**-0.5, WIDTH=self.weights.width, HEADS=self.weights.heads,
            SIZE=self.size, TILE=tile, FIRSTS=max(16, _power(tile // length)),
            num_warps=_ATTEND["num_warps"], num_stages=_ATTEND["num_stages"],
        )  # fmt: skip
        return out

    def add_norm(self, states: Tensor, residual: Tensor, rows: Tensor | None, norm: Norm) -> Tensor:
        """Norm(states + residual); `rows` picks the residual states from a table."""
        from whyrank.learners.parm.pairs import kernels

        out = torch.empty_like(states)
        kernels.add_norm[(-(-len(out) // _NORM["tile"]),)](
            states, residual, residual if rows is None else rows, norm.weight, norm.bias, out, len(out), norm.eps,
            WIDTH=out.shape[1], BLOCK=_power(out.shape[1]), TILE=_NORM["tile"], GATHERED=rows is not None,
            num_warps=_NORM["num_warps"],
        )  # fmt: skip
        return out

    def _project(self, mixed: Tensor, linear: Linear, residual: Tensor, norm: Norm) -> Tensor:
        return self.add_norm(functional.linear(mixed, *linear), residual, None, norm)

    def _feed(self, states: Tensor, layer: Layer) -> Tensor:
        """The feed-forward half of a layer."""
        inner = self.weights.activation(functional.linear(states, *layer.up))
        return self._project(inner, layer.down, states, layer.norm_down)


def _power(number: int) -> int:
    """The smallest power of two that is no less."""
    return 1 << max(number - 1, 0).bit_length()


_pools: dict[str, tuple[Any, ...]] = {}


class Replayed:
    """A function of one [pairs, length] array of rows as a CUDA graph; its result is overwritten by the next call."""

    def __init__(self, body: Map, shape: tuple[int, int], device: str) -> None:
        """Run it twice, then record it. All graphs of a device share their memory: they run one after another."""
        self._rows = torch.zeros(shape, dtype=torch.int32, device=device)
        self._graph = torch.cuda.CUDAGraph()
        beside: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        beside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(beside):
            for _ in range(2):
                body(self._rows)
        torch.cuda.current_stream(device).wait_stream(beside)
        with torch.cuda.graph(self._graph, pool=_pool(device)):
            self._found = body(self._rows)

    def __call__(self, rows: Tensor) -> Tensor:
        """Replay it for other rows."""
        self._rows.copy_(rows)
        self._graph.replay()
        return self._found


def _pool(device: str) -> Any:
    """The memory of all graphs of a device: it lives as long as a graph uses it, so a small one always does."""
    if device not in _pools:
        handle, kept, one = torch.cuda.graph_pool_handle(), torch.cuda.CUDAGraph(), torch.zeros(1, device=device)
        with torch.cuda.graph(kept, pool=handle):
            one.add_(1)
        _pools[device] = handle, kept, one
    return _pools[device][0]
