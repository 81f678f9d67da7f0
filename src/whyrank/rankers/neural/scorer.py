"""One scorer for all neural models: each distinct input once, batches by length, texts tokenised ahead.

A reader is a model with its tokenizer (`readers`). Some read query and text together, and what the model gives is the
score of a pair; others read them apart, and what it gives are encodings, which are compared. Pairs are tokenised in
chunks, in a thread, while the chunk before is computed. On a GPU nothing waits for a score before all are under way.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from whyrank.core import Floats, Ints
from whyrank.rankers.neural.backends import Compiled, compile_reader
from whyrank.rankers.neural.computing import Computing
from whyrank.rankers.neural.inputs import TokenRows
from whyrank.rankers.neural.passages import TextPairs

if TYPE_CHECKING:
    from torch import Tensor

    from whyrank.networks.separate import Encoded

T = TypeVar("T")
Side = Literal["pair", "query", "document"]
_PAIRS = 512  # pairs of encodings that are compared at a time: these may be as wide as the vocabulary
_KEPT_SCORES = 2**18  # scores that outlive a call
_KEPT_TOKENS = 2**24  # tokens that do
_LAST = np.iinfo(np.int64).max  # a key that no input has
log = logging.getLogger(__name__)


class TokenisedInputs(NamedTuple):
    """Tokenised inputs.

    Attributes:
        keys: a number for all that the model sees of each input; equal inputs have equal ones.
        lengths: the number of tokens of each.
        batch: gives some of them as tensors on the device.
    """

    keys: Ints
    lengths: Ints
    batch: Callable[[Ints], dict[str, Any]]


class Reader:
    """A model with its tokenizer. It reads pairs; or queries and texts apart (`apart`), whose encodings it compares.

    Attributes:
        module: the torch module with the weights.
    """

    apart = False
    module: Any

    def prepare(
        self, pairs: TextPairs, side: Side, computing: Computing, known: dict[str, TokenRows]
    ) -> Callable[[Ints], TokenisedInputs]:
        """What tokenises some of the pairs, or of the texts of `pairs.docs`, which are queries or documents.

        The tokens of texts are taken from `known` and added to it.
        """
        raise NotImplementedError

    def __call__(self, batch: dict[str, Any], side: Side) -> Any:
        """What the model gives for a batch: scores, or where queries and texts are read apart, encodings."""
        raise NotImplementedError

    def encoded(self, output: Any) -> Encoded:
        """Encodings as tensors by name, whose first dimension is the text."""
        found: Encoded = output
        return found

    def compare(self, queries: Encoded, docs: Encoded) -> Tensor:
        """The scores of aligned encodings."""
        raise NotImplementedError


class KnownScores:
    """Scores by key in two arrays, of which the keys ascend."""

    def __init__(self, keys: Ints | None = None, values: Floats | None = None) -> None:
        """Scores of some keys; behind them stands a key that no input has."""
        self.keys = np.array([_LAST]) if keys is None else keys
        self.values = np.array([np.nan]) if values is None else values

    def add(self, keys: Ints) -> Ints:
        """Make room for keys; the positions of those that are new, each once."""
        distinct, first = np.unique(keys, return_index=True)
        at = np.searchsorted(self.keys, distinct)
        new = self.keys[at] != distinct
        self.keys = np.insert(self.keys, at[new], distinct[new])
        self.values = np.insert(self.values, at[new], np.nan)
        found: Ints = first[new]
        return found

    def at(self, keys: Ints) -> Ints:
        """Where the scores of known keys are."""
        return np.searchsorted(self.keys, keys)


class KnownTexts:
    """The encodings of texts as tensors by name, and where the encoding of each row of tokens is; -1 is nowhere."""

    def __init__(self) -> None:
        self.encoded: Encoded = {}
        self.where = np.zeros(0, np.int64)

    @property
    def size(self) -> int:
        """Bytes of all encodings."""
        return sum(int(tensor.nbytes) for tensor in self.encoded.values())

    def missing(self, keys: Ints) -> Ints:
        """The positions of the keys that are not encoded, each once."""
        distinct, first = np.unique(keys, return_index=True)
        room = max(int(distinct[-1]) + 1 - len(self.where), 0)
        self.where = np.append(self.where, np.full(room, -1))
        return first[self.where[distinct] < 0]

    def add(self, keys: Sequence[Ints], parts: Sequence[Encoded]) -> None:
        """Add encodings to those that are there."""
        from whyrank.networks import join

        start = len(next(iter(self.encoded.values()), ()))
        self.encoded = join([*([self.encoded] if self.encoded else []), *parts])
        every = np.concatenate(keys)
        self.where[every] = np.arange(start, start + len(every))


class Memory:
    """What outlives a call of a scorer: tokens of texts, scores and encodings, all of them by numbers of inputs."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # one call at a time
        self.fitting = 2**62  # tokens that fit into memory, as far as is known
        self.forget()

    def forget(self) -> None:
        """Know nothing; numbers of inputs start again."""
        self.tokens: dict[str, TokenRows] = {}
        self.scores = KnownScores()
        self.texts: dict[Side, KnownTexts] = {"query": KnownTexts(), "document": KnownTexts()}


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores pairs with a reader; inputs that are the same tokens to it, once cut to its length, are read once.

    Args:
        reader: the model.
        computing: where it computes, and in which number format.
        tokens: how many tokens go into one batch; None takes what suits the device.
        sigmoid: whether scores are turned into probabilities, 1 / (1 + exp(-z)).
        compiled: the model in the form of another back end than torch.
    """

    reader: Reader
    computing: Computing
    tokens: int | None = None
    sigmoid: bool = False
    compiled: Compiled | None = None
    memory: Memory = field(init=False, default_factory=Memory)

    def by_backend(self, name: str) -> Scorer:
        """The same scorer by the requested back end, or by torch where that cannot take the model.

        `name` is for the warning.
        """
        backend = self.computing.backend
        if backend == "torch":
            return self
        try:
            compiled = compile_reader(self.reader, self.computing)
        except Exception as error:  # packages raise errors of any kind for a model that they cannot take
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            log.warning("%s: %s cannot take this model (%s); torch computes", name, backend, reason)
            computing = self.computing.by_torch
            computing.place(self.reader.module)
            return replace(self, computing=computing)
        return replace(self, computing=replace(self.computing, half=compiled.half), compiled=compiled)

    def __call__(self, pairs: TextPairs) -> Floats:
        """One score per pair."""
        import torch

        memory, keys = self.memory, np.zeros(len(pairs.doc), np.int64)
        with memory.lock, self.computing.running():
            if sum(map(len, memory.tokens.values())) > _KEPT_TOKENS:
                memory.forget()
            known = KnownScores(memory.scores.keys, memory.scores.values.copy())
            compute = self._compare if self.reader.apart else self._read
            if found := list(compute(pairs, keys, known)):  # only now is the device waited for
                scores = torch.cat([scores for _, scores in found]).double().cpu().numpy()
                known.values[known.at(np.concatenate([some for some, _ in found]))] = scores
            if len(known.keys) > _KEPT_SCORES:
                own = np.append(np.unique(keys), _LAST)
                known = KnownScores(own, known.values[known.at(own)])
            memory.scores = known
            values = known.values[known.at(keys)]
        return torch.sigmoid(torch.from_numpy(values)).numpy() if self.sigmoid else values

    def _read(self, pairs: TextPairs, keys: Ints, known: KnownScores) -> Iterator[tuple[Ints, Tensor]]:
        """Keys and scores of the pairs that are new; the key of each pair goes to `keys`."""
        return self._outputs(pairs, "pair", keys, known.add)

    def _compare(self, pairs: TextPairs, keys: Ints, known: KnownScores) -> Iterator[tuple[Ints, Tensor]]:
        """The same, from the encodings of queries and texts."""
        import torch

        from whyrank.networks import take

        query_keys, queries = self._encode(pairs.queries, "query")
        number = np.full(len(pairs.docs), -1)
        for codes in TextPairs.alone(pairs.docs).chunks(self.computing.texts):
            doc_keys, docs = self._encode([pairs.docs[i] for i in codes.tolist()], "document")
            number[:] = -1
            number[codes] = doc_keys
            rows = np.flatnonzero(number[pairs.doc] >= 0)
            query, doc = query_keys[pairs.query[rows]], number[pairs.doc[rows]]
            keys[rows] = query << 32 | doc
            new = known.add(keys[rows])
            for some in (new[start : start + _PAIRS] for start in range(0, len(new), _PAIRS)):
                sides = ((queries, query), (docs, doc))
                at = (torch.from_numpy(texts.where[each[some]]).to(self.computing.device) for texts, each in sides)
                taken = [take(texts.encoded, where) for (texts, _), where in zip(sides, at, strict=True)]
                yield keys[rows[some]], self.reader.compare(*taken)

    def _encode(self, texts: Sequence[str], side: Side) -> tuple[Ints, KnownTexts]:
        """The keys of texts, and their encodings; those of earlier calls are dropped where they take too much."""
        known, keys = self.memory.texts[side], np.zeros(len(texts), np.int64)
        if known.size > self.computing.kept:
            known = self.memory.texts[side] = KnownTexts()
        outputs = self._outputs(TextPairs.alone(texts), side, keys, known.missing)
        if found := [(some, self.reader.encoded(output)) for some, output in outputs]:
            known.add([some for some, _ in found], [encoded for _, encoded in found])
        return keys, known

    def _outputs(
        self, pairs: TextPairs, side: Side, keys: Ints, missing: Callable[[Ints], Ints]
    ) -> Iterator[tuple[Ints, Any]]:
        """Keys of the inputs that are missing and what the model gives for them, batch by batch."""
        import torch

        tokenise = self.reader.prepare(pairs, side, self.computing, self.memory.tokens)
        most = self.tokens or min(self.computing.tokens, self.computing.fitting(self.reader.module))

        def tokenised() -> Iterator[tuple[TokenisedInputs, Ints]]:
            for rows in pairs.chunks(self.computing.chunk):
                inputs = tokenise(rows)
                keys[rows] = inputs.keys
                yield inputs, missing(inputs.keys)

        batches = (
            (inputs, new[some])
            for inputs, new in ahead(tokenised())
            for some in by_length(inputs.lengths[new], min(most, self.memory.fitting))
        )
        if self.compiled is None:
            for inputs, some in batches:
                yield from self._output(inputs, some, side)
        else:
            arrays = (
                (inputs.keys[some], {name: each.numpy() for name, each in inputs.batch(some).items()})
                for inputs, some in batches
            )
            yield from ((own, torch.from_numpy(found)) for own, found in self.compiled.each(arrays))

    def _output(self, inputs: TokenisedInputs, some: Ints, side: Side) -> Iterator[tuple[Ints, Any]]:
        """What the model gives for a batch; one that does not fit into the memory of a GPU is halved."""
        import torch

        try:
            output = self.reader(inputs.batch(some), side)
        except torch.cuda.OutOfMemoryError:
            if len(some) == 1:
                raise
        else:
            yield inputs.keys[some], output
            return
        torch.cuda.empty_cache()
        self.memory.fitting = max(int(inputs.lengths[some].max()) * len(some) // 2, 1)
        for half in np.array_split(some, 2):
            yield from self._output(inputs, half, side)


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made in a thread while the one before it is in use."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


def by_length(lengths: Ints, tokens: int) -> Iterator[Ints]:
    """Rows in batches, the longest first, so that a batch as wide as its longest row has up to `tokens` cells."""
    order, start = np.argsort(-lengths, kind="stable"), 0
    while start < len(order):
        size = max(1, tokens // max(1, int(lengths[order[start]])))
        yield order[start : start + size]
        start += size
