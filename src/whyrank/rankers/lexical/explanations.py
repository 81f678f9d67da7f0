"""Explanations: the matrix of query terms and document terms that a score is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from whyrank.core import Floats


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """What each document term gives to each query term, and how the score follows from it.

    | kind | a cell is | a row adds to the score |
    | --- | --- | --- |
    | additive | a part of the score | the sum of its cells |
    | log | a part of the probability of the query term | weight * (ln(max(floor, total of the row)) - baseline) |

    The total of a row is its background and the sum of its cells.

    Attributes:
        kind: "additive" or "log".
        query_terms: one for each row, as the ranker's analyzer writes them.
        document_terms: one for each column.
        cells: a number for each query term and document term.
        score: what the ranker says of query and text.
        background: what each row has whatever the text says.
        weights: how much each row counts.
        baseline: what is taken from the logarithm of each row.
        floor: the least total that has a logarithm here.
        notes: what is worth knowing beside the figures, a line each.
    """

    kind: str
    query_terms: Sequence[str]
    document_terms: Sequence[str]
    cells: Floats
    score: float
    background: Floats
    weights: Floats
    baseline: Floats
    floor: float = 0.0
    notes: Sequence[str] = ()

    @classmethod
    def additive(
        cls, query_terms: Sequence[str], document_terms: Sequence[str], cells: Floats, score: float,
        notes: Sequence[str] = (),
    ) -> ScoreMatrix:  # fmt: skip
        """Of a ranker whose score is the sum of all cells."""
        zeros, ones = np.zeros(len(query_terms)), np.ones(len(query_terms))
        return cls("additive", query_terms, document_terms, cells, score, zeros, ones, zeros, notes=notes)

    @classmethod
    def log(
        cls, query_terms: Sequence[str], document_terms: Sequence[str], cells: Floats, score: float,
        background: Floats, weights: Floats, baseline: Floats | None = None, floor: float = 0.0,
        notes: Sequence[str] = (),
    ) -> ScoreMatrix:  # fmt: skip
        """Of a ranker whose score is a sum of logarithms of the totals of rows."""
        start = np.zeros(len(query_terms)) if baseline is None else baseline
        return cls(
            "log", query_terms, document_terms, cells, score, background, weights, start, float(floor), tuple(notes)
        )

    @property
    def totals(self) -> Floats:
        """The total of each row: its background and its cells."""
        return np.array([math.fsum([start, *row]) for start, row in zip(self.background, self.cells, strict=True)])

    @property
    def parts(self) -> Floats:
        """What each row adds to the score."""
        if self.kind == "additive":
            return self.weights * self.totals
        with np.errstate(divide="ignore"):
            return self.weights * (np.log(np.maximum(self.totals, self.floor)) - self.baseline)

    @property
    def recomputed(self) -> float:
        """The score that follows from the matrix."""
        return math.fsum(self.parts)

    def partners(self, top: int | None = None) -> list[dict[str, Any]]:
        """For each query term what it adds to the score, and which document terms give most to it, strongest first.

        A document term gives a part of the score, or where rows are logarithms a share of the total. `rest` is what
        all others give, and `background` the share that a text has whatever it says.
        """
        found = []
        rows = zip(self.query_terms, self.parts, self.cells, self.background, self.totals, strict=True)
        for term, adds, cells, background, total in rows:
            whole = total if self.kind == "log" and total else 1.0
            order = np.argsort(-np.abs(cells), kind="stable")
            chosen = order[cells[order] != 0][:top]
            given = [
                {"document_term": self.document_terms[i], "gives": float(cells[i] / whole)} for i in chosen.tolist()
            ]
            rest = float(np.delete(cells, chosen).sum() / whole)
            found.append(
                {"query_term": term, "adds": float(adds), "document_terms": given, "rest": rest,
                 "background": float(background / whole)}
            )  # fmt: skip
        return found


@runtime_checkable
class Explaining(Protocol):
    """A ranker that can say what its score is made of.

    Its factory, which is registered by name, says so with `explains = True`.
    """

    def explain(self, query: str, text: str) -> ScoreMatrix:
        """The matrix behind the score of one text."""
        ...
