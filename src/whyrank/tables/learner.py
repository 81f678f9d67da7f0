"""The state of EM and its steps, whatever the number of threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from whyrank.core.errors import BadInput, WhyrankError
from whyrank.core.progress import Progress
from whyrank.core.protocols import Flags, Floats
from whyrank.core.seeds import generator
from whyrank.tables.bitext import Bitext
from whyrank.tables.checkpoint import State, fingerprint, load_checkpoint, save_checkpoint
from whyrank.tables.expectation import visit
from whyrank.tables.links import make_shard, plan_shards
from whyrank.tables.perplexity import gains_too_little, lowest, perplexity
from whyrank.tables.shelf import Shelf

T = TypeVar("T")
R = TypeVar("R")
Precision = type[np.floating[Any]]


class Learner:
    """The state of EM: shards with expected counts, and one over their sums by source word."""

    def __init__(
        self, bitext: Bitext, null: bool, threads: int, memory: int, held_out: float, seed: int,
        precision: Precision = np.float32,
    ) -> None:  # fmt: skip
        self.bitext, self.null, self._threads, self._precision = bitext, null, threads, precision
        self._use = _trained_on(bitext, held_out, seed)
        self._plan = plan_shards(bitext, self._use)
        self._tokens = int(np.diff(bitext.target_offsets)[self._use].sum())
        self.state, self._unseen = State(), 0.0
        self.shelf = self._shelved(memory)
        self.scale = self._uniform()

    def _uniform(self) -> Floats:
        found = np.full(len(self.bitext.source_terms) + 1, 1 / len(self.bitext.target_terms))
        found[-1] *= self.null
        return found

    def _shelved(self, memory: int) -> Shelf:
        shelf, plan = Shelf(memory), self._plan

        def make(number: int) -> Any:
            return make_shard(self.bitext, self._use, plan, number, self._precision)

        with Progress("EM, links numbered", int(plan.links.sum())) as progress:
            for number, shard in enumerate(in_order(make, range(len(plan.links)), self._threads)):
                shelf.add(number, shard)
                progress.step(int(plan.links[number]))
        return shelf

    def learn(self, iterations: int, stop: float | None, checkpoint: Path | None) -> None:
        """Iterate, from the checkpoint where there is one.

        Where held-out perplexity ends it, the table is that of the iteration with the lowest.
        """
        key = fingerprint(self.bitext, self._use, self.null, self._precision) if checkpoint else ""
        if checkpoint:
            self._resume(checkpoint, key, iterations)
        passes = iterations + 1 - self.state.iteration
        with Progress("EM, links visited", int(self._plan.links.sum()) * passes) as progress:
            while self.state.iteration < iterations and not self._stopped(stop, progress):
                totals = self._pass(progress, update=True)
                self.state.iteration += 1
                if checkpoint:
                    save_checkpoint(checkpoint, key, self.state, totals, self.shelf)
            self._measure(progress)
        if stop is not None:
            self._go_back(lowest(self.state.held_out, self.state.iteration))

    def _resume(self, checkpoint: Path, key: str, iterations: int) -> None:
        totals = np.zeros(len(self.scale))
        self.state = load_checkpoint(checkpoint, key, totals, self.shelf)
        if self.state.iteration > iterations:
            what = f"this checkpoint is of iteration {self.state.iteration}, and {iterations} are asked for"
            raise BadInput(checkpoint, what, "ask for as many at least, or remove it to start anew")
        if self.state.iteration:
            self.scale = _inverse(totals)

    def _go_back(self, iteration: int) -> None:
        """Learn an earlier table again from the start, which takes time but no room for a second table."""
        if iteration == self.state.iteration:
            return
        self.scale = self._uniform()
        for number in range(len(self.shelf)):
            shard = self.shelf.get(number)
            shard.values[:] = 1
            self.shelf.put(number, shard)
        with Progress("EM, links visited again", int(self._plan.links.sum()) * iteration) as progress:
            for _ in range(iteration):
                self._pass(progress, update=True)
        self.state.iteration = iteration

    def _stopped(self, stop: float | None, progress: Progress) -> bool:
        """Whether the last iteration gained too little, which takes a pass of its own to know in time."""
        if stop is None or not self.state.iteration:
            return False
        self._measure(progress)
        return gains_too_little(self.state.held_out or self.state.perplexities, stop)

    def _measure(self, progress: Progress) -> None:
        if len(self.state.perplexities) == self.state.iteration:
            self._pass(progress, update=False)

    def _pass(self, progress: Progress, update: bool) -> Floats:
        """Visit all shards; tells the perplexity of the table so far, and gives the sums of the next one."""
        totals, told = np.zeros(len(self.scale)), np.zeros(3)
        visited = in_order(lambda number: self._visit(number, update), range(len(self.shelf)), self._threads)
        for number, (some, log_likelihoods) in enumerate(visited):
            totals += some
            told += log_likelihoods
            progress.step(int(self._plan.links[number]))
        self._note(told)
        if update:
            self.scale = _inverse(totals)
        return totals

    def _visit(self, number: int, update: bool) -> tuple[Floats, Floats]:
        shard = self.shelf.get(number)
        totals, told = np.zeros(len(self.scale)), np.zeros(3)
        trained, held = shard.training, shard.held_out
        visit(
            shard.indptr, shard.indices, shard.values, trained.starts, trained.sizes, trained.links,
            held.starts, held.sizes, held.lengths, held.links, self.scale, int(self.null), update, totals, told,
        )  # fmt: skip
        if update:
            self.shelf.put(number, shard)
        return totals, told

    def _note(self, told: Floats) -> None:
        """Keep the perplexities of the table so far, unless they are known."""
        if len(self.state.perplexities) > self.state.iteration:
            return
        self.state.perplexities.append(perplexity(told[0], self._tokens))
        if not self._use.all():
            self.state.held_out.append(perplexity(told[1], told[2]))
            self._unseen = len(self.bitext.target) - self._tokens - told[2]

    def facts(self) -> dict[str, Any]:
        """What the table tells about its learning."""
        state, held = self.state, {}
        if state.held_out:
            held = {"held_out_perplexities": state.held_out, "held_out_tokens_unseen": int(self._unseen)}
        sizes = {"pairs": int(self._use.sum()), "links": int(self._plan.links.sum())}
        return {"iterations": state.iteration, "perplexities": state.perplexities, **held, **sizes}


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """What `work` gives for each item, in their order; never more results wait than there are threads."""
    if threads == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[R]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _trained_on(bitext: Bitext, held_out: float, seed: int) -> Flags:
    """Which pairs are trained on: those of the queries that are not held out."""
    use = np.ones(len(bitext), np.bool_)
    if held_out:
        queries = np.unique(bitext.group)
        drawn = generator(seed, "em held out").permutation(queries)[: round(held_out * len(queries))]
        if not len(drawn):
            raise WhyrankError(f"a share of {held_out:g} holds out none of {len(queries):,} queries; hold out more")
        use = ~np.isin(bitext.group, drawn)
    if not use.any():
        raise WhyrankError(
            f"with a share of {held_out:g} held out there is no query left to learn from; hold out less"
        )
    return use


def _inverse(totals: Floats) -> Floats:
    return np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)
