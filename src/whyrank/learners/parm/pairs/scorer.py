"""Which way of scoring pairs is fastest on this GPU, among those that agree with the plain one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core import UnknownName, WhyrankError
from whyrank.learners.parm.pairs.layers import Operations, logits
from whyrank.learners.parm.pairs.terms import Group, Side
from whyrank.learners.parm.pairs.weights import can_be_fused, weights_of
from whyrank.networks import Network

# One shape of a computation, recorded once on a GPU and replayed: nothing is launched kernel by kernel.

_pools: dict[str, tuple[Any, ...]] = {}


class Replayed:
    """A function of one [texts, length] array of rows as a CUDA graph; its result is overwritten by the next call."""

    def __init__(self, body: Callable[[Tensor], Tensor], shape: tuple[int, int], device: str) -> None:
        """Run it twice, then record it. All graphs of a device share their memory: they run one after another."""
        self._rows = torch.zeros(shape, dtype=torch.int32, device=device)
        self._graph = torch.cuda.CUDAGraph()
        beside: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        beside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(beside):
            for _ in range(2):
                body(self._rows)
        torch.cuda.current_stream(device).wait_stream(beside)
        with torch.cuda.graph(self._graph, pool=_pool(device)):
            self._found = body(self._rows)

    def __call__(self, rows: Tensor) -> Tensor:
        """Replay it for other rows."""
        self._rows.copy_(rows)
        self._graph.replay()
        return self._found


def _pool(device: str) -> Any:
    """The memory of all graphs of a device: it lives as long as a graph uses it, so a small one always does."""
    if device not in _pools:
        handle, kept, one = torch.cuda.graph_pool_handle(), torch.cuda.CUDAGraph(), torch.zeros(1, device=device)
        with torch.cuda.graph(kept, pool=handle):
            one.add_(1)
        _pools[device] = handle, kept, one
    return _pools[device][0]


# Exact scores of (query term, document term) pairs: bucketed by both lengths, one static shape for each length.
#
#     scorer = PairScorer(network, side_of(queries), side_of(docs), "cuda", "bf16")
#     weights = scorer.pairs(query_numbers, doc_numbers)
#
# Ways to compute the same:
#
#     model      the network itself, batch by batch: any encoder
#     eager      the layers written out (see `term_pairs_layers`): what runs on a CPU
#     compile    the same through torch.compile
#     graph      the same replayed as a CUDA graph
#     triton     attention of many small texts, and sum with normalisation, as kernels of our own, as a CUDA graph
#     gelu       the same, with the activation inside the product before it
#     lt         as triton, with the activation in the library's product, in its tanh form: not quite the same
#     joined     as gelu, with sum and norm inside the product before them
#     fused      as joined, with the second half of a layer in one kernel
#     auto       on a GPU the fastest of graph, triton, gelu, joined and fused that agrees with eager; else eager

WAYS = ("auto", "model", "eager", "compile", "compile-broadcast", "graph", "triton", "gelu", "lt", "joined", "fused")
KERNELS = ("triton", "gelu", "lt", "joined", "fused")
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
TOKENS = {"cpu": 1 << 11, "cuda": 1 << 17}  # pieces of a batch
_GRAPHS = ("graph", *KERNELS)
_LONGEST = 32  # pieces of a pair up to which kernels of our own are used
Numbers = npt.NDArray[np.integer[Any]]
Told = Callable[[int], None]  # that so many more pairs are scored


class Grid(NamedTuple):
    """All pairs of some queries and documents that have the same lengths.

    Attributes:
        queries: their numbers.
        docs: theirs.
        weights: [queries, docs], on the device.
    """

    queries: Numbers
    docs: Numbers
    weights: Tensor


class PairScorer:
    """Weights (the sigmoid of the network's logit) of pairs of the sequences of two sides."""

    def __init__(
        self, network: Network, queries: Side, docs: Side, device: str = "cpu", precision: str = "fp32",
        way: str = "auto", tokens: int | None = None, tiles: Any = None,
    ) -> None:  # fmt: skip
        """Put the network's weights on the device."""
        self.network, self.queries, self.docs, self.device = network.eval(), queries, docs, device
        self.tokens = tokens or TOKENS["cuda" if device.startswith("cuda") else "cpu"]
        self.precision, self.way = precision, _checked(network, device, precision, way)
        self.tiles = tiles
        self._on_device: dict[int, _OnDevice] = {}
        self._bodies: dict[int, Callable[[Tensor], Tensor]] = {}
        if self.way == "model":
            network.to(device)
            return
        kind = PRECISIONS[precision]
        self._weights = weights_of(network, device, kind)
        special = network.pieces.special
        self._special = torch.tensor([special["cls"], special["sep"], special["sep"]], device=device)
        most = 3 + _most_rows(queries) + _most_rows(docs)
        self._qkv = torch.zeros(most, 3 * self._weights.width, dtype=kind, device=device)
        self._states = torch.zeros(most, self._weights.width, dtype=kind, device=device)
        if self.way == "auto":
            pass  # INNER

            self.way = fastest(self)

    def grids(self, queries: Numbers, told: Told | None = None) -> Iterator[Grid]:
        """The weights of some queries with all documents, in parts of equal lengths; `told` hears of every batch."""
        for length, (members, inside) in _by_length(self.queries, queries).items():
            for other, group in self.docs.groups.items():
                with torch.inference_mode():
                    run = self._bucket(length, other)
                    columns = len(group.members)
                    found = torch.empty(len(members) * columns, device=self.device)
                    rows = torch.from_numpy(inside).to(self.device)
                    for at in _batches(len(found), run.size):
                        pair = torch.arange(at.start, at.stop, device=self.device)
                        found[at] = run(rows[pair // columns], pair % columns)
                        if told is not None:
                            told(len(pair))
                yield Grid(members, group.members, found.view(len(members), columns))

    def pairs(self, queries: Numbers, docs: Numbers) -> Tensor:
        """The weights of aligned pairs in any order, in single precision."""
        found = torch.empty(len(queries), device=self.device)
        keys = self.queries.lengths[queries].astype(np.int64) << 32 | self.docs.lengths[docs]
        order = np.argsort(keys, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if len(order) else []:
            lengths = int(self.queries.lengths[queries[part[0]]]), int(self.docs.lengths[docs[part[0]]])
            sides = (self.queries.inside[queries[part]], self.docs.inside[docs[part]])
            with torch.inference_mode():
                run = self._bucket(*lengths)
                query, doc, place = (
                    torch.from_numpy(np.ascontiguousarray(a)).to(self.device) for a in (*sides, part)
                )
                for at in _batches(len(part), run.size):
                    found[place[at]] = run(query[at], doc[at])
        return found

    def full_batch(self) -> tuple[_Bucket, Tensor, Tensor]:
        """A whole batch of pairs of the most frequent lengths, and what scores it."""
        lengths = [max(side.groups, key=lambda n: len(side.groups[n].members)) for side in (self.queries, self.docs)]
        run = self._bucket(*lengths)
        at = torch.arange(run.size, device=self.device)
        groups = self.queries.groups[lengths[0]], self.docs.groups[lengths[1]]
        query, doc = (at * step % len(group.members) for step, group in zip((7, 1), groups, strict=True))
        return run, query, doc

    def forget(self) -> None:
        """Let go of what was recorded or compiled."""
        self._bodies.clear()

    def _bucket(self, query_length: int, doc_length: int) -> _Bucket:
        """What scores pairs of two lengths."""
        groups = self.queries.groups[query_length], self.docs.groups[doc_length]
        length = query_length + doc_length + 3
        size = max(1, self.tokens // length)
        if self.way == "model":
            return _Bucket(size, self._by_model(*groups))
        first, second = self._tabled(*groups, length)
        return _Bucket(size, self._by_rows(first, second, size))

    def _tabled(self, query: Group, doc: Group, length: int) -> tuple[Tensor, Tensor]:
        """Fill the tables of the first layer, and give the rows of each query's pieces and of each document's.

        The first three rows are [CLS], the [SEP] in the middle and the one at the end.
        """
        middle = query.rows.shape[1] + 1
        ours, theirs = self._held(query), self._held(doc)
        pieces = torch.cat([self._special, ours.pieces, theirs.pieces])
        marks = torch.tensor([0, middle, length - 1], device=self.device)
        places = torch.cat([marks, ours.places + 1, theirs.places + middle + 1])
        kinds = [torch.tensor([0, 0, 1]), *(torch.full(g.pieces.shape, i) for i, g in enumerate((query, doc)))]
        states = self._weights.embed(pieces, places, torch.cat(kinds).to(self.device))
        self._states[: len(states)] = states
        torch.addmm(
            self._weights.layers[0].qkv.bias, states, self._weights.layers[0].qkv.weight.T,
            out=self._qkv[: len(states)],
        )  # fmt: skip
        asked, told = ours.rows + 3, theirs.rows + 3 + len(query.pieces)
        cls, sep, end = (torch.full((n, 1), row, device=self.device) for n, row in _marks(len(asked), len(told)))
        return torch.cat([cls, asked, sep], 1).int(), torch.cat([told, end], 1).int()

    def _held(self, group: Group) -> _OnDevice:
        """The numbers of a group, which go to the device once."""
        if id(group) not in self._on_device:
            self._on_device[id(group)] = _OnDevice(*(self._put(part) for part in group[1:]))
        return self._on_device[id(group)]

    def _put(self, numbers: Numbers) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(numbers, np.int64)).to(self.device)

    def _by_rows(self, asked: Tensor, told: Tensor, size: int) -> Callable[[Tensor, Tensor], Tensor]:
        length = asked.shape[1] + told.shape[1]

        def run(query: Tensor, doc: Tensor) -> Tensor:
            rows = torch.cat([asked[query], told[doc]], 1)
            if len(rows) < size // 2 or self.way == "eager" or length > _LONGEST:
                return torch.sigmoid(logits(self._operations("eager"), self._qkv, self._states, rows))
            if len(rows) < size:  # the same static shape, filled up with its own first row
                rows = torch.cat([rows, rows[:1].expand(size - len(rows), -1)])
            return torch.sigmoid(self._body(length)(rows)[: len(query)])

        return run

    def _body(self, length: int) -> Callable[[Tensor], Tensor]:
        """What gives the logits of a whole batch of pairs of some length, in the chosen way."""
        if length not in self._bodies:
            self._bodies[length] = self._made(length)
        return self._bodies[length]

    def _made(self, length: int) -> Callable[[Tensor], Tensor]:
        operations = self._operations(self.way)

        def body(rows: Tensor) -> Tensor:
            return logits(operations, self._qkv, self._states, rows)

        if self.way.startswith("compile"):
            return _compiled(body)
        if self.way in _GRAPHS:
            pass  # INNER

            return Replayed(body, (max(1, self.tokens // length), length), self.device)
        return body

    def _operations(self, way: str) -> Operations:
        if way in KERNELS:
            from whyrank.learners.parm.pairs.operations import KernelOperations

            return KernelOperations(self._weights, way, self.tiles)
        return Operations(self._weights, "broadcast" if way == "compile-broadcast" else "matmul")

    def _by_model(self, query: Group, doc: Group) -> Callable[[Tensor, Tensor], Tensor]:
        """Pairs through the network itself."""
        special, kind = self.network.pieces.special, PRECISIONS[self.precision]
        told = [self._put(group.pieces[group.rows]) for group in (query, doc)]
        marks = [torch.tensor([[special[name]]], device=self.device) for name in ("cls", "sep")]

        def run(first: Tensor, second: Tensor) -> Tensor:
            cls, sep = (mark.expand(len(first), 1) for mark in marks)
            ids = torch.cat([cls, told[0][first], sep, told[1][second], sep], 1)
            types = (torch.arange(ids.shape[1], device=self.device) > told[0].shape[1] + 1).long().expand_as(ids)
            batch = {"ids": ids, "types": types, "mask": torch.ones_like(ids)}
            with torch.autocast(torch.device(self.device).type, kind, enabled=kind != torch.float32):
                return torch.sigmoid(self.network(batch).float())

        return run


class _OnDevice(NamedTuple):
    """Pieces, places and rows of a group as tensors."""

    pieces: Tensor
    places: Tensor
    rows: Tensor


class _Bucket(NamedTuple):
    """What scores pairs of two lengths, `size` of them at most at a time, given by their places in the groups."""

    size: int
    run: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, query: Tensor, doc: Tensor) -> Tensor:
        return self.run(query, doc)


def _compiled(body: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A compiled body; each length is a shape of its own, and there may be many."""
    settings: Any = torch._dynamo.config
    settings.recompile_limit = max(settings.recompile_limit, 64)
    found: Callable[[Tensor], Tensor] = torch.compile(body, dynamic=False)
    return found


def _checked(network: Network, device: str, precision: str, way: str) -> str:
    if way not in WAYS:
        raise UnknownName("way to score pairs", way, WAYS)
    if precision not in PRECISIONS:
        raise UnknownName("precision", precision, PRECISIONS)
    if not can_be_fused(network):
        if way not in ("auto", "model"):
            raise WhyrankError(f"way {way!r} needs a parm network over a BERT-like encoder; use auto or model")
        return "model"
    on_gpu = device.startswith("cuda")
    if way in _GRAPHS and not on_gpu:
        raise WhyrankError(f"way {way!r} needs a GPU; use auto or eager")
    if way in KERNELS and precision == "fp32":
        raise WhyrankError(f"way {way!r} computes in bf16; use graph for fp32")
    return "eager" if way == "auto" and not on_gpu else way


def _marks(queries: int, docs: int) -> tuple[tuple[int, int], ...]:
    return (queries, 0), (queries, 1), (docs, 2)


def _most_rows(side: Side) -> int:
    return max((len(group.pieces) for group in side.groups.values()), default=0)


def _batches(total: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, total)) for start in range(0, total, size)]


def _by_length(side: Side, numbers: Numbers) -> dict[int, tuple[Numbers, Numbers]]:
    """The numbers of each length, and their places in the groups."""
    lengths = side.lengths[numbers]
    parts = {int(length): numbers[lengths == length] for length in np.unique(lengths)}
    return {length: (part, side.inside[part].astype(np.int64)) for length, part in parts.items()}


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
