"""Batches of pairs put together on the device itself, where all pieces lie: a step sends the numbers of its texts.

Without it a fast GPU waits for the processor, which copies every piece of every pair again and again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.networks import Ids, tensors

Numbers = npt.NDArray[np.integer[Any]]


class Packer:
    """Makes the packed batch (see `networks.first`) of any pairs of some queries and texts."""

    def __init__(self, queries: Sequence[Ids], docs: Sequence[Ids], special: Mapping[str, int], device: str) -> None:
        """Lay all pieces on the device."""
        self._queries, self._docs = _Flat(queries, device), _Flat(docs, device)
        self._cls, self._sep, self._device = special["cls"], special["sep"], device

    def __call__(self, query: Numbers, doc: Numbers) -> dict[str, Tensor]:
        """[CLS] query [SEP] text [SEP] of the pairs (query[i], doc[i]) end to end; nothing waits for the device."""
        sizes = self._queries.sizes[query] + self._docs.sizes[doc] + 3
        ends = np.concatenate([[0], np.cumsum(sizes)])
        sent = tensors({"query": query.astype(np.int64), "doc": doc.astype(np.int64), "ends": ends}, self._device)
        pair = torch.repeat_interleave(
            torch.arange(len(query), device=self._device), sent["ends"].diff(), output_size=int(ends[-1])
        )
        places = torch.arange(int(ends[-1]), device=self._device) - sent["ends"][pair]
        return self._filled(sent["query"][pair], sent["doc"][pair], places) | {"places": places, "ends": sent["ends"]}

    def _filled(self, query: Tensor, doc: Tensor, places: Tensor) -> dict[str, Tensor]:
        """The pieces: each place is [CLS], in the query, a [SEP], in the text, or the last [SEP]."""
        in_query = places - 1
        in_doc = in_query - self._queries.lengths[query] - 1
        ids = torch.where(_inside(in_doc, self._docs, doc), self._docs.at(doc, in_doc), self._sep)
        ids = torch.where(_inside(in_query, self._queries, query), self._queries.at(query, in_query), ids)
        return {"ids": torch.where(places == 0, self._cls, ids), "types": (in_doc >= 0).long()}


class _Flat:
    """Texts of pieces end to end."""

    def __init__(self, texts: Sequence[Ids], device: str) -> None:
        self.sizes = np.array([len(text) for text in texts], np.int64)
        starts = np.cumsum(self.sizes) - self.sizes
        pieces = np.concatenate([*texts, np.zeros(1, np.int32)]).astype(np.int64)
        self.lengths, self.starts, self.pieces = (
            torch.from_numpy(array).to(device) for array in (self.sizes, starts, pieces)
        )

    def at(self, text: Tensor, place: Tensor) -> Tensor:
        """The pieces at some places of some texts; any piece for a place that is none."""
        return self.pieces[(self.starts[text] + place).clamp(0, len(self.pieces) - 1)]


def _inside(place: Tensor, texts: _Flat, text: Tensor) -> Tensor:
    return (place >= 0) & (place < texts.lengths[text])
