"""Weights of all pairs of two vocabularies, in batches of equal lengths, so that nothing is padded.

    scorer = PairScorer(network, TermSequences.of(query_ids), TermSequences.of(doc_ids), "cuda", "bf16")
    for grid in scorer.grids(query_numbers): ...

Two implementations: `torch`, the network itself, which is the reference for any architecture and device; and
`triton` (see `layers`), for BERT-like encoders in bf16 on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core import Codes, Ints, UnknownName, WhyrankError
from whyrank.learners.parm.pairs.layers import Layers, Replayed, is_supported, weights_of
from whyrank.networks import Ids, Network

IMPLEMENTATIONS = ("auto", "torch", "triton")
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
TOKENS = {"cpu": 1 << 11, "cuda": 1 << 17}  # of a batch
_LONGEST = 32  # tokens of a pair up to which the kernels are used
Numbers = npt.NDArray[np.integer[Any]]
Batch = Callable[[Tensor, Tensor], Tensor]  # weights of pairs, given by their positions in two groups


class LengthGroup(NamedTuple):
    """The sequences of one length, and the distinct (token, position) in them."""

    members: Codes  # numbers of the sequences
    tokens: Codes  # the token of each distinct (token, position)
    positions: Codes  # its position, counted from 0
    rows: Codes  # for each member and position the number of its (token, position)


@dataclass(frozen=True, eq=False)
class TermSequences:
    """The distinct token sequences of terms, end to end: sequence `i` is `tokens[ends[i]:ends[i + 1]]`.

    Terms that the network cannot tell apart are scored once.
    """

    tokens: Codes
    ends: Ints
    of_term: Codes  # which of the sequences each term has

    @classmethod
    def of(cls, rows: Sequence[Ids]) -> TermSequences:
        """The sequences of some terms, in the order of their first appearance."""
        numbers: dict[bytes, int] = {}
        of_term = [numbers.setdefault(np.ascontiguousarray(row, np.int32).tobytes(), len(numbers)) for row in rows]
        ends = np.cumsum([0, *(len(key) // 4 for key in numbers)]).astype(np.int64)
        return cls(np.frombuffer(b"".join(numbers), np.int32), ends, np.array(of_term, np.int32))

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def counts(self) -> Ints:
        """How many terms share each sequence."""
        return np.bincount(self.of_term, minlength=len(self))

    @cached_property
    def lengths(self) -> Codes:
        """The length of each sequence."""
        return np.diff(self.ends).astype(np.int32)

    @cached_property
    def groups(self) -> dict[int, LengthGroup]:
        """The sequences by length, so that nothing is padded."""
        found = {}
        for length in np.unique(self.lengths).tolist():
            members = np.flatnonzero(self.lengths == length).astype(np.int32)
            at = self.ends[members][:, None] + np.arange(length)
            keys = self.tokens[at].astype(np.int64) * max(length, 1) + np.arange(length)
            distinct, rows = np.unique(keys, return_inverse=True)
            tokens, positions = (part.astype(np.int32) for part in np.divmod(distinct, max(length, 1)))
            numbers = rows.reshape(len(members), length).astype(np.int32)
            found[length] = LengthGroup(members, tokens, positions, numbers)
        return found

    @cached_property
    def inside(self) -> Codes:
        """The position of each sequence among the members of its group."""
        found = np.zeros(len(self), np.int32)
        for group in self.groups.values():
            found[group.members] = np.arange(len(group.members), dtype=np.int32)
        return found


class PairGrid(NamedTuple):
    """All pairs of some queries and documents that have the same lengths."""

    queries: Numbers  # their numbers
    docs: Numbers  # theirs
    weights: Tensor  # [queries, docs], on the device


class PairScorer:
    """Weights, the sigmoid of the network's logit, of pairs of terms."""

    def __init__(
        self, network: Network, queries: TermSequences, docs: TermSequences, device: str = "cpu",
        precision: str = "fp32", implementation: str = "auto", tokens: int | None = None,
    ) -> None:  # fmt: skip
        """Choose the implementation, and put the network's weights on the device."""
        if precision not in PRECISIONS:
            raise UnknownName("precision", precision, PRECISIONS)
        self.network, self.queries, self.docs = network.to(device).eval(), queries, docs
        self.device, self.precision = device, precision
        self.tokens = tokens or TOKENS["cuda" if device.startswith("cuda") else "cpu"]
        self.implementation = _choose(network, device, precision, implementation)
        self._fast = self._layers() if self.implementation == "triton" else None

    def __reduce__(self) -> tuple[Any, ...]:
        """What another process makes the same scorer from."""
        settings = self.device, self.precision, self.implementation, self.tokens
        return PairScorer, (self.network, self.queries, self.docs, *settings)

    def grids(self, queries: Numbers) -> Iterator[PairGrid]:
        """The weights of some queries with all documents, by length."""
        lengths = self.queries.lengths[queries]
        for length in np.unique(lengths).tolist():
            members = queries[lengths == length]
            rows = _put(self.queries.inside[members], self.device)
            for group in self.docs.groups.values():
                size, columns = self.batch_size(self.queries.groups[length], group), len(group.members)
                found = torch.empty(len(members) * columns, device=self.device)
                with torch.inference_mode():
                    batch = self.batch(self.queries.groups[length], group)
                    for start in range(0, len(found), size):
                        pair = torch.arange(start, min(start + size, len(found)), device=self.device)
                        found[start : start + size] = batch(rows[pair // columns], pair % columns)
                yield PairGrid(members, group.members, found.view(len(members), columns))

    def batch(self, query: LengthGroup, doc: LengthGroup) -> Batch:
        """What scores pairs of two groups, `batch_size` of them at most at a time."""
        if self._fast is not None and _length(query, doc) <= _LONGEST:
            return self._fast.batch(query, doc, self.batch_size(query, doc))
        return self._by_network(query, doc)

    def batch_size(self, query: LengthGroup, doc: LengthGroup) -> int:
        """Pairs of a batch."""
        return max(1, self.tokens // _length(query, doc))

    def _by_network(self, query: LengthGroup, doc: LengthGroup) -> Batch:
        special, kind = self.network.tokenizer.special, PRECISIONS[self.precision]
        query_tokens, doc_tokens = (_put(group.tokens[group.rows], self.device) for group in (query, doc))
        marks = [torch.tensor([[special[name]]], device=self.device) for name in ("cls", "sep")]

        def batch(first: Tensor, second: Tensor) -> Tensor:
            cls, sep = (mark.expand(len(first), 1) for mark in marks)
            ids = torch.cat([cls, query_tokens[first], sep, doc_tokens[second], sep], 1)
            types = (torch.arange(ids.shape[1], device=self.device) > query_tokens.shape[1] + 1).long().expand_as(ids)
            with torch.autocast(torch.device(self.device).type, kind, enabled=kind != torch.float32):
                logits = self.network({"ids": ids, "types": types, "mask": torch.ones_like(ids)})
            return torch.sigmoid(logits.float())

        return batch

    def _layers(self) -> FastScorer:
        layers = Layers(weights_of(self.network, self.device, PRECISIONS[self.precision]))
        most = 3 + sum(max((len(g.tokens) for g in side.groups.values()), default=0)
                       for side in (self.queries, self.docs))  # fmt: skip
        special = self.network.tokenizer.special
        return FastScorer(layers, [special["cls"], special["sep"], special["sep"]], most, self.device)


class FastScorer:
    """Scores pairs by `layers`: tables of the first layer, and one recorded shape for each length."""

    record = Replayed

    def __init__(self, layers: Layers, special: list[int], rows: int, device: str) -> None:
        """Make room for tables of so many rows; recorded graphs read them where they lie."""
        self.layers, self.device, kind = layers, device, layers.weights.layers[0].qkv.weight.dtype
        self._special = torch.tensor(special, device=device)
        self._qkv = torch.zeros(rows, 3 * layers.weights.width, dtype=kind, device=device)
        self._states = torch.zeros(rows, layers.weights.width, dtype=kind, device=device)
        self._on_device: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        self._recorded: dict[int, Callable[[Tensor], Tensor]] = {}

    def batch(self, query: LengthGroup, doc: LengthGroup, size: int) -> Batch:
        """What scores pairs of two groups; whole batches are replayed."""
        length = _length(query, doc)
        query_rows, doc_rows = self._fill(query, doc, length)

        def logits(rows: Tensor) -> Tensor:
            return self.layers.logits(self._qkv, self._states, rows)

        def batch(first: Tensor, second: Tensor) -> Tensor:
            rows = torch.cat([query_rows[first], doc_rows[second]], 1)
            if len(rows) < size // 2:
                return torch.sigmoid(logits(rows))
            if len(rows) < size:  # the same static shape, filled up with its own first row
                rows = torch.cat([rows, rows[:1].expand(size - len(rows), -1)])
            if length not in self._recorded:
                self._recorded[length] = type(self).record(logits, (size, length), self.device)
            return torch.sigmoid(self._recorded[length](rows)[: len(first)])

        return batch

    def _fill(self, query: LengthGroup, doc: LengthGroup, length: int) -> tuple[Tensor, Tensor]:
        """Fill the tables of the first layer, and give the rows of each query's tokens and of each document's.

        The first three rows are [CLS], the [SEP] in the middle and the one at the end.
        """
        middle, weights = query.rows.shape[1] + 1, self.layers.weights
        tokens, inside, rows = zip(self._held(query), self._held(doc), strict=True)
        marks = torch.tensor([0, middle, length - 1], device=self.device)
        positions = torch.cat([marks, inside[0] + 1, inside[1] + middle + 1])
        types = torch.cat([torch.tensor([0, 0, 1]), *(torch.full((len(p),), i) for i, p in enumerate(tokens))])
        states = weights.embed(torch.cat([self._special, *tokens]), positions, types.to(self.device))
        self._states[: len(states)] = states
        qkv = weights.layers[0].qkv
        torch.addmm(qkv.bias, states, qkv.weight.T, out=self._qkv[: len(states)])
        queries, docs = rows[0] + 3, rows[1] + 3 + len(tokens[0])
        cls, sep, end = (torch.full((n, 1), row, device=self.device)
                         for n, row in ((len(queries), 0), (len(queries), 1), (len(docs), 2)))  # fmt: skip
        return torch.cat([cls, queries, sep], 1).int(), torch.cat([docs, end], 1).int()

    def _held(self, group: LengthGroup) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens, positions and rows of a group, which go to the device once."""
        if id(group) not in self._on_device:
            tokens, positions, rows = (_put(part, self.device) for part in group[1:])
            self._on_device[id(group)] = tokens, positions, rows
        return self._on_device[id(group)]


def _choose(network: Network, device: str, precision: str, given: str) -> str:
    if given not in IMPLEMENTATIONS:
        raise UnknownName("implementation of the pair scorer", given, IMPLEMENTATIONS)
    fits = device.startswith("cuda") and precision == "bf16" and is_supported(network) and find_spec("triton")
    if given == "triton" and not fits:
        raise WhyrankError("triton scores pairs in bf16 on a GPU, with a BERT-like encoder; take torch")
    return given if given != "auto" else "triton" if fits else "torch"


def _length(query: LengthGroup, doc: LengthGroup) -> int:
    return int(query.rows.shape[1] + doc.rows.shape[1] + 3)


def _put(numbers: Numbers, device: str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(numbers, np.int64)).to(device)
