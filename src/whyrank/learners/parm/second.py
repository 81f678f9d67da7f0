"""Phase 2: single terms are calibrated through BM25.

s(q, d) = value + sum over the query terms that d lacks of weight * p / (p + K + 1e-8)

with p = sigmoid(logit(term, partner)) and the partner that was best before.
The loss is over the scores of a query's texts, plus a weight times the mean p, plus another one times the mean p of
terms of the same texts that were not best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from whyrank.core import Progress, WhyrankError, generator
from whyrank.learners.parm.data import Drawn, Terms
from whyrank.networks import BARE, Ids, Network, ParmNetwork, framed, tensors
from whyrank.training import Examples, Packer, Pearson, Second, Trainer, TrainingSet
from whyrank.training.losses import losses

# The best partner of each query term that a text lacks: the term of the text with the highest logit.
#
# A slot is one term that one candidate text of a query lacks. All pairs of the slots' terms and the texts' terms are
# scored once, in batches of equal length, so that nothing is padded.

Ints = npt.NDArray[np.int64]
_TOKENS = {"cpu": 1 << 12, "cuda": 1 << 19}  # tokens that are scored at a time
# cuDNN's attention fails for more than 65,535 texts at a time.
_ATTENTION = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
_PAIRS = {"cpu": 1 << 22, "cuda": 1 << 26}  # pairs of terms that are numbered at a time


class Slots(NamedTuple):
    """Query terms that candidates lack, in the order of queries and candidates.

    Attributes:
        place: the place of query and candidate in the table of candidates, counted row by row.
        doc: the candidate's number.
        term: the query term.
        weight: what BM25 gives it.
        partner: the text's best term; -1 where it has none.
    """

    place: Ints
    doc: Ints
    term: Ints
    weight: npt.NDArray[np.float32]
    partner: Ints

    def take(self, rows: Any) -> Slots:
        """Some of the slots."""
        return Slots(self.place[rows], self.doc[rows], self.term[rows], self.weight[rows], self.partner[rows])


def slots_of(terms: Terms, doc: npt.NDArray[np.int32], queries: Ints, missing: str, seed: int) -> Slots:
    """The slots of some queries: `all` of them, or `one` for each query and text, drawn at random."""
    sizes = np.diff(terms.query_ends)[queries]
    owner = np.repeat(queries, sizes)
    rows = np.repeat(terms.query_ends[queries] - (np.cumsum(sizes) - sizes), sizes) + np.arange(len(owner))
    which, column = np.nonzero(terms.absent[rows])
    if missing == "one":
        group = owner[which] * doc.shape[1] + column
        order = np.lexsort((generator(seed, "parm", "missing").random(len(which)), group))
        chosen = order[np.flatnonzero(np.diff(group[order], prepend=-1))]
        which, column = which[chosen], column[chosen]
    query, width = owner[which], doc.shape[1]
    order = np.argsort(query * width + column, kind="stable")
    which, column, query = which[order], column[order], query[order]
    place, term = query * width + column, rows[which]
    empty = np.full(len(place), -1, np.int64)
    return Slots(place, doc[query, column].astype(np.int64), terms.query[term].astype(np.int64), terms.weight[term],
                 empty)  # fmt: skip


def with_partners(slots: Slots, terms: Terms, network: ParmNetwork, device: str, frame: str = BARE) -> Slots:
    """The same slots with the best partners by a network, which reads terms in a frame."""
    used = np.zeros(len(terms.names), np.bool_)
    used[slots.term] = True
    used[terms.doc] = True
    names, number = [terms.names[i] for i in np.flatnonzero(used).tolist()], np.cumsum(used) - 1
    ids = network.tokenizer.ids(names, network.max_query)
    sides = framed(ids, ids, network, frame)
    partner, step = np.full(len(slots.place), -1, np.int64), _PAIRS.get(device.split(":", maxsplit=1)[0], 1 << 22)
    ends = np.cumsum(np.diff(terms.doc_ends)[slots.doc])
    cuts: list[int] = np.searchsorted(ends, np.arange(step, int(ends.max(initial=0)) + step, step)).tolist()
    start = 0
    for end in [*cuts, len(slots.place)]:
        if end > start:
            partner[start:end] = _best(slots.take(slice(start, end)), terms, network, number, sides, device)
            start = end
    return slots._replace(partner=partner)


def _best(
    slots: Slots, terms: Terms, network: ParmNetwork, number: Ints, ids: tuple[Sequence[Ids], Sequence[Ids]],
    device: str,
) -> Ints:  # fmt: skip
    """The best partner of each slot, the first of several that are equal; each distinct pair is scored once."""
    sizes, n = np.diff(terms.doc_ends)[slots.doc], len(ids[0])
    slot = np.repeat(np.arange(len(sizes)), sizes)
    inside = np.arange(len(slot)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    candidate = terms.doc[terms.doc_ends[slots.doc][slot] + inside].astype(np.int64)
    keys = torch.from_numpy(number[slots.term][slot] * n + number[candidate]).to(device)
    distinct, back = (part.cpu().numpy() for part in torch.unique(keys, return_inverse=True))
    logits = pair_logits(network, ids, distinct // n, distinct % n, device)[back]
    found, filled = np.full(len(sizes), -1, np.int64), np.flatnonzero(sizes)
    if len(filled):
        starts = (np.cumsum(sizes) - sizes)[filled]
        highest = np.repeat(np.maximum.reduceat(logits, starts), sizes[filled])
        first = np.where(logits == highest, np.arange(len(logits)), len(logits))
        found[filled] = candidate[np.minimum.reduceat(first, starts)]
    return found


def other_terms(slots: Slots, terms: Terms, seed: int, what: str) -> Ints:
    """One term of each slot's text at random that is not the partner; -1 where the text has no other."""
    sizes = np.diff(terms.doc_ends)[slots.doc]
    drawn = (generator(seed, "parm", "others", what).random(len(sizes)) * (sizes - 1)).astype(np.int64)
    last = np.maximum(terms.doc_ends[slots.doc + 1] - 1, 0)
    place = np.minimum(terms.doc_ends[slots.doc] + drawn, last)
    found = terms.doc[place].astype(np.int64)
    found = np.where(found == slots.partner, terms.doc[last], found)
    return np.where(sizes > 1, found, -1).astype(np.int64)


def pair_logits(
    network: ParmNetwork, sides: tuple[Sequence[Ids], Sequence[Ids]], query: Ints, doc: Ints, device: str
) -> npt.NDArray[np.float32]:
    """Logits of the pairs (query[i], doc[i]) of terms, whose tokens on either side `sides` holds."""
    kind, found = device.split(":", maxsplit=1)[0], np.empty(len(query), np.float32)
    asked, told = (np.array([len(row) for row in rows], np.int64) for rows in sides)
    total = (asked[query] + told[doc]).astype(np.int16)  # sorted by radix, which is much faster
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


# Where the logits of phase 2 start: phase 1 learns differences alone, so that its logits have no zero point.
#
# A sigmoid of them gives weight to all pairs, related or not. Here the last layer is scaled and moved until the
# logits of query terms with terms of their texts, drawn at random, have a given mean and spread: with -4 and 2, about
# one pair in forty has a weight above a half.

_SAMPLE = {"cpu": 500, "cuda": 20_000}  # pairs that are looked at


def begin_at(
    network: ParmNetwork, terms: Terms, slots: Slots, start: Sequence[float], seed: int, device: str
) -> None:
    """Give the logits of random pairs of terms a mean and a spread; their order stays."""
    slots = slots.take(slots.partner >= 0)
    other = other_terms(slots, terms, seed, "start")  # of each query term, a term of a text that lacks it
    most = _SAMPLE.get(device.split(":", maxsplit=1)[0], 500)
    rows = generator(seed, "parm", "start").permutation(np.flatnonzero(other >= 0))[:most]
    names, place = np.unique(np.concatenate([slots.term[rows], other[rows]]), return_inverse=True)
    ids = network.tokenizer.ids([terms.names[i] for i in names.tolist()], network.max_query)
    query, doc = np.split(place.astype(np.int64), 2)
    logits = pair_logits(network, (ids, ids), query, doc, device).astype(np.float64)
    if len(logits) < 2 or not logits.std():
        return
    factor = start[1] / float(logits.std())
    with torch.no_grad():
        network.outer.weight.mul_(factor)
        network.outer.bias.sub_(float(logits.mean())).mul_(factor).add_(start[0])


Say = Callable[[str], None]
Rows = npt.NDArray[np.int64]
_VALIDATED = 128  # held-out queries that are read at a time
EPSILON = 1e-8


def table_scores(value: Tensor, weight: Tensor, norm: Tensor, p: Tensor, place: Tensor) -> Tensor:
    """BM25 of the terms that occur (`value`), and of the partners of those that do not.

    `weight`, `norm` and `p` are those of slots, `place` the place of their text in `value`.
    """
    return value.index_add(0, place, weight * p / (p + norm + EPSILON))


class SecondTrainer(Trainer):
    """Trains on lists of texts, each with the slots that have a partner."""

    def __init__(
        self, network: ParmNetwork, drawn: Drawn, second: Second, terms: Terms, slots: Slots, *, seed: int,
        held_out: Rows | None = None, folder: Path | None = None, device: str = "cpu", say: Say = print,
    ) -> None:  # fmt: skip
        """Put together what is learned from; the slots of the queries that are held out are among the slots."""
        names, kept = list(terms.names), slots.partner >= 0
        self._held_out = np.empty(0, np.int64) if held_out is None else held_out
        super().__init__(
            network, TrainingSet(names, names, drawn), losses.create(second.loss), second.schedule_for(seed),
            folder=folder, validate=self._correlation if len(self._held_out) else None, device=device, say=say,
        )  # fmt: skip
        self.second, self.slots = second, slots.take(kept)
        if not len(self.slots.place):
            raise WhyrankError("phase 2: no text lacks a query term; take more queries, or texts at random")
        self._value = terms.value.reshape(-1)
        self._norm = terms.norm[self.slots.doc]
        self._ends = np.searchsorted(self.slots.place, np.arange(len(self._value) + 1))
        self._given, self._width, self._from = drawn.given, drawn.given.doc.shape[1], drawn.first
        self._other = other_terms(self.slots, terms, seed, drawn.what) if second.others else None

    def correlation_of_bm25(self) -> float:
        """The mean correlation of BM25 alone with the target, over the candidates of held-out queries."""
        values = self._value.reshape(-1, self._width)[self._held_out, self._from :]
        return _correlation(torch.from_numpy(values), self._theirs())

    def _correlation(self, network: Network) -> float:
        """The same with the terms that are missing."""
        found = []
        for start in range(0, len(self._held_out), _VALIDATED):
            rows = self._held_out[start : start + _VALIDATED]
            place = rows[:, None] * self._width + np.arange(self._from, self._width)
            found.append(self._scores(place.reshape(-1))[0].reshape(place.shape).cpu())
        return _correlation(torch.cat(found), self._theirs())

    def _theirs(self) -> Tensor:
        return torch.from_numpy(self._given.scores[self._held_out, self._from :])

    def _loss(self, part: Examples) -> Tensor:
        size, place = part.doc.shape[1], part.doc.reshape(-1).astype(np.int64)
        scores, p = self._scores(place)
        target = tensors({"target": part.target[:, :size]}, self.device)["target"]
        loss = self.loss(scores.reshape(-1, size), target) + self.second.regulariser * _mean(p)
        if self._other is None:
            return loss
        slot = self._slots_of(place)[0]
        slot = slot[self._other[slot] >= 0]
        return loss + self.second.others * _mean(self._weights(self.slots.term[slot], self._other[slot]))

    def _scores(self, place: Rows) -> tuple[Tensor, Tensor]:
        """The scores of some texts, and p of all their slots."""
        slot, text = self._slots_of(place)
        arrays = {"value": self._value[place], "weight": self.slots.weight[slot], "norm": self._norm[slot],
                  "place": text}  # fmt: skip
        sent = tensors({name: np.ascontiguousarray(array) for name, array in arrays.items()}, self.device)
        p = self._weights(self.slots.term[slot], self.slots.partner[slot])
        return table_scores(sent["value"], sent["weight"], sent["norm"], p, sent["place"]), p

    def _weights(self, term: Rows, partner: Rows) -> Tensor:
        """P of pairs of terms."""
        if not len(term):
            return torch.zeros(0, device=self.device) * next(self.network.parameters()).sum()
        with self._precision():
            logits = self._scored(term, partner)
        return torch.sigmoid(logits.float())

    def _slots_of(self, place: Rows) -> tuple[Rows, Any]:
        """The slots of some texts, and which of the texts each belongs to."""
        sizes = self._ends[place + 1] - self._ends[place]
        text = np.repeat(np.arange(len(place)), sizes)
        inside = np.arange(len(text)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self._ends[place][text] + inside, text


def _mean(p: Tensor) -> Tensor:
    return p.mean() if len(p) else p.sum()


def _correlation(ours: Tensor, theirs: Tensor) -> float:
    return 1 - float(Pearson()(ours.double(), theirs.double()))
