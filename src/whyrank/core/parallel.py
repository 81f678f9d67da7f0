"""Executors: who works on a series of tasks: this process, several processes, or a Ray cluster.

    for answer in executor("processes(workers=4)").run(score_batch, ranker, batches):
        ...

The processes of one machine are joblib's (loky), those of a cluster are Ray's. The same results come back whatever
the executor; only their order may differ. `shared`, such as a model, is loaded once by each worker. Tasks that were
lost with a worker or a node are submitted again.

Tasks go to loky's executor and to `ray.remote` themselves, not through `joblib.Parallel`: over Ray it gives no result
before all are there (the back end of Ray 2.60 has no `generator_unordered`), so that none could be stored on the way.
It draws tasks in threads of its own, while the engine says after each result which task is next. And its error, for a
lost worker as for a time limit, ends the whole call and does not say which task it was.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import pickle
import re
import signal
import socket
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing import current_process, resource_tracker
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable
from weakref import WeakKeyDictionary

import numpy as np

from whyrank.core.errors import MissingExtra, WhyrankError
from whyrank.core.parameters import Checked, Positive, Whole
from whyrank.core.plugins import Plugins
from whyrank.core.registry import Registry

Task = TypeVar("Task")
Result = TypeVar("Result")
Shared = TypeVar("Shared")
Results = Generator[Result, None, None]
Late = Callable[[Task, float], Result]

ATTEMPTS = 3
"""A task is submitted so many times at most: first, and again where its worker was lost."""
_IDLE_SECONDS = 300  # without work, after which a worker process ends
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@runtime_checkable
class Executor(Protocol):
    """Applies a function to tasks and yields each result as it completes; closing the generator ends the work."""

    def run(
        self, function: Callable[[Shared, Task], Result], shared: Shared, tasks: Iterable[Task],
        late: Late[Task, Result] | None = None,
    ) -> Results[Result]:  # fmt: skip
        """Yield `function(shared, task)` for every task, in any order.

        `late(task, seconds)` is the result of a task that took longer than the executor allows.
        """
        ...


@dataclass(frozen=True)
class Serial:
    """Works on one task after the other in this process."""

    def run(
        self, function: Callable[[Shared, Task], Result], shared: Shared, tasks: Iterable[Task],
        late: Late[Task, Result] | None = None,
    ) -> Results[Result]:  # fmt: skip
        """Yield the results in the order of the tasks."""
        for task in tasks:
            yield function(shared, task)


@dataclass(frozen=True)
class Processes(Checked):
    """Works on tasks in several processes of this machine.

    Attributes:
        workers: the number of processes; None is what the shared object has as `workers` (a neural ranker on GPUs has
            one for each), else one per core.
        timeout: most seconds for one task; a worker that takes longer is killed and replaced.
    """

    workers: Whole | None = None
    timeout: Positive | None = None

    def run(
        self, function: Callable[[Shared, Task], Result], shared: Shared, tasks: Iterable[Task],
        late: Late[Task, Result] | None = None,
    ) -> Results[Result]:  # fmt: skip
        """Yield the results as they complete."""
        sent, size = _Sent.of(shared), self._size(shared)
        with tempfile.TemporaryDirectory(prefix="whyrank-") as folder:
            file = Path(folder, "shared")
            file.write_bytes(sent.payload)

            def submit(number: int, task: Task) -> Future[Any]:
                executor, future = self._executor(size), Future[Any]()
                limit = None if self.timeout is None else (self.timeout, str(Path(folder, str(number))))
                heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # also in processes that start now
                try:
                    future = executor.submit(_work, function, sent.name, sent.key, str(file), task, limit)
                except BrokenExecutor as error:
                    future.set_exception(error)
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, heard)
                return future

            def overdue(number: int) -> bool:
                mark = Path(folder, str(number))
                return mark.exists() and mark.stat().st_size > 0

            pool = _Pool(size, submit, BrokenExecutor, lambda running: self.close(size), overdue)
            seconds = self.timeout or 0.0
            yield from _results(sent.name, pool, tasks, late and (lambda task: late(task, seconds)))

    def close(self, size: int | None = None) -> None:
        """End the worker processes, of which there are `size`; the next call starts others."""
        usual = threading.excepthook

        def quiet(args: threading.ExceptHookArgs) -> None:
            if args.exc_type is not KeyError:  # loky's thread looks for waiting tasks that it has just dropped
                usual(args)

        threading.excepthook = quiet
        try:
            self._executor(size or self._size()).shutdown(kill_workers=True)
        finally:
            threading.excepthook = usual

    def _size(self, shared: object = None) -> int:
        return self.workers or getattr(shared, "workers", None) or len(os.sched_getaffinity(0))

    def _executor(self, size: int) -> Any:
        from joblib.externals.loky import get_reusable_executor

        resource_tracker.ensure_running()  # which would hear interrupts again, were it started with the processes
        threads = str(max(1, len(os.sched_getaffinity(0)) // size))
        env = {name: os.environ.get(name, threads) for name in _THREADS}
        return get_reusable_executor(
            size, timeout=_IDLE_SECONDS, env=env, initializer=_depend_on, initargs=(os.getpid(),)
        )


@dataclass(frozen=True)
class Ray(Checked):
    """Works on tasks in a Ray cluster, whose machines all have this package.

    Attributes:
        workers: tasks at a time; None is one per core of the cluster.
        address: of the cluster, such as `ray://host:10001` or `auto`; None starts one on this machine.
    """

    workers: Whole | None = None
    address: str | None = None

    def run(
        self, function: Callable[[Shared, Task], Result], shared: Shared, tasks: Iterable[Task],
        late: Late[Task, Result] | None = None,
    ) -> Results[Result]:  # fmt: skip
        """Yield the results as they complete."""
        sent, ray = _Sent.of(shared), self._connect()
        payload = ray.put(np.frombuffer(sent.payload, np.uint8))  # an array is mapped into workers, not copied
        work = ray.remote(num_cpus=1, max_retries=0)(_work)
        submitted = WeakKeyDictionary[Future[Any], Any]()

        def submit(number: int, task: Task) -> Future[Any]:
            reference = work.remote(function, sent.name, sent.key, payload, task)
            future: Future[Any] = reference.future()
            submitted[future] = reference
            return future

        def stop(running: Iterable[Future[Any]]) -> None:
            for future in running:
                ray.cancel(submitted[future], force=True)

        size = self.workers or int(ray.cluster_resources().get("CPU", 1))
        yield from _results(sent.name, _Pool(size, submit, ray.exceptions.RayError, stop), tasks)

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self._connect().shutdown()

    def _connect(self) -> Any:
        try:
            import ray
        except ImportError:
            raise MissingExtra("executor 'ray'", "ray") from None
        if ray.is_initialized():
            return ray
        try:
            if port := re.fullmatch(r"(?:ray://)?([^/]+):(\d+)", self.address or ""):
                socket.create_connection((port[1], int(port[2])), 10).close()  # Ray itself would try for minutes
            ray.init(self.address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        except (OSError, RuntimeError, ValueError) as error:
            raise WhyrankError(f"no Ray cluster at {self.address!r} ({_in_short(error)})") from error
        return ray


_BUILTIN = {kind.__name__.lower(): f"{__name__}:{kind.__name__}" for kind in (Serial, Processes, Ray)}
_current: ContextVar[Executor] = ContextVar("executor", default=Serial())  # noqa: B039 - it is frozen


def current_executor() -> Executor:
    """The executor of the work at hand: that of `working_with`, else this process."""
    return _current.get()


@contextmanager
def working_with(executor: Executor) -> Iterator[None]:
    """Let what is done in this block use an executor, without its limit of seconds, which is for scores."""
    token = _current.set(Processes(executor.workers) if isinstance(executor, Processes) else executor)
    try:
        yield
    finally:
        _current.reset(token)


executors: Registry[Executor] = Registry("executors", "executor", _BUILTIN)


def executor(name: str) -> Executor:
    """The executor of a name or call string: `serial`, `processes`, `processes(workers=4)`, `ray(address=auto)`."""
    return executors.create(name)


class _Pool(NamedTuple):
    """How tasks get to workers: how many at a time, the error of a lost worker, and how to end those that run."""

    size: int
    submit: Callable[[int, Any], Future[Any]]
    lost: type[Exception]
    stop: Callable[[Iterable[Future[Any]]], None]
    overdue: Callable[[int], bool] = lambda number: False


def _results(
    name: str, pool: _Pool, tasks: Iterable[Any], late: Callable[[Any], Any] | None = None
) -> Generator[Any, None, None]:
    """Yield the results of tasks as they complete, and submit again those whose worker was lost."""
    drawn, again, losses = enumerate(tasks), deque[tuple[int, Any]](), Counter[int]()
    running: dict[Future[Any], tuple[int, Any]] = {}
    try:
        while True:
            while len(running) < pool.size and (entry := again.popleft() if again else next(drawn, None)):
                running[pool.submit(*entry)] = entry
            if not running:
                return
            done = wait(running, return_when=FIRST_COMPLETED).done
            if any(isinstance(future.exception(), BrokenExecutor) for future in done):
                done = wait(running).done  # the loss of one process ends all
            lost, overdue, reason = list[tuple[int, Any]](), False, ""
            for future in [each for each in running if each in done]:
                number, task = running.pop(future)
                if not isinstance(problem := future.exception(), pool.lost):
                    result, error = future.result()
                    if error is not None:
                        raise error
                    yield result
                elif late is not None and pool.overdue(number):
                    overdue = True
                    yield late(task)
                else:
                    lost.append((number, task))
                    reason = _in_short(problem)
            losses.update([] if overdue else [number for number, _ in lost])
            again.extend(lost)
            if ATTEMPTS in losses.values():
                raise WhyrankError(
                    f"{name!r}: a worker was lost {ATTEMPTS} times ({reason}); what was done before is kept; "
                    "use fewer workers or the serial executor"
                )
    finally:
        if running:
            pool.stop(running)


class _Sent(NamedTuple):
    """What workers share, pickled, with its digest: a worker that holds it already does not load it again."""

    name: str
    key: bytes
    payload: bytes

    @classmethod
    def of(cls, shared: object) -> _Sent:
        from cloudpickle import dumps

        name = str(getattr(shared, "name", type(shared).__name__))
        try:
            payload = dumps((Plugins(), shared))  # in this order: what a plugin defines is loaded from it
        except Exception as error:
            raise WhyrankError(
                f"{name!r} cannot be sent to other processes ({_in_short(error)}); use the serial executor"
            ) from error
        return cls(name, sha256(payload).digest(), payload)


_loaded: dict[str, tuple[bytes, Any]] = {}  # in a worker: what was sent to it, by name, with its digest
_working = threading.Event()


def in_worker() -> bool:
    """Whether this process works for an executor in another one."""
    return _working.is_set()


def worker_number() -> int | None:
    """The number of this worker process among those of its executor, up to a multiple of how many there are.

    None where this is no worker process.
    """
    number = re.search(r"\d+$", current_process().name)
    return int(number[0]) if in_worker() and number else None


def _work(
    function: Callable[[Any, Any], Any], name: str, key: bytes, payload: Any, task: Any,
    limit: tuple[float, str] | None = None,
) -> tuple[Any, Exception | None]:  # fmt: skip
    """In a worker: the result of a task, or its error; `payload` is a file or an array, `limit` seconds and a file.

    A thread that does not need Python's lock ends the process after so many seconds, whatever it is doing, and leaves
    a file that is not empty.
    """
    _working.set()
    try:
        if _loaded.get(name, (b"", None))[0] != key:
            _loaded.pop(name, None)  # an older state, which would take memory beside the new one
            _loaded[name] = key, _load(name, key, payload)
        if limit is None:
            return function(_loaded[name][1], task), None
        with open(limit[1], "w", encoding="utf-8") as file:
            faulthandler.dump_traceback_later(limit[0], exit=True, file=file)
            try:
                return function(_loaded[name][1], task), None
            finally:
                faulthandler.cancel_dump_traceback_later()
    except Exception as error:
        try:  # an error that cannot be pickled would end the pool
            same = type(pickle.loads(pickle.dumps(error))) is type(error)
        except Exception:
            same = False
        return None, error if same else WhyrankError(str(error))


def _depend_on(parent: int) -> None:
    """In a worker process: leave Ctrl-C to the parent, who ends its workers, and end where the parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _load(name: str, key: bytes, payload: Any) -> Any:
    """What the parent sent; bytes that do not have the digest that came with the task are not opened."""
    content = Path(payload).read_bytes() if isinstance(payload, str) else bytes(payload)
    if sha256(content).digest() != key:
        raise WhyrankError(f"{name!r} was changed on its way to another process; start the command again")
    try:
        return pickle.loads(content)[1]
    except WhyrankError:
        raise
    except Exception as error:
        raise WhyrankError(
            f"{name!r} cannot be loaded in another process ({_in_short(error)}); use the serial executor"
        ) from error


def _in_short(error: BaseException | None) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
