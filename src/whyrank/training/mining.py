"""Distillation from bi-encoders without labels: the teachers find the candidates and score them.

Each epoch draws new candidates for every query: its source text, some of the teachers' best, some of their next best,
some of BM25's best, some at random; the target of a candidate is the teachers' weighted mean cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from whyrank.core import generator
from whyrank.networks import Ids, Pieces, load_encoder, single_arrays, tensors
from whyrank.training.data import Examples

Numbers = npt.NDArray[np.int32]
BEST = 10  # texts of a query that count as the teachers' best
_BLOCK = 4096  # queries that are worked on at a time


@dataclass(frozen=True, eq=False)
class Mined:
    """Candidates of every query from the teachers' rankings.

    Attributes:
        source: the text that each query belongs to.
        ranked: the teachers' best texts of each query, best first, [queries, depth].
        queries: the teachers' vectors of the queries, joined by `joined`.
        docs: those of the texts; the product of the two is the target.
        top: how many of the first ten, of the rest of `ranked`, and of all texts at random are drawn; fewer where
            there are fewer.
        lexical: BM25's best texts of each query, [queries, n], and how many of these are drawn.
    """

    source: Numbers
    ranked: Numbers
    queries: Tensor
    docs: Tensor
    top: tuple[int, int, int] = (3, 3, 3)
    lexical: tuple[Numbers, int] | None = None

    def epoch(self, seed: int, epoch: int) -> Examples:
        """One example per query: the source text first."""
        random = generator(seed, "mined", str(epoch))
        n, depth = self.ranked.shape
        best = min(BEST, depth)
        parts = [(self.ranked[:, :best], self.top[0]), (self.ranked[:, best:], self.top[1])]
        drawn = [_drawn(random, *part) for part in [*parts, *([self.lexical] if self.lexical else [])]]
        chance = random.integers(0, len(self.docs), (n, self.top[2]))
        doc = np.concatenate([self.source[:, None], *drawn, chance], axis=1).astype(np.int32)
        query = random.permutation(n).astype(np.int32)
        return Examples(query, doc[query], self._targets(query, doc[query]))

    def _targets(self, query: Any, doc: Any) -> npt.NDArray[np.float32]:
        found = np.empty(doc.shape, np.float32)
        for start in range(0, len(query), _BLOCK):
            rows = slice(start, start + _BLOCK)
            one, two = self.queries[self._on(query[rows])], self.docs[self._on(doc[rows])]
            found[rows] = torch.einsum("nd,nkd->nk", one, two).float().cpu().numpy()
        return found

    def _on(self, numbers: Any) -> Tensor:
        return torch.from_numpy(numbers.astype(np.int64)).to(self.docs.device)


def joined(vectors: Sequence[Tensor], shares: Sequence[float] | None = None) -> Tensor:
    """The teachers' vectors side by side, times their shares: one product then gives the weighted sum of cosines."""
    weights = shares or [1.0] * len(vectors)
    return torch.cat([part * weight for part, weight in zip(vectors, weights, strict=True)], dim=1)


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


def mined_top(queries: Tensor, docs: Tensor, depth: int = 60) -> Numbers:
    """The best texts of each query by the product of vectors: [queries, depth], or as many as there are."""
    blocks, depth = [], min(depth, len(docs))
    for start in range(0, len(queries), _BLOCK):
        found = (queries[start : start + _BLOCK] @ docs.T).topk(depth, dim=1).indices
        blocks.append(found.int().cpu().numpy())
    return np.concatenate(blocks)


def _pooled(encoder: Any, ids: list[Ids], pieces: Pieces, device: str) -> Tensor:
    batch = tensors(single_arrays(ids, pieces.special), device)
    states, mask = encoder.last(batch).float(), batch["mask"].unsqueeze(-1)
    return functional.normalize((states * mask).sum(dim=1) / mask.sum(dim=1), dim=1)


def _drawn(random: np.random.Generator, among: Numbers, size: int) -> Numbers:
    """For each row, `size` different ones of its numbers."""
    size, keys = min(size, among.shape[1]), random.random(among.shape, dtype=np.float32)
    if not size:
        return among[:, :0]
    places = np.argpartition(keys, size - 1, axis=1)[:, :size]
    return np.take_along_axis(among, places, axis=1)
