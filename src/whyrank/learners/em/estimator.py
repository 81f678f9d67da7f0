"""The steps of EM over the shards of a bitext: expected counts, perplexities, early stopping.

T(q|d) is the probability that the document word d is translated into the query word q (Brown et al., "The Mathematics
of Statistical Machine Translation", Computational Linguistics 19(2), 1993; Berger and Lafferty, "Information
Retrieval as Statistical Translation", SIGIR 1999). One iteration is

    c(q, d) = sum over the occurrences of q beside d of T(q|d) / sum of T(q|d') over NULL and all d' of the pair
    T(q|d)  = c(q, d) / sum of c(q', d) over q'

from a T that is the same for all words that meet. The result is exact: it does not depend on threads or memory.

A checkpoint is the state after an iteration in one file: a line of JSON (a digest of what is learned from, and how
far EM is), then the sums by source word (float64), then the values of all shards in their order. No file that is cut
short or that belongs to another bitext is read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import (
    EMPTY,
    KEY,
    BadInput,
    Codes,
    Flags,
    Floats,
    Ints,
    Progress,
    WhyrankError,
    check_seal,
    generator,
    replacing,
    seal,
)
from whyrank.learners.em.bitext import Bitext
from whyrank.learners.em.links import Shard, make_shard, plan_shards

T = TypeVar("T")
R = TypeVar("R")
_MAGIC = "whyrank em 1"
_LONGEST = 1 << 20  # of the first line of a checkpoint
_REMEDY = "remove it to start anew"
TINY = 1e-30  # smaller expected counts are zero: they change nothing, and numbers below 1e-38 are slow


@njit(cache=True, nogil=True, error_model="numpy")
def visit(
    indptr: Ints, indices: Codes, values: npt.NDArray[Any], starts: Ints, sizes: Codes, links: Codes,
    held_starts: Ints, held_sizes: Codes, held_lengths: Codes, held_links: Codes, scale: Floats, null: int,
    update: bool, totals: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Sum up how likely the occurrences of each word are, and replace its expected counts by new ones.

    `values` has expected counts c(q, d) and `scale` one over their sums by source word: T(q|d) = values * scale. An
    occurrence has the probability s = sum of T over its links and NULL. Each link expects T / s of the occurrence;
    T is the same for all links of one source word, so that 1 / s is added up and multiplied by T at the end. `sums`
    gets the sums of log(s / (length + 1)) in training and held out, then how many held-out occurrences count: those
    of words that are trained on, with s > 0. Sums are taken in double precision, in the order of the bitext.
    """
    widest = 0
    for word in range(len(starts) - 1):
        widest = max(widest, indptr[word + 1] - indptr[word])
    row, shares = np.empty(widest, np.float64), np.empty(widest, np.float64)
    at = held_at = 0
    for word in range(len(starts) - 1):
        begin, width = indptr[word], indptr[word + 1] - indptr[word]
        for column in range(width):
            row[column] = values[begin + column] * scale[indices[begin + column]]
        shares[:width] = 0.0
        for occurrence in range(held_starts[word], held_starts[word + 1]):
            s = row[0]
            for link in range(held_at, held_at + held_sizes[occurrence]):
                s += row[held_links[link]]
            held_at += held_sizes[occurrence]
            if s > 0.0 and starts[word + 1] > starts[word]:  # only the uniform start explains a word never trained on
                sums[1] += np.log(s / (held_lengths[occurrence] + null))
                sums[2] += 1.0
        for occurrence in range(starts[word], starts[word + 1]):
            end, s = at + sizes[occurrence], row[0]
            for link in range(at, end):
                s += row[links[link]]
            sums[0] += np.log(s / (sizes[occurrence] + null))
            if update:
                share = 1.0 / s
                shares[0] += share
                for link in range(at, end):
                    shares[links[link]] += share
            at = end
        if update:
            for column in range(width):
                count = row[column] * shares[column]
                values[begin + column] = count if count > TINY else 0.0
                totals[indices[begin + column]] += values[begin + column]


@dataclass
class EMState:
    """How far EM is: iterations done and the perplexities found, of training and held-out pairs."""

    iteration: int = 0
    perplexities: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)


class Estimator:
    """The state of EM: shards with expected counts, and one over their sums by source word."""

    def __init__(
        self, bitext: Bitext, null: bool, threads: int, memory: int, held_out: float, seed: int,
        precision: type[np.floating[Any]] = np.float32,
    ) -> None:  # fmt: skip
        """Number the links of all pairs; `memory` is how many bytes of shards stay in memory."""
        self.bitext, self.null, self._threads, self._precision = bitext, null, threads, precision
        self._use = training_pairs(bitext, held_out, seed)
        self._plan = plan_shards(bitext, self._use)
        self._tokens = int(np.diff(bitext.target_offsets)[self._use].sum())
        self.state, self._unseen, self.shards = EMState(), 0.0, list[Shard]()

        def make(number: int) -> Shard:
            return make_shard(bitext, self._use, self._plan, number, precision)

        with Progress("EM, links numbered", int(self._plan.links.sum())) as progress:
            for number, shard in enumerate(_in_order(make, range(len(self._plan.links)), threads)):
                fits = shard.nbytes <= memory
                memory -= shard.nbytes if fits else 0
                self.shards.append(shard if fits else shard.on_disk())
                progress.step(int(self._plan.links[number]))
        self.scale = self._uniform()

    def _uniform(self) -> Floats:
        found = np.full(len(self.bitext.source_terms) + 1, 1 / len(self.bitext.target_terms))
        found[-1] *= self.null
        return found

    def run(self, iterations: int, stop: float | None = None, checkpoint: Path | None = None) -> None:
        """Iterate, from the checkpoint where there is one.

        Where held-out perplexity ends it, the table is that of the iteration with the lowest.
        """
        key = self._digest() if checkpoint else ""
        if checkpoint and checkpoint.exists():
            self._resume(checkpoint, key, iterations)
        passes = iterations + 1 - self.state.iteration
        with Progress("EM, links visited", int(self._plan.links.sum()) * passes) as progress:
            while self.state.iteration < iterations and not self._stopped(stop, progress):
                totals = self._pass(progress, update=True)
                self.state.iteration += 1
                if checkpoint:
                    self._save(checkpoint, key, totals)
            self._measure(progress)
        held_out = self.state.held_out
        if stop is not None and held_out and not any(map(math.isnan, held_out)):
            self._go_back(min(range(1, len(held_out)), key=held_out.__getitem__))

    def _digest(self) -> str:
        """SHA-256 of all that the result depends on, beside the number of iterations."""
        bitext, digest = self.bitext, hashlib.sha256(f"{_MAGIC} {self.null} {self._precision.__name__}".encode())
        for array in (bitext.source, bitext.source_offsets, bitext.target, bitext.target_offsets, self._use):
            for start in range(0, len(array), 1 << 24):
                digest.update(np.ascontiguousarray(array[start : start + (1 << 24)]).data)
        for terms in (bitext.source_terms, bitext.target_terms):
            digest.update("\n".join(terms).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def _save(self, path: Path, key: str, totals: Floats) -> None:
        """Write the state; the old checkpoint stays until the new one is whole."""
        with replacing(path) as beside, open(beside, "wb") as file:
            file.write(json.dumps({"magic": _MAGIC, "key": key, KEY: EMPTY, **asdict(self.state)}).encode() + b"\n")
            for array in (totals, *(shard.values for shard in self.shards)):
                file.write(array.view(np.uint8).data)  # tofile would not say why it failed
            file.close()
            seal(beside)

    def _resume(self, path: Path, key: str, iterations: int) -> None:
        """Take up the state of a checkpoint."""
        check_seal(path, _REMEDY)
        totals = np.zeros(len(self.scale))
        try:
            file = open(path, "rb")  # noqa: SIM115  (closed below)
        except OSError as error:
            raise BadInput(path, f"this checkpoint cannot be read ({error.strerror})", _REMEDY) from None
        with file:
            self.state = _state(path, file.readline(_LONGEST), key)
            arrays = [totals, *(shard.values for shard in self.shards)]
            if path.stat().st_size != file.tell() + sum(array.nbytes for array in arrays):
                raise BadInput(path, "this checkpoint is not whole", _REMEDY)
            for array in arrays:
                array[:] = np.fromfile(file, array.dtype, len(array))
        if self.state.iteration > iterations:
            what = f"this checkpoint is of iteration {self.state.iteration}, which is beyond {iterations}"
            raise BadInput(path, what, "give more iterations, or remove it to start anew")
        if self.state.iteration:
            self.scale = _inverse(totals)

    def _go_back(self, iteration: int) -> None:
        """Learn an earlier table again from the start, which takes time but no room for a second table."""
        if iteration == self.state.iteration:
            return
        self.scale = self._uniform()
        for shard in self.shards:
            shard.values[:] = 1
        with Progress("EM, links visited again", int(self._plan.links.sum()) * iteration) as progress:
            for _ in range(iteration):
                self._pass(progress, update=True)
        self.state.iteration = iteration

    def _stopped(self, stop: float | None, progress: Progress) -> bool:
        """Whether the last iteration lowered perplexity by less than the share `stop`.

        To know it in time takes a pass of its own.
        """
        if stop is None or not self.state.iteration:
            return False
        self._measure(progress)
        before, now = (self.state.held_out or self.state.perplexities)[-2:]
        return before - now < stop * before

    def _measure(self, progress: Progress) -> None:
        if len(self.state.perplexities) == self.state.iteration:
            self._pass(progress, update=False)

    def _pass(self, progress: Progress, update: bool) -> Floats:
        """Visit all shards; notes the perplexity of the table so far, and gives the sums of the next one."""

        def visit_shard(shard: Shard) -> tuple[Floats, Floats]:
            totals, sums = np.zeros(len(self.scale)), np.zeros(3)
            trained, held = shard.training, shard.held_out
            visit(
                shard.indptr, shard.indices, shard.values, trained.starts, trained.sizes, trained.links,
                held.starts, held.sizes, held.lengths, held.links, self.scale, int(self.null), update, totals, sums,
            )  # fmt: skip
            shard.release()
            return totals, sums

        totals, sums = np.zeros(len(self.scale)), np.zeros(3)
        for number, (some, log_likelihoods) in enumerate(_in_order(visit_shard, self.shards, self._threads)):
            totals += some
            sums += log_likelihoods
            progress.step(int(self._plan.links[number]))
        if len(self.state.perplexities) == self.state.iteration:
            self.state.perplexities.append(perplexity(sums[0], self._tokens))
            if not self._use.all():
                self.state.held_out.append(perplexity(sums[1], sums[2]))
                self._unseen = len(self.bitext.target) - self._tokens - sums[2]
        if update:
            self.scale = _inverse(totals)
        return totals

    def facts(self) -> dict[str, Any]:
        """How the table was learned, for its facts."""
        state, held = self.state, {}
        if state.held_out:
            held = {"held_out_perplexities": state.held_out, "held_out_tokens_unseen": int(self._unseen)}
        sizes = {"pairs": int(self._use.sum()), "links": int(self._plan.links.sum())}
        return {"iterations": state.iteration, "perplexities": state.perplexities, **held, **sizes}


def _state(path: Path, line: bytes, key: str) -> EMState:
    """What the first line of a checkpoint says."""
    try:
        found = json.loads(line)
        found.pop(KEY, None)
        magic, owner, state = found.pop("magic"), found.pop("key"), EMState(**found)
    except (ValueError, TypeError, KeyError, AttributeError):
        magic, owner, state = "", "", EMState()
    if magic != _MAGIC:
        raise BadInput(path, "this is no checkpoint of EM", _REMEDY)
    if owner != key:
        raise BadInput(path, "this checkpoint is of another bitext or of other settings", _REMEDY)
    return state


def perplexity(log_likelihood: float, tokens: float) -> float:
    """exp(-log likelihood / tokens), or NaN without tokens.

    The log likelihood is the sum over all target tokens q of log( (1 / (l + 1)) * sum of T(q|d) ), where d goes over
    NULL and the l source tokens of the pair; without NULL the factor is 1 / l. It leaves out the probability of the
    length of the target, as that is the same for every table. Other programs print other constants: MGIZA and
    fast_align have a prior for NULL, and logarithms to the base 2, so compare the falls rather than the values.
    """
    return math.exp(-log_likelihood / tokens) if tokens else math.nan


def training_pairs(bitext: Bitext, held_out: float, seed: int) -> Flags:
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


def _in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
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
