"""Phase 2: single terms are calibrated through BM25.

s(q, d) = value + sum over the query terms that d lacks of weight * p / (p + K + 1e-8)

with p = sigmoid(logit(term, partner)) and the partner that was best before.
The loss is over the scores of a query's texts, plus a weight times the mean p, plus another one times the mean p of
terms of the same texts that were not best.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from whyrank.core import Progress, WhyrankError, generator
from whyrank.learners.parm.data import CandidateSampler, Rows, Say, Terms, ranges
from whyrank.learners.parm.phases import Second
from whyrank.networks import BARE, Ids, Network, ParmNetwork, frame_terms, tensors
from whyrank.training import EpochExamples, Packer, Pearson, Trainer, TrainingSet
from whyrank.training.losses import losses

_TOKENS = {"cpu": 1 << 12, "cuda": 1 << 19}  # tokens that are scored at a time
# cuDNN's attention fails for more than 65,535 texts at a time.
_ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
_PAIRS = {"cpu": 1 << 22, "cuda": 1 << 26}  # pairs of terms that are numbered at a time
_SAMPLE = {"cpu": 500, "cuda": 20_000}  # pairs that say where logits start
_VALIDATED = 128  # held-out queries that are read at a time
EPSILON = 1e-8


class Slots(NamedTuple):
    """Query terms that candidates lack, in the order of queries and candidates."""

    pair: Rows  # the position of query and candidate in the matrix of candidates, counted row by row
    doc: Rows  # the candidate's number
    term: Rows  # the query term
    weight: npt.NDArray[np.float32]  # BM25's weight of it
    partner: Rows  # the term of the text with the highest logit; -1 where it has none

    def take(self, rows: Any) -> Slots:
        """Some of the slots."""
        return Slots(*(column[rows] for column in self))


def slots_of(terms: Terms, doc: npt.NDArray[np.int32], queries: Rows, missing: str, seed: int) -> Slots:
    """The slots of some queries: `all` of them, or `one` for each query and text, drawn at random."""
    sizes, width = np.diff(terms.query_ends)[queries], doc.shape[1]
    rows = ranges(terms.query_ends[queries], sizes)
    which, column = np.nonzero(terms.absent[rows])
    pair = np.repeat(queries, sizes)[which] * width + column
    if missing == "one":
        order = np.lexsort((generator(seed, "parm", "missing").random(len(which)), pair))
        chosen = order[np.flatnonzero(np.diff(pair[order], prepend=-1))]
        which, pair = which[chosen], pair[chosen]
    order = np.argsort(pair, kind="stable")
    pair, term = pair[order], rows[which[order]]
    none = np.full(len(pair), -1, np.int64)
    return Slots(pair, doc.reshape(-1)[pair].astype(np.int64), terms.query[term].astype(np.int64), terms.weight[term],
                 none)  # fmt: skip


def find_partners(slots: Slots, terms: Terms, network: ParmNetwork, device: str, frame: str = BARE) -> Slots:
    """The slots with the best partners by a network, which reads terms in a frame."""
    used = np.zeros(len(terms.names), np.bool_)
    used[slots.term] = True
    used[terms.doc] = True
    names, number = [terms.names[i] for i in np.flatnonzero(used).tolist()], np.cumsum(used) - 1
    ids = network.tokenizer.ids(names, network.max_query)
    sides = frame_terms(ids, ids, network, frame)
    partner, step = np.full(len(slots.pair), -1, np.int64), _PAIRS.get(device.split(":", maxsplit=1)[0], 1 << 22)
    ends = np.cumsum(np.diff(terms.doc_ends)[slots.doc])
    cuts: list[int] = np.searchsorted(ends, np.arange(step, int(ends.max(initial=0)) + step, step)).tolist()
    start = 0
    for end in [*cuts, len(slots.pair)]:
        if end > start:
            partner[start:end] = _best(slots.take(slice(start, end)), terms, network, number, sides, device)
            start = end
    return slots._replace(partner=partner)


def _best(
    slots: Slots, terms: Terms, network: ParmNetwork, number: Rows, ids: tuple[Sequence[Ids], Sequence[Ids]],
    device: str,
) -> Rows:  # fmt: skip
    """The best partner of each slot, the first of several that are equal; each distinct pair is scored once."""
    sizes, n = np.diff(terms.doc_ends)[slots.doc], len(ids[0])
    candidate = terms.doc[ranges(terms.doc_ends[slots.doc], sizes)].astype(np.int64)
    keys = torch.from_numpy(np.repeat(number[slots.term], sizes) * n + number[candidate]).to(device)
    distinct, back = (part.cpu().numpy() for part in torch.unique(keys, return_inverse=True))
    logits = pair_logits(network, ids, distinct // n, distinct % n, device)[back]
    found, filled = np.full(len(sizes), -1, np.int64), np.flatnonzero(sizes)
    if len(filled):
        starts = (np.cumsum(sizes) - sizes)[filled]
        highest = np.repeat(np.maximum.reduceat(logits, starts), sizes[filled])
        first = np.where(logits == highest, np.arange(len(logits)), len(logits))
        found[filled] = candidate[np.minimum.reduceat(first, starts)]
    return found


def other_terms(slots: Slots, terms: Terms, seed: int, phase: str) -> Rows:
    """One term of each slot's text at random that is not the partner; -1 where the text has no other."""
    sizes = np.diff(terms.doc_ends)[slots.doc]
    drawn = (generator(seed, "parm", "others", phase).random(len(sizes)) * (sizes - 1)).astype(np.int64)
    last = np.maximum(terms.doc_ends[slots.doc + 1] - 1, 0)
    found = terms.doc[np.minimum(terms.doc_ends[slots.doc] + drawn, last)].astype(np.int64)
    found = np.where(found == slots.partner, terms.doc[last], found)
    return np.where(sizes > 1, found, -1).astype(np.int64)


def pair_logits(
    network: ParmNetwork, sides: tuple[Sequence[Ids], Sequence[Ids]], query: Rows, doc: Rows, device: str
) -> npt.NDArray[np.float32]:
    """Logits of the pairs (query[i], doc[i]) of terms, whose tokens on either side `sides` holds.

    They are scored in batches of equal length, so that nothing is padded.
    """
    kind, found = device.split(":", maxsplit=1)[0], np.empty(len(query), np.float32)
    query_sizes, doc_sizes = (np.array([len(row) for row in rows], np.int64) for rows in sides)
    total = (query_sizes[query] + doc_sizes[doc]).astype(np.int16)  # sorted by radix, which is much faster
    order, packer = np.argsort(total, kind="stable"), Packer(*sides, network.tokenizer.special, device)
    half, attention = torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"), sdpa_kernel(_ATTENTION)
    network.to(device).eval()
    with torch.inference_mode(), half, attention, Progress("scoring pairs of terms", len(query)) as progress:
        for size, rows in enumerate(np.split(order, np.cumsum(np.bincount(total))[:-1])):
            step = max(1, _TOKENS.get(kind, 1 << 12) // (size + 3))
            for start in range(0, len(rows), step):
                part = rows[start : start + step]
                packed = packer(query[part], doc[part])
                ids, types = (packed[name].reshape(len(part), -1) for name in ("ids", "types"))
                batch = {"ids": ids, "types": types, "mask": torch.ones_like(ids)}
                found[part] = network(batch).float().cpu().numpy()
                progress.step(len(part))
    return found


def start_logits_at(
    network: ParmNetwork, terms: Terms, slots: Slots, start: Sequence[float], seed: int, device: str
) -> None:
    """Give the logits of random pairs of terms a mean and a spread; their order stays.

    Phase 1 learns differences alone, so that its logits have no zero point, and a sigmoid of them gives weight to all
    pairs, related or not. Here the last layer is scaled and moved until the logits of query terms with terms of their
    texts, drawn at random, have the mean and spread `start`: with -4 and 2, about one pair in forty has a weight
    above a half.
    """
    slots = slots.take(slots.partner >= 0)
    other = other_terms(slots, terms, seed, "start")  # of each query term, a term of a text that lacks it
    most = _SAMPLE.get(device.split(":", maxsplit=1)[0], 500)
    rows = generator(seed, "parm", "start").permutation(np.flatnonzero(other >= 0))[:most]
    names, number = np.unique(np.concatenate([slots.term[rows], other[rows]]), return_inverse=True)
    ids = network.tokenizer.ids([terms.names[i] for i in names.tolist()], network.max_query)
    query, doc = np.split(number.astype(np.int64), 2)
    logits = pair_logits(network, (ids, ids), query, doc, device).astype(np.float64)
    if len(logits) < 2 or not logits.std():
        return
    factor = start[1] / float(logits.std())
    with torch.no_grad():
        network.outer.weight.mul_(factor)
        network.outer.bias.sub_(float(logits.mean())).mul_(factor).add_(start[0])


def table_scores(value: Tensor, weight: Tensor, norm: Tensor, p: Tensor, text: Tensor) -> Tensor:
    """BM25 of the terms that occur (`value`), and of the partners of those that do not.

    `weight`, `norm` and `p` are those of slots, `text` the position of their text in `value`.
    """
    return value.index_add(0, text, weight * p / (p + norm + EPSILON))


class SecondTrainer(Trainer):
    """Trains on lists of texts, each with the slots that have a partner."""

    def __init__(
        self, network: ParmNetwork, sampler: CandidateSampler, second: Second, terms: Terms, slots: Slots, *,
        seed: int, held_out: Rows | None = None, folder: Path | None = None, device: str = "cpu", say: Say = print,
    ) -> None:  # fmt: skip
        """Put together what is learned from; the slots of the queries that are held out are among the slots."""
        names = list(terms.names)
        self._held_out = np.empty(0, np.int64) if held_out is None else held_out
        super().__init__(
            network, TrainingSet(names, names, sampler), losses.create(second.loss), second.schedule_for(seed),
            folder=folder, validate=self._correlation if len(self._held_out) else None, device=device, say=say,
        )  # fmt: skip
        self.second, self.slots = second, slots.take(slots.partner >= 0)
        if not len(self.slots.pair):
            raise WhyrankError("phase 2: no text lacks a query term; take more queries, or texts at random")
        self._value = terms.value.reshape(-1)
        self._norm = terms.norm[self.slots.doc]
        self._ends = np.searchsorted(self.slots.pair, np.arange(len(self._value) + 1))
        self._scores_of_target, self._from = sampler.candidates.scores, sampler.first
        self._other = other_terms(self.slots, terms, seed, sampler.phase) if second.others else None

    def correlation_of_bm25(self) -> float:
        """The mean correlation of BM25 alone with the target, over the candidates of held-out queries."""
        values = self._value.reshape(self._scores_of_target.shape)[self._held_out, self._from :]
        return self._correlation_of(torch.from_numpy(values))

    def _correlation(self, network: Network) -> float:
        """The mean correlation with the target of BM25 to which the missing terms add."""
        found, width = [], self._scores_of_target.shape[1]
        for start in range(0, len(self._held_out), _VALIDATED):
            rows = self._held_out[start : start + _VALIDATED]
            pair = rows[:, None] * width + np.arange(self._from, width)
            found.append(self._scores(pair.reshape(-1))[0].reshape(pair.shape).cpu())
        return self._correlation_of(torch.cat(found))

    def _correlation_of(self, ours: Tensor) -> float:
        theirs = torch.from_numpy(self._scores_of_target[self._held_out, self._from :])
        return 1 - float(Pearson()(ours.double(), theirs.double()))

    def _loss(self, part: EpochExamples) -> Tensor:
        size, pair = part.doc.shape[1], part.doc.reshape(-1).astype(np.int64)
        scores, p = self._scores(pair)
        target = tensors({"target": part.target[:, :size]}, self.device)["target"]
        loss = self.loss(scores.reshape(-1, size), target) + self.second.regulariser * _mean(p)
        if self._other is None:
            return loss
        slot = self._slots_of(pair)[0]
        slot = slot[self._other[slot] >= 0]
        return loss + self.second.others * _mean(self._weights(self.slots.term[slot], self._other[slot]))

    def _scores(self, pair: Rows) -> tuple[Tensor, Tensor]:
        """The scores of some texts, and p of all their slots."""
        slot, text = self._slots_of(pair)
        given = tensors({"value": self._value[pair], "weight": self.slots.weight[slot], "norm": self._norm[slot],
                         "text": text}, self.device)  # fmt: skip
        p = self._weights(self.slots.term[slot], self.slots.partner[slot])
        return table_scores(given["value"], given["weight"], given["norm"], p, given["text"]), p

    def _weights(self, term: Rows, partner: Rows) -> Tensor:
        """P of pairs of terms."""
        if not len(term):
            return torch.zeros(0, device=self.device) * next(self.network.parameters()).sum()
        with self._precision():
            logits = self._score_pairs(term, partner)
        return torch.sigmoid(logits.float())

    def _slots_of(self, pair: Rows) -> tuple[Rows, Rows]:
        """The slots of some texts, and which of the texts each belongs to."""
        sizes = self._ends[pair + 1] - self._ends[pair]
        return ranges(self._ends[pair], sizes), np.repeat(np.arange(len(pair)), sizes)


def _mean(p: Tensor) -> Tensor:
    return p.mean() if len(p) else p.sum()
