"""Validation: nDCG and reciprocal rank of a network over fixed candidates, in numpy alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Progress, UnknownName

if TYPE_CHECKING:
    from whyrank.networks import Network

Values = npt.NDArray[np.float64]


class Measure(NamedTuple):
    """A name, how many ranks count, and the grade from which a text is relevant."""

    name: str
    cutoff: int
    relevant: int

    @classmethod
    def of(cls, text: str) -> Measure:
        """In the notation of ir-measures: `nDCG@10`, `RR@10`, `RR(rel=2)@10`."""
        found = re.fullmatch(r"(nDCG|RR(?:\(rel=(\d+)\))?)@([1-9]\d*)", text)
        if not found:
            raise UnknownName("validation measure", text, ("nDCG@10", "RR@10", "RR(rel=2)@10"))
        return cls(found[1].partition("(")[0], int(found[3]), int(found[2] or 1))

    def value(self, ranked: Values, ideal: Sequence[float]) -> float:
        """The value of the grades in ranked order; `ideal` has all grades of the query."""
        if self.name == "RR":
            ranks = 1 + np.flatnonzero(ranked[: self.cutoff] >= self.relevant)
            return 1.0 / int(ranks[0]) if len(ranks) else 0.0
        best = _gain(np.sort(np.asarray(ideal, np.float64))[::-1][: self.cutoff])
        return _gain(ranked[: self.cutoff]) / best if best > 0 else 0.0


def _gain(grades: Values) -> float:
    """Discounted gain, log base 2."""
    return float((np.maximum(grades, 0) / np.log2(np.arange(2, len(grades) + 2))).sum())


@dataclass(frozen=True, eq=False)
class Validation:
    """Queries with candidates and grades; calling it gives the mean of a measure, such as `nDCG@10` or `RR@10`.

    Candidates with equal scores stay in the order in which they are given.
    """

    queries: Sequence[str]
    docs: Sequence[str]
    query: npt.NDArray[np.int32]
    doc: npt.NDArray[np.int32]
    grade: npt.NDArray[np.float32]
    ideal: Sequence[Sequence[float]]  # all grades of each query, judged documents outside the candidates included
    measure: str = "nDCG@10"
    batch: int = 128
    device: str = "cpu"

    def __call__(self, network: Network) -> float:
        """The mean over the queries."""
        scores, measure, found = self._scores(network), Measure.of(self.measure), []
        for query, ideal in enumerate(self.ideal):
            rows = np.flatnonzero(self.query == query)
            ranked = self.grade[rows][np.argsort(-scores[rows], kind="stable")].astype(np.float64)
            found.append(measure.value(ranked, ideal))
        return float(np.mean(found))

    def _scores(self, network: Network) -> Values:
        """Scores of the pairs (queries[query[i]], docs[doc[i]]), batched by length."""
        from whyrank.networks import tensors  # a recipe is read where torch is missing

        queries, docs = network.query_ids(self.queries), network.doc_ids(self.docs)
        sizes = [len(queries[q]) + len(docs[d]) for q, d in zip(self.query, self.doc, strict=True)]
        order, found = np.argsort(sizes, kind="stable"), np.empty(len(sizes))
        with Progress("validating: pairs", len(order)) as progress:
            for start in range(0, len(order), self.batch):
                rows = order[start : start + self.batch]
                arrays = network.arrays([queries[self.query[i]] for i in rows], [docs[self.doc[i]] for i in rows])
                found[rows] = network(tensors(arrays, self.device)).float().cpu().numpy()
                progress.step(len(rows))
        return found
