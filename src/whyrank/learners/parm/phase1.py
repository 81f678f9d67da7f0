"""Phase 1: the sum of the network's logits for both parts of a query learns the target's score of the whole.

Each pair of a query and a text gives two inputs, [CLS] part [SEP] masked text [SEP], one for each part of the query.
They are put together on the device: a step sends the numbers of its queries and texts and its draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.learners.parm.alignment import Numbers, TokenTexts
from whyrank.learners.parm.data import CUTS, PARTS, CandidateSampler, Say
from whyrank.learners.parm.phases import First
from whyrank.networks import Network, ParmNetwork, tensors
from whyrank.training import EpochExamples, Trainer, TrainingSet
from whyrank.training.losses import losses

Draws = npt.NDArray[np.floating[Any]]
_VALIDATED = 256  # held-out queries that are read at a time
_HASH = (2654435761, 40503, 2**31 - 1)

# How queries are cut in two: a span of tokens, and what is left around it.


class Spans(NamedTuple):
    """The span [start, end) of each query, and the sizes of both parts in tokens as they are read."""

    start: Numbers
    end: Numbers
    sizes: Numbers


class Splitter:
    """Draws spans for queries.

    The start is uniform over the tokens, and moves right to the next word; a start behind the last word's first token
    moves back to that. The end is uniform over the tokens behind the start, and with `whole` words moves right too.
    Part 1 is the rest with one [MASK] for the span; part 2 the span with one where something was cut off.
    """

    def __init__(self, queries: TokenTexts, whole: bool) -> None:
        """Note where the words of all queries begin."""
        self.sizes, self.whole = queries.sizes, whole
        columns = np.arange(queries.ids.shape[1])
        # for each position, the first token from there on that opens a word; the size where there is none
        opening = np.where(queries.opens, columns, queries.sizes[:, None])
        self._next = np.minimum.accumulate(opening[:, ::-1], axis=1)[:, ::-1]
        self._last = np.where(queries.opens, columns, 0).max(axis=1)

    def __call__(self, query: Numbers, draws: Draws) -> Spans:
        """Spans of some queries from two uniform draws each: [queries, 2]."""
        sizes = self.sizes[query]
        start = np.minimum(self._next[query, _uniform(draws[:, 0], sizes)], self._last[query])
        end = start + 1 + _uniform(draws[:, 1], sizes - start)
        if self.whole:
            end = np.where(end < sizes, self._next[query, np.minimum(end, self._next.shape[1] - 1)], sizes)
        rest, span = sizes - (end - start) + 1, (end - start) + (start > 0) + (end < sizes)
        return Spans(start, end, np.stack([rest, span], axis=-1))


def _uniform(draws: Draws, sizes: Numbers) -> Numbers:
    """Whole numbers from 0 to the size less one."""
    return np.minimum((draws * sizes).astype(np.int64), sizes - 1)


# What is deleted from texts: the units that matter least to a part of the query, so many as a draw says.


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


def delete_lowest(scores: Tensor, unit: Tensor, units: Tensor, counts: Tensor, ties: Tensor) -> Tensor:
    """Whether each token goes: those of the `counts` units with the lowest scores.

    A unit's score is the highest of its tokens'; `unit` numbers the units of a row from 0, and is the number of
    columns where a text is over. Units of equal scores go in the order of `ties`.
    """
    columns = scores.shape[-1]
    blank = torch.full((*scores.shape[:-1], columns + 1), -torch.inf, dtype=scores.dtype, device=scores.device)
    best = blank.scatter_reduce(-1, unit, scores, "amax")[..., :columns]
    positions = torch.arange(columns, device=scores.device)
    best = torch.where(positions < units.unsqueeze(-1), best, torch.inf)
    by_ties = ties.argsort(dim=-1, stable=True)
    order = by_ties.gather(-1, best.gather(-1, by_ties).argsort(dim=-1, stable=True))
    ranks = torch.empty_like(order).scatter_(-1, order, positions.expand_as(order))
    gone = ranks < counts.unsqueeze(-1)
    gone = torch.cat([gone, torch.zeros_like(gone[..., :1])], dim=-1)
    return gone.gather(-1, unit)


def collapse_runs(gone: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """What is read when one token is left of each run of deleted ones: the positions in order, and their number.

    `gone` is [rows, tokens], `sizes` the tokens of each row's text.
    """
    before = torch.cat([torch.zeros_like(gone[:, :1]), gone[:, :-1]], dim=1)
    real = torch.arange(gone.shape[1], device=gone.device) < sizes[:, None]
    left = real & ~(gone & before)
    return (~left).to(torch.uint8).argsort(dim=1, stable=True), left.sum(dim=1)


def tie_keys(seeds: Tensor, columns: int) -> Tensor:
    """Keys that put the columns of each row in an order of its own, which its seed alone decides."""
    positions = torch.arange(1, columns + 1, device=seeds.device)
    mixed = (seeds.unsqueeze(-1) % _HASH[2]) * _HASH[1] + positions * _HASH[0]
    mixed = (mixed ^ (mixed >> 15)) * _HASH[0] % _HASH[2]
    return (mixed ^ (mixed >> 13)) * _HASH[0] % _HASH[2]


# The inputs of the network.


class _Inputs(NamedTuple):
    """Each input: its query and text, the span of the query, and which part and tokens of the text it has."""

    query: Tensor
    doc: Tensor
    start: Tensor
    end: Tensor
    size: Tensor  # of the part of the query as it is read
    is_span: Tensor  # else the part is what is left around the span
    gone: Tensor  # [inputs, text tokens]
    length: Tensor  # of the text as it is read
    order: Tensor | None  # [inputs, text tokens]: the positions that are read, where runs of [MASK]s are one


class Segmenter:
    """Makes batches from numbers of queries and texts, alignments and draws."""

    def __init__(
        self, queries: TokenTexts, docs: TokenTexts, first: First, special: Mapping[str, int], device: str
    ) -> None:
        """Lay all tokens on the device."""
        self.first, self.special, self.device = first, special, device
        self._split, self._doc_sizes = Splitter(queries, first.ends == "word"), docs.sizes
        self._queries, self._docs = (
            tensors({"ids": t.ids, "sizes": t.sizes, "words": t.words, "word_counts": t.word_counts}, device)
            for t in (queries, docs)
        )

    def __call__(
        self, query: Numbers, doc: Numbers, blocks: Tensor, draws: npt.NDArray[Any], packed: bool
    ) -> dict[str, Tensor]:
        """The inputs of examples, in the order [example, text, part].

        Args:
            query: numbers of the queries, [examples].
            doc: numbers of their texts, [examples, texts].
            blocks: how the tokens of each query and text belong together, [examples, texts, query, text tokens].
            draws: those of `CandidateSampler`: uniform ones that cut the query, normal ones that say what goes.
            packed: whether the inputs lie end to end, see `networks.first_position`.
        """
        spans = self._split(query, draws[:, :CUTS])
        given = tensors({"query": query, "doc": doc, "start": spans.start, "end": spans.end, "size": spans.sizes,
                         "draws": draws.astype(np.float32)}, self.device)  # fmt: skip
        shape = (*doc.shape, PARTS)

        def spread(values: Tensor) -> Tensor:
            return values.expand(shape).reshape(-1)

        docs, size = spread(given["doc"][:, :, None]), spread(given["size"][:, None, :])
        gone, length, order = self._deleted(given, blocks).reshape(len(docs), -1), self._docs["sizes"][docs], None
        if self.first.masks == "runs":
            order, length = collapse_runs(gone, length)
        number, start, end = (spread(given[name][:, None, None]) for name in ("query", "start", "end"))
        is_span = spread(torch.arange(PARTS, device=docs.device)) == 1
        inputs = _Inputs(number, docs, start, end, size, is_span, gone, length, order)
        sizes = 3 + size + length
        known = (3 + spans.sizes[:, None, :] + self._doc_sizes[doc][:, :, None]).reshape(-1)
        if self.first.masks == "runs":
            known = sizes.cpu().numpy()  # only here the device has to be waited for
        row = torch.arange(len(sizes), device=sizes.device)
        if packed:
            total, ends = int(known.sum()), torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
            row = torch.repeat_interleave(row, sizes, output_size=total)
            positions = torch.arange(total, device=sizes.device) - ends[row]
            ids, types = self._tokens(inputs, row, positions)
            return {"ids": ids, "types": types, "positions": positions, "ends": ends}
        width = int(known.max())
        positions = torch.arange(width, device=sizes.device).expand(len(sizes), width)
        mask = positions < sizes[:, None]
        ids, types = self._tokens(inputs, row[:, None].expand(len(sizes), width), positions)
        return {"ids": torch.where(mask, ids, self.special["pad"]), "types": types * mask, "mask": mask.long()}

    def _deleted(self, given: Mapping[str, Tensor], blocks: Tensor) -> Tensor:
        """Which tokens of the texts are masked: [examples, texts, parts, tokens]."""
        query, doc = given["query"], given["doc"]
        positions = torch.arange(self._queries["ids"].shape[1], device=query.device)
        span = (positions >= given["start"][:, None]) & (positions < given["end"][:, None])
        real = positions < self._queries["sizes"][query][:, None]
        inside = torch.stack([real & ~span, span], dim=1)  # [examples, parts, query tokens]
        scores = part_relevance(blocks[:, :, None].float(), inside[:, None])
        # the unit of each token of the texts, the number of their units, and that of the units of both parts
        columns, sizes = self._docs["ids"].shape[1], self._docs["sizes"][doc]
        if self.first.unit == "word":
            words = self._queries["words"][query]
            opens = words.diff(dim=1, prepend=words.new_full((len(query), 1), -1)) != 0
            unit, units, part = self._docs["words"][doc], self._docs["word_counts"][doc], inside & opens[:, None]
        else:
            at = torch.arange(columns, device=doc.device)
            unit, units, part = torch.where(at < sizes[..., None], at, columns), sizes, inside
        shape = scores.shape
        draws = given["draws"][:, CUTS:].reshape(shape[:-1])
        counts = deletion_counts(self.first.deletion, draws, units[:, :, None], part.sum(dim=-1)[:, None])
        ties = tie_keys((draws * 2**20).long(), shape[-1])
        units, unit = units[:, :, None].expand(shape[:-1]), unit[:, :, None].expand(shape)
        return delete_lowest(scores, unit, units, counts, ties)

    def _tokens(self, inputs: _Inputs, row: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens at some positions of some inputs, and their types."""
        in_query, size = position - 1, inputs.size[row]
        in_doc = in_query - size - 1
        is_doc, is_query = (in_doc >= 0) & (in_doc < inputs.length[row]), (in_query >= 0) & (in_query < size)
        ids = torch.where(is_doc, self._doc_tokens(inputs, row, in_doc), self.special["sep"])
        ids = torch.where(is_query, self._query_tokens(inputs, row, in_query), ids)
        return torch.where(position == 0, self.special["cls"], ids), (in_doc >= 0).long()

    def _query_tokens(self, inputs: _Inputs, row: Tensor, at: Tensor) -> Tensor:
        """Tokens of the parts of queries: what is cut away is one [MASK]."""
        start, end, is_span = inputs.start[row], inputs.end[row], inputs.is_span[row]
        source = torch.where(is_span, start + at - (start > 0).long(), at + (at > start) * (end - start - 1))
        cut = torch.where(is_span, (source < start) | (source >= end), at == start)
        ids = self._queries["ids"]
        return torch.where(cut, self.special["mask"], ids[inputs.query[row], source.clamp(0, ids.shape[1] - 1)])

    def _doc_tokens(self, inputs: _Inputs, row: Tensor, at: Tensor) -> Tensor:
        """Tokens of the texts: what is deleted is a [MASK], each token or each run of them."""
        ids = self._docs["ids"]
        at = at.clamp(0, ids.shape[1] - 1)
        at = at if inputs.order is None else inputs.order[row, at]
        return torch.where(inputs.gone[row, at], self.special["mask"], ids[inputs.doc[row], at])


class FirstTrainer(Trainer):
    """Trains on triples, or longer lists, of which each query is cut and each text is masked twice."""

    def __init__(
        self, network: ParmNetwork, sampler: CandidateSampler, first: First, texts: tuple[TokenTexts, TokenTexts],
        blocks: Tensor, *, seed: int, held_out: CandidateSampler | None = None, folder: Path | None = None,
        device: str = "cpu", say: Say = print,
    ) -> None:  # fmt: skip
        """Put together what is learned from: examples, tokens of queries and texts, and how these belong together."""
        schedule = first.schedule_for(seed)
        super().__init__(
            network, TrainingSet([], [], sampler), losses.create(first.loss), schedule, folder=folder,
            validate=self._agreement if held_out is not None and len(held_out.queries) else None,
            device=device, say=say,
        )  # fmt: skip
        self.blocks, self._candidates, self._held_out = blocks, sampler.candidates.doc.reshape(-1), held_out
        self._segment = Segmenter(*texts, first, network.tokenizer.special, device)
        self._packs = network.packs and schedule.precision == "bf16" and device.startswith("cuda")

    def _loss(self, part: EpochExamples) -> Tensor:
        with self._precision():
            scores = self._sum_parts(part)
        return self.loss(scores, tensors({"target": part.target[:, : part.doc.shape[1]]}, self.device)["target"])

    def _sum_parts(self, part: EpochExamples) -> Tensor:
        """The score of each text for its whole query: the sum over both parts."""
        size, position = part.doc.shape[1], part.doc.astype(np.int64)
        blocks = self.blocks[tensors({"position": position}, self.device)["position"]]
        doc, draws = self._candidates[position].astype(np.int64), part.target[:, size:]
        batch = self._segment(part.query.astype(np.int64), doc, blocks, draws, self._packs)
        return self._read(batch).reshape(-1, size, PARTS).sum(dim=-1)

    def _agreement(self, network: Network) -> float:
        """The share of pairs of held-out texts that the network and the target put in the same order.

        Pairs that the target does not tell apart are left out.
        """
        assert self._held_out is not None
        examples = self._held_out.epoch(self.schedule.seed, 0)
        size, agrees = examples.doc.shape[1], []
        above = torch.triu(torch.ones(size, size, dtype=torch.bool), 1)
        for start in range(0, len(examples.query), _VALIDATED):
            part = examples.take(np.arange(start, min(start + _VALIDATED, len(examples.query))))
            with self._precision():
                ours = self._sum_parts(part).float().cpu()
            theirs = torch.from_numpy(part.target[:, :size])
            one, two = (values[:, :, None] - values[:, None] for values in (ours, theirs))
            agrees.append((one * two > 0).float()[(two != 0) & above])
        found = torch.cat(agrees)
        return float(found.mean()) if len(found) else 0.5
