"""Phase 2: single terms are calibrated through BM25.

s(q, d) = value + sum over the query terms that d lacks of weight * p / (p + K + 1e-8)

with p = sigmoid(logit(term, partner)) and the partner that was best before.
The loss is over the scores of a query's texts, plus a weight times the mean p, plus another one times the mean p of
terms of the same texts that were not best.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core.errors import WhyrankError
from whyrank.networks.batches import tensors
from whyrank.networks.network import Network
from whyrank.networks.parm import ParmNetwork
from whyrank.training.examples import Examples, TrainingSet
from whyrank.training.losses import Pearson, losses
from whyrank.training.parm_data import Drawn, Terms
from whyrank.training.parm_partners import Slots, other_terms
from whyrank.training.parm_recipe import Second
from whyrank.training.trainer import Trainer

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
        loss = self.loss(scores.reshape(-1, size), target)
        return loss + self.second.regulariser * _mean(p) + self._of_others(place)

    def _of_others(self, place: Rows) -> Tensor | float:
        """What terms that are no partners add to the loss."""
        if self._other is None:
            return 0.0
        slot = self._slots_of(place)[0]
        slot = slot[self._other[slot] >= 0]
        return self.second.others * _mean(self._weights(self.slots.term[slot], self._other[slot]))

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
