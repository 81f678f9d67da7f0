"""Where the time of a run goes: seconds by phase, each second counted once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Clock:
    """Seconds by phase; within a phase, the time of an inner phase belongs to the inner one alone."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._phases: list[str] = []
        self._since = time.perf_counter()

    def start(self, phase: str) -> None:
        """End the time of the phase at hand, and begin that of another one within it."""
        self._count()
        self._phases.append(phase)

    def stop(self) -> None:
        """End the phase at hand, and go on with the one around it."""
        self._count()
        self._phases.pop()

    def __str__(self) -> str:
        """The phases that took a tenth of a second or more, the longest first."""
        longest = sorted(self.seconds.items(), key=lambda each: -each[1])
        return ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in longest if seconds >= 0.05)

    def _count(self) -> None:
        now = time.perf_counter()
        if self._phases:
            self.seconds[self._phases[-1]] = self.seconds.get(self._phases[-1], 0.0) + now - self._since
        self._since = now


_clock: ContextVar[Clock | None] = ContextVar("clock", default=None)


@contextmanager
def clocked(given: Clock | None = None) -> Iterator[Clock]:
    """Count the time of the phases within, by a given clock, by the one that runs already, or by a new one."""
    clock = given or _clock.get() or Clock()
    token = _clock.set(clock)
    try:
        yield clock
    finally:
        _clock.reset(token)


@contextmanager
def timed(phase: str) -> Iterator[None]:
    """Count the time within as that of a phase, where a clock runs."""
    clock = _clock.get()
    if clock is None:
        yield
        return
    clock.start(phase)
    try:
        yield
    finally:
        clock.stop()
