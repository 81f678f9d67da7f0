"""A student of PaRM: a vector for each query term and for each document term, whose product says whom PaRM may tie.

It starts from the mean of the encoder's states of a term by itself, is trained on PaRM's weights of pairs drawn at
random and then of pairs that it would propose itself, and takes seconds on a GPU. It decides nothing: it proposes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from whyrank.core.seeds import generator, seed_for
from whyrank.networks.network import Network
from whyrank.networks.term_pairs_terms import Sequences, side_of

DIMS = 128
Exact = Callable[[Any, Any], Any]  # numbers of queries and of documents to weights
_HIDDEN, _RATE, _SHARP = 256, 2e-3, 2.0
_SIZES = {"cpu": (1024, 600), "cuda": (1 << 16, 600)}  # pairs of a step, steps of a round at most
_PASSES, _FEWEST = 30, 100  # over the pairs at most, and steps at least
_NEAR, _WIDE = 2000, 512  # documents that count as proposed in training; queries that are compared at a time


class Student(NamedTuple):
    """Vectors of queries and documents; the score of a pair is their product."""

    queries: Tensor
    docs: Tensor

    def scores(self, queries: Any) -> Tensor:
        """Of some queries with all documents."""
        found: Tensor = self.queries[torch.as_tensor(queries, device=self.queries.device).long()] @ self.docs.T
        return found

    def pairs(self, queries: Any, docs: Any) -> Tensor:
        """Of aligned pairs."""
        q, d = (torch.as_tensor(part, device=self.docs.device).long() for part in (queries, docs))
        return (self.queries[q] * self.docs[d]).sum(1)


class _Tower(nn.Module):
    """From a term's state to its vector, with two numbers besides: its own share of the score, and a one."""

    def __init__(self, width: int, dims: int, last: bool) -> None:
        super().__init__()
        self.plain, self.inner = nn.Linear(width, dims + 1), nn.Linear(width, _HIDDEN)
        self.outer, self.last = nn.Linear(_HIDDEN, dims + 1), last

    def forward(self, states: Tensor) -> Tensor:
        found = self.plain(states) + self.outer(torch.nn.functional.gelu(self.inner(states)))
        vector, own = found[:, :-1] * (found.shape[1] - 1) ** -0.25, found[:, -1:]
        one = torch.ones_like(own)
        return torch.cat([vector, one, own] if self.last else [vector, own, one], 1)


@torch.inference_mode()
def term_states(network: Network, sequences: Sequences, device: str, at_once: int = 1 << 14) -> Tensor:
    """The mean of the encoder's last states of [CLS] term [SEP], each number with mean 0 and deviation 1."""
    special, encoder = network.pieces.special, network.encoder.to(device)
    found = torch.zeros(len(sequences), network.encoder.width, device=device)
    for length, group in side_of(sequences).groups.items():
        for start in range(0, len(group.members), max(1, at_once // (length + 2))):
            members = group.members[start : start + max(1, at_once // (length + 2))]
            rows = np.stack([np.concatenate([[special["cls"]], sequences.row(m), [special["sep"]]]) for m in members])
            ids = torch.from_numpy(rows.astype(np.int64)).to(device)
            batch = {"ids": ids, "types": torch.zeros_like(ids), "mask": torch.ones_like(ids)}
            found[torch.from_numpy(members).to(device).long()] = encoder.last(batch).float().mean(1)
    return (found - found.mean(0)) / found.std(0, correction=0).clamp(min=1e-6)


def train_student(
    states: tuple[Tensor, Tensor], exact: Exact, threshold: float, sample: int, seed: int, dims: int = DIMS
) -> Student:
    """A student of `exact`, from `sample` random pairs and as many that it would itself propose after these."""
    queries, docs = states
    kind = "cuda" if queries.is_cuda else "cpu"
    rng = generator(seed, "student")
    with torch.random.fork_rng(devices=[queries.device] if queries.is_cuda else []):
        torch.manual_seed(seed_for(seed, "student"))
        towers = nn.ModuleList(_Tower(queries.shape[1], dims, last) for last in (False, True)).to(queries.device)
    seen = _Seen(*(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)))
    for round in range(2):
        pairs = (
            _random(len(queries), len(docs), sample, rng)
            if not round
            else _proposed(_made(towers, states), sample, rng)
        )
        seen = seen.with_more(*pairs, np.asarray(exact(*pairs), np.float32))
        _fit(towers, states, seen, threshold, rng, *_SIZES[kind])
    return _made(towers, states)


class _Seen(NamedTuple):
    """Pairs and their weights."""

    queries: Any
    docs: Any
    weights: Any

    def with_more(self, queries: Any, docs: Any, weights: Any) -> _Seen:
        more = (queries, docs, weights)
        return _Seen(*(np.concatenate(columns) for columns in zip(self, more, strict=True)))


def _random(queries: int, docs: int, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    return rng.integers(queries, size=n), rng.integers(docs, size=n)


def _proposed(student: Student, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Pairs of random queries with documents from the front of the student's ranking."""
    queries, docs = len(student.queries), len(student.docs)
    near, each = min(_NEAR, docs), max(1, n // queries)
    chosen = np.sort(rng.choice(queries, size=min(queries, n), replace=False))
    found = []
    for start in range(0, len(chosen), _WIDE):
        some = chosen[start : start + _WIDE]
        best = student.scores(some).topk(near, dim=1).indices.cpu().numpy()
        place = (rng.random((len(some), min(each, near))) ** 2 * near).astype(np.int64)  # more from the very front
        found.append((np.repeat(some, place.shape[1]), np.take_along_axis(best, place, 1).ravel()))
    query, doc = (np.concatenate(column) for column in zip(*found, strict=True))
    return query.astype(np.int64), doc.astype(np.int64)


def _fit(
    towers: nn.ModuleList, states: tuple[Tensor, Tensor], seen: _Seen, threshold: float, rng: np.random.Generator,
    batch: int, steps: int,
) -> None:  # fmt: skip
    """Cross-entropy with whether a weight is above the threshold, softly."""
    device = states[0].device
    query, doc = (torch.from_numpy(np.asarray(part, np.int64)).to(device) for part in (seen.queries, seen.docs))
    target = _targets(torch.from_numpy(seen.weights).to(device), threshold)
    size = min(batch, len(target))
    steps = min(steps, max(_FEWEST, _PASSES * len(target) // size))
    optimiser = torch.optim.AdamW(towers.parameters(), lr=_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=steps)
    for _ in range(steps):
        at = torch.from_numpy(rng.integers(len(target), size=size)).to(device)
        score = (towers[0](states[0][query[at]]) * towers[1](states[1][doc[at]])).sum(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(score, target[at])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()


def _targets(weights: Tensor, threshold: float) -> Tensor:
    edge = min(max(threshold, 1e-6), 1 - 1e-6)
    return torch.sigmoid(_SHARP * (torch.logit(weights, 1e-6) - math.log(edge / (1 - edge))))


@torch.inference_mode()
def _made(towers: nn.ModuleList, states: tuple[Tensor, Tensor]) -> Student:
    return Student(*(tower(part) for tower, part in zip(towers, states, strict=True)))
