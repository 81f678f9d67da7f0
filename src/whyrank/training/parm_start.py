"""Where the logits of phase 2 start: phase 1 learns differences alone, so that its logits have no zero point.

A sigmoid of them gives weight to all pairs, related or not. Here the last layer is scaled and moved until the logits
of query terms with terms of their texts, drawn at random, have a given mean and spread: with -4 and 2, about one pair
in forty has a weight above a half.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from whyrank.core.seeds import generator
from whyrank.networks.parm import ParmNetwork
from whyrank.training.parm_data import Terms
from whyrank.training.parm_partners import Slots, other_terms, pair_logits

_SAMPLE = {"cpu": 500, "cuda": 20_000}  # pairs that are looked at


def begin_at(
    network: ParmNetwork, terms: Terms, slots: Slots, start: Sequence[float], seed: int, device: str
) -> None:
    """Give the logits of random pairs of terms a mean and a spread; their order stays."""
    logits = _logits(network, terms, slots.take(slots.partner >= 0), seed, device)
    if len(logits) < 2 or not logits.std():
        return
    factor = start[1] / float(logits.std())
    with torch.no_grad():
        network.outer.weight.mul_(factor)
        network.outer.bias.sub_(float(logits.mean())).mul_(factor).add_(start[0])


def _logits(network: ParmNetwork, terms: Terms, slots: Slots, seed: int, device: str) -> npt.NDArray[np.float64]:
    """The logits of some query terms, each with a term of a text that lacks it."""
    other = other_terms(slots, terms, seed, "start")
    there = np.flatnonzero(other >= 0)
    most = _SAMPLE.get(device.split(":", maxsplit=1)[0], 500)
    rows = generator(seed, "parm", "start").permutation(there)[:most]
    names, place = np.unique(np.concatenate([slots.term[rows], other[rows]]), return_inverse=True)
    ids = network.pieces.ids([terms.names[i] for i in names.tolist()], network.max_query)
    query, doc = np.split(place.astype(np.int64), 2)
    return pair_logits(network, (ids, ids), query, doc, device).astype(np.float64)
