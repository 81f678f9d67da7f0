"""A few threads for work that mostly waits, such as requests to a service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def spread(work: Callable[[T, Event], R], items: Sequence[T], workers: int) -> list[R]:
    """What `work` gives for each item, in their order; the first error ends it all.

    The event that `work` gets is set once nobody waits for its result any more. The threads are daemons: a run that
    is stopped ends at once and does not wait for an answer from far away.
    """
    stop, found = Event(), dict[int, R]()
    if min(workers, len(items)) <= 1:
        return [work(item, stop) for item in items]
    done: SimpleQueue[tuple[int, R] | BaseException] = SimpleQueue()
    try:
        _start(work, items, workers, stop, done)
        while len(found) < len(items):
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            found[result[0]] = result[1]
    finally:
        stop.set()
    return [found[i] for i in range(len(items))]


def _start(
    work: Callable[[T, Event], R],
    items: Sequence[T],
    workers: int,
    stop: Event,
    done: SimpleQueue[tuple[int, R] | BaseException],
) -> None:
    waiting, lock = iter(range(len(items))), Lock()

    def serve() -> None:
        while not stop.is_set():
            with lock:
                number = next(waiting, None)
            if number is None:
                return
            try:
                done.put((number, work(items[number], stop)))
            except BaseException as error:  # it belongs to whoever waits for the results
                done.put(error)

    for _ in range(min(workers, len(items))):
        Thread(target=serve, daemon=True).start()
