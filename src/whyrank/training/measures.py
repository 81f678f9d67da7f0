"""nDCG and reciprocal rank of one query, in numpy alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import UnknownName

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
    places = np.flatnonzero(np.asarray(ranked)[:cutoff] >= relevant)
    return 1.0 / (1 + int(places[0])) if len(places) else 0.0


def _gain(grades: Values) -> float:
    return float((np.maximum(grades, 0) / np.log2(np.arange(2, len(grades) + 2))).sum())
