"""Scoring in several processes, each with its own copy of the ranker."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from multiprocessing.connection import Connection, wait

from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Ranker
from whyrank.scoring.asking import Answer, Task, answer, name_of
from whyrank.scoring.executors import Answers
from whyrank.scoring.failures import one_line, reason_of

_CONTEXT = multiprocessing.get_context("spawn")  # fork copies locks and threads in unknown states
_GRACE = 5.0  # seconds that a worker has to leave by itself


@dataclass(frozen=True)
class ProcessExecutor:
    """Scores batches in `workers` processes (None: one per core); each holds one batch at a time.

    An answer is handed on before its worker gets more to do, so a kill loses at most one batch per worker.
    """

    workers: int | None = None

    def __post_init__(self) -> None:
        """Refuse a number of workers that cannot work."""
        if self.workers is not None and (not isinstance(self.workers, int) or self.workers < 1):
            raise WhyrankError(f"executor 'processes' needs 1 or more workers, not {self.workers!r}")

    def run(self, ranker: Ranker, tasks: Iterator[Task]) -> Answers:
        """Answer the tasks as the workers complete them."""
        first = list(islice(tasks, self.workers or _cores()))
        pool = _Pool(name_of(ranker), _pickled(ranker), len(first))
        try:
            yield from pool.answers(chain(first, tasks))
        except BaseException:
            pool.abandon()
            raise
        pool.leave()


class _Pool:
    """Worker processes that are started together and end together."""

    def __init__(self, name: str, payload: bytes, size: int) -> None:
        self.name = name
        self.workers: list[_Worker] = []
        try:
            for _ in range(size):
                self.workers.append(_Worker(name))
            for worker in self.workers:
                worker.load(payload)
        except BaseException:
            self.abandon()
            raise

    def answers(self, tasks: Iterator[Task]) -> Answers:
        """Give each worker a task whenever it has none, until there are none."""
        busy = {worker.pipe: worker for worker in self.workers}
        while busy:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                reply = worker.receive()
                if reply is not None:
                    yield reply
                task = next(tasks, None)
                if task is None:
                    del busy[worker.pipe]
                else:
                    worker.send(task)

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

    def __init__(self, name: str) -> None:
        self.name = name
        self.pipe, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_serve, args=(theirs, name), daemon=True)
        self.process.start()
        theirs.close()  # ours would keep the pipe open, and a write to a dead worker waiting, for ever

    def load(self, payload: bytes) -> None:
        """Send the ranker; as an argument of the process, a large one would hang when the worker dies early."""
        try:
            self.pipe.send_bytes(payload)
        except OSError as error:
            raise self._death() from error

    def send(self, task: Task) -> None:
        try:
            self.pipe.send(task)
        except OSError as error:
            raise self._death() from error

    def receive(self) -> Answer | None:
        """The next answer; None when the worker only says that it is ready."""
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

    def _death(self) -> WhyrankError:
        self.process.join(_GRACE)
        return WhyrankError(
            f"ranker {self.name!r}: a worker process died ({_exit_in_words(self.process.exitcode)}); scores "
            "committed before are kept; run again with fewer workers or with the serial executor"
        )


def _serve(pipe: Connection, name: str) -> None:
    """The life of a worker: load the ranker, then answer tasks until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends us
    threading.Thread(target=_die_with_parent, daemon=True).start()
    try:
        ranker = _loaded(name, pipe.recv_bytes())
        pipe.send("ready")
        while True:
            pipe.send(answer(ranker, pipe.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent closed the pipe, or is gone
    except BaseException as error:
        pipe.send(_portable(error))


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _pickled(ranker: Ranker) -> bytes:
    try:
        return pickle.dumps(ranker)
    except Exception as error:
        raise WhyrankError(
            f"ranker {name_of(ranker)!r} cannot be sent to other processes ({one_line(reason_of(error))}); "
            "use the serial executor"
        ) from error


def _loaded(name: str, payload: bytes) -> Ranker:
    try:
        ranker: Ranker = pickle.loads(payload)
    except WhyrankError:
        raise
    except Exception as error:
        raise WhyrankError(
            f"ranker {name!r} cannot be loaded in another process ({one_line(reason_of(error))}); "
            "use the serial executor"
        ) from error
    return ranker


def _portable(error: BaseException) -> BaseException:
    """The error itself where it survives the way to the parent, else one with the same message."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:
        copy = None
    return copy if type(copy) is type(error) else WhyrankError(str(error))


def _exit_in_words(code: int | None) -> str:
    if code is not None and code < 0:
        return f"signal {-code}" + (", perhaps out of memory" if code == -signal.SIGKILL else "")
    return f"exit code {code}"


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
