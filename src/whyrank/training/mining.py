"""Distillation from bi-encoders without labels: the teachers find the candidates and score them.

Each epoch draws new candidates for every query: its source text, some of the teachers' best, some of their next best,
some at random; the target of a candidate is the mean of the teachers' cosines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from whyrank.core.seeds import generator
from whyrank.networks.batches import single_arrays, tensors
from whyrank.networks.encoder import load_encoder
from whyrank.networks.pieces import Ids, Pieces
from whyrank.training.examples import Examples

BEST = 10  # texts of a query that count as the teachers' best


@dataclass(frozen=True, eq=False)
class Mined:
    """Candidates of every query from the teachers' rankings.

    Attributes:
        source: the text that each query belongs to.
        ranked: the teachers' best texts of each query, best first, [queries, depth].
        queries: unit vectors of the queries by each teacher.
        docs: unit vectors of the texts by each teacher.
        top: how many of the first ten, of the rest of `ranked`, and of all texts at random are drawn; fewer where
            there are fewer.
    """

    source: np.ndarray[Any, np.dtype[np.int32]]
    ranked: np.ndarray[Any, np.dtype[np.int32]]
    queries: Sequence[Tensor]
    docs: Sequence[Tensor]
    top: tuple[int, int, int] = (3, 3, 3)

    def epoch(self, seed: int, epoch: int) -> Examples:
        """One example per query: the source text first."""
        random = generator(seed, "mined", str(epoch))
        n, depth = self.ranked.shape
        best = min(BEST, depth)
        first = self.ranked[:, :best][np.arange(n)[:, None], _draws(random, n, best, self.top[0])]
        second = self.ranked[:, best:][np.arange(n)[:, None], _draws(random, n, depth - best, self.top[1])]
        chance = random.integers(0, len(self.docs[0]), (n, self.top[2]))
        doc = np.concatenate([self.source[:, None], first, second, chance], axis=1).astype(np.int32)
        order = random.permutation(n)
        query = np.arange(n, dtype=np.int32)[order]
        return Examples(query, doc[order], self._targets(query, doc[order]))

    def _targets(self, query: Any, doc: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
        found = np.empty(doc.shape, np.float32)
        for start in range(0, len(query), 4096):
            rows = slice(start, start + 4096)
            sums = [_cosines(q, d, query[rows], doc[rows]) for q, d in zip(self.queries, self.docs, strict=True)]
            found[rows] = torch.stack(sums).mean(dim=0).float().cpu().numpy()
        return found


def embed(
    source: str, texts: Sequence[str], most: int = 256, batch: int = 512, device: str = "cpu", pooling: str = "mean"
) -> Tensor:
    """Unit vectors of texts by a bi-encoder: the mean of the last hidden states, in half precision on a GPU."""
    encoder, pieces = load_encoder(source).to(device).eval(), Pieces(source)
    ids = pieces.ids(texts, most)
    order = np.argsort([len(row) for row in ids], kind="stable")
    found = torch.empty(len(texts), encoder.width, device=device)
    half = device.startswith("cuda")
    with torch.inference_mode(), torch.autocast(device.split(":", maxsplit=1)[0], torch.bfloat16, enabled=half):
        for start in range(0, len(order), batch):
            rows = order[start : start + batch]
            found[torch.from_numpy(rows).to(device)] = _pooled(encoder, [ids[i] for i in rows], pieces, device)
    return found


def mined_top(queries: Sequence[Tensor], docs: Sequence[Tensor], depth: int = 60, block: int = 2048) -> Any:
    """The best texts of each query by the mean cosine of the teachers: [queries, depth], or as many as there are."""
    blocks, depth = [], min(depth, len(docs[0]))
    for start in range(0, len(queries[0]), block):
        sums = [q[start : start + block] @ d.T for q, d in zip(queries, docs, strict=True)]
        blocks.append(torch.stack(sums).mean(dim=0).topk(depth, dim=1).indices.int().cpu().numpy())
    return np.concatenate(blocks)


def _pooled(encoder: Any, ids: list[Ids], pieces: Pieces, device: str) -> Tensor:
    batch = tensors(single_arrays(ids, pieces.special), device)
    states, mask = encoder.last(batch).float(), batch["mask"].unsqueeze(-1)
    return functional.normalize((states * mask).sum(dim=1) / mask.sum(dim=1), dim=1)


def _cosines(queries: Tensor, docs: Tensor, query: Any, doc: Any) -> Tensor:
    one = queries[torch.from_numpy(query.astype(np.int64)).to(queries.device)]
    two = docs[torch.from_numpy(doc.astype(np.int64)).to(docs.device)]
    return torch.einsum("nd,nkd->nk", one, two)


def _draws(random: np.random.Generator, n: int, among: int, size: int) -> Any:
    """For each of n rows, `size` different numbers below `among`."""
    return np.argsort(random.random((n, among)), axis=1)[:, :size]
