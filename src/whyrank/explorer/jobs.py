"""Long work in the background, and what the explorer keeps for each browser."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from secrets import token_urlsafe
from threading import Condition, Lock, Thread
from typing import Any

from whyrank.core import WhyrankError, name_of
from whyrank.studies import Pair

BROWSERS = 1_000  # whose collected contrasts are kept
JOBS = 8  # of one browser that are kept; the oldest is cancelled for another one
LONGEST = 1.0  # seconds that a batch of a job waits for requests


class Cancelled(Exception):
    """Raised in a job that was cancelled, before its next batch."""


class Job:
    """Work in a thread of its own, which counts the pairs it has scored and can be cancelled.

    Attributes:
        what: what is done, for people.
        total: how many pairs there will be at most; None where that is not known.
        done: how many pairs are scored.
        result: what the work gave.
        error: why it gave nothing.
    """

    def __init__(self, what: str, work: Callable[[Job], Any], total: int | None = None) -> None:
        self.id, self.what, self.total, self.done = token_urlsafe(9), what, total, 0
        self.result: Any = None
        self.error, self.cancelled = "", False
        Thread(target=self._run, args=(work,)).start()

    @property
    def running(self) -> bool:
        """Whether there is neither a result nor an error yet."""
        return self.result is None and not self.error

    def cancel(self) -> None:
        """End the work before its next batch."""
        self.cancelled = True

    def step(self, pairs: int) -> None:
        """Count some pairs; the work ends here once it is cancelled."""
        self.done += pairs
        if self.cancelled:
            raise Cancelled

    def _run(self, work: Callable[[Job], Any]) -> None:
        try:
            self.result = work(self)
        except Cancelled:
            self.error = "Cancelled."
        except WhyrankError as error:
            self.error = str(error)
        except Exception as error:  # a browser waits for it
            self.error = f"internal error: {type(error).__name__}: {error}"


class Turns:
    """Who scores next: one batch of a ranker at a time, and jobs wait while a request is answered."""

    def __init__(self, rankers: Iterable[str]) -> None:
        self.locks = {name: Lock() for name in rankers}
        self._requests, self._changed = 0, Condition()

    @contextmanager
    def request(self) -> Iterator[None]:
        """While somebody waits for an answer."""
        with self._changed:
            self._requests += 1
        try:
            yield
        finally:
            with self._changed:
                self._requests -= 1
                self._changed.notify_all()

    def give_way(self) -> None:
        """Wait until no request is answered, but not so long that a job never ends."""
        with self._changed:
            self._changed.wait_for(lambda: not self._requests, LONGEST)


class TakingTurns:
    """An executor for several threads: a ranker scores one batch at a time, and jobs let others in between.

    Args:
        turns: who scores next.
        job: what counts the pairs; None for a request that somebody waits for.
    """

    def __init__(self, turns: Turns, job: Job | None = None) -> None:
        self.turns, self.job = turns, job

    def run(
        self, function: Callable[[Any, Any], Any], shared: Any, tasks: Iterable[Any], late: Any = None
    ) -> Generator[Any, None, None]:
        """Yield the results in the order of the tasks."""
        for task in tasks:
            if self.job is not None:
                self.turns.give_way()
                self.job.step(0)
            with self.turns.locks[name_of(shared)]:
                found = function(shared, task)
            if self.job is not None:
                self.job.step(len(task.docs))
            yield found


class Session:
    """What one browser collected, and the work that it started."""

    def __init__(self) -> None:
        self.collected: list[Pair] = []
        self.jobs: dict[str, Job] = {}

    def start(self, what: str, work: Callable[[Job], Any], total: int | None = None) -> Job:
        """Start a job."""
        while len(self.jobs) >= JOBS:
            self.jobs.pop(next(iter(self.jobs))).cancel()
        job = Job(what, work, total)
        self.jobs[job.id] = job
        return job

    def end(self) -> None:
        """Cancel all jobs."""
        for job in list(self.jobs.values()):
            job.cancel()


class Sessions:
    """The sessions by a random name, which only the browser and this process know."""

    def __init__(self) -> None:
        self._known: dict[str, Session] = {}
        self._lock = Lock()

    def find(self, name: str) -> tuple[str, Session]:
        """The session of a name, or a new one under a new name; the one not used for longest makes room."""
        with self._lock:
            if name not in self._known:
                name, new = token_urlsafe(24), Session()
                while len(self._known) >= BROWSERS:
                    self._known.pop(next(iter(self._known))).end()
            else:
                new = self._known.pop(name)
            self._known[name] = new
            return name, new

    def end(self) -> None:
        """Cancel the jobs of all; Python waits for their batches, since it cannot end while torch works."""
        for session in list(self._known.values()):
            session.end()
