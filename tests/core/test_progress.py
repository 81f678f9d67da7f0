"""Progress: a line on a terminal for long work, and no trace of it anywhere else."""

from __future__ import annotations

import io
import re
import sys

import pytest

from whyrank.core import Progress, progress, track


class Terminal(io.StringIO):
    """A stream that says it is a terminal; `screen` is what its last line shows in the end."""

    def isatty(self) -> bool:
        return True

    @property
    def screen(self) -> str:
        shown: list[str] = []
        for part in self.getvalue().split("\r"):
            shown[: len(part)] = part
        return "".join(shown).rstrip()


class Clock:
    """A clock that goes when it is told to."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    return found


def test_nothing_is_shown_before_two_seconds(clock):
    terminal = Terminal()
    with Progress("reading", 10, terminal) as shown:
        for _ in range(4):
            clock.now += 0.5
            shown.step()
    assert shown.done == 4
    assert terminal.getvalue() == ""


def test_after_two_seconds_there_is_a_line_and_at_the_end_there_is_none(clock):
    terminal = Terminal()
    with Progress("reading", 4000, terminal) as shown:
        clock.now += 2.5
        shown.step(1000)
        assert terminal.screen == "reading:  25% 1,000/4,000 (400/s, 0:08 left)"
        clock.now += 2.5
        shown.step(3000)
        assert terminal.screen == "reading: 100% 4,000/4,000 (800/s, 0:00 left)"
    assert terminal.screen == ""


def test_a_shorter_line_covers_the_one_before(clock):
    terminal = Terminal()
    shown = Progress("reading", None, terminal)
    clock.now += 3
    shown.step(1_000_000)
    assert terminal.screen == "reading: 1,000,000 (333,333/s)"
    clock.now += 100_000
    shown.step()
    assert terminal.screen == "reading: 1,000,001 (10/s)"


def test_an_error_clears_the_line_too(clock):
    terminal = Terminal()
    with pytest.raises(ValueError, match="stop"), Progress("reading", 2, terminal) as shown:  # noqa: PT012
        clock.now += 3
        shown.step()
        assert terminal.screen
        raise ValueError("stop")
    assert terminal.screen == ""


def test_ten_lines_a_second_at_most(clock):
    terminal = Terminal()
    shown = Progress("reading", 1000, terminal)
    clock.now += 2.05
    for _ in range(1000):
        clock.now += 0.001
        shown.step()
    assert 8 <= terminal.getvalue().count("\r") <= 11


def test_silent_when_not_a_terminal(clock):
    stream = io.StringIO()
    with Progress("reading", 2, stream) as shown:
        clock.now += 100
        shown.step()
    assert stream.getvalue() == ""


def test_silent_when_there_is_no_stream_at_all(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with Progress("reading", 2) as shown:
        clock.now += 100
        shown.step()
    assert shown.done == 1


def test_what_is_counted_may_have_a_name():
    shown = Progress("scoring", 10, io.StringIO(), unit="pairs")
    shown.step(4)
    assert shown.line(2.0) == "scoring:  40% 4/10 (2 pairs/s, 0:03 left)"


@pytest.mark.parametrize(
    ("total", "done", "seconds", "line"),
    [
        (None, 5000, 2.0, "x: 5,000 (2,500/s)"),
        (0, 0, 2.0, "x: 0 (0/s)"),
        (10, 0, 0.0, "x:   0% 0/10 (0/s, 0:00 left)"),
        (10, 1, 10.0, "x:  10% 1/10 (0/s, 1:30 left)"),
        (7201, 1, 1.0, "x:   0% 1/7,201 (1/s, 2:00:00 left)"),
        (10, 20, 10.0, "x: 200% 20/10 (2/s, 0:00 left)"),
    ],
)
def test_the_line(total, done, seconds, line):
    shown = Progress("x", total, io.StringIO())
    shown.done = done
    assert shown.line(seconds) == line


def test_track_gives_every_item_and_shows_on_standard_error(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    found = []
    for item in track("abc", "letters", 3):
        clock.now += 1.5
        found.append(item)
    assert found == ["a", "b", "c"]
    assert re.search(r"letters: +67% 2/3", terminal.getvalue())
    assert terminal.screen == ""
