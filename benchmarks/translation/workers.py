"""Forked workers that do jobs in order until the time is over, and that end gently.

A worker has all that was loaded before it began, and shares its memory. A job whose worker fails or dies is tried once
more. At the end a worker gets SIGINT, then SIGTERM, and each time the chance to finish what its GPU is doing: a
process that is killed amid its kernels can take a GPU's shared server, and with it all other processes, along.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Hashable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

Job = Any
TRIES, PATIENCE = 2, 20.0  # of a job; seconds that a worker has after each signal
_fork = multiprocessing.get_context("fork")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Worker(NamedTuple):
    """A process and the line to it."""

    process: Any
    line: Connection


class Crew:
    """Some workers, what each is doing, and what is left to do."""

    def __init__(self, do: Callable[[Job], str], kind: Callable[[Job], Hashable], leave: Callable[[], None]) -> None:
        """`do` does a job and says how it went; jobs of one `kind` take about as long; `leave` ends a worker."""
        self._do, self._kind, self._leave = do, kind, leave
        self._busy: dict[int, tuple[Worker, Job, float]] = {}
        self._idle: list[Worker] = []
        self._took: dict[Hashable, float] = {}
        self._tries: dict[Job, int] = {}
        self.ends: dict[int, int | None] = {}  # the exit code of each worker that was there at the end

    def run(self, jobs: Sequence[Job], at_once: int, seconds: float, after: Callable[[Job, str], None]) -> list[Job]:
        """Do jobs until all are done or the time is over; gives those that are left."""
        end, waiting, left = time.monotonic() + seconds, list(jobs), []
        try:
            while (waiting or self._busy) and time.monotonic() < end:
                self._give(waiting, left, at_once, end)
                for job, told in self._heard(min(1.0, max(0.0, end - time.monotonic()))):
                    if told.startswith("failed") and self._tries[job] < TRIES:
                        waiting.append(job)
                    elif told.startswith("failed"):
                        left.append(job)
                    after(job, told)
            left += [job for _, job, _ in self._busy.values()]
        finally:
            self._end()
        return [*left, *waiting]

    def _give(self, waiting: list[Job], left: list[Job], at_once: int, end: float) -> None:
        while waiting and len(self._busy) < at_once:
            job = waiting.pop(0)
            if time.monotonic() + self._took.get(self._kind(job), 0.0) > end:
                left.append(job)
                continue
            worker = self._idle.pop() if self._idle else self._hired()
            worker.line.send(job)
            self._tries[job] = self._tries.get(job, 0) + 1
            self._busy[worker.process.pid] = worker, job, time.monotonic()

    def _heard(self, seconds: float) -> list[tuple[Job, str]]:
        """What workers say within some seconds; one that is gone has failed."""
        if not self._busy:
            return []
        lines = {worker.line: pid for pid, (worker, _, _) in self._busy.items()}
        return [self._told(lines[line]) for line in wait(list(lines), seconds)]

    def _told(self, pid: int) -> tuple[Job, str]:
        worker, job, begin = self._busy.pop(pid)
        try:
            told = str(worker.line.recv())
        except (EOFError, OSError):
            worker.process.join(PATIENCE)
            return job, f"failed: its worker ended with {worker.process.exitcode}"
        self._idle.append(worker)
        self._took[self._kind(job)] = max(self._took.get(self._kind(job), 0.0), time.monotonic() - begin)
        return job, told

    def _hired(self) -> Worker:
        ours, theirs = _fork.Pipe()
        others = [w.line for w in self._all()]
        process = _fork.Process(target=_serve, args=(theirs, [ours, *others], self._do, self._leave), daemon=False)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until the worker knows what to do with them
        process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return Worker(process, ours)

    def _all(self) -> list[Worker]:
        return [*self._idle, *(worker for worker, _, _ in self._busy.values())]

    def _end(self) -> None:
        """Idle workers leave by themselves; the others are asked, then asked again, never killed."""
        workers = self._all()
        for worker in self._idle:
            worker.line.send(None)
        for number, busy in ((signal.SIGINT, [w for w, _, _ in self._busy.values()]), (signal.SIGTERM, workers)):
            for worker in busy:
                if worker.process.is_alive():
                    os.kill(worker.process.pid, number)
            end = time.monotonic() + PATIENCE
            for worker in workers:
                worker.process.join(max(0.0, end - time.monotonic()))
        self.ends = {worker.process.pid: worker.process.exitcode for worker in workers}
        self._idle, self._busy = [], {}

    @property
    def stuck(self) -> list[int]:
        """Workers that did not end when they were asked to."""
        return [pid for pid, code in self.ends.items() if code is None]


def _serve(
    line: Connection, others: Sequence[Connection], do: Callable[[Job], str], leave: Callable[[], None]
) -> None:
    """Do jobs until there are none, or until a signal comes."""
    for other in others:  # so that each line ends with its own worker
        other.close()
    for number in _SIGNALS:
        signal.signal(number, _stop)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        for job in iter(line.recv, None):
            line.send(_done(do, job))
    except (KeyboardInterrupt, EOFError, OSError):
        pass
    finally:
        _deaf()
        leave()


def _deaf() -> None:
    """Take no more signals: a worker that leaves is not to be disturbed."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _done(do: Callable[[Job], str], job: Job) -> str:
    try:
        return do(job)
    except Exception as error:  # of whatever kind: another job may go well
        return f"failed: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _stop(number: int, frame: object) -> None:
    _deaf()
    raise KeyboardInterrupt
