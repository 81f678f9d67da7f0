"""Pairs by their distinct texts, and texts in chunks: what a ranker does once per text is done once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from whyrank.core import Codes, Ints

CHUNK = 10_000


class Distinct(NamedTuple):
    """The distinct texts in order of appearance, and the number of each given text among them."""

    texts: list[str]
    codes: Codes


def distinct(texts: Sequence[str]) -> Distinct:
    """Number texts by content."""
    found: dict[str, int] = {}
    codes = np.array([found.setdefault(text, len(found)) for text in texts], dtype=np.int32)
    return Distinct(list(found), codes)


def rows_by_code(codes: Codes, n: int) -> Iterator[Ints]:
    """For each code from 0 up to `n` the positions where it occurs, ascending."""
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(n + 1))
    for i in range(n):
        yield order[edges[i] : edges[i + 1]]


def chunks(docs: Mapping[str, str]) -> Iterator[list[str]]:
    """The texts of documents, some thousands at a time."""
    texts = iter(docs.values())
    while chunk := list(islice(texts, CHUNK)):
        yield chunk
