"""How a network is trained: rates, batches, lengths of time; all that a recipe says besides data and loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whyrank.core import UnknownName, check_flag, check_number, check_whole

if TYPE_CHECKING:
    import torch

    from whyrank.networks import Network

_PRECISIONS = ("fp32", "bf16")


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Settings of one training run.

    Attributes:
        epochs: passes over the examples.
        batch: queries per step, over all accumulated parts.
        accumulate: parts that a batch is computed in.
        rate: learning rate of the encoder.
        head_rate: learning rate of everything else.
        warmup: share of the steps in which the rates grow to their full size.
        decay: whether they then fall linearly to zero.
        epoch_factor: what the rates are multiplied by after each epoch, besides.
        weight_decay: of AdamW.
        decay_all: whether biases and norms are decayed too.
        epsilon: of AdamW.
        clip: largest norm of the gradient.
        precision: `fp32`, or `bf16` for mixed precision.
        max_steps: stop after so many steps; None for all.
        validate_every: steps between two validations; None for the end of each epoch.
        patience: validations without a better value before training stops; None for never.
        checkpoint_every: steps between two checkpoints; None for one every two minutes.
        threads: of the processor; None for torch's own choice. A small network is quickest with one.
        seed: of order, samples, dropout and new weights.
    """

    epochs: int = 1
    batch: int = 16
    accumulate: int = 1
    rate: float = 2e-5
    head_rate: float = 2e-4
    warmup: float = 0.1
    decay: bool = True
    epoch_factor: float = 1.0
    weight_decay: float = 0.01
    decay_all: bool = False
    epsilon: float = 1e-8
    clip: float = 1.0
    precision: str = "fp32"
    max_steps: int | None = None
    validate_every: int | None = None
    patience: int | None = None
    checkpoint_every: int | None = None
    threads: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "accumulate"):
            check_whole(name, getattr(self, name), 1)
        for name in ("max_steps", "validate_every", "patience", "checkpoint_every", "threads"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 1)
        for name in ("rate", "head_rate", "weight_decay"):
            check_number(name, getattr(self, name), 0)
        check_number("clip", self.clip, 0, strict=True)
        check_number("epsilon", self.epsilon, 0, strict=True)
        check_number("warmup", self.warmup, 0, 1)
        check_number("epoch_factor", self.epoch_factor, 0, 1)
        check_flag("decay", self.decay)
        check_flag("decay_all", self.decay_all)
        if self.precision not in _PRECISIONS:
            raise UnknownName("precision", str(self.precision), _PRECISIONS)

    def share(self, step: int, steps: int, epoch: int | None = None) -> float:
        """The share of the full learning rate at a step, counted from 0; an epoch has so many steps."""
        factor = self.epoch_factor ** (step // epoch) if epoch else 1.0
        warm = max(1, round(self.warmup * steps))
        if step < warm:
            return factor * (step + 1) / warm
        return factor * (max(0.0, (steps - step) / max(1, steps - warm)) if self.decay else 1.0)


def optimiser(network: Network, schedule: Schedule) -> torch.optim.AdamW:
    """AdamW with one rate for the encoder and one for the rest; biases and norms decay only if all is to."""
    import torch

    heads = {id(p) for p in network.heads()}
    groups: list[dict[str, Any]] = []
    for inside, rate in ((True, schedule.rate), (False, schedule.head_rate)):
        flat_decay = schedule.weight_decay if schedule.decay_all else 0.0
        for flat, decay in ((True, flat_decay), (False, schedule.weight_decay)):
            found = [p for p in network.parameters() if (id(p) not in heads) == inside and (p.ndim < 2) == flat]
            groups.append({"params": found, "lr": rate, "full": rate, "weight_decay": decay})
    fused = all(p.is_cuda for p in network.parameters())
    return torch.optim.AdamW(
        [group for group in groups if group["params"]], eps=schedule.epsilon, fused=fused or None
    )
