"""What phase 1 deletes from texts: the units that matter least to a part of the query, so many as a draw says."""

from __future__ import annotations

import torch
from torch import Tensor

_HASH = (2654435761, 40503, 2**31 - 1)


def deletion_counts(kind: str, draws: Tensor, units: Tensor, part: Tensor) -> Tensor:
    """How many units go, from standard normal draws; `units` of the text and of the `part` of the query.

    `paper`: Normal(u/2, u/2), cut to whole numbers from 1 to u - 1. `code`: with m = max(u - part, 1),
    Normal(m/2, m/2) from 0 to u - max(part // 2, 1). A text of one unit keeps it.
    """
    mean = (units if kind == "paper" else (units - part).clamp(min=1)).double() / 2
    drawn = (mean + mean * draws).trunc().long()
    if kind == "paper":
        return torch.minimum(drawn.clamp(min=1), units - 1).clamp(min=0)
    return torch.minimum(drawn, units - (part // 2).clamp(min=1)).clamp(min=0)


def part_relevance(blocks: Tensor, inside: Tensor) -> Tensor:
    """The mean of the rows of `blocks` that are `inside` a part; zero for a part without pieces.

    `blocks` is [..., query pieces, text pieces], `inside` [..., query pieces].
    """
    weights = inside.to(blocks.dtype)
    total = torch.einsum("...a,...aj->...j", weights, blocks)
    return total / weights.sum(dim=-1, keepdim=True).clamp(min=1)


def deleted(scores: Tensor, unit: Tensor, units: Tensor, counts: Tensor, ties: Tensor) -> Tensor:
    """Whether each piece goes: those of the `counts` units with the lowest scores.

    A unit's score is the highest of its pieces'; `unit` numbers the units of a row from 0, and is the number of
    columns where a text is over. Units of equal scores go in the order of `ties`.
    """
    columns = scores.shape[-1]
    blank = torch.full((*scores.shape[:-1], columns + 1), -torch.inf, dtype=scores.dtype, device=scores.device)
    best = blank.scatter_reduce(-1, unit, scores, "amax")[..., :columns]
    there = torch.arange(columns, device=scores.device) < units.unsqueeze(-1)
    best = torch.where(there, best, torch.inf)
    gone = _ranks(best, ties) < counts.unsqueeze(-1)
    gone = torch.cat([gone, torch.zeros_like(gone[..., :1])], dim=-1)
    return gone.gather(-1, unit)


def collapsed(gone: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """What is read when one piece is left of each run of deleted ones: the places in order, and how many there are.

    `gone` is [rows, pieces], `sizes` the pieces of each row's text.
    """
    before = torch.cat([torch.zeros_like(gone[:, :1]), gone[:, :-1]], dim=1)
    there = torch.arange(gone.shape[1], device=gone.device) < sizes[:, None]
    left = there & ~(gone & before)
    return (~left).to(torch.uint8).argsort(dim=1, stable=True), left.sum(dim=1)


def tie_keys(seeds: Tensor, columns: int) -> Tensor:
    """Keys that put the columns of each row in an order of its own, which its seed alone decides."""
    places = torch.arange(1, columns + 1, device=seeds.device)
    mixed = (seeds.unsqueeze(-1) % _HASH[2]) * _HASH[1] + places * _HASH[0]
    mixed = (mixed ^ (mixed >> 15)) * _HASH[0] % _HASH[2]
    return (mixed ^ (mixed >> 13)) * _HASH[0] % _HASH[2]


def _ranks(values: Tensor, ties: Tensor) -> Tensor:
    """The rank of each value in its row, from 0; equal ones in the order of `ties`, then of their places."""
    first = ties.argsort(dim=-1, stable=True)
    order = first.gather(-1, values.gather(-1, first).argsort(dim=-1, stable=True))
    ranks = torch.empty_like(order)
    return ranks.scatter_(-1, order, torch.arange(values.shape[-1], device=values.device).expand_as(order))
