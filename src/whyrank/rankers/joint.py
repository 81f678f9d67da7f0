"""Scoring with models that read query and text together: tokenised once, batched by length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from whyrank.core.protocols import Codes, Floats, Ints
from whyrank.networks.batches import Arrays, tensors
from whyrank.networks.pieces import Ids
from whyrank.rankers.backends import Array, Compiled, Test, Traceable, taken_over
from whyrank.rankers.computing import Computing, ahead, by_length
from whyrank.rankers.passages import TextPairs

if TYPE_CHECKING:
    from torch import Tensor

CHUNK = 1024  # so many pairs are tokenised at a time, and sorted by their number of tokens
_LONG = "ice and snow " * 180  # more than most models read at once
_EXAMPLES = (
    (("what is ice", "snow"), ("Ice is water that froze.", "White, cold and light, it falls in winter.")),
    (("why", "where do glaciers come from", "ice"), (_LONG, "From snow that is pressed together.", "?")),
)


class Reader(Protocol):
    """Reads pairs of token arrays: a network, or a model of another package that is wrapped to look like one."""

    def query_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Queries as token numbers."""
        ...

    def doc_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Texts as token numbers."""
        ...

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """A batch of pairs as padded arrays."""
        ...

    def __call__(self, batch: dict[str, Any]) -> Tensor:
        """One score per pair of a batch."""
        ...


class Batch(NamedTuple):
    """Some pairs and the arrays that a reader makes of them."""

    rows: Ints
    arrays: Arrays


@dataclass(frozen=True, eq=False)
class JointScorer:
    """Puts pairs to a reader.

    Args:
        reader: who reads them.
        computing: where, and in which number format.
        tokens: how many tokens go into one batch; None takes what suits the device.
        activation: what is done to the scores.
        compiled: the reader in the form of another back end than torch.
    """

    reader: Reader
    computing: Computing
    tokens: int | None = None
    activation: Callable[[Floats], Floats] | None = None
    compiled: Compiled | None = None

    @classmethod
    def of(
        cls,
        name: str,
        reader: Reader,
        computing: Computing,
        activation: Callable[[Floats], Floats] | None = None,
        tokens: int | None = None,
    ) -> JointScorer:
        """A scorer that computes as it is asked to, or by torch where a back end cannot take the model."""
        if computing.backend == "torch":
            return cls(reader, computing, tokens, activation)
        example, other = (reader.arrays(reader.query_ids(q), reader.doc_ids(d)) for q, d in _EXAMPLES)
        test = Test(other, partial(reader, tensors(other)))
        model = Traceable(getattr(reader, "model", reader), reader, example, [test])
        computing, compiled = taken_over(name, model, computing)
        return cls(reader, computing, tokens, activation, compiled)

    def __call__(self, pairs: TextPairs) -> Floats:
        """One score per pair."""
        found = np.empty(len(pairs.query))
        batches = self._batches(pairs)
        for rows, scores in self._by_torch(batches) if self.compiled is None else self.compiled.each(batches):
            found[rows] = scores
        return found if self.activation is None else self.activation(found)

    def exact(self) -> JointScorer:
        """The same model by torch in fp32."""
        return replace(self, computing=self.computing.exact, compiled=None)

    def _by_torch(self, batches: Iterator[Batch]) -> list[tuple[Ints, Array]]:
        with self.computing.running():  # what is computed on a GPU is fetched at the end, so that it never waits
            read = [(rows, self._read(arrays)) for rows, arrays in ahead(batches)]
        return [(rows, scores.cpu().numpy()) for rows, scores in read]

    def _read(self, arrays: Arrays) -> Tensor:
        return self.reader(tensors(arrays, self.computing.device)).double()

    def _batches(self, pairs: TextPairs) -> Iterator[Batch]:
        queries, docs = (
            _Tokenised(self.reader.query_ids, pairs.queries),
            _Tokenised(self.reader.doc_ids, pairs.docs),
        )
        for rows in pairs.chunks(CHUNK):
            query, doc = queries.take(pairs.query[rows]), docs.take(pairs.doc[rows])
            lengths = np.array([len(q) + len(d) for q, d in zip(query, doc, strict=True)], np.int64)
            for some in by_length(lengths, self.tokens or self.computing.tokens):
                yield Batch(rows[some], self.reader.arrays([query[i] for i in some], [doc[i] for i in some]))


class _Tokenised:
    """The token numbers of texts, each text tokenised when it is first asked for."""

    def __init__(self, tokenise: Callable[[Sequence[str]], list[Ids]], texts: Sequence[str]) -> None:
        self._tokenise, self._texts = tokenise, texts
        self._known: dict[int, Ids] = {}

    def take(self, codes: Codes) -> list[Ids]:
        new = [code for code in np.unique(codes).tolist() if code not in self._known]
        self._known |= dict(zip(new, self._tokenise([self._texts[code] for code in new]), strict=True))
        return [self._known[code] for code in codes.tolist()]
