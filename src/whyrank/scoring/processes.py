"""Scoring in several processes, each with its own copy of the ranker."""

from __future__ import annotations

import math
import multiprocessing
import os
import pickle
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain, islice
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from whyrank.core import Ranker, WhyrankError, check_number
from whyrank.scoring.asking import Answer, Task, name_of, one_line, reason_of
from whyrank.scoring.execution import Answers
from whyrank.scoring.worker import Load, Order, serve

_CONTEXT = multiprocessing.get_context("spawn")  # fork copies locks and threads in unknown states
_GRACE = 5.0  # seconds that a worker has to leave by itself


@dataclass(frozen=True)
class ProcessExecutor:
    """Scores batches in `workers` processes (None: one per core); each holds one batch at a time.

    An answer is handed on before its worker gets more to do, so a kill loses at most one batch per worker. The
    workers stay, with the rankers that they loaded, for the next call, and end with the executor. A worker that takes
    more than `timeout` seconds for a batch is killed, and another one takes its place.
    """

    workers: int | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        """Refuse a number of workers that cannot work."""
        if self.workers is not None and (not isinstance(self.workers, int) or self.workers < 1):
            raise WhyrankError(f"executor 'processes' needs 1 or more workers, not {self.workers!r}")
        if self.timeout is not None:
            check_number("timeout", self.timeout, 0, strict=True)

    def run(self, ranker: Ranker, tasks: Iterator[Task]) -> Answers:
        """Answer the tasks as the workers complete them."""
        first = list(islice(tasks, self.workers or _cores()))
        crew = self._idle.pop() if self._idle else _Crew()  # two calls at a time have a crew each
        try:
            yield from crew.answers(ranker, chain(first, tasks), len(first), self.timeout or math.inf)
        except BaseException:
            crew.abandon()
            raise
        self._idle.append(crew)

    def close(self) -> None:
        """End the workers that wait for another call; one more call starts others."""
        _dismiss(self._idle)

    @cached_property
    def _idle(self) -> list[_Crew]:
        found: list[_Crew] = []
        weakref.finalize(self, _dismiss, found)
        return found


class _Crew:
    """Worker processes that wait between calls and end together."""

    def __init__(self) -> None:
        self.workers: list[_Worker] = []

    def answers(self, ranker: Ranker, tasks: Iterator[Task], size: int, timeout: float) -> Answers:
        """Give each of so many workers a task whenever it has none, until there are none."""
        ready = self._ready(ranker, size)
        busy = {worker.pipe: worker for worker in ready if worker.waits or worker.take(tasks, timeout)}
        while busy:
            left = min(worker.deadline for worker in busy.values()) - time.monotonic()
            for pipe in wait(list(busy), None if left == math.inf else max(left, 0.0)):
                worker = busy[pipe]  # type: ignore[index]
                reply = worker.receive()
                if reply is not None:
                    yield reply
                if not worker.take(tasks, timeout):
                    del busy[worker.pipe]
            for worker in [each for each in busy.values() if each.is_late()]:
                del busy[worker.pipe]
                another = self._replaced(worker, ranker)
                busy[another.pipe] = another
                yield worker.late(timeout)

    def _replaced(self, worker: _Worker, ranker: Ranker) -> _Worker:
        """Kill a worker; another one loads the ranker."""
        worker.process.kill()
        worker.end()
        another = self.workers[self.workers.index(worker)] = _Worker()
        another.load(name_of(ranker), _pickled(ranker))
        return another

    def _ready(self, ranker: Ranker, size: int) -> list[_Worker]:
        """So many workers that have the ranker or are loading it; all are started before the first gets it."""
        payload = _pickled(ranker)
        while len(self.workers) < size:
            self.workers.append(_Worker())
        for worker in self.workers[:size]:
            worker.load(name_of(ranker), payload)
        return self.workers[:size]

    def leave(self) -> None:
        """End idle workers: a closed pipe tells them to go."""
        for worker in self.workers:
            worker.pipe.close()
        for worker in self.workers:
            worker.process.join(_GRACE)
        self.abandon()

    def abandon(self) -> None:
        """End all workers at once, whatever they are doing."""
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.end()


class _Worker:
    """One worker process, seen from the parent."""

    def __init__(self) -> None:
        self.name, self.waits, self.deadline = "", False, math.inf
        self._task: Task | None = None
        self._loaded: dict[str, bytes] = {}
        self.pipe, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=serve, args=(theirs,), daemon=True)
        with _interrupts_blocked():
            self.process.start()
        theirs.close()  # ours would keep the pipe open, and a write to a dead worker waiting, for ever

    def load(self, name: str, payload: bytes) -> None:
        """Send the ranker, unless the worker has it in this state.

        As an argument of the process, a large one would hang when the worker dies early.
        """
        self.name, state = name, sha256(payload).digest()
        self.waits = self._loaded.get(name) != state  # for the word that it is ready
        if self.waits:
            self._send(Load(name))
            self._send(payload)
            self._loaded[name] = state

    def take(self, tasks: Iterator[Task], timeout: float) -> bool:
        """Send the next task, to be answered within so many seconds; whether there was one."""
        self._task = next(tasks, None)
        if self._task is not None:
            self._send(Order(self.name, self._task))
            self.deadline = time.monotonic() + timeout
        return self._task is not None

    def is_late(self) -> bool:
        """Whether the time is over and no answer is there; we may have been busy while it came."""
        return self.deadline <= time.monotonic() and not self.pipe.poll()

    def late(self, timeout: float) -> Answer:
        """What stands for the answer to a task that took too long."""
        assert self._task is not None
        number, size = self._task.number, len(self._task.docs)
        reasons = dict.fromkeys(range(size), f"TimeoutError: no answer within {timeout:g} s")
        return Answer(number, np.full(size, np.nan), reasons, succeeded=False, late=True)

    def receive(self) -> Answer | None:
        """The next answer; None when the worker only says that it is ready."""
        self.deadline = math.inf
        try:
            reply = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, Answer) else None

    def end(self) -> None:
        self.process.join(_GRACE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()

    def _send(self, message: Any) -> None:
        try:
            (self.pipe.send_bytes if isinstance(message, bytes) else self.pipe.send)(message)
        except OSError as error:
            raise self._death() from error

    def _death(self) -> WhyrankError:
        self.process.join(_GRACE)
        return WhyrankError(
            f"ranker {self.name!r}: a worker process died ({_exit_in_words(self.process.exitcode)}); scores "
            "committed before are kept; run again with fewer workers or with the serial executor"
        )


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Let a process start deaf to Ctrl-C, which reaches the whole group; ours comes when this is over."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    with _interrupts_held():
        resource_tracker.ensure_running()  # else it starts in the middle, and unblocks
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C for the end: another thread may take the signal that this one blocks, and we are in the middle."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
        for number in held[:1]:
            signal.raise_signal(number)


def _dismiss(crews: list[_Crew]) -> None:
    while crews:
        crews.pop().leave()


def _pickled(ranker: Ranker) -> bytes:
    try:
        return pickle.dumps(ranker)
    except Exception as error:
        raise WhyrankError(
            f"ranker {name_of(ranker)!r} cannot be sent to other processes ({one_line(reason_of(error))}); "
            "use the serial executor"
        ) from error


def _exit_in_words(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {-code}" + (", perhaps out of memory" if code == -signal.SIGKILL else "")
    return f"exit code {code}"


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
