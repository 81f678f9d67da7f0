"""The engine: asks a ranker for the score of each distinct pair once, and remembers it."""

from __future__ import annotations

import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Codes, Floats, Ints, Ranker
from whyrank.scoring.asking import name_of
from whyrank.scoring.executors import Executor, SerialExecutor
from whyrank.scoring.failures import Failure
from whyrank.scoring.job import Job, whose
from whyrank.scoring.pairs import unique_pairs
from whyrank.scoring.store import ScoreStore

BATCH_SIZE = 32
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")


class Scores(NamedTuple):
    """Scores aligned with the asked pairs; NaN where the ranker raised, other non-finite values as they came.

    `failures` lists each distinct pair without a finite score; `scored` counts the pairs put to the ranker
    now, `reused` those that the store answered.
    """

    values: Floats
    failures: list[Failure]
    scored: int
    reused: int
    seconds: float


@dataclass(frozen=True)
class Engine:
    """Scores pairs of texts: each distinct pair once, in batches, with every batch committed to the store.

    Args:
        store: where scores outlive the call; None keeps nothing.
        executor: who puts the batches to the ranker.
        batch_size: None takes the ranker's own `batch_size`, or 32 where it has none.
        fresh: whether what is stored of a ranker is deleted before it is first asked.
        checked: how many stored scores of a ranker are asked for again, to see that it still gives them.
        warn: what is told when it does not.
    """

    store: ScoreStore | None = None
    executor: Executor = field(default_factory=SerialExecutor)
    batch_size: int | None = None
    fresh: bool = False
    checked: int = 4
    warn: Callable[[str], None] = warnings.warn

    def score(self, ranker: Ranker, queries: Sequence[str], docs: Sequence[str], query: Codes, doc: Codes) -> Scores:
        """Score the pairs `(queries[query[i]], docs[doc[i]])`."""
        start = time.perf_counter()
        batch_size = self._batch_size(ranker)
        pairs = unique_pairs(queries, docs, query, doc)
        job = Job(ranker, pairs, self.store if _reusable(ranker) else None)
        job.patience = None if job.identity in self._working else job.patience
        if self.fresh and job.store is not None and job.identity not in self._asked:
            job.store.forget(job.identity)
        missing = job.recall()
        self._check(job, missing)
        job.work(missing, batch_size, self.executor)
        self._working.update([job.identity] if job.patience is None else [])
        values, reused = job.values[pairs.inverse], len(pairs.keys) - job.scored
        return Scores(values, job.failures(), job.scored, reused, time.perf_counter() - start)

    @cached_property
    def _working(self) -> set[str]:
        """Rankers that have scored something: what fails from then on are pairs."""
        return set()

    @cached_property
    def _asked(self) -> Counter[str]:
        """How many stored scores of each ranker have been asked for again; each ranker that was asked is here."""
        return Counter()

    def _check(self, job: Job, missing: Ints) -> None:
        """Warn of a ranker that no longer gives what is stored.

        Other people's code is asked: the identity of ours covers all that it depends on, and a service costs money.
        """
        known = len(job.values) - len(missing)
        theirs = job.store is not None and whose(job.ranker) == "theirs"
        count = min(self.checked - self._asked[job.identity], known) if theirs else 0
        self._asked[job.identity] += count
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


def _reusable(ranker: Ranker) -> bool:
    """Whether the scores may be stored: a `repr` with a memory address would name another ranker tomorrow."""
    return bool(getattr(ranker, "cacheable", True)) and not _ADDRESS.search(repr(ranker))
