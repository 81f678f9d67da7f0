"""For the terminal: texts without control characters, and a progress line for anything over two seconds."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TextIO, TypeVar

T = TypeVar("T")
# all control characters (C0, C1) but line feed and tab, and those that turn the direction of writing
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """A text that cannot steer a terminal: control characters stand as `\\u001b`, which JSON reads back."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Progress:
    """Counts steps and shows share, rate and time left once two seconds have passed."""

    def __init__(
        self,
        what: str,
        total: int | None = None,
        stream: TextIO | None = None,
        after: float = 2.0,
        unit: str = "",
    ) -> None:
        self.what, self.total, self.done, self.unit = what, total, 0, unit and f" {unit}"
        self._stream = stream if stream is not None else sys.stderr
        self._after, self._start, self._shown, self._width = after, time.monotonic(), 0.0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()

    def step(self, n: int = 1) -> None:
        """Count `n` more steps and redraw at most ten times a second."""
        self.done += n
        now = time.monotonic()
        if self._stream and self._stream.isatty() and now - self._start > self._after and now - self._shown > 0.1:
            self._shown = now
            self._draw(printable(self.line(now - self._start)))

    def line(self, seconds: float) -> str:
        """The text of the progress line after so many seconds."""
        rate = self.done / seconds if seconds else 0.0
        if not self.total:
            return f"{self.what}: {self.done:,} ({rate:,.0f}{self.unit}/s)"
        left = max(self.total - self.done, 0) / rate if rate else 0.0
        share = self.done / self.total
        return (
            f"{self.what}: {share:4.0%} {self.done:,}/{self.total:,} ({rate:,.0f}{self.unit}/s, {_clock(left)} left)"
        )

    def _draw(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = max(self._width, len(text))


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield the items and show how far along we are."""
    with Progress(what, total) as progress:
        for item in items:
            yield item
            progress.step()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


# Models loaded without a word.


@contextmanager
def silent(messages: Any) -> Iterator[None]:
    """No progress bars and no reports of transformers, whose `utils.logging` is given."""
    shown, level = messages.is_progress_bar_enabled(), messages.get_verbosity()
    messages.disable_progress_bar()
    messages.set_verbosity_error()
    try:
        yield
    finally:
        messages.set_verbosity(level)
        if shown:
            messages.enable_progress_bar()
