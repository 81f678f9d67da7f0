"""The work of one call: what is known, what is missing, and taking in answers as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from whyrank.core.errors import WhyrankError
from whyrank.core.progress import Progress
from whyrank.core.protocols import Floats, Ints, Ranker
from whyrank.scoring.asking import Answer, Task, name_of
from whyrank.scoring.executors import Executor
from whyrank.scoring.failures import Failure, one_line
from whyrank.scoring.pairs import Pairs
from whyrank.scoring.store import ScoreStore

PATIENCE = 20


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
        self.identity = repr(self.ranker)
        self.batches: list[Ints] = []
        self.new, self.new_batches = len(self.pairs.keys), 0
        self.waiting: deque[int] = deque()

    def recall(self) -> Ints:
        """Take from the store what it knows; give the pairs that it does not know, in the order to score."""
        if self.store is None:
            self.values = np.full(len(self.pairs.keys), np.nan)
            return self.pairs.by_length(np.arange(len(self.pairs.keys)))
        self.values, known = self.store.find(self.identity, self.pairs)
        missing = np.flatnonzero(~known)
        failed = self.store.failed(self.identity, self.pairs, missing)
        new, again = self.pairs.by_length(missing[~failed]), self.pairs.by_length(missing[failed])
        self.new = len(new)
        return np.concatenate([new, again])

    def work(self, missing: Ints, batch_size: int, executor: Executor) -> None:
        """Score the missing pairs."""
        self.scored = len(missing)
        new, again = _cut(missing[: self.new], batch_size), _cut(missing[self.new :], batch_size)
        self.batches, self.new_batches = [*new, *again], len(new)
        self.waiting = deque(range(len(self.batches)))
        with Progress(f"scoring {name_of(self.ranker)}", len(missing), unit="pairs") as progress:
            while self.waiting:  # a second round only when a batch was put back after the last one was drawn
                with closing(executor.run(self.ranker, self._tasks())) as answers:
                    for answer in answers:
                        progress.step(self._take(answer))

    def failures(self) -> list[Failure]:
        """Every pair without a finite score, known or new."""
        bad = np.flatnonzero(~np.isfinite(self.values))
        return self._failures(bad, [self.reasons.get(i, f"score is {self.values[i]}") for i in bad.tolist()])

    def _tasks(self) -> Iterator[Task]:
        while self.waiting:
            number = self.waiting.popleft()
            rows = self.batches[number]
            patience = self.patience if number < self.new_batches else None
            yield Task(number, self.pairs.query_texts(rows), self.pairs.doc_texts(rows), patience)

    def _take(self, answer: Answer) -> int:
        """Keep an answer and say how many pairs it settled."""
        self._lose_patience(answer)
        if answer.gave_up:  # given up before another worker's success was known
            self.waiting.append(answer.number)
            return 0
        rows = self.batches[answer.number]
        self.values[rows] = answer.values
        self.reasons |= {int(rows[i]): reason for i, reason in answer.reasons.items()}
        self._commit(rows, answer)
        self._tell(rows[np.isfinite(answer.values)])
        return len(rows)

    def _tell(self, rows: Ints) -> None:
        """Let a ranker know which pairs were scored, perhaps in another process, if it wants to."""
        note = getattr(self.ranker, "note_scored", None)
        if callable(note):
            note(self.pairs.query_texts(rows), self.pairs.doc_texts(rows))

    def _lose_patience(self, answer: Answer) -> None:
        if answer.succeeded:
            self.patience = None
        elif self.patience is not None and answer.number < self.new_batches:
            self.patience -= len(answer.reasons)
            if self.patience <= 0:
                reason = next(iter(answer.reasons.values()))
                raise WhyrankError(
                    f"ranker {name_of(self.ranker)!r} failed on each of the first {PATIENCE} pairs: "
                    f"{one_line(reason)}; the others were not tried"
                )

    def _commit(self, rows: Ints, answer: Answer) -> None:
        if self.store is None:
            return
        raised = np.fromiter(answer.reasons, np.int64, len(answer.reasons))
        scored = np.delete(np.arange(len(rows)), raised)
        failures = self._failures(rows[raised], list(answer.reasons.values()))
        self.store.add(self.identity, self.pairs, rows[scored], answer.values[scored], failures)

    def _failures(self, rows: Ints, reasons: list[str]) -> list[Failure]:
        texts = zip(self.pairs.query_texts(rows), self.pairs.doc_texts(rows), reasons, strict=True)
        return [Failure(*row) for row in texts]


def _cut(rows: Ints, size: int) -> list[Ints]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]
