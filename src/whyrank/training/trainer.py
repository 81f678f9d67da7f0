"""One trainer for every network: batches of lists, a loss, AdamW, validation, checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from whyrank.core import Progress, WhyrankError, seed_for
from whyrank.networks import Ids, Network, tensors
from whyrank.training.checkpoints import load_checkpoint, save_checkpoint
from whyrank.training.data import EpochExamples, TrainingSet
from whyrank.training.schedule import Schedule

Numbers = npt.NDArray[np.integer[Any]]
Loss = Callable[[Tensor, Tensor], Tensor]
Validate = Callable[[Network], float]
Say = Callable[[str], None]
CHECKPOINT = "checkpoint.safetensors"
EVERY = 120.0  # seconds between two checkpoints where a schedule does not say how many steps
SETTLED = 64  # steps between two looks at the losses
PARTS, PART = 4, 64  # a batch is scored in at most so many parts, of at least so many pairs
_BLOCK = 4096  # texts that are read at a time


class Bar(Progress):
    """A progress line that makes room for other lines."""

    def clear(self) -> None:
        """Take the line away; the next step draws it again."""
        self.__exit__(None, None, None)


@dataclass
class History:
    """What happened: the loss of every step, validations as (step, value), pairs seen, and the time it took."""

    losses: list[float] = field(default_factory=list)
    validations: list[tuple[int, float]] = field(default_factory=list)
    pairs: int = 0
    seconds: float = 0.0
    stopped: str = ""

    @property
    def best(self) -> tuple[int, float] | None:
        """Step and value of the best validation."""
        return max(self.validations, key=lambda pair: pair[1]) if self.validations else None


class Trainer:
    """Trains a network; with `folder`, checkpoints are kept there.

    A run that was killed and is started again with the same arguments goes on from its last checkpoint and gives the
    losses that it would have given.
    """

    def __init__(
        self, network: Network, data: TrainingSet, loss: Loss, schedule: Schedule, *,
        folder: Path | None = None, validate: Validate | None = None, device: str = "cpu", say: Say = print,
    ) -> None:  # fmt: skip
        """Put a network and its data together; nothing is trained yet."""
        self.network, self.data, self.loss, self.schedule = network.to(device), data, loss, schedule
        self.folder, self.validate, self.device, self.say = folder, validate, device, say
        self.history = History()
        self._optimiser = new_optimiser(network, schedule)
        self._queries = _tokenise("reading queries", data.queries, network.query_ids)
        self._docs = _tokenise("reading texts", data.docs, network.doc_ids)
        self._pending: list[Tensor] = []  # losses that nobody has waited for yet
        self._best: dict[str, Tensor] = {}
        self._packer: Packer | None = None
        if network.packs and schedule.precision == "bf16" and device.startswith("cuda"):
            self._packer = Packer(self._queries, self._docs, network.tokenizer.special, device)
        self._bar = Bar("training: pairs")

    def run(self) -> History:
        """Train to the end, or until patience runs out; the network then holds the best validated weights."""
        torch.manual_seed(seed_for(self.schedule.seed, "dropout") % 2**63)
        done, first = self._resume(), self.data.sampler.epoch(self.schedule.seed, 0)
        if not len(first.query):
            raise WhyrankError("training: there is not one query with a positive and a negative text to learn from")
        self._epoch = -(-len(first.query) // self.schedule.batch)
        whole = self._epoch * self.schedule.epochs
        steps = min(whole, self.schedule.max_steps or whole)
        self._saved = time.perf_counter()
        self._start = self._saved - self.history.seconds
        pairs = first.doc.size * steps // self._epoch - self.history.pairs
        with Bar("training: pairs", pairs) as self._bar:
            for step, batch in enumerate(self._batches(first)):
                if step >= steps or self.history.stopped:
                    break
                if step >= done:
                    self._step(step, steps, batch)
        self._settle()
        self.history.seconds = time.perf_counter() - self._start
        if self._best:
            self.network.load_state_dict(self._best)
        return self.history

    def _batches(self, first: EpochExamples) -> Iterator[EpochExamples]:
        for epoch in range(self.schedule.epochs):
            drawn = self.data.sampler.epoch(self.schedule.seed, epoch) if epoch else first
            for start in range(0, len(drawn.query), self.schedule.batch):
                yield drawn.take(np.arange(start, min(start + self.schedule.batch, len(drawn.query))))

    def _step(self, step: int, steps: int, batch: EpochExamples) -> None:
        self.network.train()
        share = self.schedule.share(step, steps, self._epoch)
        for group in self._optimiser.param_groups:
            group["lr"] = group["full"] * share
        self._pending.append(self._learn(batch))
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.schedule.clip)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        self.history.pairs += batch.doc.size
        self._bar.step(batch.doc.size)
        done = step + 1
        if len(self._pending) >= SETTLED:
            self._settle()
        if self.validate is not None and (done % (self.schedule.validate_every or self._epoch) == 0 or done == steps):
            self._validate(self.validate, done)
        every = self.schedule.checkpoint_every
        late = time.perf_counter() - self._saved > EVERY if every is None else done % every == 0 or done == steps
        if self.folder is not None and late:
            self._checkpoint(done)

    def _learn(self, batch: EpochExamples) -> Tensor:
        """The loss of a batch, still on its device; its gradient is left in the parameters."""
        parts = np.array_split(np.arange(len(batch.query)), min(self.schedule.accumulate, len(batch.query)))
        total = torch.zeros((), device=self.device)
        for rows in parts:
            loss = self._loss(batch.take(rows)) * (len(rows) / len(batch.query))
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return total

    def _loss(self, part: EpochExamples) -> Tensor:
        size = part.doc.shape[1]
        with self._precision():
            scores, penalty = self._score_pairs(np.repeat(part.query, size), part.doc.ravel()), self.network.penalty()
        targets = tensors({"target": part.target}, self.device)["target"]
        loss = self.loss(scores.reshape(-1, size), targets)
        return loss if penalty is None else loss + penalty

    def _score_pairs(self, query: Numbers, doc: Numbers) -> Tensor:
        """Scores in the given order, computed in parts of similar length, so that little is padded."""
        if self._packer is not None:
            return self._read(self._packer(query, doc))
        queries, docs = [self._queries[q] for q in query.tolist()], [self._docs[d] for d in doc.tolist()]
        order = np.argsort([len(q) + len(d) for q, d in zip(queries, docs, strict=True)], kind="stable")
        scores = [
            self._read(tensors(self.network.arrays([queries[i] for i in rows], [docs[i] for i in rows]), self.device))
            for rows in np.array_split(order, max(1, min(PARTS, len(order) // PART)))
        ]
        return torch.cat(scores)[tensors({"rank": np.argsort(order)}, self.device)["rank"]]

    def _read(self, batch: dict[str, Tensor]) -> Tensor:
        found: Tensor = self.network(batch)
        return found.float()

    def _precision(self) -> AbstractContextManager[Any]:
        mixed = self.schedule.precision == "bf16"
        return torch.autocast(self.device.split(":")[0], torch.bfloat16) if mixed else nullcontext()

    def _validate(self, validate: Validate, step: int) -> None:
        self._settle()
        self._bar.clear()
        best = self.history.best
        self.network.eval()
        with torch.inference_mode():
            value = validate(self.network)
        self.history.validations.append((step, value))
        recent = float(np.mean(self.history.losses[-100:]))
        self._bar.clear()
        self.say(f"step {step:,}: loss {recent:.4f}, validation {value:.4f}")
        if best is None or value > best[1]:
            self._best = {name: t.detach().cpu().clone() for name, t in self.network.state_dict().items()}
        self._judge_patience()

    def _judge_patience(self) -> None:
        best, patience = self.history.best, self.schedule.patience
        if best and patience and sum(step > best[0] for step, _ in self.history.validations) >= patience:
            self.history.stopped = f"no better validation since step {best[0]:,}"

    def _settle(self) -> None:
        """Move the pending losses into the history: the only time when training waits for a GPU."""
        found = torch.stack(self._pending).tolist() if self._pending else []
        self._pending.clear()
        self.history.losses += found
        if not all(map(math.isfinite, found)):
            step = next(i for i, loss in enumerate(self.history.losses, 1) if not math.isfinite(loss))
            raise WhyrankError(f"training: the loss is not finite at step {step:,}; lower the rates, or clip more")

    def _checkpoint(self, step: int) -> None:
        assert self.folder is not None
        self._settle()
        self.history.seconds = time.perf_counter() - self._start
        progress = {"step": step, "losses": self.history.losses, "validations": self.history.validations,
                    "pairs": self.history.pairs, "seconds": self.history.seconds}  # fmt: skip
        save_checkpoint(self.folder / CHECKPOINT, self.network, self._optimiser, progress, self._best)
        self._saved = time.perf_counter()

    def _resume(self) -> int:
        """Go on from a checkpoint where there is one; gives how many steps are done already."""
        path = self.folder / CHECKPOINT if self.folder is not None else None
        found = load_checkpoint(path, self.network, self._optimiser) if path is not None else None
        if found is None:
            return 0
        validations = [(int(step), float(value)) for step, value in found.progress["validations"]]
        self.history = History(found.progress["losses"], validations)
        self.history.pairs, self.history.seconds = found.progress["pairs"], found.progress["seconds"]
        self._best = found.kept
        self._judge_patience()
        self.say(f"going on from step {found.progress['step']:,}")
        return int(found.progress["step"])


def new_optimiser(network: Network, schedule: Schedule) -> torch.optim.AdamW:
    """AdamW with one rate for the encoder and one for the rest; biases and norms decay only with `decay_all`."""
    heads = {id(p) for p in network.heads()}
    groups: list[dict[str, Any]] = []
    for inside, rate in ((True, schedule.rate), (False, schedule.head_rate)):
        for flat in (True, False):
            found = [p for p in network.parameters() if (id(p) not in heads) == inside and (p.ndim < 2) == flat]
            decay = 0.0 if flat and not schedule.decay_all else schedule.weight_decay
            groups.append({"params": found, "lr": rate, "full": rate, "weight_decay": decay})
    fused = all(p.is_cuda for p in network.parameters())
    return torch.optim.AdamW([g for g in groups if g["params"]], eps=schedule.epsilon, fused=fused or None)


def _tokenise(what: str, texts: Sequence[str], ids: Callable[[Sequence[str]], list[Ids]]) -> list[Ids]:
    found: list[Ids] = []
    with Progress(what, len(texts)) as progress:
        for start in range(0, len(texts), _BLOCK):
            found += ids(texts[start : start + _BLOCK])
            progress.step(min(_BLOCK, len(texts) - start))
    return found


class Packer:
    """Puts packed batches (see `networks.first_position`) of any pairs together on the device, where all tokens lie.

    A step sends the numbers of its texts alone. Without it a fast GPU waits for the processor, which copies every
    token of every pair again and again.
    """

    def __init__(self, queries: Sequence[Ids], docs: Sequence[Ids], special: Mapping[str, int], device: str) -> None:
        """Lay all tokens on the device."""
        self._queries, self._docs = _Flat(queries, device), _Flat(docs, device)
        self._cls, self._sep, self._device = special["cls"], special["sep"], device

    def __call__(self, query: Numbers, doc: Numbers) -> dict[str, Tensor]:
        """[CLS] query [SEP] text [SEP] of the pairs (query[i], doc[i]) end to end; nothing waits for the device."""
        sizes = self._queries.sizes[query] + self._docs.sizes[doc] + 3
        ends = np.concatenate([[0], np.cumsum(sizes)])
        sent = tensors({"query": query.astype(np.int64), "doc": doc.astype(np.int64), "ends": ends}, self._device)
        pair = torch.repeat_interleave(
            torch.arange(len(query), device=self._device), sent["ends"].diff(), output_size=int(ends[-1])
        )
        positions = torch.arange(int(ends[-1]), device=self._device) - sent["ends"][pair]
        in_query = positions - 1
        in_doc = in_query - self._queries.lengths[sent["query"][pair]] - 1
        ids = self._docs.at(sent["doc"][pair], in_doc, self._sep)
        ids = self._queries.at(sent["query"][pair], in_query, ids)
        ids = torch.where(positions == 0, self._cls, ids)
        return {"ids": ids, "types": (in_doc >= 0).long(), "positions": positions, "ends": sent["ends"]}


class _Flat:
    """Texts of tokens end to end."""

    def __init__(self, texts: Sequence[Ids], device: str) -> None:
        self.sizes = np.array([len(text) for text in texts], np.int64)
        starts = np.cumsum(self.sizes) - self.sizes
        tokens = np.concatenate([*texts, np.zeros(1, np.int32)]).astype(np.int64)
        self.lengths, self.starts, self.tokens = (
            torch.from_numpy(array).to(device) for array in (self.sizes, starts, tokens)
        )

    def at(self, text: Tensor, position: Tensor, other: Tensor | int) -> Tensor:
        """The tokens at some positions of some texts; `other` for a position that a text does not have."""
        found = self.tokens[(self.starts[text] + position).clamp(0, len(self.tokens) - 1)]
        return torch.where((position >= 0) & (position < self.lengths[text]), found, other)
