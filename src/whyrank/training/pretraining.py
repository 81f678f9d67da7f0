"""Pre-training on the target corpus: a masked language model and, for pairs of halves, next-sentence prediction.

Devlin et al., "BERT: pre-training of deep bidirectional transformers", NAACL 2019: of 15% of the tokens 80% become
[MASK], 10% another token, 10% stay; the second half of a text follows its own first half or that of another text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from whyrank.core import WhyrankError, generator, seed_for
from whyrank.networks import Arrays, Ids, Network, pair_arrays, single_arrays, tensors
from whyrank.training.checkpoints import load_checkpoint, save_checkpoint
from whyrank.training.recipe import Pretraining
from whyrank.training.schedule import Schedule
from whyrank.training.trainer import Bar

IGNORED = -100
STATE = "pretraining.safetensors"
_SPECIAL = 3  # tokens around two halves
_SHORTEST = 4  # tokens of a text that is learned from


class _Model(nn.Module):
    """The encoder and two heads: a token for every position, and whether the halves belong together."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.encoder, width = network.encoder, network.encoder.width
        self.inner, self.norm, self.next = nn.Linear(width, width), nn.LayerNorm(width), nn.Linear(width, 2)
        embeddings = self.encoder.model.get_input_embeddings().weight
        self.words = nn.Linear(width, len(embeddings))
        self.words.weight = embeddings  # tied

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """The loss of a batch: where tokens are to be found, and of the halves where there are any."""
        states, hidden = self.encoder.last(batch), batch["wanted"] != IGNORED
        logits = self.words(self.norm(functional.gelu(self.inner(states[hidden])))).float()
        wanted = batch["wanted"][hidden]
        loss = functional.cross_entropy(logits, wanted, reduction="sum") / max(len(wanted), 1)
        if "apart" not in batch:
            return loss
        return loss + functional.cross_entropy(self.next(states[:, 0]).float(), batch["apart"])


def pretrain(
    network: Network, texts: Sequence[str], settings: Mapping[str, Any], seed: int, device: str = "cpu",
    say: Callable[[str], None] = print, folder: Path | None = None,
) -> dict[str, float]:  # fmt: skip
    """Train the encoder of a network on texts; a run that was stopped goes on from its checkpoint in `folder`.

    Gives the mean loss of the first and of the last tenth of the steps, and how many steps there were.
    """
    if network.encoder.causal:
        what = f"an encoder of type {network.encoder.model.config.model_type}, which reads from left to right"
        raise WhyrankError(f"pretraining: hidden tokens are found from both sides, not by {what}; leave it out")
    chosen = Pretraining(**settings)
    torch.manual_seed(seed_for(seed, "pretraining") % 2**63)
    model = _Model(network.to(device)).to(device).train()
    most = min(chosen.length, network.encoder.max_positions - _SPECIAL)
    ids = [row for row in network.tokenizer.ids(texts, most) if len(row) >= _SHORTEST]
    if not ids:
        raise WhyrankError("pretraining: the collection has no text of four tokens or more")
    steps = min(-(-len(ids) // chosen.batch) * chosen.epochs, chosen.max_steps or len(ids) * chosen.epochs)
    found = _learn(model, network, ids, chosen, steps, seed, folder)
    tenth = max(1, len(found) // 10)
    first, last = float(np.mean(found[:tenth])), float(np.mean(found[-tenth:]))
    say(f"pre-training: loss {first:.3f} at first, {last:.3f} after {len(found):,} steps")
    return {"first": first, "last": last, "steps": float(len(found))}


def _learn(
    model: _Model, network: Network, ids: Sequence[Ids], chosen: Pretraining, steps: int, seed: int,
    folder: Path | None,
) -> list[float]:  # fmt: skip
    """All steps, those of a stopped run taken over; gives the loss of each."""
    optimiser, device = torch.optim.AdamW(model.parameters(), chosen.rate), str(model.inner.weight.device)
    mixed = torch.autocast(device.split(":", maxsplit=1)[0], torch.bfloat16, enabled=device.startswith("cuda"))
    path = folder / STATE if folder is not None else None
    resumed = load_checkpoint(path, model, optimiser) if path is not None else None
    losses: list[float] = resumed.progress["losses"] if resumed is not None else []
    schedule, done, pending = Schedule(), len(losses), list[Tensor]()
    with Bar("pre-training: texts", (steps - done) * chosen.batch) as bar:
        for step, arrays in enumerate(islice(_batches(network, ids, chosen, seed), steps)):
            if step < done:
                continue
            optimiser.param_groups[0]["lr"] = chosen.rate * schedule.share(step, steps)
            with mixed:
                loss: Tensor = model(tensors(arrays, device))
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            pending.append(loss.detach())
            bar.step(chosen.batch)
            if step + 1 == steps or (step + 1) % chosen.checkpoint_every == 0:
                losses += torch.stack(pending).tolist()
                pending.clear()
                if not all(map(math.isfinite, losses)):
                    raise WhyrankError(f"pre-training: the loss is not finite by step {step + 1:,}; lower its rate")
                if path is not None:
                    save_checkpoint(path, model, optimiser, {"losses": losses})
    return losses


def hide_tokens(
    ids: Any, ordinary: Any, size: int, mask: int, random: np.random.Generator, share: float = 0.15
) -> Any:
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


def _batches(network: Network, ids: Sequence[Ids], chosen: Pretraining, seed: int) -> Iterator[Arrays]:
    """Batches with hidden tokens."""
    special = network.tokenizer.special
    for epoch in range(chosen.epochs):
        random = generator(seed, "pretraining", str(epoch))
        order = random.permutation(len(ids))
        for start in range(0, len(order), chosen.batch):
            rows, extra = [ids[i] for i in order[start : start + chosen.batch]], {}
            if chosen.pairs:
                first, second, apart = halves(rows, random)
                arrays, extra = pair_arrays(first, second, special), {"apart": apart}
            else:
                arrays = single_arrays(rows, special)
            ordinary = (arrays["mask"] == 1) & ~np.isin(arrays["ids"], list(special.values()))
            size, mask = len(network.tokenizer), special["mask"]
            shown, wanted = hide_tokens(arrays["ids"], ordinary, size, mask, random, chosen.masked)
            yield {**arrays, "ids": shown, "wanted": wanted, **extra}
