"""The first position of a BERT-like encoder's last layer, without computing what nobody reads.

A score that is read from [CLS] needs the last layer at one position only: its keys and values everywhere, and all
else of the layer once per text. The layers are written out over the model's own modules, so that the states are those
of the model itself. A batch is padded (`ids`, `types`, `mask`), or packed: all texts end to end in `ids` and `types`,
the position of each piece in `places`, and where the texts begin and end in `ends`; then nothing is padded at all.
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


def first_padded(model: Any, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
    """The last states of the first position of each row: [texts, width]."""
    states = model.embeddings(input_ids=ids, token_type_ids=types)
    return _through(model.encoder.layer, states, _Padded(mask), lambda x: x[:, :1])[:, 0]


def first_packed(model: Any, ids: Tensor, places: Tensor, types: Tensor, ends: Tensor, longest: int) -> Tensor:
    """The same for texts that lie end to end; `ends` holds 0 and the end of each."""
    states = _embedded(model.embeddings, ids, places, types)
    states, starts = states.to(model.encoder.layer[0].output.dense.weight.dtype), ends[:-1].long()
    return _through(model.encoder.layer, states, _packed(ends, longest), lambda x: x[starts])


def _embedded(embeddings: Any, ids: Tensor, places: Tensor, types: Tensor) -> Tensor:
    """The embeddings, with the two types as a product: the gradient of a look-up in two rows is slow on a GPU."""
    kinds = embeddings.token_type_embeddings.weight
    states = embeddings.word_embeddings(ids) + embeddings.position_embeddings(places) + kinds[0]
    if len(kinds) > 1:
        states = states + types[:, None].to(states.dtype) * (kinds[1] - kinds[0])
    found: Tensor = embeddings.dropout(embeddings.LayerNorm(states))
    return found


def _through(layers: Any, states: Tensor, attend: Attend, first: Callable[[Tensor], Tensor]) -> Tensor:
    for layer in layers[:-1]:
        states = _layer(layer, states, states, attend)
    return _layer(layers[-1], first(states), states, attend)


def _layer(layer: Any, reading: Tensor, read: Tensor, attend: Attend) -> Tensor:
    """One layer for the positions `reading`, which attend to the positions `read`."""
    own = layer.attention.self
    query, key, value = (_heads(own, part(x)) for part, x in zip(_parts(own), (reading, read, read), strict=True))
    mixed = attend(query, key, value, own.dropout.p if own.training else 0.0)
    states = layer.attention.output(mixed.flatten(-2), reading)
    found: Tensor = layer.output(layer.intermediate(states), states)
    return found


def _parts(attention: Any) -> tuple[nn.Module, nn.Module, nn.Module]:
    return attention.query, attention.key, attention.value


def _heads(attention: Any, states: Tensor) -> Tensor:
    return states.view(*states.shape[:-1], attention.num_attention_heads, attention.attention_head_size)


class _Padded:
    """Attention over the positions of each row that are not padding."""

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask[:, None, None, :].bool()

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Tensor:
        q, k, v = (part.transpose(1, 2) for part in (query, key, value))
        found = functional.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, dropout_p=dropout)
        return found.transpose(1, 2)


def _packed(ends: Tensor, longest: int) -> Attend:
    return _Flash(ends, longest) if ends.is_cuda else _OneByOne(ends)


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
    """The same text by text, where there is no such kernel."""

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
