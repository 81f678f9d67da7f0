"""All pairs of two vocabularies scored in blocks of query terms: a stop costs one block, and the same call goes on.

Each block is a file of its own as soon as it is scored: numbers of document sequences by query, and their weights.
"""

from __future__ import annotations

import hashlib
import json
import time
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from whyrank.core import BadInput, Codes, Executor, Ints, Progress, Serial, check_seal, sealed_file
from whyrank.learners.parm.pairs.scorer import PairScorer, TermSequences

Say = Callable[[str], None]
BLOCK = {"cpu": 1 << 14, "cuda": 1 << 26}  # pairs of a block at most
_PACE = 30.0  # seconds that a block takes at most, which is what a stop costs
_STORED = {"fp32": torch.float32, "bf16": torch.float16}  # how weights are kept
_BROKEN = (  # what numpy raises for damaged files
    OSError, EOFError, ValueError, KeyError, TypeError, IndexError, SyntaxError, NotImplementedError,
    zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip
_REMEDY = "remove it, and it is scored again"


@dataclass(frozen=True, eq=False)
class PairTask:
    """What is scored, and what of it is kept."""

    queries: TermSequences  # distinct token sequences of the query terms
    docs: TermSequences  # those of the document terms
    threshold: float = 0.1  # pairs with a smaller weight are left out
    top: int | None = None  # so many document terms of each query term are kept at most, the best ones
    audited: tuple[int, ...] = ()  # numbers of query terms that are kept with all document terms

    def identity(self, network: str, precision: str) -> str:
        """A digest of terms, settings, network and precision: blocks that share it belong together."""
        found = hashlib.sha256(json.dumps([self.threshold, self.top, self.audited, network, precision]).encode())
        for side in (self.queries, self.docs):
            for array in (side.tokens, side.ends, side.of_term):
                found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()[:16]

    @property
    def pairs(self) -> int:
        """How many pairs of distinct sequences there are."""
        return len(self.queries) * len(self.docs)


class Block(NamedTuple):
    """Entries of some query sequences."""

    queries: Codes  # their numbers, ascending
    sizes: Ints  # how many entries each has
    docs: Codes  # numbers of document sequences, ascending within a query
    weights: npt.NDArray[Any]  # of the entries
    audited: Codes  # numbers of queries that are kept with all documents
    slices: npt.NDArray[Any]  # their weights, [audited, documents]
    seconds: float = 0.0  # how long the block took

    def best(self, most: int | None) -> Block:
        """With so many entries of each query at most: those of the largest weights, of equal ones the first."""
        if most is None or self.sizes.max(initial=0) <= most:
            return self
        owner = np.repeat(np.arange(len(self.sizes)), self.sizes)
        order = np.lexsort((-self.weights.astype(np.float32), owner))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        keep = np.sort(order[rank < most])
        sizes = np.minimum(self.sizes, most)
        return self._replace(sizes=sizes, docs=self.docs[keep], weights=self.weights[keep])


class Entries(NamedTuple):
    """All entries by query and document sequence, the slices of audited queries, and the seconds they took."""

    queries: Codes
    docs: Codes
    weights: npt.NDArray[Any]
    slices: dict[int, npt.NDArray[Any]]
    seconds: float


class Blocks:
    """The files of one task in a folder."""

    def __init__(self, folder: Path, identity: str) -> None:
        """Open a folder; an error where blocks of another task, network or precision lie in it."""
        self.folder, self.identity, self.done = folder, identity, set[int]()
        if folder.exists() and not folder.is_dir():
            raise BadInput(folder, "is a file, not a folder", "name another table")
        folder.mkdir(parents=True, exist_ok=True)
        for file in self._files():
            held = _read(file, ("identity", "queries"))
            if str(held["identity"]) != identity:
                what = "holds blocks of another network, vocabulary, precision or setting"
                raise BadInput(folder, what, "remove it to start again, or name another table")
            self.done.update(held["queries"].tolist())

    def add(self, block: Block) -> None:
        """Keep a block."""
        with sealed_file(self.folder / f"block-{int(block.queries[0]):07}.npz") as file:
            arrays = block._asdict() | {"identity": np.array(self.identity)}
            np.savez_compressed(file, allow_pickle=False, **arrays)
        self.done.update(block.queries.tolist())

    def entries(self) -> Entries:
        """All blocks together."""
        parts = [Block(**_read(file, Block._fields)) for file in self._files()]
        slices = {int(q): part.slices[i] for part in parts for i, q in enumerate(part.audited)}
        queries = np.concatenate([np.repeat(part.queries, part.sizes) for part in parts])
        docs, weights = (np.concatenate([getattr(part, name) for part in parts]) for name in ("docs", "weights"))
        order = np.lexsort((docs, queries))
        seconds = sum(float(part.seconds) for part in parts)
        return Entries(queries[order], docs[order], weights[order], slices, seconds)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("block-*.npz"))


def _read(file: Path, names: tuple[str, ...]) -> dict[str, Any]:
    try:
        check_seal(file, _REMEDY)
        with np.load(file, allow_pickle=False) as held:
            return {name: held[name] for name in names}
    except _BROKEN as error:
        raise BadInput(file, f"cannot be read ({type(error).__name__}: {error})", _REMEDY) from None


class BlockScorer(NamedTuple):
    """What every worker needs to score blocks."""

    task: PairTask
    scorer: PairScorer

    def score(self, queries: Codes) -> Block:
        """The entries of some queries with all documents, and how long they took."""
        start = time.monotonic()
        return score_block(self.task, self.scorer, queries)._replace(seconds=time.monotonic() - start)


def score_blocks(
    task: PairTask, scorer: PairScorer, blocks: Blocks, say: Say, size: int | None = None,
    executor: Executor | None = None,
) -> None:  # fmt: skip
    """Score what is left, block by block; each is kept as soon as it is scored.

    `size` is the number of pairs of a block instead of what half a minute allows.
    """
    left = np.array([q for q in range(len(task.queries)) if q not in blocks.done], np.int32)
    docs, start, seconds = len(task.docs), time.monotonic(), 0.0
    sides = f"{len(task.queries):,} x {docs:,}"
    say(f"{task.pairs:,} pairs of {sides} distinct token sequences, by {scorer.implementation}")
    with Progress("scoring pairs", len(left) * docs, unit="pairs") as progress:
        queries = block_queries(left, docs, scorer.device, lambda: progress.done / max(seconds, 1e-9), size)
        shared = BlockScorer(task, scorer)
        with closing((executor or Serial()).run(BlockScorer.score, shared, queries)) as scored:
            for block in scored:
                blocks.add(block)
                seconds += block.seconds
                progress.step(len(block.queries) * docs)
    if len(left):
        took = max(time.monotonic() - start, 1e-9)
        say(f"{progress.done:,} pairs in {took:.1f} s ({progress.done / took:,.0f} pairs/s)")


def block_queries(
    numbers: Codes, docs: int, device: str, rate: Callable[[], float], size: int | None = None
) -> Iterator[Codes]:
    """Some numbers at a time, to be scored with all documents: few at first, then what half a minute allows.

    `rate` is how many pairs a worker scores per second, 0 before any is scored.
    """
    most, start = size or BLOCK["cuda" if device.startswith("cuda") else "cpu"], 0
    while start < len(numbers):
        pairs = size or min(most, int(rate() * _PACE) or most // 8)
        some = numbers[start : start + max(1, pairs // docs)]
        yield some
        start += len(some)


def score_block(task: PairTask, scorer: PairScorer, queries: Codes) -> Block:
    """The entries of some queries with all documents."""
    kind, most = _STORED[scorer.precision], None if task.top is None else task.top + 1  # one may be the term itself
    audited = np.intersect1d(queries, task.queries.of_term[list(task.audited)]).astype(np.int32)
    slices = np.zeros((len(audited), len(task.docs)), torch.empty(0, dtype=kind).numpy().dtype)
    found: list[tuple[Any, Any, Any]] = []
    for grid in scorer.grids(queries):
        weights = grid.weights.to(kind)
        least = torch.full((len(weights), 1), task.threshold, device=weights.device)
        if most is not None and most < weights.shape[1]:
            least = least.maximum(weights.float().topk(most, dim=1).values[:, -1:])
        row, column = (weights.float() >= least).nonzero(as_tuple=True)
        entries = weights[row, column].cpu().numpy()
        found.append((grid.queries[row.cpu().numpy()], grid.docs[column.cpu().numpy()], entries))
        for i in np.flatnonzero(np.isin(grid.queries, audited)).tolist():
            slices[np.searchsorted(audited, grid.queries[i])][grid.docs] = weights[i].cpu().numpy()
    query, doc, weight = (np.concatenate(column) for column in zip(*found, strict=True))
    order, own = np.lexsort((doc, query)), np.sort(queries)
    sizes = np.diff(np.searchsorted(query[order], own, side="right"), prepend=0).astype(np.int64)
    return Block(own, sizes, doc[order].astype(np.int32), weight[order], audited, slices).best(most)
