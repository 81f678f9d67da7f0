"""What a network learns from: a query and k texts, with a target for each; the first text is the positive one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from whyrank.core.seeds import generator


class Examples(NamedTuple):
    """The examples of an epoch: `query[i]` with the texts `doc[i]` and targets, labels or a teacher's scores."""

    query: npt.NDArray[np.int32]
    doc: npt.NDArray[np.int32]
    target: npt.NDArray[np.float32]

    def take(self, rows: npt.NDArray[np.int64]) -> Examples:
        """Some of the examples."""
        return Examples(self.query[rows], self.doc[rows], self.target[rows])


class Sampler(Protocol):
    """Draws the examples of an epoch; the same ones for the same seed."""

    def epoch(self, seed: int, epoch: int) -> Examples:
        """The examples of one epoch, in order."""
        ...


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Texts, and who draws examples from them."""

    queries: Sequence[str]
    docs: Sequence[str]
    sampler: Sampler


class Texts:
    """Distinct texts, numbered in the order of first sight."""

    def __init__(self) -> None:
        """No texts yet."""
        self.found: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        return self.found.setdefault(text, len(self.found))

    def numbers(self, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        """The numbers of several."""
        return np.array([self.number(text) for text in texts], dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Fixed:
    """The same examples every epoch, in a new order."""

    examples: Examples

    def epoch(self, seed: int, epoch: int) -> Examples:
        """All examples in the order of this epoch."""
        random = generator(seed, "order", str(epoch))
        return self.examples.take(random.permutation(len(self.examples.query)))


@dataclass(frozen=True, eq=False)
class Judged:
    """One positive text and some negative ones for each query and epoch.

    `positives` and `negatives` hold the numbers of the texts of each query; queries without either are left out.
    """

    positives: Sequence[npt.NDArray[np.int32]]
    negatives: Sequence[npt.NDArray[np.int32]]
    n: int = 1

    def epoch(self, seed: int, epoch: int) -> Examples:
        """One example per query, in the order of this epoch."""
        random = generator(seed, "judged", str(epoch))
        usable = [q for q, p in enumerate(self.positives) if len(p) and len(self.negatives[q])]
        order = random.permutation(np.array(usable, dtype=np.int32))
        rows = [self._row(int(q), random) for q in order]
        doc = np.array(rows, dtype=np.int32).reshape(-1, 1 + self.n)
        target = np.zeros(doc.shape, np.float32)
        target[:, :1] = 1
        return Examples(order, doc, target)

    def _row(self, query: int, random: np.random.Generator) -> list[int]:
        negatives = self.negatives[query]
        drawn = random.choice(negatives, self.n, replace=len(negatives) < self.n)
        return [int(random.choice(self.positives[query])), *drawn.tolist()]


@dataclass(frozen=True, eq=False)
class Mixed:
    """Several samplers over the same texts, one after the other or shuffled together where they fit."""

    parts: Sequence[Sampler]

    def epoch(self, seed: int, epoch: int) -> Examples:
        """The examples of all parts, shuffled; all need the same number of texts."""
        drawn = [part.epoch(seed, epoch) for part in self.parts]
        joined = Examples(*(np.concatenate(column) for column in zip(*drawn, strict=True)))
        return joined.take(generator(seed, "mixed", str(epoch)).permutation(len(joined.query)))
