"""Batches of phase 1, put together on the device: a part of a query with a text of which some is masked.

Each pair of a query and a text gives two inputs, [CLS] part [SEP] masked text [SEP], one for each part of the query.
A step sends the numbers of its queries and texts and its draws; all the rest happens where the pieces lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.networks.batches import tensors
from whyrank.training.parm_deletion import collapsed, deleted, deletion_counts, part_relevance, tie_keys
from whyrank.training.parm_recipe import First
from whyrank.training.parm_splits import Splitter
from whyrank.training.parm_texts import Numbers, PieceTexts

PARTS = 2
CUTS = 2  # uniform draws that cut a query


def draws_of(texts: int) -> int:
    """How many draws an example of so many texts needs: two for the query, one for each part and text."""
    return CUTS + PARTS * texts


class _Rows(NamedTuple):
    """One row for each input: what it is made of."""

    query: Tensor
    doc: Tensor
    start: Tensor
    end: Tensor
    size: Tensor  # of the part of the query as it is read
    second: Tensor  # whether it is the span, not the rest
    gone: Tensor  # [rows, text pieces]
    length: Tensor  # of the text as it is read
    order: Tensor | None  # [rows, text pieces]: the places that are read, where runs of [MASK]s are one


class Segmenter:
    """Makes batches from numbers of queries and texts, alignments and draws."""

    def __init__(
        self, queries: PieceTexts, docs: PieceTexts, first: First, special: Mapping[str, int], device: str
    ) -> None:
        """Lay all pieces on the device."""
        self.first, self.special, self.device = first, special, device
        self._split = Splitter(queries, first.ends == "word")
        self._queries, self._docs, self._sizes = queries.on(device), docs.on(device), docs.sizes

    def __call__(
        self, query: Numbers, doc: Numbers, blocks: Tensor, draws: npt.NDArray[Any], packed: bool
    ) -> dict[str, Tensor]:
        """The inputs of examples, in the order [example, text, part].

        Args:
            query: numbers of the queries, [examples].
            doc: numbers of their texts, [examples, texts].
            blocks: how the pieces of each query and text belong together, [examples, texts, query, text pieces].
            draws: [examples, draws_of(texts)]: uniform ones that cut the query, normal ones that say what goes.
            packed: whether the inputs lie end to end, see `networks.first`.
        """
        spans = self._split(query, draws[:, :CUTS])
        sent = {"query": query, "doc": doc, "start": spans.start, "end": spans.end, "size": spans.sizes,
                "draws": draws.astype(np.float32)}  # fmt: skip
        there = tensors({name: np.ascontiguousarray(array) for name, array in sent.items()}, self.device)
        rows = self._rows(there, blocks)
        sizes = 3 + rows.size + rows.length
        known = self._known(sizes, spans.sizes, doc)
        return self._packed(rows, sizes, known) if packed else self._padded(rows, sizes, known)

    def _known(self, sizes: Tensor, parts: Numbers, doc: Numbers) -> Numbers:
        """The sizes of the inputs; the device has to be waited for only where runs of [MASK]s are one."""
        if self.first.masks == "runs":
            return np.asarray(sizes.cpu().numpy())
        return (3 + parts[:, None, :] + self._sizes[doc][:, :, None]).reshape(-1)

    def _rows(self, sent: Mapping[str, Tensor], blocks: Tensor) -> _Rows:
        shape = (*sent["doc"].shape, PARTS)
        spread = {name: sent[name][:, None, None].expand(shape).reshape(-1) for name in ("query", "start", "end")}
        doc = sent["doc"][:, :, None].expand(shape).reshape(-1)
        second = torch.arange(PARTS, device=doc.device).expand(shape).reshape(-1) == 1
        size = sent["size"][:, None, :].expand(shape).reshape(-1)
        gone, length, order = self._gone(sent, blocks).reshape(len(doc), -1), self._docs.sizes[doc], None
        if self.first.masks == "runs":
            order, length = collapsed(gone, length)
        return _Rows(spread["query"], doc, spread["start"], spread["end"], size, second, gone, length, order)

    def _gone(self, sent: Mapping[str, Tensor], blocks: Tensor) -> Tensor:
        """Which pieces of the texts are masked: [examples, texts, parts, pieces]."""
        inside = self._inside(sent)
        scores = part_relevance(blocks[:, :, None].float(), inside[:, None])
        shape, doc = scores.shape, sent["doc"]
        units, counts, part = self._units(doc, sent["query"], inside)
        draws = sent["draws"][:, CUTS:].reshape(shape[:-1])
        many = deletion_counts(self.first.deletion, draws, counts[:, :, None], part[:, None])
        ties = tie_keys((draws * 2**20).long(), shape[-1])
        return deleted(scores, units[:, :, None].expand(shape), counts[:, :, None].expand(shape[:-1]), many, ties)

    def _inside(self, sent: Mapping[str, Tensor]) -> Tensor:
        """Which pieces of the query belong to each part: [examples, parts, pieces]."""
        places = torch.arange(self._queries.ids.shape[1], device=sent["query"].device)
        span = (places >= sent["start"][:, None]) & (places < sent["end"][:, None])
        real = places < self._queries.sizes[sent["query"]][:, None]
        return torch.stack([real & ~span, span], dim=1)

    def _units(self, doc: Tensor, query: Tensor, inside: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The unit of each piece of the texts, the number of their units, and that of the units of both parts."""
        if self.first.unit == "word":
            opens = self._queries.words[query].diff(dim=1, prepend=self._queries.words.new_full((len(query), 1), -1))
            return self._docs.words[doc], self._docs.counts[doc], (inside & (opens != 0)[:, None]).sum(dim=-1)
        columns = self._docs.ids.shape[1]
        places, sizes = torch.arange(columns, device=doc.device), self._docs.sizes[doc]
        return torch.where(places < sizes[..., None], places, columns), sizes, inside.sum(dim=-1)

    def _padded(self, rows: _Rows, sizes: Tensor, known: Numbers) -> dict[str, Tensor]:
        width = int(known.max())
        places = torch.arange(width, device=sizes.device).expand(len(sizes), width)
        row = torch.arange(len(sizes), device=sizes.device)[:, None].expand(len(sizes), width)
        mask = places < sizes[:, None]
        ids, types = self._filled(rows, row, places)
        return {"ids": torch.where(mask, ids, self.special["pad"]), "types": types * mask, "mask": mask.long()}

    def _packed(self, rows: _Rows, sizes: Tensor, known: Numbers) -> dict[str, Tensor]:
        total = int(known.sum())
        ends = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        row = torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes, output_size=total)
        places = torch.arange(total, device=sizes.device) - ends[row]
        ids, types = self._filled(rows, row, places)
        return {"ids": ids, "types": types, "places": places, "ends": ends}

    def _filled(self, rows: _Rows, row: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        """The pieces at some places of some rows, and their types."""
        inside, size = place - 1, rows.size[row]
        told = inside - size - 1
        ids = torch.where((told >= 0) & (told < rows.length[row]), self._told(rows, row, told),
                          self.special["sep"])  # fmt: skip
        ids = torch.where((inside >= 0) & (inside < size), self._asked(rows, row, inside), ids)
        return torch.where(place == 0, self.special["cls"], ids), (told >= 0).long()

    def _asked(self, rows: _Rows, row: Tensor, place: Tensor) -> Tensor:
        """Pieces of the parts of queries: what is cut away is one [MASK]."""
        start, end, second = rows.start[row], rows.end[row], rows.second[row]
        source = torch.where(second, start + place - (start > 0).long(), place + (place > start) * (end - start - 1))
        cut = torch.where(second, (source < start) | (source >= end), place == start)
        ids = self._queries.ids[rows.query[row], source.clamp(0, self._queries.ids.shape[1] - 1)]
        return torch.where(cut, self.special["mask"], ids)

    def _told(self, rows: _Rows, row: Tensor, place: Tensor) -> Tensor:
        """Pieces of the texts: what is deleted is a [MASK], each piece or each run of them."""
        place = place.clamp(0, self._docs.ids.shape[1] - 1)
        place = place if rows.order is None else rows.order[row, place]
        ids = self._docs.ids[rows.doc[row], place]
        return torch.where(rows.gone[row, place], self.special["mask"], ids)
