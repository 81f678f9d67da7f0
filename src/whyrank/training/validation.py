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


def ndcg(ranked: npt.ArrayLike, ideal: Sequence[float], cutoff: int) -> float:
    """Discounted gain of the grades in ranked order over that of the best order, log base 2."""
    best = np.sort(np.asarray(ideal, dtype=np.float64))[::-1][:cutoff]
    total = _gain(best)
    return _gain(np.asarray(ranked, dtype=np.float64)[:cutoff]) / total if total > 0 else 0.0


def reciprocal_rank(ranked: npt.ArrayLike, cutoff: int, relevant: int = 1) -> float:
    """One over the rank of the first relevant text; 0 without one."""
    ranks = 1 + np.flatnonzero(np.asarray(ranked)[:cutoff] >= relevant)
    return 1.0 / int(ranks[0]) if len(ranks) else 0.0


def _gain(grades: Values) -> float:
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
        scores = self._scores(network)
        found = [self._value(q, scores[rows], self.grade[rows]) for q, rows in enumerate(self._rows())]
        return float(np.mean(found))

    def _value(self, query: int, scores: Values, grades: npt.NDArray[np.float32]) -> float:
        ranked = grades[np.argsort(-scores, kind="stable")]
        measure = Measure.of(self.measure)
        if measure.name == "RR":
            return reciprocal_rank(ranked, measure.cutoff, measure.relevant)
        return ndcg(ranked, self.ideal[query], measure.cutoff)

    def _rows(self) -> list[npt.NDArray[np.int64]]:
        return [np.flatnonzero(self.query == q) for q in range(len(self.queries))]

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
