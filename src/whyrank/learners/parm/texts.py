"""Batches of phase 1, put together on the device: a part of a query with a text of which some is masked.

Each pair of a query and a text gives two inputs, [CLS] part [SEP] masked text [SEP], one for each part of the query.
A step sends the numbers of its queries and texts and its draws; all the rest happens where the tokens lie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.networks import Ids, ParmNetwork, Pieces, padded, tensors
from whyrank.training import First

# Texts of tokens as matrices on a device, with the words that their tokens make up.

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
INSIDE, OPENING = "##", ("Ġ", "▁")  # how tokenizers mark tokens inside words, or tokens that open words


def continuing(pieces: Pieces) -> Flags:
    """Of every token of a vocabulary: whether it continues a word."""
    names = pieces.spell(range(len(pieces)))
    if any(name.startswith(INSIDE) for name in names):
        return np.array([name.startswith(INSIDE) for name in names])
    if any(name.startswith(OPENING) for name in names):
        return np.array([not name.startswith(OPENING) for name in names])
    return np.zeros(len(names), np.bool_)


class TokenTexts(NamedTuple):
    """Texts as a matrix of tokens.

    Attributes:
        ids: [texts, longest], 0 where a text is over.
        sizes: tokens of each text.
        opens: whether a token is the first of a word; the first of a text always is.
    """

    ids: Numbers
    sizes: Numbers
    opens: Flags

    @classmethod
    def of(cls, texts: Sequence[Ids], inside: Flags) -> TokenTexts:
        """The matrix of some texts; `inside` says which tokens continue words."""
        ids, sizes = padded(texts, 0), np.array([len(text) for text in texts], np.int64)
        opens = ~inside[ids] & (np.arange(ids.shape[1]) < sizes[:, None])
        opens[:, 0] = sizes > 0
        return cls(ids, sizes, opens)

    @property
    def words(self) -> Numbers:
        """The number of the word that each token belongs to; the number of columns where a text is over."""
        found = np.cumsum(self.opens, axis=1) - 1
        return np.where(np.arange(self.ids.shape[1]) < self.sizes[:, None], found, self.ids.shape[1])

    def spelled(self, pieces: Pieces) -> list[list[str]]:
        """The words of each text, as their tokens spell them."""
        names = np.array([name.removeprefix(INSIDE).lstrip("".join(OPENING)) for name in pieces.spell(
            range(len(pieces)))], dtype=object)  # fmt: skip
        return [_joined(names[row[:size]].tolist(), opens[:size].tolist())
                for row, size, opens in zip(self.ids, self.sizes.tolist(), self.opens, strict=True)]  # fmt: skip

    def on(self, device: str) -> Placed:
        """The same as tensors on a device."""
        return Placed(*(torch.from_numpy(np.ascontiguousarray(array)).to(device)
                        for array in (self.ids, self.sizes, self.words, self.opens.sum(axis=1))))  # fmt: skip


def token_texts(network: ParmNetwork, queries: Sequence[str], docs: Sequence[str]) -> tuple[TokenTexts, TokenTexts]:
    """The tokens of queries and texts, and where words begin in them."""
    inside = continuing(network.pieces)
    return TokenTexts.of(network.query_ids(queries), inside), TokenTexts.of(network.doc_ids(docs), inside)


class Placed(NamedTuple):
    """`TokenTexts` on a device: tokens, sizes, the word of each token, and how many words a text has."""

    ids: Tensor
    sizes: Tensor
    words: Tensor
    counts: Tensor


class Spelling:
    """Words of one tokenizer as tokens of another, each distinct word read once."""

    def __init__(self, pieces: Pieces, most: int = 16) -> None:
        """Take the other tokenizer; of a word, `most` tokens are read."""
        self.pieces, self.most = pieces, most

    def read(self, texts: Sequence[Sequence[str]], longest: int) -> tuple[list[Ids], list[Numbers]]:
        """The tokens of each text, and the word that each belongs to; at most `longest` tokens."""
        distinct = list(dict.fromkeys(word for words in texts for word in words))
        prefix = " " if self._spaced else ""
        known = dict(zip(distinct, self.pieces.ids([prefix + word for word in distinct], self.most), strict=True))
        found, places = [], []
        for words in texts:
            parts = [known[word] for word in words]
            number = np.repeat(np.arange(len(parts)), [len(part) for part in parts]).astype(np.int64)
            found.append(np.concatenate([np.empty(0, np.int32), *parts])[:longest].astype(np.int32))
            places.append(number[:longest])
        return found, places

    @cached_property
    def _spaced(self) -> bool:
        return any(name.startswith(OPENING) for name in self.pieces.spell(range(len(self.pieces))))


def _joined(pieces: Sequence[str], opens: Sequence[bool]) -> list[str]:
    words: list[str] = []
    for piece, opening in zip(pieces, opens, strict=True):
        if opening:
            words.append(piece)
        else:
            words[-1] += piece
    return words


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
    places = torch.arange(1, columns + 1, device=seeds.device)
    mixed = (seeds.unsqueeze(-1) % _HASH[2]) * _HASH[1] + places * _HASH[0]
    mixed = (mixed ^ (mixed >> 15)) * _HASH[0] % _HASH[2]
    return (mixed ^ (mixed >> 13)) * _HASH[0] % _HASH[2]


def _ranks(values: Tensor, ties: Tensor) -> Tensor:
    """The rank of each value in its row, from 0; equal ones in the order of `ties`, then of their positions."""
    first = ties.argsort(dim=-1, stable=True)
    order = first.gather(-1, values.gather(-1, first).argsort(dim=-1, stable=True))
    ranks = torch.empty_like(order)
    return ranks.scatter_(-1, order, torch.arange(values.shape[-1], device=values.device).expand_as(order))


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
        places = torch.arange(self._queries.ids.shape[1], device=sent["query"].device)
        span = (places >= sent["start"][:, None]) & (places < sent["end"][:, None])
        real = places < self._queries.sizes[sent["query"]][:, None]
        return torch.stack([real & ~span, span], dim=1)

    def _units(self, doc: Tensor, query: Tensor, inside: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The unit of each token of the texts, the number of their units, and that of the units of both parts."""
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
