"""Phase 1: the sum of the network's logits for both parts of a query learns what the target says of the whole.

Each pair of a query and a text gives two inputs, [CLS] part [SEP] masked text [SEP], one for each part of the query.
They are put together on the device: a step sends the numbers of its queries and texts and its draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.learners.parm.data import CUTS, PARTS, Drawn
from whyrank.learners.parm.texts import Numbers, TokenTexts
from whyrank.networks import Network, ParmNetwork, tensors
from whyrank.training import Examples, First, Trainer, TrainingSet
from whyrank.training.losses import losses

Say = Callable[[str], None]
_VALIDATED = 256  # held-out queries that are read at a time

# How phase 1 cuts queries in two: a span of tokens, and what is left around it.

Draws = npt.NDArray[np.floating[Any]]


class Spans(NamedTuple):
    """The span [start, end) of each query, and the sizes of both parts in tokens as they are read."""

    start: Numbers
    end: Numbers
    sizes: Numbers

    @classmethod
    def of(cls, start: Numbers, end: Numbers, lengths: Numbers) -> Spans:
        """Part 1 is the rest with one [MASK] for the span; part 2 the span with one where something was cut off."""
        rest = lengths - (end - start) + 1
        span = (end - start) + (start > 0) + (end < lengths)
        return cls(start, end, np.stack([rest, span], axis=-1))


class Splitter:
    """Draws spans for queries.

    The start is uniform over the tokens, and moves right to the next word; a start behind the last word's first token
    moves back to that. The end is uniform over the tokens behind the start, and with `whole` words moves right too.
    """

    def __init__(self, queries: TokenTexts, whole: bool) -> None:
        """Note where the words of all queries begin."""
        self.sizes, self.whole = queries.sizes, whole
        self._next = _next_opening(queries)
        columns = np.arange(queries.ids.shape[1])
        self._last = np.where(queries.opens, columns, 0).max(axis=1)

    def __call__(self, query: Numbers, draws: Draws) -> Spans:
        """Spans of some queries from two uniform draws each: [queries, 2]."""
        sizes = self.sizes[query]
        start = self._next[query, _uniform(draws[:, 0], sizes)]
        start = np.minimum(start, self._last[query])
        end = start + 1 + _uniform(draws[:, 1], sizes - start)
        if self.whole:
            end = np.where(end < sizes, self._next[query, np.minimum(end, self._next.shape[1] - 1)], sizes)
        return Spans.of(start, end, sizes)


def _uniform(draws: Draws, sizes: Numbers) -> Numbers:
    """Whole numbers from 0 to the size less one."""
    return np.minimum((draws * sizes).astype(np.int64), sizes - 1)


def _next_opening(queries: TokenTexts) -> Numbers:
    """For each place, the first token from there on that opens a word; the size where there is none."""
    columns = np.arange(queries.ids.shape[1])
    found = np.where(queries.opens, columns, queries.sizes[:, None])
    return np.minimum.accumulate(found[:, ::-1], axis=1)[:, ::-1]


# What phase 1 deletes from texts: the units that matter least to a part of the query, so many as a draw says.

_HASH = (2654435761, 40503, 2**31 - 1)


def deletion_counts(kind: str, draws: Tensor, units: Tensor, part: Tensor) -> Tensor:
    """How many units go, from standard normal draws; `units` of the text and of the `part` of the query.

    `paper`: Normal(u/2, u/2), cut to whole numbers from 1 to u - 1. `code`: with m = max(u - part, 1),
    Normal(m/2, m/2) from 0 to u - max(part // 2, 1). A text of one unit keeps it.
    """
    mean = (units if kind == "paper" else (units - part).clamp(min=1)).double() / 2
    drawn = (mean + mean * draws).trunc().long()
    if kind == "paper":
        return torch.minimum(drawn.clamp(min=1), units - 1).clamp(min=0)
    return torch.minimum(drawn, units - (part // 2).clamp(min=1)).clamp(min=0)


def part_relevance(blocks: Tensor, inside: Tensor) -> Tensor:
    """The mean of the rows of `blocks` that are `inside` a part; zero for a part without tokens.

    `blocks` is [..., query tokens, text tokens], `inside` [..., query tokens].
    """
    weights = inside.to(blocks.dtype)
    total = torch.einsum("...a,...aj->...j", weights, blocks)
    return total / weights.sum(dim=-1, keepdim=True).clamp(min=1)


def deleted(scores: Tensor, unit: Tensor, units: Tensor, counts: Tensor, ties: Tensor) -> Tensor:
    """Whether each token goes: those of the `counts` units with the lowest scores.

    A unit's score is the highest of its tokens'; `unit` numbers the units of a row from 0, and is the number of
    columns where a text is over. Units of equal scores go in the order of `ties`.
    """
    columns = scores.shape[-1]
    blank = torch.full((*scores.shape[:-1], columns + 1), -torch.inf, dtype=scores.dtype, device=scores.device)
    best = blank.scatter_reduce(-1, unit, scores, "amax")[..., :columns]
    there = torch.arange(columns, device=scores.device) < units.unsqueeze(-1)
    best = torch.where(there, best, torch.inf)
    gone = _ranks(best, ties) < counts.unsqueeze(-1)
    gone = torch.cat([gone, torch.zeros_like(gone[..., :1])], dim=-1)
    return gone.gather(-1, unit)


def collapsed(gone: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """What is read when one token is left of each run of deleted ones: the positions in order, and their number.

    `gone` is [rows, tokens], `sizes` the tokens of each row's text.
    """
    before = torch.cat([torch.zeros_like(gone[:, :1]), gone[:, :-1]], dim=1)
    there = torch.arange(gone.shape[1], device=gone.device) < sizes[:, None]
    left = there & ~(gone & before)
    return (~left).to(torch.uint8).argsort(dim=1, stable=True), left.sum(dim=1)


def tie_keys(seeds: Tensor, columns: int) -> Tensor:
    """Keys that put the columns of each row in an order of its own, which its seed alone decides."""
    positions = torch.arange(1, columns + 1, device=seeds.device)
    mixed = (seeds.unsqueeze(-1) % _HASH[2]) * _HASH[1] + positions * _HASH[0]
    mixed = (mixed ^ (mixed >> 15)) * _HASH[0] % _HASH[2]
    return (mixed ^ (mixed >> 13)) * _HASH[0] % _HASH[2]


def _ranks(values: Tensor, ties: Tensor) -> Tensor:
    """The rank of each value in its row, from 0; equal ones in the order of `ties`, then of their positions."""
    first = ties.argsort(dim=-1, stable=True)
    order = first.gather(-1, values.gather(-1, first).argsort(dim=-1, stable=True))
    ranks = torch.empty_like(order)
    return ranks.scatter_(-1, order, torch.arange(values.shape[-1], device=values.device).expand_as(order))


class _Rows(NamedTuple):
    """One row for each input: what it is made of."""

    query: Tensor
    doc: Tensor
    start: Tensor
    end: Tensor
    size: Tensor  # of the part of the query as it is read
    second: Tensor  # whether it is the span, not the rest
    gone: Tensor  # [rows, text tokens]
    length: Tensor  # of the text as it is read
    order: Tensor | None  # [rows, text tokens]: the positions that are read, where runs of [MASK]s are one


class Segmenter:
    """Makes batches from numbers of queries and texts, alignments and draws."""

    def __init__(
        self, queries: TokenTexts, docs: TokenTexts, first: First, special: Mapping[str, int], device: str
    ) -> None:
        """Lay all tokens on the device."""
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
            blocks: how the tokens of each query and text belong together, [examples, texts, query, text tokens].
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
        """Which tokens of the texts are masked: [examples, texts, parts, tokens]."""
        inside = self._inside(sent)
        scores = part_relevance(blocks[:, :, None].float(), inside[:, None])
        shape, doc = scores.shape, sent["doc"]
        units, counts, part = self._units(doc, sent["query"], inside)
        draws = sent["draws"][:, CUTS:].reshape(shape[:-1])
        many = deletion_counts(self.first.deletion, draws, counts[:, :, None], part[:, None])
        ties = tie_keys((draws * 2**20).long(), shape[-1])
        return deleted(scores, units[:, :, None].expand(shape), counts[:, :, None].expand(shape[:-1]), many, ties)

    def _inside(self, sent: Mapping[str, Tensor]) -> Tensor:
        """Which tokens of the query belong to each part: [examples, parts, tokens]."""
        positions = torch.arange(self._queries.ids.shape[1], device=sent["query"].device)
        span = (positions >= sent["start"][:, None]) & (positions < sent["end"][:, None])
        real = positions < self._queries.sizes[sent["query"]][:, None]
        return torch.stack([real & ~span, span], dim=1)

    def _units(self, doc: Tensor, query: Tensor, inside: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The unit of each token of the texts, the number of their units, and that of the units of both parts."""
        if self.first.unit == "word":
            opens = self._queries.words[query].diff(dim=1, prepend=self._queries.words.new_full((len(query), 1), -1))
            return self._docs.words[doc], self._docs.counts[doc], (inside & (opens != 0)[:, None]).sum(dim=-1)
        columns = self._docs.ids.shape[1]
        positions, sizes = torch.arange(columns, device=doc.device), self._docs.sizes[doc]
        return torch.where(positions < sizes[..., None], positions, columns), sizes, inside.sum(dim=-1)

    def _padded(self, rows: _Rows, sizes: Tensor, known: Numbers) -> dict[str, Tensor]:
        width = int(known.max())
        positions = torch.arange(width, device=sizes.device).expand(len(sizes), width)
        row = torch.arange(len(sizes), device=sizes.device)[:, None].expand(len(sizes), width)
        mask = positions < sizes[:, None]
        ids, types = self._filled(rows, row, positions)
        return {"ids": torch.where(mask, ids, self.special["pad"]), "types": types * mask, "mask": mask.long()}

    def _packed(self, rows: _Rows, sizes: Tensor, known: Numbers) -> dict[str, Tensor]:
        total = int(known.sum())
        ends = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        row = torch.repeat_interleave(torch.arange(len(sizes), device=sizes.device), sizes, output_size=total)
        positions = torch.arange(total, device=sizes.device) - ends[row]
        ids, types = self._filled(rows, row, positions)
        return {"ids": ids, "types": types, "positions": positions, "ends": ends}

    def _filled(self, rows: _Rows, row: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens at some positions of some rows, and their types."""
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
        """Pieces of the texts: what is deleted is a [MASK], each token or each run of them."""
        place = place.clamp(0, self._docs.ids.shape[1] - 1)
        place = place if rows.order is None else rows.order[row, place]
        ids = self._docs.ids[rows.doc[row], place]
        return torch.where(rows.gone[row, place], self.special["mask"], ids)


class FirstTrainer(Trainer):
    """Trains on triples, or longer lists, of which each query is cut and each text is masked twice."""

    def __init__(
        self, network: ParmNetwork, drawn: Drawn, first: First, texts: tuple[TokenTexts, TokenTexts], blocks: Tensor,
        *, seed: int, held_out: Drawn | None = None, folder: Path | None = None, device: str = "cpu",
        say: Say = print,
    ) -> None:  # fmt: skip
        """Put together what is learned from: examples, tokens of queries and texts, and how these belong together."""
        schedule = first.schedule_for(seed)
        super().__init__(
            network, TrainingSet([], [], drawn), losses.create(first.loss), schedule, folder=folder,
            validate=self._agreement if held_out is not None and len(held_out.queries) else None,
            device=device, say=say,
        )  # fmt: skip
        self.first, self.drawn, self.blocks, self._held_out = first, drawn, blocks, held_out
        self._segment = Segmenter(*texts, first, network.tokenizer.special, device)
        self._packs = network.packs and schedule.precision == "bf16" and device.startswith("cuda")

    def _loss(self, part: Examples) -> Tensor:
        size = part.doc.shape[1]
        with self._precision():
            scores = self._whole(part)
        return self.loss(scores, tensors({"target": part.target[:, :size]}, self.device)["target"])

    def _whole(self, part: Examples) -> Tensor:
        """The score of each text for its whole query: the sum over both parts."""
        size, place = part.doc.shape[1], part.doc.astype(np.int64)
        doc = self.drawn.given.doc.reshape(-1)[place].astype(np.int64)
        blocks = self.blocks[tensors({"place": place}, self.device)["place"]]
        batch = self._segment(part.query.astype(np.int64), doc, blocks, part.target[:, size:], self._packs)
        return self._read(batch).reshape(-1, size, PARTS).sum(dim=-1)

    def _agreement(self, network: Network) -> float:
        """The share of pairs of held-out texts that the network and the target put in the same order."""
        assert self._held_out is not None
        examples = self._held_out.epoch(self.schedule.seed, 0)
        size, right = examples.doc.shape[1], []
        for start in range(0, len(examples.query), _VALIDATED):
            part = examples.take(np.arange(start, min(start + _VALIDATED, len(examples.query))))
            with self._precision():
                ours = self._whole(part).float().cpu()
            right.append(_same_order(ours, torch.from_numpy(part.target[:, :size])))
        found = torch.cat(right)
        return float(found.mean()) if len(found) else 0.5


def _same_order(ours: Tensor, theirs: Tensor) -> Tensor:
    """Of each pair of texts that the target tells apart, whether the network does so in the same way."""
    one, two = (values[:, :, None] - values[:, None] for values in (ours, theirs))
    above = torch.triu(torch.ones(ours.shape[1], ours.shape[1], dtype=torch.bool), 1)
    return (one * two > 0).float()[(two != 0) & above]
