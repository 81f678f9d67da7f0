"""One scorer for all neural models: each distinct input once, batches by length, tokenised one batch ahead.

A reader is a model with its tokenizer (`readers`). Some read query and text together, and what the model gives is the
score of a pair; others read them apart, and what it gives are encodings, which are compared.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from whyrank.core import Floats, Ints
from whyrank.rankers.neural.backends import Compiled, compile_reader
from whyrank.rankers.neural.computing import Computing
from whyrank.rankers.neural.passages import TextPairs

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Side = Literal["pair", "query", "document"]
_DOCS = 4096  # texts whose encodings are held at a time, besides those that are kept
_PAIRS = 512  # pairs of encodings that are compared at a time: these may be as wide as the vocabulary
_KEPT_SCORES = 2**18  # scores that outlive a call
_KEPT_BYTES = 512 * 2**20  # of encodings that do
log = logging.getLogger(__name__)


class TokenisedInputs(NamedTuple):
    """Tokenised inputs.

    Attributes:
        keys: a digest of all that the model sees of each input; equal inputs have equal ones.
        lengths: the number of tokens of each.
        batch: gives some of them as tensors on the device.
    """

    keys: list[bytes]
    lengths: Ints
    batch: Callable[[Ints], dict[str, Any]]


class Reader:
    """A model with its tokenizer. It reads pairs; or queries and texts apart (`apart`), whose encodings it compares.

    Attributes:
        module: the torch module with the weights.
    """

    apart = False
    module: Any

    def prepare(self, pairs: TextPairs, side: Side, computing: Computing) -> Callable[[Ints], TokenisedInputs]:
        """What tokenises some of the pairs, or of the texts of `pairs.docs`, which are queries or documents."""
        raise NotImplementedError

    def __call__(self, batch: dict[str, Any], side: Side) -> Any:
        """What the model gives for a batch."""
        raise NotImplementedError

    def rows(self, output: Any) -> list[Any]:
        """The same row by row: scores, unless these are encodings."""
        found: list[Any] = output.double().cpu().tolist()
        return found

    def compare(self, queries: Sequence[Any], docs: Sequence[Any], query: Tensor, doc: Tensor) -> Tensor:
        """The scores of the encodings `(queries[query[i]], docs[doc[i]])`."""
        raise NotImplementedError


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
    scores: Kept = field(init=False)
    encodings: Kept = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", Kept(_KEPT_SCORES))
        object.__setattr__(self, "encodings", Kept(_KEPT_BYTES))

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
        inputs, known = self._compare(pairs) if self.reader.apart else self._values(pairs, "pair")
        for key, score in known.items():
            self.scores.add(key, score, 1)
        found = np.array([known[key] for key in inputs], dtype=np.float64)
        if not self.sigmoid:
            return found
        import torch

        return np.asarray(torch.sigmoid(torch.from_numpy(found)).numpy())

    def _compare(self, pairs: TextPairs) -> tuple[list[bytes], dict[bytes, Any]]:
        """The key of each pair and the scores by key, from the encodings of queries and texts."""
        query_keys, queries = self._values(TextPairs.alone(pairs.queries), "query")
        inputs, known = [b""] * len(pairs.query), dict[bytes, Any]()
        for codes in TextPairs.alone(pairs.docs).chunks(_DOCS):
            doc_keys, docs = self._values(TextPairs.alone([pairs.docs[i] for i in codes]), "document")
            key_of = dict(zip(codes.tolist(), doc_keys, strict=True))
            rows = np.flatnonzero(np.isin(pairs.doc, codes))
            both = [(query_keys[pairs.query[row]], key_of[int(pairs.doc[row])]) for row in rows]
            for row, (query, doc) in zip(rows.tolist(), both, strict=True):
                inputs[row] = query + doc
            new = [both[i] for i in self.scores.missing([query + doc for query, doc in both], known)]
            for some in (new[start : start + _PAIRS] for start in range(0, len(new), _PAIRS)):
                keys = (query + doc for query, doc in some)
                known |= zip(keys, self._similarities(queries, docs, some), strict=True)
        return inputs, known

    def _similarities(
        self, queries: dict[bytes, Any], docs: dict[bytes, Any], pairs: Sequence[tuple[bytes, bytes]]
    ) -> list[float]:
        """The scores of some pairs of encodings; each distinct one is laid out once."""
        import torch

        def laid_out(known: dict[bytes, Any], keys: Sequence[bytes]) -> tuple[list[Any], Tensor]:
            number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
            codes = torch.tensor([number[key] for key in keys], device=self.computing.device)
            return [known[key] for key in number], codes

        some, query = laid_out(queries, [query for query, _ in pairs])
        others, doc = laid_out(docs, [doc for _, doc in pairs])
        with self.computing.running():
            found: list[float] = self.reader.compare(some, others, query, doc).double().cpu().tolist()
        return found

    def _values(self, pairs: TextPairs, side: Side) -> tuple[list[bytes], dict[bytes, Any]]:
        """The key of each pair or text, and by key what the model gives: scores, or encodings, which are kept."""
        inputs, known = [b""] * len(pairs.doc), dict[bytes, Any]()
        for keys, output in self._outputs(self._batches(pairs, side, inputs, known), side):
            known |= zip(keys, self.reader.rows(output), strict=True)
        for key, value in known.items() if side != "pair" else ():
            parts = value.values() if isinstance(value, dict) else (value,)
            self.encodings.add(key, value, sum(int(part.nbytes) for part in parts))
        return inputs, known

    def _outputs(
        self, batches: Iterator[tuple[list[bytes], dict[str, Any]]], side: Side
    ) -> Iterable[tuple[list[bytes], Any]]:
        import torch

        if self.compiled is not None:
            arrays = ((keys, {name: each.numpy() for name, each in batch.items()}) for keys, batch in batches)
            return ((keys, torch.from_numpy(found)) for keys, found in self.compiled.each(arrays))
        with self.computing.running():  # what is computed on a GPU is fetched at the end, so that it never waits
            return [output for keys, batch in ahead(batches) for output in self._output(keys, batch, side)]

    def _output(self, keys: list[bytes], batch: dict[str, Any], side: Side) -> list[tuple[list[bytes], Any]]:
        """What the model gives for a batch; one that does not fit into the memory of a GPU is halved."""
        import torch

        try:
            return [(keys, self.reader(batch, side))]
        except torch.cuda.OutOfMemoryError:
            if len(keys) == 1:
                raise
        torch.cuda.empty_cache()
        middle = len(keys) // 2
        parts = ((keys[:middle], slice(middle)), (keys[middle:], slice(middle, None)))
        halves = [(own, {name: each[rows] for name, each in batch.items()}) for own, rows in parts]
        return [output for own, half in halves for output in self._output(own, half, side)]

    def _batches(
        self, pairs: TextPairs, side: Side, inputs: list[bytes], known: dict[bytes, Any]
    ) -> Iterator[tuple[list[bytes], dict[str, Any]]]:
        """Batches of the inputs that are new; the key of each goes to `inputs`, and what is kept to `known`."""
        tokenise, most = self.reader.prepare(pairs, side, self.computing), self.tokens or self.computing.tokens
        for rows in pairs.chunks(self.computing.chunk):
            keys, lengths, batch = tokenise(rows)
            for row, key in zip(rows.tolist(), keys, strict=True):
                inputs[row] = key
            new = np.array((self.scores if side == "pair" else self.encodings).missing(keys, known), np.int64)
            for some in by_length(lengths[new], most):
                chosen = new[some]
                yield [keys[i] for i in chosen.tolist()], batch(chosen)


class Kept:
    """The values that were computed last, by key, up to a total size."""

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0
        self._found: dict[bytes, tuple[Any, int]] = {}

    def get(self, key: bytes) -> Any:
        """What is kept under a key, or None."""
        return self._found.get(key, (None, 0))[0]

    def add(self, key: bytes, value: Any, size: int) -> None:
        """Keep a value, and give up the oldest ones where there is no room."""
        self.size += size - self._found.pop(key, (None, 0))[1]
        self._found[key] = (value, size)
        while self.size > self.most:
            _, freed = self._found.pop(next(iter(self._found)))
            self.size -= freed

    def missing(self, keys: Sequence[bytes], known: dict[bytes, Any]) -> list[int]:
        """Positions of the keys to compute, each key once; `known` gets what is kept, and None for what is not."""
        found = []
        for i, key in enumerate(keys):
            if key not in known:
                known[key] = self.get(key)
                if known[key] is None:
                    found.append(i)
        return found


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
