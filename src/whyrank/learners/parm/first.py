"""Phase 1: the sum of the network's logits for both parts of a query learns what the target says of the whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from whyrank.learners.parm.data import Drawn
from whyrank.learners.parm.texts import PARTS, Segmenter, TokenTexts
from whyrank.networks import Network, ParmNetwork, tensors
from whyrank.training import Examples, First, Trainer, TrainingSet
from whyrank.training.losses import losses

Say = Callable[[str], None]
_VALIDATED = 256  # held-out queries that are read at a time


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
        self._segment = Segmenter(*texts, first, network.pieces.special, device)
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
