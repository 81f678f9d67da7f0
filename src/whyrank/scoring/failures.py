"""Pairs that a ranker gives no usable score, and why."""

from __future__ import annotations

from typing import NamedTuple

from whyrank.core.progress import printable


class Failure(NamedTuple):
    """A pair without a finite score; `reason` is the ranker's exception, or such as `score is nan`."""

    query: str
    doc: str
    reason: str


def reason_of(error: BaseException) -> str:
    """An exception in words: its type and its message."""
    message = str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def one_line(text: str, limit: int = 300) -> str:
    """A text without line breaks and without characters that steer a terminal, cut where it gets too long."""
    joined = printable(" ".join(text.split()))
    return joined if len(joined) <= limit else joined[:limit] + "…"
