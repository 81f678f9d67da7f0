"""Which way of scoring pairs is fastest on this GPU, among those that agree with the plain one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from whyrank.networks.term_pairs_scorer import PairScorer

_TRIED = ("graph", "triton", "gelu", "joined", "fused")
_ROUNDS = 5
_APART = 0.03  # of weights between 0 and 1: several times what rounding to bf16 does in a whole encoder


def fastest(scorer: PairScorer) -> str:
    """The best of the ways that a GPU has; `eager` where no other one works."""
    ways = _TRIED if scorer.precision == "bf16" else _TRIED[:1]
    taken = {way: seconds for way in ways if (seconds := _seconds(scorer, way)) is not None}
    scorer.way = "eager"
    scorer.forget()
    return min(taken, key=lambda way: taken[way], default="eager")


def _seconds(scorer: PairScorer, way: str) -> float | None:
    """How long a full batch of the most frequent lengths takes; None where it fails or disagrees."""
    run, query, doc = scorer.full_batch()
    scorer.forget()
    with torch.inference_mode():
        scorer.way = "eager"
        plain = run(query, doc)
        scorer.way = way
        try:
            found = run(query, doc)
            if not bool((found - plain).abs().max() <= _APART):
                return None
            return _timed(run, query, doc)
        except Exception:  # a compiler of kernels raises anything; what fails is not used
            return None


def _timed(run: object, query: Tensor, doc: Tensor) -> float:
    assert callable(run)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(_ROUNDS):
        run(query, doc)
    torch.cuda.synchronize()
    return time.perf_counter() - start
