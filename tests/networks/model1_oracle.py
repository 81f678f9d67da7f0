"""Neural Model 1 in plain loops, from the weights of a layer."""

from __future__ import annotations

import math

import numpy as np

from whyrank.networks.model1 import Translating


def weights(module):
    return [p.detach().double().numpy() for p in (module.weight, module.bias)]


def projected(norm, projection, vector):
    """P(tanh(LN(v)))."""
    (gain, shift), (weight, bias) = weights(norm), weights(projection)
    centred = vector - vector.mean()
    return weight @ np.tanh(centred / np.sqrt((centred**2).mean() + norm.eps) * gain + shift) + bias


def translation(layer: Translating, q, d) -> float:
    """T(q|d) of two vectors, before self-translation."""
    if layer.variant == "cosine":
        return 0.5 * (float(q @ d) / (np.linalg.norm(q) * np.linalg.norm(d)) + 1)
    x = projected(layer.query_norm, layer.query_projection, q)
    y = projected(layer.doc_norm, layer.doc_projection, d)
    hidden = np.concatenate([x, y, x * y])
    for module in (layer.first, layer.second):
        weight, bias = weights(module)
        hidden = np.maximum(weight @ hidden + bias, 0)
    weight, bias = weights(layer.third)
    return 1 / (1 + math.exp(-float((weight @ hidden + bias)[0])))


def with_self(layer: Translating, same: bool, value: float) -> float:
    if layer.p_self is None:
        return value
    return layer.p_self if same else (1 - layer.p_self) * value


def score(layer: Translating, query, doc) -> float:
    """The log score of (number, vector) pairs of a query and a text, token by token."""
    total = 0.0
    for a, q in query:
        found = sum(with_self(layer, a == b, translation(layer, q, d)) for b, d in doc)
        total += math.log(max(layer.eps, found / max(len(doc), 1)))
    return total
