"""BM25 over token numbers on any device: the candidates that a re-ranker meets, for many queries at once.

score(q, d) = sum over the distinct tokens t of q of idf(t) tf / (tf + k1 (1 - b + b |d| / avg)), with
idf(t) = ln(1 + (N - n_t + .5) / (n_t + .5)).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core import Progress
from whyrank.networks import Ids

_CELLS = 2**28  # scores that are held at a time


def lexical_top(
    queries: Sequence[Ids], docs: Sequence[Ids], size: int, depth: int = 60, device: str = "cpu",
    k1: float = 0.9, b: float = 0.4,
) -> npt.NDArray[np.int32]:  # fmt: skip
    """The best texts of each query by BM25 over tokens numbered below `size`: [queries, depth]."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*[Ss]parse")  # torch calls these matrices a beta and unchecked
        weights, blocks = _weighted(docs, size, device, k1, b), []
    block = max(1, _CELLS // max(size, len(docs)))
    with Progress("mining by BM25: queries", len(queries)) as progress:
        for start in range(0, len(queries), block):
            scores = weights @ _present(queries[start : start + block], size, device)
            found = scores.topk(min(depth, len(docs)), dim=0).indices.T
            blocks.append(found.int().cpu().numpy())
            progress.step(len(blocks[-1]))
    return np.concatenate(blocks)


def _weighted(docs: Sequence[Ids], size: int, device: str, k1: float, b: float) -> Tensor:
    """The weight of each token in each text, as a sparse matrix [texts, tokens]."""
    row, token, sizes = _flat(docs, device)
    counts = torch.sparse_coo_tensor(torch.stack([row, token]), torch.ones_like(row, dtype=torch.float32),
                                     (len(docs), size)).coalesce()  # fmt: skip
    (row, token), tf = counts.indices(), counts.values()
    having = torch.bincount(token, minlength=size).float()
    idf = torch.log1p((len(docs) - having + 0.5) / (having + 0.5))
    norm = k1 * (1 - b + b * sizes.float() / sizes.float().mean().clamp(min=1e-9))
    values = idf[token] * tf / (tf + norm[row])
    return torch.sparse_coo_tensor(counts.indices(), values, counts.shape, is_coalesced=True).to_sparse_csr()


def _present(queries: Sequence[Ids], size: int, device: str) -> Tensor:
    """One where a query has a token: [tokens, queries]."""
    row, token, _ = _flat(queries, device)
    found = torch.zeros(size, len(queries), device=device)
    found[token, row] = 1.0
    return found


def _flat(texts: Sequence[Ids], device: str) -> tuple[Tensor, Tensor, Tensor]:
    sizes = torch.tensor([len(text) for text in texts]).to(device)
    tokens = np.concatenate([np.empty(0, np.int32), *texts]).astype(np.int64)
    return (
        torch.repeat_interleave(torch.arange(len(texts), device=device), sizes),
        torch.from_numpy(tokens).to(device),
        sizes,
    )
