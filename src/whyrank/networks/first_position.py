"""The first position of a BERT-like encoder's last layer, without computing what nobody reads.

A score that is read from [CLS] needs the last layer at one position only: its keys and values everywhere, and all
else of the layer once per text. `first_only` makes any model with such layers do so. The networks that are
trained here read a padded batch (`ids`, `types`, `mask`) or, on a GPU, a packed one: all texts end to end in `ids`
and `types`, the position of each token in `positions`, and the bounds of the texts in `ends`. For these the layers
are written out over the model's own modules, so that dropout in training draws what is read and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Attend = Callable[[Tensor, Tensor, Tensor, float], Tensor]
_LIKE_BERT = ("bert", "electra")  # models whose layers are those of BERT, with positions counted from 0


def is_plain(model: Any) -> bool:
    """Whether a transformers model is a stack of BERT's layers that reads in both directions."""
    config = model.config
    plain = getattr(config, "position_embedding_type", "absolute") in ("absolute", None)
    whole = not getattr(config, "is_decoder", False) and not hasattr(model, "embeddings_project")
    return config.model_type in _LIKE_BERT and plain and whole and hasattr(model.encoder, "layer")


def first_only(model: nn.Module) -> Any:
    """Let the last of a model's BERT-like layers go on with the first position alone, once all attend to all.

    The states of the first position stay the same, and the rest of the layer, most of its work, is left out for the
    others. Gives the handle that undoes it; None for a model without such layers.
    """
    layers = [m for m in model.modules() if hasattr(m, "intermediate") and hasattr(m, "attention")]
    output = getattr(layers[-1].attention, "output", None) if layers else None
    if not isinstance(output, nn.Module):
        return None
    return output.register_forward_pre_hook(lambda _, given: tuple(states[:, :1] for states in given))


def first_padded(model: Any, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
    """The last states of the first position of each row of a padded batch: [texts, width]."""
    states, visible = model.embeddings(input_ids=ids, token_type_ids=types), mask[:, None, None, :].bool()

    def attend(query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Tensor:
        q, k, v = (part.transpose(1, 2) for part in (query, key, value))
        found = functional.scaled_dot_product_attention(q, k, v, attn_mask=visible, dropout_p=dropout)
        return found.transpose(1, 2)

    for layer in model.encoder.layer[:-1]:
        states = _layer(layer, states, states, attend)
    return _layer(model.encoder.layer[-1], states[:, :1], states, attend)[:, 0]


def first_packed(model: Any, ids: Tensor, positions: Tensor, types: Tensor, ends: Tensor, longest: int) -> Tensor:
    """The last states of the first position of texts that lie end to end; `ends` holds 0 and the end of each."""
    own, layers = model.embeddings, model.encoder.layer
    kinds = own.token_type_embeddings.weight
    states = own.word_embeddings(ids) + own.position_embeddings(positions) + kinds[0]
    if len(kinds) > 1:  # the two types as a product: the gradient of a look-up in two rows is slow on a GPU
        states = states + types[:, None].to(states.dtype) * (kinds[1] - kinds[0])
    states = own.dropout(own.LayerNorm(states)).to(layers[0].output.dense.weight.dtype)
    attend = _Flash(ends, longest) if ends.is_cuda else _OneByOne(ends)
    for layer in layers[:-1]:
        states = _layer(layer, states, states, attend)
    return _layer(layers[-1], states[ends[:-1].long()], states, attend)


def _layer(layer: Any, reading: Tensor, read: Tensor, attend: Attend) -> Tensor:
    """One layer for the positions `reading`, which attend to the positions `read`."""
    own = layer.attention.self
    parts = (own.query(reading), own.key(read), own.value(read))
    heads = own.num_attention_heads, own.attention_head_size
    query, key, value = (part.view(*part.shape[:-1], *heads) for part in parts)
    mixed = attend(query, key, value, own.dropout.p if own.training else 0.0)
    states = layer.attention.output(mixed.flatten(-2), reading)
    found: Tensor = layer.output(layer.intermediate(states), states)
    return found


class _Flash:
    """Attention within each of the texts that lie end to end: a GPU's kernel for ragged batches in half precision."""

    def __init__(self, ends: Tensor, longest: int) -> None:
        self.ends, self.longest = ends.int(), longest
        self.ones = torch.arange(len(ends), device=ends.device, dtype=torch.int32)

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Tensor:
        every = len(query) == len(key)
        ends, longest = (self.ends, self.longest) if every else (self.ones, 1)
        found = torch.ops.aten._flash_attention_forward(
            query, key, value, ends, self.ends, longest, self.longest, dropout, False, False
        )
        mixed: Tensor = found[0]
        return mixed


class _OneByOne:
    """Attention text by text, where there is no kernel for texts of different lengths."""

    def __init__(self, ends: Tensor) -> None:
        self.ends = ends.tolist()

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Tensor:
        own = self.ends if len(query) == len(key) else list(range(len(self.ends)))
        found = []
        for i in range(len(self.ends) - 1):
            rows, all_rows = slice(own[i], own[i + 1]), slice(self.ends[i], self.ends[i + 1])
            parts = (query[rows], key[all_rows], value[all_rows])
            q, k, v = (part.transpose(0, 1) for part in parts)
            found.append(functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout).transpose(0, 1))
        return torch.cat(found)
