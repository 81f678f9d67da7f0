"""Executors: who works on a series of tasks: this process, several processes, or a Ray cluster.

    for answer in executor("processes(workers=4)").run(score_batch, ranker, batches):
        ...

joblib does the work: its backend `loky` for processes, and `ray.util.joblib` for a cluster. The same results come
back whatever the executor; only their order may differ. `shared`, such as a model, is loaded once by each worker.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import pickle
import tempfile
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import WhyrankError, check_number
from whyrank.core.registry import Registry

Task = TypeVar("Task")
Result = TypeVar("Result")
Shared = TypeVar("Shared")

ATTEMPTS = 3
"""A task whose worker was lost is submitted so many times."""
_AHEAD = 8  # tasks for each worker in one submission: what waits for the slowest of them is small


@runtime_checkable
class Executor(Protocol):
    """Applies a function to tasks and yields each result as it completes; closing the generator ends the work."""

    def run(
        self,
        function: Callable[[Shared, Task], Result],
        shared: Shared,
        tasks: Iterable[Task],
        late: Callable[[Task, float], Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield `function(shared, task)` for every task, in any order.

        `late(task, seconds)` is the result of a task that took longer than the executor allows.
        """
        ...


@dataclass(frozen=True)
class Serial:
    """Works on one task after the other in this process."""

    def run(
        self,
        function: Callable[[Shared, Task], Result],
        shared: Shared,
        tasks: Iterable[Task],
        late: Callable[[Task, float], Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the results in the order of the tasks."""
        for task in tasks:
            yield function(shared, task)


@dataclass(frozen=True)
class Processes:
    """Works on tasks in several processes of this machine.

    Attributes:
        workers: the number of processes; None is one per core.
        timeout: most seconds for one task; a worker that takes longer is killed and replaced.
    """

    workers: int | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        """Refuse a number of workers or a limit that makes no sense."""
        if self.workers is not None and (not isinstance(self.workers, int) or self.workers < 1):
            raise WhyrankError(f"an executor needs 1 or more workers, not {self.workers!r}")
        if self.timeout is not None:
            check_number("timeout", self.timeout, 0, strict=True)

    def run(
        self,
        function: Callable[[Shared, Task], Result],
        shared: Shared,
        tasks: Iterable[Task],
        late: Callable[[Task, float], Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield the results as they complete.

        Tasks are drawn and submitted a few per worker at a time. Those that a lost worker leaves undone are submitted
        again, up to `ATTEMPTS` times.
        """
        load, drawn = _Load.of(shared), iter(tasks)
        with tempfile.TemporaryDirectory(prefix="whyrank-") as marks:
            while waiting := dict(enumerate(islice(drawn, _AHEAD * self._size()))):
                attempts = 0
                while waiting:
                    lost = yield from self._submit(function, load, waiting, marks)
                    overdue = [number for number in waiting if _mark(marks, number).exists()]
                    for number in overdue:
                        _mark(marks, number).unlink()
                        assert late is not None
                        yield late(waiting.pop(number), self.timeout or 0.0)
                    attempts += not overdue
                    if waiting and attempts == ATTEMPTS:
                        raise WhyrankError(
                            f"{load.name!r}: a worker process was lost {ATTEMPTS} times ({lost}); what was done "
                            "before is kept; use fewer workers or the serial executor"
                        )

    def close(self) -> None:
        """End the worker processes; the next call starts others."""
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor(max_workers=1).shutdown(kill_workers=True)

    def _submit(
        self, function: Callable[..., Any], load: _Load, waiting: dict[int, Any], marks: str
    ) -> Generator[Any, None, str]:
        """Yield the results of the `waiting` tasks and remove each from them; return why a worker was lost."""
        import joblib

        parallel = joblib.Parallel(self._size(), batch_size=1, pre_dispatch="all", **self._backend())
        calls = [
            joblib.delayed(_work)(function, load, number, task, self.timeout, str(_mark(marks, number)))
            for number, task in waiting.items()
        ]
        try:
            for number, result, error in parallel(calls):
                if error is not None:
                    raise error
                del waiting[number]
                yield result
        except self._losses() as error:
            return " ".join(str(error).split())[:200] or type(error).__name__
        return ""

    def _size(self) -> int:
        return self.workers or len(os.sched_getaffinity(0))

    def _backend(self) -> dict[str, Any]:
        return {"backend": "loky", "return_as": "generator_unordered"}

    def _losses(self) -> tuple[type[Exception], ...]:
        from joblib.externals.loky.process_executor import BrokenProcessPool

        return (BrokenProcessPool,)


@dataclass(frozen=True)
class Ray(Processes):
    """Works on tasks in the actors of a Ray cluster.

    Attributes:
        address: of the cluster, such as `ray://host:10001` or `auto`; None starts one on this machine.
    """

    address: str | None = None

    def _size(self) -> int:
        return self.workers or int(self._ray().cluster_resources().get("CPU", 1))

    def _backend(self) -> dict[str, Any]:
        from ray.util.joblib import register_ray

        self._ray()
        register_ray()  # type: ignore[no-untyped-call,unused-ignore]
        return {"backend": "ray"}  # it cannot give results one by one

    def _losses(self) -> tuple[type[Exception], ...]:
        return (self._ray().exceptions.RayError,)

    def _ray(self) -> Any:
        try:
            import ray
        except ImportError as error:
            raise WhyrankError("executor 'ray' needs ray; pip install 'whyrank[ray]'") from error
        if not ray.is_initialized():
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        return ray

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        self._ray().shutdown()


executors: Registry[Executor] = Registry(
    "executors",
    "executor",
    {
        "serial": "whyrank.core.parallel:Serial",
        "processes": "whyrank.core.parallel:Processes",
        "ray": "whyrank.core.parallel:Ray",
    },
)


def executor(name: str) -> Executor:
    """The executor of a name or call string: `serial`, `processes`, `processes(workers=4)`, `ray(address=auto)`."""
    return executors.create(name)


@dataclass(frozen=True, eq=False)
class _Load:
    """What workers share, pickled: joblib maps a large array into their memory instead of copying it."""

    name: str
    key: bytes
    payload: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, shared: object) -> _Load:
        import cloudpickle

        name = str(getattr(shared, "name", type(shared).__name__))
        try:
            payload = cloudpickle.dumps(shared)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise WhyrankError(
                f"{name!r} cannot be sent to other processes ({reason}); use the serial executor"
            ) from error
        return cls(name, sha256(payload).digest(), np.frombuffer(payload, np.uint8))


_held: dict[str, tuple[bytes, Any]] = {}  # in a worker: what was sent to it, by name, with its key


def _work(
    function: Callable[[Any, Any], Any], load: _Load, number: int, task: Any, timeout: float | None, mark: str
) -> tuple[int, Any, BaseException | None]:
    """In a worker: the number of a task with its result, or with its error."""
    try:
        if _held.get(load.name, (b"", None))[0] != load.key:
            _held.pop(load.name, None)  # an older state, which would take room beside the new one
            _held[load.name] = load.key, _opened(load)
        if timeout is None:
            return number, function(_held[load.name][1], task), None
        with open(mark, "w", encoding="utf-8") as file:
            # a thread that does not need Python's lock ends the process, whatever it is doing; the mark stays
            faulthandler.dump_traceback_later(timeout, exit=True, file=file)
            try:
                return number, function(_held[load.name][1], task), None
            finally:
                faulthandler.cancel_dump_traceback_later()
                os.unlink(mark)
    except Exception as error:
        try:  # an error that cannot be pickled would break the pool
            same = type(pickle.loads(pickle.dumps(error))) is type(error)
        except Exception:
            same = False
        return number, None, error if same else WhyrankError(str(error))


def _opened(load: _Load) -> Any:
    try:
        return pickle.loads(load.payload.tobytes())
    except WhyrankError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise WhyrankError(
            f"{load.name!r} cannot be loaded in another process ({reason}); use the serial executor"
        ) from error


def _mark(folder: str, number: int) -> Path:
    return Path(folder, str(number))
