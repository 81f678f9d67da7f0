"""Progress: a line on a terminal for long work, which is gone at the end, and a line now and then in a log."""

from __future__ import annotations

import io
import re
import sys

import pytest

from whyrank.core import Progress, printable, progress

CONTROL = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]|\r")
QUARTER = "reading:  25% 1,000/4,000 (400/s, 0:08 left)"


class Terminal(io.StringIO):
    """A stream that says it is a terminal; `drawn` is all that was drawn, without control sequences."""

    def isatty(self) -> bool:
        return True

    @property
    def drawn(self) -> list[str]:
        return [line for line in CONTROL.sub("\n", self.getvalue()).split("\n") if line.strip()]

    @property
    def is_clear(self) -> bool:
        """Whether the last thing that was done was to erase the line."""
        return self.getvalue().rstrip("\r").endswith("\x1b[2K")


class Clock:
    """A clock that goes when it is told to."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(progress, "time", found)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return found


def test_after_two_seconds_there_is_a_line_and_at_the_end_there_is_none(clock, monkeypatch):
    terminal = Terminal()
    with pytest.raises(ValueError, match="stop"), Progress("reading", 4000, terminal) as shown:  # noqa: PT012
        clock.now += 2
        shown.step(500)
        assert terminal.getvalue() == ""
        clock.now += 0.5
        shown.step(500)
        assert terminal.drawn[-1] == QUARTER
        clock.now += 2.5
        shown.step(3000)
        assert terminal.drawn[-1] == "reading: 100% 4,000/4,000 (800/s, 0:00 left)"
        assert not terminal.is_clear
        raise ValueError("stop")
    assert terminal.is_clear
    monkeypatch.setattr(sys, "stderr", None)
    with Progress("reading", 2) as shown:  # nobody sees it
        clock.now += 100
        shown.step()


def test_ten_drawings_a_second_at_most_and_none_wider_than_the_terminal(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    with Progress("reading [bold]\x1b[31m" + "x" * 50, 1000, terminal) as shown:
        clock.now += 2.05
        for _ in range(1000):
            clock.now += 0.001
            shown.step()
    assert 8 <= len(terminal.drawn) <= 11
    assert all(len(line) == 40 and line.startswith(r"reading [bold]\u001b[31mx") for line in terminal.drawn)


@pytest.mark.parametrize(("stream", "term"), [(io.StringIO, "xterm"), (Terminal, "dumb")])
def test_elsewhere_there_is_a_line_every_thirty_seconds(clock, monkeypatch, stream, term):
    monkeypatch.setenv("TERM", term)
    log = stream()
    with Progress("reading", 1000, log) as shown:
        for _ in range(1000):
            clock.now += 0.1
            shown.step()
    lines = log.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["30%", "60%", "90%"]
    assert lines[0] == "reading:  30% 301/1,000 (10/s, 1:10 left)"


@pytest.mark.parametrize(
    ("total", "done", "seconds", "unit", "line"),
    [
        (None, 5000, 2.0, "", "x: 5,000 (2,500/s)"),
        (0, 0, 2.0, "", "x: 0 (0/s)"),
        (10, 0, 0.0, "", "x:   0% 0/10 (0/s, 0:00 left)"),
        (10, 1, 10.0, "", "x:  10% 1/10 (0/s, 1:30 left)"),
        (10, 4, 2.0, "pairs", "x:  40% 4/10 (2 pairs/s, 0:03 left)"),
        (7201, 1, 1.0, "", "x:   0% 1/7,201 (1/s, 2:00:00 left)"),
        (10, 20, 10.0, "", "x: 200% 20/10 (2/s, 0:00 left)"),
    ],
)
def test_the_line(total, done, seconds, unit, line):
    shown = Progress("x", total, io.StringIO(), unit=unit)
    shown.step(done)
    assert shown.line(seconds) == line


def test_control_characters_are_spelled_out():
    assert printable("a\x1b[2J\u202eb\n\tc\x85") == "a\\u001b[2J\\u202eb\n\tc\\u0085"
