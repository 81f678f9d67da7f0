"""The last layer of an encoder for the first position alone: all that a score is read from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_LAYERS = ("BertLayer", "RobertaLayer", "XLMRobertaLayer", "ElectraLayer")
_ATTENTIONS = ("sdpa", "eager")


def first_only(model: Any) -> bool:
    """Let the last layer compute its first position only, with keys and values of all; whether that was possible.

    The states of the first position are the same. Of six layers this saves about a seventh of the work, of three
    a quarter. Only for models whose score depends on the first position alone.
    """
    layers = [layer for layer in model.modules() if type(layer).__name__ in _LAYERS]
    if not layers or layers[-1].is_decoder or not _is_plain(layers[-1]):
        return False
    layers[-1].forward = _forward(layers[-1])
    return True


def _is_plain(layer: Any) -> bool:
    """Whether the layer is the one known here: packages change."""
    from transformers import __version__

    own = layer.attention.self
    parts = all(hasattr(own, name) for name in ("query", "key", "value", "attention_head_size"))
    config = getattr(own, "config", None)
    known = getattr(config, "_attn_implementation", "") in _ATTENTIONS and hasattr(layer, "feed_forward_chunk")
    return parts and known and int(__version__.partition(".")[0]) >= 5  # before, layers gave tuples


def _forward(layer: Any) -> Callable[..., Any]:
    own = layer.attention.self

    def heads(states: Any) -> Any:
        return states.view(*states.shape[:2], -1, own.attention_head_size).transpose(1, 2)

    def forward(states: Any, attention_mask: Any = None, *_: Any, **__: Any) -> Any:
        from torch.nn.functional import scaled_dot_product_attention

        first = states[:, :1]
        mask = None if attention_mask is None else attention_mask[:, :, :1]
        query, key, value = heads(own.query(first)), heads(own.key(states)), heads(own.value(states))
        found = scaled_dot_product_attention(query, key, value, attn_mask=_like(mask, query))
        return layer.feed_forward_chunk(layer.attention.output(found.transpose(1, 2).flatten(2), first))

    return forward


def _like(mask: Any, query: Any) -> Any:
    """A mask of numbers in the format of the query; one of flags as it is."""
    return mask.to(query.dtype) if mask is not None and mask.is_floating_point() else mask
