"""What stands in a terminal: a progress line, texts that cannot steer it, and results apart from other prints."""

from __future__ import annotations

import os
import re
import sys
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TextIO, TypeVar

if TYPE_CHECKING:
    from rich.live import Live

T = TypeVar("T")
AFTER = 2.0  # seconds of work before a line is drawn on a terminal
REDRAW, REPEAT = 0.1, 30.0  # seconds between two drawings on a terminal, and between two lines elsewhere
# all control characters (C0, C1) but line feed and tab, and those that change the direction of writing
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """A text that cannot steer a terminal: control characters stand as `\\u001b`, which JSON reads back."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_lock, _outputs = Lock(), list[TextIO]()


@contextmanager
def apart_from_results() -> Iterator[None]:
    """Send what other people's code prints to standard error; several threads may do so at once."""
    with _lock:
        _outputs.append(sys.stdout)
        sys.stdout = sys.stderr
    try:
        yield
    finally:
        with _lock:  # whichever thread leaves last takes what the first one found
            sys.stdout = _outputs.pop()


class Progress:
    """Counts steps and shows share, rate and time left.

    On a terminal this is one line, drawn by rich from the third second on and gone at the end, and in a notebook one
    that is written again and again; elsewhere, such as in a log, a line every thirty seconds.
    """

    def __init__(self, what: str, total: int | None = None, stream: TextIO | None = None, unit: str = "") -> None:
        self.what, self.total, self.done, self.unit = what, total, 0, unit and f" {unit}"
        self._stream = stream if stream is not None else sys.stderr
        self._drawn = bool(self._stream) and self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._notebook = self._stream is sys.stderr and type(self._stream).__module__.startswith("ipykernel.")
        self._live: Live | None = None
        self._start = time.monotonic()
        self._next = self._start + (AFTER if self._drawn or self._notebook else REPEAT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def step(self, n: int = 1) -> None:
        """Count `n` more steps, and show them where it is time."""
        self.done += n
        now = time.monotonic()
        if now <= self._next or not self._stream:
            return
        self._next = now + (REDRAW if self._drawn or self._notebook else REPEAT)
        text = printable(self.line(now - self._start))
        if self._drawn:
            self._draw(text)
        else:
            self._stream.write(f"\r{text:<100}" if self._notebook else f"{text}\n")
            self._stream.flush()

    def line(self, seconds: float) -> str:
        """The text of the progress line after so many seconds."""
        rate = self.done / seconds if seconds else 0.0
        if not self.total:
            return f"{self.what}: {self.done:,} ({rate:,.0f}{self.unit}/s)"
        left = max(self.total - self.done, 0) / rate if rate else 0.0
        minutes, second = divmod(round(left), 60)
        hours, minute = divmod(minutes, 60)
        clock = f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
        share = f"{self.done / self.total:4.0%} {self.done:,}/{self.total:,}"
        return f"{self.what}: {share} ({rate:,.0f}{self.unit}/s, {clock} left)"

    def _draw(self, text: str) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        if self._live is None:  # without a thread of its own, which processes that are forked would not have
            console = Console(file=self._stream, force_terminal=True, highlight=False)
            self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False,
                              redirect_stderr=False)  # fmt: skip
            self._live.start()
            weakref.finalize(self, self._live.stop)  # which shows the cursor again, also where nobody left the block
        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield the items and show how far along we are."""
    with Progress(what, total) as progress:
        for item in items:
            yield item
            progress.step()


@contextmanager
def silent(messages: Any) -> Iterator[None]:
    """Load a model without progress bars and reports of transformers, whose `utils.logging` is given."""
    shown, level = messages.is_progress_bar_enabled(), messages.get_verbosity()
    messages.disable_progress_bar()
    messages.set_verbosity_error()
    try:
        yield
    finally:
        messages.set_verbosity(level)
        if shown:
            messages.enable_progress_bar()
