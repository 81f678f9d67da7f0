"""The state of EM and its steps, whatever the number of threads."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

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
    check_flag,
    check_number,
    check_seal,
    check_whole,
    generator,
    replacing,
    seal,
)
from whyrank.learners.em.bitext import Bitext, Growing
from whyrank.learners.em.kernels import visit
from whyrank.learners.em.links import Shelf, make_shard, plan_shards
from whyrank.tables import TermTable

# How much memory may be used: `8G`, a number of bytes, or half of what the machine has.

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def memory_limit(given: int | str | None) -> int:
    """The limit in bytes; without one half of the machine's memory."""
    if given is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    found = _SIZE.fullmatch(str(given).strip())
    if not found or isinstance(given, bool):
        raise WhyrankError(f"memory {given!r} is no size; write a number of bytes or one such as 500M or 8G")
    return int(float(found[1]) * _UNITS[found[2].upper()])


# Perplexity of a bitext under a translation table.


def perplexity(log_likelihood: float, tokens: float) -> float:
    """exp(-log likelihood / tokens), or NaN without tokens.

    The log likelihood is the sum over all target tokens q of log( (1 / (l + 1)) * sum of T(q|d) ), where d goes over
    NULL and the l source tokens of the pair; without NULL the factor is 1 / l. It leaves out the probability of the
    length of the target, as that is the same for every table. Other programs print other constants: MGIZA and
    fast_align have a prior for NULL, and logarithms to the base 2, so compare the falls rather than the values.
    """
    return math.exp(-log_likelihood / tokens) if tokens else math.nan


def gains_too_little(perplexities: Sequence[float], stop: float) -> bool:
    """Whether the last perplexity is lower than the one before by less than the share `stop` of it."""
    before, now = perplexities[-2:]
    return before - now < stop * before


def lowest(held_out: Sequence[float], last: int) -> int:
    """The iteration with the lowest held-out perplexity, the first of several; the last where none is held out."""
    if not held_out or any(map(math.isnan, held_out)):
        return last
    return min(range(1, len(held_out)), key=held_out.__getitem__)


# Checkpoints of EM: the state after an iteration in one file, written beside and renamed.
#
# A line of JSON (what was learned from, and how far), then the sums by source word (float64), then the values of all
# shards in their order. No file that is cut short or that belongs to another bitext is read.

_MAGIC = "whyrank em 1"
_LONGEST = 1 << 20  # of the first line
_OTHER = "remove it to start anew"


@dataclass
class State:
    """How far EM is: iterations done and the perplexities found, of training and held-out pairs."""

    iteration: int = 0
    perplexities: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)


def fingerprint(bitext: Bitext, use: Flags, null: bool, precision: type[np.floating[Any]]) -> str:
    """SHA-256 of all that the result depends on, beside the number of iterations."""
    digest = hashlib.sha256(f"{_MAGIC} {null} {precision.__name__}".encode())
    for array in (bitext.source, bitext.source_offsets, bitext.target, bitext.target_offsets, use):
        for start in range(0, len(array), 1 << 24):
            digest.update(np.ascontiguousarray(array[start : start + (1 << 24)]).data)
    for terms in (bitext.source_terms, bitext.target_terms):
        digest.update("\n".join(terms).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def save_checkpoint(path: Path, key: str, state: State, totals: Floats, shelf: Shelf) -> None:
    """Write the state; the old checkpoint stays until the new one is whole."""
    with replacing(path) as beside, open(beside, "wb") as file:
        file.write(json.dumps({"magic": _MAGIC, "key": key, KEY: EMPTY, **asdict(state)}).encode() + b"\n")
        file.write(totals.view(np.uint8).data)  # tofile would not say why it failed
        for number in range(len(shelf)):
            file.write(shelf.get(number).values.view(np.uint8).data)
        file.close()
        seal(beside)


def load_checkpoint(path: Path, key: str, totals: Floats, shelf: Shelf) -> State:
    """Read the state into `totals` and the shelf; a fresh state where there is no file yet."""
    if not path.exists():
        return State()
    check_seal(path, _OTHER)
    with _opened(path) as file:
        state = _header(path, file.readline(_LONGEST), key)
        sizes = [totals.nbytes, *(shelf.get(number).values.nbytes for number in range(len(shelf)))]
        if path.stat().st_size != file.tell() + sum(sizes):
            raise BadInput(path, "this checkpoint is not whole", _OTHER)
        totals[:] = np.fromfile(file, totals.dtype, len(totals))
        for number in range(len(shelf)):
            shard = shelf.get(number)
            shard.values[:] = np.fromfile(file, shard.values.dtype, len(shard.values))
            shelf.put(number, shard)
    return state


def _opened(path: Path) -> Any:
    try:
        return open(path, "rb")
    except OSError as error:
        raise BadInput(path, f"this checkpoint cannot be read ({error.strerror})", _OTHER) from None


def _header(path: Path, line: bytes, key: str) -> State:
    try:
        found = json.loads(line)
        found.pop(KEY, None)
        magic, owner, state = found.pop("magic"), found.pop("key"), State(**found)
    except (ValueError, TypeError, KeyError, AttributeError):
        magic, owner, state = "", "", State()
    if magic != _MAGIC:
        raise BadInput(path, "this is no checkpoint of EM", _OTHER)
    if owner != key:
        raise BadInput(path, "this checkpoint is of another bitext or of other settings", _OTHER)
    return state


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


# From the last state of EM to a term table: pruned, NULL left out.


class Kept(NamedTuple):
    """What stays in a table: probabilities from `threshold` up, between the `top` most frequent terms of a side."""

    threshold: float
    top: int | None


def export(bitext: Bitext, shelf: Shelf, scale: Floats, kept: Kept, facts: Mapping[str, Any]) -> TermTable:
    """The table of all that is kept; its rows are not scaled up to what was left out."""
    asked = _places(bitext.target_counts, kept.top)
    answering = np.append(_places(bitext.source_counts, kept.top), np.int32(-1))  # the last is NULL
    sizes, indices, weights = Growing(np.int64), Growing(np.int32), Growing(np.float32)
    for number in range(len(shelf)):
        shard = shelf.get(number)
        rows = np.flatnonzero(asked[shard.first : shard.first + len(shard.indptr) - 1] >= 0)
        found = _survivors(rows, shard.indptr, shard.indices, shard.values, scale, answering, kept.threshold)
        order = _by_row(found[0], found[1])
        sizes.add(found[0])
        indices.add(found[1][order])
        weights.add(found[2][order])
    indptr = np.concatenate([[0], np.cumsum(sizes.finish())]).astype(np.int64)
    query_terms = [term for term, place in zip(bitext.target_terms, asked, strict=True) if place >= 0]
    doc_terms = [term for term, place in zip(bitext.source_terms, answering, strict=False) if place >= 0]
    counts = bitext.source_counts[answering[:-1] >= 0]
    return TermTable(query_terms, doc_terms, indptr, indices.finish(), weights.finish(), dict(facts), counts)


def _by_row(sizes: Ints, found: Codes) -> Ints:
    """The order in which the entries of each row ascend."""
    row = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    return np.argsort((row << 32) | found, kind="stable")


def _places(counts: Ints, top: int | None) -> Codes:
    """The number of each term among those that stay, -1 for the others; ties at the edge go by the old number."""
    found = np.full(len(counts), -1, np.int32)
    stay = np.sort(np.argsort(-counts, kind="stable")[:top])
    found[stay] = np.arange(len(stay), dtype=np.int32)
    return found


@njit(cache=True, nogil=True)
def _survivors(
    rows: Ints,
    indptr: Ints,
    indices: Codes,
    values: npt.NDArray[Any],
    scale: Floats,
    places: Codes,
    threshold: float,
) -> tuple[Ints, Codes, npt.NDArray[np.float32]]:
    """How many entries of each row stay, which and with what weight, in the order of the row."""
    sizes, at = np.zeros(len(rows), np.int64), 0
    for i in range(len(rows)):
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if places[indices[entry]] >= 0 and 0.0 < values[entry] * scale[indices[entry]] >= threshold:
                sizes[i] += 1
    found, weights = np.empty(sizes.sum(), np.int32), np.empty(sizes.sum(), np.float32)
    for i in range(len(rows)):
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
            weight = values[entry] * scale[indices[entry]]
            if places[indices[entry]] >= 0 and 0.0 < weight >= threshold:
                found[at], weights[at] = places[indices[entry]], weight
                at += 1
    return sizes, found, weights


# IBM Model 1 by expectation maximisation: from bitext to a table of translation probabilities.
#
#     from whyrank.data import open_collection
#     from whyrank.learners.em.bitext import make_bitext
#     from whyrank.learners.em.learner import learn_em
#     table, perplexities = learn_em(make_bitext(open_collection("sample"), "lucene"))
#
# T(q|d) is the probability that the document word d is translated into the query word q (Brown et al., "The
# Mathematics
# of Statistical Machine Translation", Computational Linguistics 19(2), 1993; Berger and Lafferty, "Information
# Retrieval as Statistical Translation", SIGIR 1999). One iteration is
#
#     c(q, d) = sum over the occurrences of q beside d of T(q|d) / sum of T(q|d') over NULL and all d' of the pair
#     T(q|d)  = c(q, d) / sum of c(q', d) over q'
#
# from a T that is the same for all words that meet. The result is exact: it does not depend on threads or memory.

AGREEMENT = 1e-5  # how far single and double precision may lie apart


class Learned(NamedTuple):
    """A table and the training perplexities: of the uniform start, then after each iteration."""

    table: TermTable
    perplexities: list[float]


def learn_em(
    bitext: Bitext,
    iterations: int = 5,
    null: bool = True,
    threads: int = 1,
    memory: int | str | None = None,
    held_out: float = 0.0,
    stop: float | None = None,
    checkpoint: str | PathLike[str] | None = None,
    threshold: float = 1e-3,
    top: int | None = 1_000_000,
    seed: int = 0,
    check: bool = False,
) -> Learned:
    """Learn T(query term | document term).

    Args:
        bitext: what `make_bitext` gives.
        iterations: how many at most.
        null: whether query words may come from nowhere; the row of NULL is learned and left out of the table.
        threads: how many; the result is the same, bit for bit.
        memory: how much the links may take, in bytes or as `8G`; those beyond it lie in a temporary file. Half of the
            machine's memory by default. The result is the same, bit for bit.
        held_out: a share of the queries, whose pairs are not trained on but give held-out perplexities (in
            `table.facts`, over the tokens that the table can explain at all).
        stop: end with the first iteration that lowers the perplexity (held-out where there is one) by less than this
            share; 0 ends when it rises. The table is that of the iteration with the lowest held-out perplexity.
        checkpoint: a file with the state after each iteration; where it exists, learning goes on from it.
        threshold: smaller probabilities are left out of the table; what stays is not scaled up.
        top: only the most frequent terms of each side are in the table; None for all.
        seed: of the choice of queries that are held out.
        check: learn in double precision as well, and note the largest difference; an error where it is above 1e-5.
    """
    _checked(iterations, null, threads, held_out, stop, threshold, top)
    learner = Learner(bitext, null, threads, memory_limit(memory), held_out, seed)
    learner.learn(iterations, stop, Path(checkpoint) if checkpoint is not None else None)
    kept = Kept(threshold, top)
    facts = {**bitext.facts, **learner.facts(), "learner": "em", "null": null, "held_out": held_out, **kept._asdict()}
    if check:
        facts["float64_difference"] = _difference(learner, memory, held_out, seed)
    return Learned(export(bitext, learner.shelf, learner.scale, kept, facts), learner.state.perplexities)


def _difference(learner: Learner, memory: int | str | None, held_out: float, seed: int) -> float:
    """The largest difference of a probability to the one that double precision gives."""
    double = Learner(learner.bitext, learner.null, 1, memory_limit(memory), held_out, seed, np.float64)
    double.learn(learner.state.iteration, None, None)
    largest = 0.0
    for number in range(len(double.shelf)):
        one, other = learner.shelf.get(number), double.shelf.get(number)
        gap = one.values * learner.scale[one.indices] - other.values * double.scale[other.indices]
        largest = max(largest, float(np.abs(gap).max(initial=0.0)))
    if largest > AGREEMENT:
        raise WhyrankError(f"single and double precision differ by {largest:.1e}; please report this bitext")
    return largest


def _checked(
    iterations: int, null: bool, threads: int, held_out: float, stop: float | None, threshold: float, top: int | None
) -> None:
    check_whole("iterations", iterations, 1)
    check_flag("null", null)
    check_whole("threads", threads, 1)
    check_number("held_out", held_out, 0, 1)
    check_number("threshold", threshold, 0, 1)
    if stop is not None:
        check_number("stop", stop, 0, 1)
    if top is not None:
        check_whole("top", top, 1)
