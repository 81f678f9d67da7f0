"""The engine: asks a ranker for the score of each distinct pair once, and remembers it."""

from __future__ import annotations

import random
import re
import sys
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyrank import __version__
from whyrank.core import (
    BadInput,
    Codes,
    Executor,
    Floats,
    Ints,
    Progress,
    Ranker,
    Serial,
    WhyrankError,
    name_of,
    timed,
)
from whyrank.rankers import files_digest, source_digest
from whyrank.rankers.fields import DocFields, attach, plain_text, wants_fields
from whyrank.scoring.batches import Batch, BatchScores, Failure, one_line, score_batch, time_out
from whyrank.scoring.pairs import Pairs, unique_pairs
from whyrank.scoring.store import ScoreStore

BATCH_SIZE = 32
PATIENCE = 20
_COST_OF_LATE = 5  # of the patience, for a pair that took too long: each costs the whole time that is allowed
_NOTED = 1024  # pairs of a batch that the ranker gets to know of
_DRIFT = 1e-4  # scores may differ by this share between batches, of themselves and of the mean score
_FLEETING = re.compile(r" at 0x[0-9a-fA-F]+>| source=unknown")  # would name another ranker, or code, tomorrow


def whose(ranker: Ranker) -> str:
    """Whose arithmetic the scores are: `ours`, `a service's`, or `theirs`, that of other people's code."""
    own = ranker.__class__.__module__.startswith("whyrank.")
    return str(getattr(ranker, "arithmetic", "ours" if own else "theirs"))


def identity_of(ranker: Ranker) -> str:
    """What scores are kept under: the `repr`, digests of files and source behind it, and our version for our own."""
    version = f" whyrank={__version__}" if whose(ranker) == "ours" else ""
    return repr(ranker) + _digests(ranker) + version


def _digests(ranker: Ranker) -> str:
    """Digests of the files in `depends_on`, and of the source of a class that is not ours, also of its parts."""
    home = ranker.__class__.__module__
    module = sys.modules.get(home)
    file = getattr(module, "__file__", None)
    named = files_digest(name_of(ranker), getattr(ranker, "depends_on", ()), Path(file or "").parent)
    found = f" files={'+'.join(named)}" if named else ""
    if not home.startswith("whyrank."):
        found += f" source={source_digest(module) if module and file else 'unknown'}"
    parts = getattr(ranker, "parts", None) or filter(None, [getattr(ranker, "ranker", None)])
    return found + "".join(map(_digests, parts))


@dataclass
class Job:
    """Scores the pairs that the store does not know, and commits every batch.

    `patience` counts down while single pairs fail and nothing has succeeded; None once the ranker works. Pairs that
    failed in an earlier run come last and try nobody's patience: in a run that goes on, they may be all that is left.
    """

    ranker: Ranker
    pairs: Pairs
    store: ScoreStore | None
    values: Floats = field(init=False)
    scored: int = field(init=False, default=0)
    reasons: dict[int, str] = field(init=False, default_factory=dict)
    patience: int | None = field(init=False, default=PATIENCE)

    def __post_init__(self) -> None:
        """Nothing is known and nothing is waiting yet."""
        self.identity = identity_of(self.ranker)
        self.batches: list[Ints] = []
        self.new, self.again = len(self.pairs.keys), set[int]()
        self.waiting: deque[int] = deque()
        self.state, self.shared = 0, False

    def recall(self) -> Ints:
        """Take from the store what it knows; give the pairs that it does not know, in the order to score."""
        if self.store is None:
            self.values = np.full(len(self.pairs.keys), np.nan)
            return self.pairs.by_length(np.arange(len(self.pairs.keys)))
        self.state = self.store.state()
        self.values, known = self.store.find(self.identity, self.pairs)
        missing = np.flatnonzero(~known)
        failed = self.store.failed(self.identity, self.pairs, missing)
        new, again = self.pairs.by_length(missing[~failed]), self.pairs.by_length(missing[failed])
        self.new = len(new)
        if self.new and self.store.read_only:
            what = f"cannot be written, and lacks {self.new:,} scores of ranker {name_of(self.ranker)!r}"
            raise BadInput(self.store.path, what, "copy it to a folder that can be written, or use another store")
        return np.concatenate([new, again])

    def check(self, count: int, executor: Executor) -> str:
        """Ask again for some of the scores that are stored, each pair alone; a line where they are others now."""
        known = np.flatnonzero(np.isfinite(self.values))
        if not len(known):
            return ""
        mixed = (
            self.pairs.queries.digests[self.pairs.query[known], 0] ^ self.pairs.docs.digests[self.pairs.doc[known], 0]
        )
        rows = known[np.argsort(mixed)[:count]]
        texts = zip(self.pairs.query_texts(rows), self.pairs.doc_texts(rows), strict=True)
        tasks = iter([Batch(i, [query], [doc]) for i, (query, doc) in enumerate(texts)])
        now, reasons, stored = np.full(len(rows), np.nan), dict[int, str](), self.values[rows]
        with closing(executor.run(score_batch, self.ranker, tasks, time_out)) as results:
            for found in results:
                now[found.number] = found.values[0]
                reasons[found.number] = found.reasons.get(0, "")
        least = max(_DRIFT * np.abs(self.values[known]).mean(), getattr(self.ranker, "tie_tolerance", 0.0))
        wrong = np.flatnonzero(~np.isclose(now, stored, _DRIFT, least))
        if not len(wrong):
            return ""
        first = int(wrong[0])
        example = f"{stored[first]:.6g} stored, {one_line(reasons[first]) or f'{now[first]:.6g}'} now"
        return (
            f"ranker {name_of(self.ranker)!r} no longer gives the scores that are stored: {len(wrong)} of "
            f"{len(rows)} pairs that were scored again differ ({example}); replace the stored scores with --fresh, "
            "name the files that it reads in depends_on, and see that no score depends on its batch"
        )

    def work(self, missing: Ints, batch_size: int, executor: Executor, progress: Progress | None = None) -> None:
        """Score the missing pairs; without a progress line of the whole run, they get one of their own."""
        self.scored = len(missing)
        new, again = _cut(missing[: self.new], batch_size), _cut(missing[self.new :], batch_size)
        self.batches, self.again = [*new, *again], set(range(len(new), len(new) + len(again)))
        self.waiting = deque(range(len(self.batches)))
        what = f"scoring {name_of(self.ranker)}"
        with nullcontext(progress) if progress else Progress(what, len(missing), unit="pairs") as shown:
            shown.what = what
            while self.waiting:  # a second round only when a batch was put back after the last one was drawn
                with closing(executor.run(score_batch, self.ranker, self._tasks(shown), time_out)) as results:
                    for found in results:
                        shown.step(self._take(found))

    def failures(self) -> list[Failure]:
        """Every pair without a finite score, known or new."""
        bad = np.flatnonzero(~np.isfinite(self.values))
        return self._failures(bad, [self.reasons.get(i, f"score is {self.values[i]}") for i in bad.tolist()])

    def _tasks(self, progress: Progress) -> Iterator[Batch]:
        while self.waiting:
            number = self.waiting.popleft()
            if taken_over := self._taken_over(number):
                progress.step(taken_over)
            rows = self.batches[number]
            patience = None if number in self.again else self.patience
            if len(rows):
                yield Batch(number, self.pairs.query_texts(rows), self.pairs.doc_texts(rows), patience)

    def _taken_over(self, number: int) -> int:
        """Take from the store what other processes have scored of a batch meanwhile, and say how many pairs that is.

        Once another process is at work, the batches are shuffled, so that each process has other ones.
        """
        if self.store is None or self.store.state() == self.state:
            return 0
        if not self.shared:
            self.shared, new = True, [each for each in self.waiting if each not in self.again]
            random.SystemRandom().shuffle(new)  # no seed: processes must differ, and scores do not depend on it
            self.waiting = deque([*new, *(each for each in self.waiting if each in self.again)])
        rows = self.batches[number]
        codes = np.arange(len(rows), dtype=np.int32)
        batch = unique_pairs(self.pairs.query_texts(rows), self.pairs.doc_texts(rows), codes, codes)
        found = self.store.find(self.identity, batch)
        known = found.known[batch.inverse]
        self.values[rows[known]] = found.values[batch.inverse][known]
        self.batches[number] = rows[~known]
        self.scored -= int(known.sum())
        return int(known.sum())

    def _take(self, found: BatchScores) -> int:
        """Keep the scores of a batch and say how many those are; of one that took too long, pairs are tried alone."""
        rows = self.batches[found.number]
        if found.late and len(rows) > 1:
            alone = range(len(self.batches), len(self.batches) + len(rows))
            self.batches += _cut(rows, 1)
            self.again |= set(alone) if found.number in self.again else set()
            self.waiting.extendleft(reversed(alone))
            return 0
        self._lose_patience(found)
        if found.gave_up:  # given up before another worker's success was known
            self.waiting.append(found.number)
            return 0
        self.values[rows] = found.values
        self.reasons |= {int(rows[i]): reason for i, reason in found.reasons.items()}
        if self.store is not None and not self.store.read_only:
            raised = np.fromiter(found.reasons, np.int64, len(found.reasons))
            scored = np.delete(np.arange(len(rows)), raised)
            failures = self._failures(rows[raised], list(found.reasons.values()))
            self.store.add(self.identity, self.pairs, rows[scored], found.values[scored], failures)
        if note := getattr(self.ranker, "note_scored", None):  # scores may come from another process
            finite = rows[np.isfinite(found.values)][:_NOTED]
            note(self.pairs.query_texts(finite), self.pairs.doc_texts(finite))
        return len(rows)

    def _lose_patience(self, found: BatchScores) -> None:
        if found.succeeded:
            self.patience = None
        elif self.patience is not None and found.number not in self.again:
            cost = _COST_OF_LATE if found.late else 1
            self.patience -= cost * len(found.reasons)
            if self.patience <= 0:
                reason = next(iter(found.reasons.values()))
                raise WhyrankError(
                    f"ranker {name_of(self.ranker)!r} failed on each of the first {PATIENCE // cost} pairs: "
                    f"{one_line(reason)}; the others were not tried"
                )

    def _failures(self, rows: Ints, reasons: list[str]) -> list[Failure]:
        texts = zip(self.pairs.query_texts(rows), self.pairs.doc_texts(rows), reasons, strict=True)
        return [Failure(*row) for row in texts]


def _cut(rows: Ints, size: int) -> list[Ints]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


class Scores(NamedTuple):
    """Scores aligned with the requested pairs; NaN where the ranker raised, other non-finite values as they came.

    `failures` lists each distinct pair without a finite score; `scored` counts the pairs put to the ranker
    now, `reused` those that the store answered.
    """

    values: Floats
    failures: list[Failure]
    scored: int
    reused: int
    seconds: float


def default_engine() -> Engine:
    """An engine that keeps scores in the user's cache folder, where the command line keeps them too."""
    return Engine(ScoreStore())


@dataclass(frozen=True)
class Engine:
    """Scores pairs of texts: each distinct pair once, in batches, with every batch committed to the store.

    Args:
        store: where scores outlive the call; None keeps nothing.
        executor: who puts the batches to the ranker.
        batch_size: None takes the ranker's own `batch_size`, or 32 where it has none.
        fresh: whether what is stored of a ranker is deleted before it is first used.
        checked: how many stored scores of a ranker are computed again, to see that it still gives them.
        warn: receives a line when it does not.
        memory: where scores are kept for the length of a run that cannot outlive it.
        progress: counts the pairs of a whole run; without it, each call shows its own.

    Example:
        >>> import numpy as np, whyrank
        >>> engine, ranker = Engine(), whyrank.open_ranker("bm25")
        >>> found = engine.score(ranker, ["cats"], ["cats purr", "dogs"], np.array([0, 0, 0]), np.array([0, 1, 0]))
        >>> found.scored, found.values.round(2).tolist()
        (2, [0.31, 0.0, 0.31])
    """

    store: ScoreStore | None = None
    executor: Executor = field(default_factory=Serial)
    batch_size: int | None = None
    fresh: bool = False
    checked: int = 4
    warn: Callable[[str], None] = warnings.warn
    memory: ScoreStore | None = None
    progress: Progress | None = None

    def score(
        self, ranker: Ranker, queries: Sequence[str], docs: Sequence[str], query: Codes, doc: Codes,
        fields: DocFields | None = None,
    ) -> Scores:  # fmt: skip
        """Score the pairs `(queries[query[i]], docs[doc[i]])`; `fields` say which documents `docs` are."""
        start, reads = time.perf_counter(), wants_fields(ranker)
        docs = attach(docs, fields) if reads else docs
        batch_size = self._batch_size(ranker)
        pairs = unique_pairs(queries, docs, query, doc)
        lasting = getattr(ranker, "cacheable", True) and not _FLEETING.search(identity_of(ranker))
        job = Job(ranker, pairs, self.store if lasting and self.store is not None else self.memory)
        job.patience = None if job.identity in self._working else job.patience
        if self.fresh and job.store is not None and job.identity not in self._checks:
            job.store.forget(job.identity)
        missing = job.recall()
        self._check(job, missing)
        with timed(f"scoring {name_of(ranker)}"):
            job.work(missing, batch_size, self.executor, self.progress)
        self._working.update([job.identity] if job.patience is None else [])
        values, reused = job.values[pairs.inverse], len(pairs.keys) - job.scored
        failures = [each._replace(doc=plain_text(each.doc)) if reads else each for each in job.failures()]
        return Scores(values, failures, job.scored, reused, time.perf_counter() - start)

    def for_run(self, memory: ScoreStore, progress: Progress) -> Engine:
        """The same engine for the length of a run; what it knows of rankers is shared."""
        found = replace(self, memory=memory, progress=progress)
        vars(found).update(_working=self._working, _checks=self._checks)
        return found

    @cached_property
    def _working(self) -> set[str]:
        """Rankers that have scored something: what fails from then on are pairs."""
        return set()

    @cached_property
    def _checks(self) -> Counter[str]:
        """How many stored scores of each ranker that was used have been computed again."""
        return Counter()

    def _check(self, job: Job, missing: Ints) -> None:
        """Warn of a ranker that no longer gives what is stored.

        Other people's code is checked: the identity of ours covers all that it depends on, and a service costs money.
        """
        known = len(job.values) - len(missing)
        theirs = job.store is not None and job.store is self.store and whose(job.ranker) == "theirs"
        count = min(self.checked - self._checks[job.identity], known) if theirs else 0
        self._checks[job.identity] += count
        try:
            found = job.check(count, self.executor) if count else ""
        except WhyrankError as error:
            found = f"the stored scores of ranker {name_of(job.ranker)!r} were not checked: {error}"
        if found:
            self.warn(found)

    def _batch_size(self, ranker: Ranker) -> int:
        wishes = (self.batch_size, getattr(ranker, "batch_size", None), BATCH_SIZE)
        size = next(wish for wish in wishes if wish is not None)
        if not isinstance(size, int) or size < 1:
            raise WhyrankError(f"ranker {name_of(ranker)!r}: the batch size must be 1 or more, not {size!r}")
        return size
