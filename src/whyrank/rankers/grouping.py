"""Pairs by their distinct texts: what a ranker does once per text or per query is done once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from whyrank.core import Codes, Ints


class Distinct(NamedTuple):
    """The distinct texts in order of appearance, and the number of each given text among them."""

    texts: list[str]
    codes: Codes


def distinct(texts: Sequence[str]) -> Distinct:
    """Number texts by content."""
    found: dict[str, int] = {}
    codes = np.array([found.setdefault(text, len(found)) for text in texts], dtype=np.int32)
    return Distinct(list(found), codes)


def places(codes: Codes, n: int) -> Iterator[Ints]:
    """For each code from 0 up to `n` the places where it stands, ascending."""
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(n + 1))
    for i in range(n):
        yield order[edges[i] : edges[i + 1]]
