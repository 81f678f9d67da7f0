"""What PaRM learns from: queries with candidate texts and the target's scores, and their terms in parts of BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core.seeds import generator
from whyrank.training.examples import Examples
from whyrank.training.parm_segments import draws_of

Numbers = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]


class Terms(NamedTuple):
    """The analysed terms of queries and texts, and what BM25 makes of them.

    Attributes:
        names: all terms.
        query: the distinct terms of each query, one after the other.
        weight: what BM25 gives each of these: idf * asked * (k1 + 1).
        query_ends: 0 and the end of each query's terms.
        absent: whether a text lacks the term: [query terms, candidates].
        doc: the distinct terms of each text, one after the other.
        doc_ends: 0 and the end of each text's terms.
        norm: K of each text: k1 (1 - b + b length / average length).
        value: what the terms that do occur give: [queries, candidates].
    """

    names: Sequence[str]
    query: Numbers
    weight: Scores
    query_ends: npt.NDArray[np.int64]
    absent: npt.NDArray[np.bool_]
    doc: Numbers
    doc_ends: npt.NDArray[np.int64]
    norm: Scores
    value: Scores


class Candidates(NamedTuple):
    """Texts of each query, the first of which is the one that it belongs to, and what the target says of them.

    Attributes:
        doc: numbers of the texts, [queries, candidates].
        scores: the target's, of the same shape.
    """

    doc: Numbers
    scores: Scores

    def scaled(self) -> Candidates:
        """Scores in units of the spread of the differences between candidates of one query."""
        spread = float(np.sqrt(2 * self.scores.astype(np.float64).var(axis=1).mean()))
        return Candidates(self.doc, (self.scores / (spread or 1.0)).astype(np.float32))


class Drawn:
    """Draws examples from candidates: so many texts of each query and epoch, with the draws that phase 1 needs.

    The `doc` of an example holds places in the table of candidates, counted row by row; behind the target's scores in
    `target` stand the draws. What a query gets in an epoch depends on the seed, the epoch and the set of queries
    alone, not on batches.
    """

    def __init__(
        self, given: Candidates, queries: npt.NDArray[np.int64], texts: int, positives: str, what: str,
        own: bool = True,
    ) -> None:  # fmt: skip
        """Draw for some of the queries; `what` names the phase, so that its draws are its own.

        Without `own`, a query's first candidate, the text that it belongs to, is never drawn.
        """
        self.given, self.queries, self.what, self.first = given, queries, what, int(not own)
        self.gold, self.texts = positives == "gold", min(texts, given.doc.shape[1] - self.first)

    def epoch(self, seed: int, epoch: int) -> Examples:
        """One example per query, in the order of this epoch."""
        random = generator(seed, "parm", self.what, str(epoch))
        n, width = len(self.queries), self.given.doc.shape[1]
        keys = random.random((n, width), dtype=np.float32)
        if self.gold:
            keys[:, 0] = -1
        keys[:, : self.first] = 2
        column = np.argsort(keys, axis=1)[:, : self.texts]
        draws = np.concatenate([random.random((n, 2)), random.standard_normal((n, draws_of(self.texts) - 2))], axis=1)
        order = random.permutation(n)
        return self._examples(order, column, draws.astype(np.float32))

    def _examples(self, order: Any, column: Any, draws: Any) -> Examples:
        scores = np.take_along_axis(self.given.scores[self.queries], column, axis=1)
        if not self.gold:
            best = np.argsort(-scores, axis=1, kind="stable")
            column, scores = (np.take_along_axis(array, best, axis=1) for array in (column, scores))
        place = self.queries[:, None] * self.given.doc.shape[1] + column
        target = np.concatenate([scores, draws], axis=1).astype(np.float32)
        return Examples(self.queries[order].astype(np.int32), place[order].astype(np.int32), target[order])


def split_queries(n: int, share: float, seed: int = 0) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The queries to learn from and those that are held out, at most one in two."""
    order = generator(seed, "parm", "held out").permutation(n)
    held = min(round(share * n), n // 2)
    return np.sort(order[held:]), np.sort(order[:held])


def plain(terms: Terms) -> Mapping[str, npt.NDArray[Any]]:
    """The arrays of the terms by name."""
    return {f"terms_{name}": array for name, array in terms._asdict().items() if name != "names"}
