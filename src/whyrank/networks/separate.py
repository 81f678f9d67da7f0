"""Networks that read queries and texts apart, so that each distinct one is encoded once.

    queries = network.encode_queries(tensors(network.query_arrays(network.query_ids(query_texts))))
    docs = network.encode_docs(tensors(network.doc_arrays(network.doc_ids(doc_texts))))
    scores = network.interact(take(queries, query), take(docs, doc))  # of the pairs (query[i], doc[i])

An encoding is a dict of tensors whose first dimension is the text; those that have positions have them second, and
zero stands for none, so that encodings of different lengths can be joined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from whyrank.networks.encoder import Encoder
from whyrank.networks.network import Network
from whyrank.networks.tokens import Arrays, Ids, ModelTokenizer, single_arrays

Encoded = dict[str, Tensor]
_SPECIAL = 3  # the most special tokens that stand around a text


class SeparateNetwork(Network):
    """Scores pairs from encodings of query and text. A new architecture overrides `encode_...` and `interact`.

    Texts are read and encoded as queries are, unless an architecture says otherwise.
    """

    scale: ClassVar[str] = "dot"

    def __init__(self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477) -> None:
        super().__init__(encoder, tokenizer, max_query, max_doc)
        room = encoder.max_positions - _SPECIAL
        self.max_query, self.max_doc = min(max_query, room), min(max_doc, room)

    def query_arrays(self, queries: Sequence[Ids]) -> Arrays:
        """Queries as padded arrays: what `encode_queries` gets as tensors."""
        return single_arrays(queries, self.tokenizer.special)

    def doc_arrays(self, docs: Sequence[Ids]) -> Arrays:
        """Texts as padded arrays: what `encode_docs` gets as tensors."""
        return self.query_arrays(docs)

    def encode_queries(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The encodings of queries."""
        raise NotImplementedError

    def encode_docs(self, batch: Mapping[str, Tensor]) -> Encoded:
        """The encodings of texts."""
        return self.encode_queries(batch)

    def interact(self, queries: Encoded, docs: Encoded) -> Tensor:
        """One score per aligned pair of encodings."""
        raise NotImplementedError

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """The distinct queries and texts of the pairs, and which of them each pair has."""
        (some, query), (others, doc) = distinct(queries), distinct(docs)
        found = {f"query.{name}": array for name, array in self.query_arrays(some).items()}
        found |= {f"doc.{name}": array for name, array in self.doc_arrays(others).items()}
        return found | {"query": query, "doc": doc}

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """One score per pair."""
        return self.interact(*self.encode_pairs(batch))

    def encode_pairs(self, batch: Mapping[str, Tensor]) -> tuple[Encoded, Encoded]:
        """The encodings of the query and the text of each pair."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {name.removeprefix(prefix): tensor for name, tensor in batch.items() if name.startswith(prefix)}

        queries = take(self.encode_queries(part("query.")), batch["query"])
        return queries, take(self.encode_docs(part("doc.")), batch["doc"])


def take(encoded: Encoded, rows: Tensor) -> Encoded:
    """Some of the encodings, in this order."""
    return {name: tensor[rows] for name, tensor in encoded.items()}


def join(parts: Sequence[Encoded]) -> Encoded:
    """Encodings one after the other, filled up with zeros to the most positions of any."""

    def joined(found: list[Tensor]) -> Tensor:
        width = max(tensor.shape[1] for tensor in found)
        return torch.cat([functional.pad(t, (0, 0) * (t.ndim - 2) + (0, width - t.shape[1])) for t in found])

    return {name: joined([part[name] for part in parts]) for name in parts[0]}


def distinct(rows: Sequence[Ids]) -> tuple[list[Ids], npt.NDArray[np.int64]]:
    """The different rows in order of appearance, and for each row which of them it is."""
    known: dict[bytes, int] = {}
    which = np.array([known.setdefault(row.tobytes(), len(known)) for row in rows], np.int64)
    return [rows[i] for i in np.unique(which, return_index=True)[1]], which
