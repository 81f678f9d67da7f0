"""Losses over lists: scores and targets are [queries, texts], the first text is the positive one."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor
from torch.nn import functional

from whyrank.core import Registry
from whyrank.training.schedule import checked

losses: Registry[Any] = Registry("losses", "loss")
_FLAT = 1e-6  # variance below which scores are as good as equal; of targets, their spread beside their size


@losses.register("margin")
@checked
class Margin:
    """Mean of max(0, margin - s+ + s-) over the negative texts."""

    margin: NonNegativeFloat = 1.0

    def __call__(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The loss of a batch."""
        return torch.relu(self.margin - scores[:, :1] + scores[:, 1:]).mean()


@losses.register("cross-entropy")
@checked
class CrossEntropy:
    """Minus the log of the softmax share of the positive text."""

    temperature: PositiveFloat = 1.0

    def __call__(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The loss of a batch."""
        return -functional.log_softmax(scores / self.temperature, dim=1)[:, 0].mean()


@losses.register("margin-mse")
@checked
class MarginMse:
    """Mean of ((s+ - s-) - (t+ - t-))^2: the student learns the teacher's margins.

    Hofstätter et al., "Improving efficient neural ranking models with cross-architecture knowledge distillation",
    arXiv 2010.02666.
    """

    scale: PositiveFloat = 1.0

    def __call__(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The loss of a batch."""
        ours, theirs = scores[:, :1] - scores[:, 1:], (targets[:, :1] - targets[:, 1:]) * self.scale
        return functional.mse_loss(ours, theirs)


@losses.register("kl")
@checked
class Divergence:
    """KL(softmax(t / temperature) || softmax(s)): learns the teacher's list; `gold` weighs cross-entropy."""

    temperature: PositiveFloat = 0.05
    gold: NonNegativeFloat = 0.0

    def __call__(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The loss of a batch."""
        ours = functional.log_softmax(scores, dim=1)
        theirs = functional.softmax(targets / self.temperature, dim=1)
        loss = functional.kl_div(ours, theirs, reduction="batchmean")
        return loss - self.gold * ours[:, 0].mean() if self.gold else loss


@losses.register("pearson")
@checked
class Pearson:
    """One minus the mean of Pearson's correlation of scores and targets over the texts of each query.

    A query whose scores or targets are all equal has none, and counts as 0.
    """

    def __call__(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The loss of a batch."""
        ours, theirs = (values - values.mean(dim=1, keepdim=True) for values in (scores, targets))
        spread, size = (values.abs().amax(dim=1, keepdim=True) for values in (theirs, targets))
        theirs = torch.where(spread > _FLAT * size, theirs / spread, 0.0)  # targets come in any unit
        norms = torch.sqrt((ours.square().sum(dim=1) + _FLAT) * (theirs.square().sum(dim=1) + _FLAT))
        return 1 - ((ours * theirs).sum(dim=1) / norms).mean()
