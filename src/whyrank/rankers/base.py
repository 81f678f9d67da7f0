"""What all rankers share: a call string as name, pairs by their distinct texts, and analysed texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from whyrank.core import Checked, Codes, Ints, Progress, call_of

if TYPE_CHECKING:
    from whyrank.text import Analyzer, Tokens

CHUNK = 10_000


class Described(Checked):
    """A dataclass that a call string describes; another process gets its fields, and opens all else for itself."""

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, self.registered)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}


class Distinct(NamedTuple):
    """The distinct texts in order of appearance, and the number of each given text among them."""

    texts: list[str]
    codes: Codes


def distinct(texts: Sequence[str]) -> Distinct:
    """Number texts by content; what a ranker does once per text is done once."""
    found: dict[str, int] = {}
    codes = np.array([found.setdefault(text, len(found)) for text in texts], dtype=np.int32)
    return Distinct(list(found), codes)


def rows_by_code(codes: Codes, n: int) -> Iterator[Ints]:
    """For each code from 0 up to `n` the positions where it occurs, ascending."""
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(n + 1))
    for i in range(n):
        yield order[edges[i] : edges[i + 1]]


def analyse(docs: Mapping[str, str], analyzer: Analyzer, what: str) -> Iterator[Tokens]:
    """The tokens of documents, some thousands at a time; `what` names the work on a progress bar."""
    texts = iter(docs.values())
    with Progress(what, len(docs)) as progress:
        while chunk := list(islice(texts, CHUNK)):
            yield analyzer.docs(chunk)
            progress.step(len(chunk))
