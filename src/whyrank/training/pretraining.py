"""Pre-training on the target corpus: a masked language model and, for pairs of halves, next-sentence prediction.

Devlin et al., "BERT: pre-training of deep bidirectional transformers", NAACL 2019: of 15% of the tokens 80% become
[MASK], 10% another token, 10% stay; the second half of a text follows its own first half or that of another text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from whyrank.core import WhyrankError, generator, seed_for
from whyrank.networks import Arrays, Ids, Network, pair_arrays, single_arrays, tensors
from whyrank.training.checkpoints import load_checkpoint, save_checkpoint
from whyrank.training.schedule import Schedule
from whyrank.training.trainer import Bar

IGNORED = -100
STATE = "pretraining.safetensors"
_SPECIAL = 3  # tokens around two halves
_SHORTEST = 4  # tokens of a text that is learned from


@dataclass(frozen=True)
class Settings:
    """How an encoder is pre-trained.

    Attributes:
        epochs: passes over the texts.
        batch: texts per step.
        rate: learning rate; it grows over the first tenth of the steps and then falls to zero.
        length: tokens of a text that are read.
        masked: share of the tokens that are to be found.
        pairs: whether it also learns which halves belong together.
        max_steps: stop after so many steps; None for all.
        checkpoint_every: steps between two checkpoints.
    """

    epochs: int = 1
    batch: int = 32
    rate: float = 5e-5
    length: int = 128
    masked: float = 0.15
    pairs: bool = True
    max_steps: int | None = None
    checkpoint_every: int = 500


class Losses(NamedTuple):
    """Mean loss of the first and of the last tenth of the steps, and how many steps there were."""

    first: float
    last: float
    steps: int


class _Model(nn.Module):
    """The encoder and two heads: a token for every position, and whether the halves belong together."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.encoder, width = network.encoder, network.encoder.width
        self.inner, self.norm, self.next = nn.Linear(width, width), nn.LayerNorm(width), nn.Linear(width, 2)
        self.words = nn.Linear(width, len(self._embeddings()))
        self.words.weight = self._embeddings()  # tied

    def _embeddings(self) -> nn.Parameter:
        found: nn.Parameter = self.encoder.model.get_input_embeddings().weight
        return found

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The loss of a batch: where tokens are to be found, and of the halves where there are any."""
        states, places = self.encoder.last(batch), batch["wanted"] != IGNORED
        logits = self.words(self.norm(functional.gelu(self.inner(states[places])))).float()
        wanted = batch["wanted"][places]
        loss = functional.cross_entropy(logits, wanted, reduction="sum") / max(len(wanted), 1)
        if "apart" not in batch:
            return loss
        return loss + functional.cross_entropy(self.next(states[:, 0]).float(), batch["apart"])


def pretrain(
    network: Network, texts: Sequence[str], settings: Mapping[str, Any], seed: int, device: str = "cpu",
    say: Callable[[str], None] = print, folder: Path | None = None,
) -> dict[str, float]:  # fmt: skip
    """Train the encoder of a network on texts; a run that was stopped goes on from its checkpoint in `folder`."""
    if network.encoder.causal:
        what = f"an encoder of type {network.encoder.model.config.model_type}, which reads from left to right"
        raise WhyrankError(f"pretraining: hidden tokens are found from both sides, not by {what}; leave it out")
    own = ("collection", "limit")
    chosen = Settings(**{name: value for name, value in settings.items() if name not in own})
    torch.manual_seed(seed_for(seed, "pretraining") % 2**63)
    model = _Model(network.to(device)).to(device).train()
    ids = _read(network, texts, chosen)
    steps = min(-(-len(ids) // chosen.batch) * chosen.epochs, chosen.max_steps or len(ids) * chosen.epochs)
    found = _learn(model, network, ids, chosen, steps, seed, folder)
    tenth = max(1, len(found) // 10)
    result = Losses(float(np.mean(found[:tenth])), float(np.mean(found[-tenth:])), len(found))
    say(f"pre-training: loss {result.first:.3f} at first, {result.last:.3f} after {result.steps:,} steps")
    return {name: float(value) for name, value in result._asdict().items()}


def _learn(
    model: _Model, network: Network, ids: Sequence[Ids], chosen: Settings, steps: int, seed: int, folder: Path | None
) -> list[float]:
    """All steps, those of a stopped run taken over; gives the loss of each."""
    optimiser = torch.optim.AdamW(model.parameters(), chosen.rate)
    path = folder / STATE if folder is not None else None
    taken = load_checkpoint(path, model, optimiser) if path is not None else None
    losses: list[float] = taken.progress["losses"] if taken is not None else []
    schedule, done, pending = Schedule(), len(losses), list[Tensor]()
    with Bar("pre-training: texts", (steps - done) * chosen.batch) as bar:
        for step, arrays in enumerate(_batches(network, ids, chosen, steps, seed)):
            if step < done:
                continue
            optimiser.param_groups[0]["lr"] = chosen.rate * schedule.share(step, steps)
            pending.append(_step(model, optimiser, arrays))
            bar.step(chosen.batch)
            if step + 1 == steps or (step + 1) % chosen.checkpoint_every == 0:
                losses += _settled(pending, step)
                if path is not None:
                    save_checkpoint(path, model, optimiser, {"losses": losses})
    return losses


def _settled(pending: list[Tensor], step: int) -> list[float]:
    found: list[float] = torch.stack(pending).tolist()
    pending.clear()
    if not all(map(math.isfinite, found)):
        raise WhyrankError(f"pre-training: the loss is not finite by step {step + 1:,}; lower its rate")
    return found


def _read(network: Network, texts: Sequence[str], chosen: Settings) -> list[Ids]:
    most = min(chosen.length, network.encoder.max_positions - _SPECIAL)
    found = [row for row in network.tokenizer.ids(texts, most) if len(row) >= _SHORTEST]
    if not found:
        raise WhyrankError("pretraining: the collection has no text of four tokens or more")
    return found


def masked(ids: Any, ordinary: Any, size: int, mask: int, random: np.random.Generator, share: float = 0.15) -> Any:
    """Tokens with some of them hidden, and the tokens to be found at their positions (elsewhere -100)."""
    chosen = (random.random(ids.shape) < share) & ordinary
    kind = random.random(ids.shape)
    shown = np.where(chosen & (kind < 0.8), mask, ids)
    shown = np.where(chosen & (kind >= 0.8) & (kind < 0.9), random.integers(0, size, ids.shape), shown)
    return shown, np.where(chosen, ids, IGNORED)


def halves(rows: Sequence[Ids], random: np.random.Generator) -> tuple[list[Ids], list[Ids], Any]:
    """First halves, second halves (every other one of another text), and whether they belong together (0 if so)."""
    other, own = random.permutation(len(rows)), np.arange(len(rows))
    chosen = np.where(random.random(len(rows)) < 0.5, other, own)
    first = [row[: len(row) // 2] for row in rows]
    second = [rows[i][len(rows[i]) // 2 :] for i in chosen]
    return first, second, (chosen != own).astype(np.int64)


def _batches(network: Network, ids: Sequence[Ids], chosen: Settings, steps: int, seed: int) -> Iterator[Arrays]:
    """Batches with hidden tokens."""
    step = 0
    for epoch in range(chosen.epochs):
        random = generator(seed, "pretraining", str(epoch))
        order = random.permutation(len(ids))
        for start in range(0, len(order), chosen.batch):
            if step == steps:
                return
            step += 1
            yield _batch(network, [ids[i] for i in order[start : start + chosen.batch]], chosen, random)


def _batch(network: Network, rows: list[Ids], chosen: Settings, random: np.random.Generator) -> Arrays:
    special, extra = network.tokenizer.special, {}
    if chosen.pairs:
        first, second, apart = halves(rows, random)
        arrays, extra = pair_arrays(first, second, special), {"apart": apart}
    else:
        arrays = single_arrays(rows, special)
    ordinary = (arrays["mask"] == 1) & ~np.isin(arrays["ids"], list(special.values()))
    shown, wanted = masked(arrays["ids"], ordinary, len(network.tokenizer), special["mask"], random, chosen.masked)
    return {**arrays, "ids": shown, "wanted": wanted, **extra}


def _step(model: _Model, optimiser: torch.optim.Optimizer, arrays: Arrays) -> Tensor:
    device = str(model.inner.weight.device)
    with torch.autocast(device.split(":", maxsplit=1)[0], torch.bfloat16, enabled=device.startswith("cuda")):
        loss: Tensor = model(tensors(arrays, device))
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return loss.detach()
