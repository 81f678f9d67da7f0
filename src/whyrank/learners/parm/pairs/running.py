"""Scores of all pairs of a task, block by block; a stop costs one block, and the same call goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from whyrank.core import Codes, Progress
from whyrank.learners.parm.pairs.results import Part, Results
from whyrank.learners.parm.pairs.scorer import PairScorer, Told
from whyrank.learners.parm.pairs.task import Settings, Task
from whyrank.learners.parm.pairs.terms import side_of
from whyrank.networks import Network

Say = Callable[[str], None]
BLOCK = {"cpu": 1 << 14, "cuda": 1 << 26}  # pairs of a block at most
_PACE = 30.0  # seconds that a block takes at most, which is what a stop costs
STORED = {"fp32": torch.float32, "bf16": torch.float16}  # how weights are kept
_QUIET = 10.0  # seconds between lines where no terminal shows the progress


class How(NamedTuple):
    """On which device, in which precision and by which way pairs are scored, and for how many seconds at most."""

    device: str = "cpu"
    precision: str = "fp32"
    way: str = "auto"
    seconds: float | None = None
    tokens: int | None = None
    block: int | None = None

    @property
    def kind(self) -> str:
        """Cpu or cuda."""
        return "cuda" if self.device.startswith("cuda") else "cpu"


class TimeIsUp(Exception):
    """The time of a run is over; what is done is kept."""


class Clock:
    """When to stop, and a line on the progress now and then."""

    def __init__(self, what: str, total: int, seconds: float | None, say: Say, before: float = 0.0) -> None:
        """Start counting; `before`: seconds that a run took until it was stopped."""
        self.progress, self._before = Progress(what, total, unit="pairs"), before
        self._start = self._told = self._last = time.monotonic()
        self._seconds, self._say, self._longest = seconds, say, 0.0

    def step(self, pairs: int) -> None:
        """A block with so many more pairs is done."""
        self.count(pairs)
        self.lap()

    def lap(self) -> None:
        """A block is done, whose pairs were counted as they came."""
        now = time.monotonic()
        self._longest, self._last = max(self._longest, now - self._last), now

    def begin(self) -> None:
        """What took time so far was no block, and says nothing of how long one takes."""
        self._last = time.monotonic()

    def count(self, pairs: int) -> None:
        """So many more pairs are scored, maybe in the middle of a block."""
        self.progress.step(pairs)
        self.tell(self.progress, self.elapsed)

    def tell(self, progress: Progress, seconds: float) -> None:
        """Say a line now and then about what has been going on for so long."""
        now = time.monotonic()
        if not sys.stderr.isatty() and now - self._told > _QUIET:
            self._told = now
            self._say(progress.line(seconds))

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def spent(self) -> float:
        """Seconds of all parts of a run that was stopped and goes on."""
        return self._before + self.elapsed

    @property
    def over(self) -> bool:
        """Whether the time is up before one more step would end."""
        return self._seconds is not None and self.elapsed + self._longest > self._seconds

    def check(self) -> None:
        """Raise `TimeIsUp` where it is."""
        if self.over:
            raise TimeIsUp

    @property
    def rate(self) -> float:
        """Pairs a second."""
        return self.progress.done / max(self.elapsed, 1e-9)


def run(task: Task, network: Network, results: Results, how: How, say: Say = print) -> bool:
    """Score what is left; whether all is done then. Results are packed, finished or not."""
    if results.finished:
        say(f"{results.folder}: scored already")
        return True
    scorer = PairScorer(
        network, side_of(task.queries.sequences), side_of(task.docs.sequences), how.device, how.precision, how.way,
        how.tokens,
    )  # fmt: skip
    sides = f"{len(task.queries.sequences):,} x {len(task.docs.sequences):,}"
    say(f"{task.pairs:,} pairs of {sides} distinct sequences of pieces, by {scorer.way}")
    try:
        if task.settings.method == "cascade":
            from whyrank.learners.parm.pairs.cascade import run_cascade

            return run_cascade(task, scorer, results, how, say)
        return exhaustive(task, scorer, results, how, say)
    finally:
        results.pack(most=task.settings.most if results.finished else None)  # a certificate counts all that was found


def exhaustive(
    task: Task, scorer: PairScorer, results: Results, how: How, say: Say, more: dict[str, Any] | None = None
) -> bool:
    """Score every pair that is left; whether all is done. `more` is for the log."""
    left, docs = remaining(task, results.done()), len(task.docs.sequences)
    clock = Clock("scoring pairs", len(left) * docs, how.seconds, say, results.seconds)
    with clock.progress, timed(results, clock):
        for block in paced(left, docs, clock, how):
            if clock.over:
                say(f"time is up after {clock.progress.done:,} pairs; the same command goes on")
                return False
            results.add(scored(task, scorer, block, clock.count).best(task.settings.most), clock.spent)
            clock.lap()
    say(f"{clock.progress.done:,} pairs in {clock.elapsed:.1f} s ({clock.rate:,.0f} pairs/s)")
    results.log(facts(scorer, task, "exhaustive", task.pairs, clock.spent) | (more or {}))
    return True


@contextmanager
def timed(results: Results, clock: Clock) -> Iterator[None]:
    """Note the seconds of a run that is stopped, however that comes about."""
    try:
        yield
    finally:
        if not results.finished:
            results.spend(clock.spent)


def facts(scorer: PairScorer, task: Task, method: str, scored: int, seconds: float) -> dict[str, Any]:
    """What a log says about a run: of the pairs of a task, how many the network has decided on, and how fast."""
    device = torch.cuda.get_device_name(scorer.device) if scorer.device.startswith("cuda") else "CPU"
    return {
        "method": method, "device": device, "torch": torch.__version__, "way": scorer.way,
        "precision": scorer.precision, "tokens": scorer.tokens, "pairs": task.pairs, "scored": scored,
        "seconds": round(seconds, 2), "pairs_per_second": round(scored / max(seconds, 1e-9)),
    }  # fmt: skip


def remaining(task: Task, done: set[int]) -> Codes:
    """Numbers of the distinct queries that are not finished."""
    return np.array([q for q in range(len(task.queries.sequences)) if q not in done], np.int32)


def blocks(numbers: Codes, size: int) -> Iterator[Codes]:
    """Some numbers at a time."""
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def paced(numbers: Codes, docs: int, clock: Clock, how: How) -> Iterator[Codes]:
    """Some numbers at a time, to be scored with all documents: few at first, then what half a minute allows."""
    most, start = how.block or BLOCK[how.kind], 0
    pairs = how.block or most // 8
    while start < len(numbers):
        some = numbers[start : start + max(1, pairs // docs)]
        yield some
        start += len(some)
        pairs = how.block or min(most, int(clock.rate * _PACE))


def scored(task: Task, scorer: PairScorer, queries: Codes, told: Told | None = None) -> Part:
    """The entries of some queries with all documents; `told` hears of pairs as they are scored."""
    kind = STORED[scorer.precision]
    audited = np.intersect1d(queries, audits(task)).astype(np.int32)
    slices = np.zeros((len(audited), len(task.docs.sequences)), torch.empty(0, dtype=kind).numpy().dtype)
    found = []
    for grid in scorer.grids(queries, told):
        weights = grid.weights.to(kind)
        row, column = (weights.float() >= _least(weights, task.settings)).nonzero(as_tuple=True)
        found.append((grid.queries[row.cpu().numpy()], grid.docs[column.cpu().numpy()], _numpy(weights[row, column])))
        for place in np.flatnonzero(np.isin(grid.queries, audited)):
            slices[np.searchsorted(audited, grid.queries[place])][grid.docs] = _numpy(weights[int(place)])
    return part_of(0, queries, found, audited, slices)


def _least(weights: Tensor, settings: Settings) -> Tensor:
    """From which weight on the entries of each query may be kept, [queries, 1]."""
    least = torch.full((len(weights), 1), settings.threshold, device=weights.device)
    if settings.most is None or settings.most >= weights.shape[1]:
        return least
    return least.maximum(weights.float().topk(settings.most, dim=1).values[:, -1:])


def audits(task: Task) -> Codes:
    """Numbers of the distinct queries that are kept with all documents."""
    return np.unique(task.queries.of_term[list(task.settings.audited)]).astype(np.int32)


def part_of(
    round: int,
    queries: Codes,
    found: Sequence[tuple[Any, Any, Any]],
    audited: Codes | None = None,
    slices: Any = None,
) -> Part:
    """Entries (query, document, weight) in any order as a part."""
    query, doc, weight = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((doc, query))
    query, doc, weight = query[order], doc[order], weight[order]
    ends = np.searchsorted(query, np.sort(queries), side="right")
    sizes = np.diff(ends, prepend=0).astype(np.int64)
    if audited is None:
        audited, slices = np.empty(0, np.int32), np.empty((0, 0), weight.dtype)
    return Part(round, np.sort(queries), sizes, doc.astype(np.int32), weight, audited, slices)


def _numpy(weights: Tensor) -> Any:
    return weights.cpu().numpy()
