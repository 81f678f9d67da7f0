"""Long texts in chunks: every chunk is read with the query on its own, then the states are put together again.

A batch of pairs holds all chunks of all texts as its rows (`ids`, `types`, `mask`), and numbers that say what belongs
where: `parts` [n, chunks] are the rows of each pair, `query` [n, q] and `doc` [n, d] the positions of its tokens in
the rows laid end to end; -1 stands for none. `reading` gathers the states of any layer by these numbers: a head over
the last layer's states of query and text starts from `reading(self.encoder.last(batch), batch)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from whyrank.core import Whole
from whyrank.networks.encoder import Encoder
from whyrank.networks.network import Network
from whyrank.networks.tokens import Arrays, Ids, ModelTokenizer, padded, pair_arrays

_NONE = -1


class LayerStates(NamedTuple):
    """States of one layer for n pairs, with the chunks of a text joined.

    Attributes:
        query: states of the query's tokens, read with the first chunk, [n, q, width].
        doc: states of the text's tokens, chunk after chunk, [n, d, width].
        query_mask: where the query has a token, [n, q].
        doc_mask: where the text has a token, [n, d].
    """

    query: Tensor
    doc: Tensor
    query_mask: Tensor
    doc_mask: Tensor


class ChunkedNetwork(Network):
    """A network that reads up to `chunks` chunks of `max_doc` tokens of a text; one chunk is the short form.

    Attributes:
        chunks: chunks of a text that are read at most.
    """

    def __init__(
        self, encoder: Encoder, tokenizer: ModelTokenizer, max_query: int = 32, max_doc: int = 477, chunks: Whole = 3
    ) -> None:
        super().__init__(encoder, tokenizer, max_query, max_doc)
        self.chunks = chunks

    def doc_ids(self, texts: Sequence[str]) -> list[Ids]:
        """Texts as tokens: so many as all chunks together hold."""
        return self.tokenizer.ids(texts, self.max_doc * self.chunks)

    def arrays(self, queries: Sequence[Ids], docs: Sequence[Ids]) -> Arrays:
        """Pairs as one row per chunk, and the numbers that put them together."""
        return chunk_arrays(queries, docs, self.tokenizer.special, self.max_doc, self.chunks)


def chunk_arrays(
    queries: Sequence[Ids], docs: Sequence[Ids], special: Mapping[str, int], size: int, most: int
) -> Arrays:
    """Each text as at most `most` chunks of `size` tokens, each as [CLS] query [SEP] chunk [SEP]; at least one."""
    cut = [[doc[i : i + size] for i in range(0, max(len(doc), 1), size)][:most] for doc in docs]
    owner = [pair for pair, chunks in enumerate(cut) for _ in chunks]
    found = pair_arrays([queries[i] for i in owner], [chunk for chunks in cut for chunk in chunks], special)
    width, start = found["ids"].shape[1], np.searchsorted(owner, np.arange(len(cut))).tolist()
    rows = [_run(row, len(chunks)) for row, chunks in zip(start, cut, strict=True)]
    query = [_run(row * width + 1, len(q)) for row, q in zip(start, queries, strict=True)]
    doc = [  # in each row after [CLS], query and [SEP]
        np.concatenate([_run((row + i) * width + len(q) + 2, len(chunk)) for i, chunk in enumerate(chunks)])
        for row, q, chunks in zip(start, queries, cut, strict=True)
    ]
    return found | {"parts": padded(rows, _NONE), "query": padded(query, _NONE), "doc": padded(doc, _NONE)}


def reading(states: Tensor, batch: Mapping[str, Tensor]) -> LayerStates:
    """The states of a layer, [rows, tokens, width], by pair."""
    flat = states.flatten(0, 1)
    query, doc = (flat[batch[name].clamp(min=0)] for name in ("query", "doc"))
    return LayerStates(query, doc, batch["query"] >= 0, batch["doc"] >= 0)


def first_states(first: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Mean of the pooled states, [rows, width], over each text's own chunks."""
    real = (batch["parts"] >= 0).unsqueeze(2)
    found = first[batch["parts"].clamp(min=0)].masked_fill(~real, 0.0)
    return found.sum(dim=1) / real.sum(dim=1)


def _run(start: int, n: int) -> Ids:
    return np.arange(start, start + n, dtype=np.int32)
