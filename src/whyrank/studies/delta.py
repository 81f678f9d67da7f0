"""Calibration of delta: how large a score difference has to be to matter to this ranker.

Per query, take the ten best candidates by the ranker's own score and the nine differences between neighbours;
delta is the median of all these differences over all queries (MacAvaney et al., ABNIRML, TACL 2022).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from whyrank.core import Codes, Floats, Ranker, WhyrankError
from whyrank.scoring import Engine
from whyrank.studies.contrasts import index_texts

_PERCENTILE = re.compile(r"p(\d{1,3}(?:\.\d+)?)")


@dataclass(frozen=True)
class Calibration:
    """The sorted differences of neighbours in the top of a ranker's own rankings.

    `reason` says why the first candidate without a finite score has none.
    """

    diffs: Floats
    source: str
    reason: str = ""

    def quantile(self, share: float) -> float:
        """The difference below which this share of the differences lies."""
        return float(np.quantile(self.diffs, share)) if len(self.diffs) else 0.0

    def exceeding(self, delta: float) -> float:
        """Share of neighbours that differ by more than delta: what chance gives a symmetric study."""
        return float(np.mean(self.diffs > delta)) if len(self.diffs) else float("nan")

    def curve(self) -> list[tuple[int, float]]:
        """Percentile 0 to 99 and the delta at each."""
        return [(p, self.quantile(p / 100)) for p in range(100)]


def calibrate(
    engine: Engine, ranker: Ranker, candidates: Mapping[str, Mapping[str, str]], k: int = 10, source: str = ""
) -> Calibration:
    """Score every query's candidates (query text -> doc id -> text) and collect the top-k neighbour differences."""
    docs, doc = index_texts(text for texts in candidates.values() for text in texts.values())
    sizes = [len(texts) for texts in candidates.values()]
    query = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    scores = engine.score(ranker, list(candidates), docs, query, doc)
    reason = scores.failures[0].reason if scores.failures else ""
    return Calibration(np.sort(_neighbours(scores.values, query, k)), source, reason)


def is_percentile(spec: str | float) -> bool:
    """Whether a delta is asked for as a percentile of the calibration, such as p50."""
    return _PERCENTILE.fullmatch(str(spec)) is not None


def delta_of(spec: str | float, calibration: Calibration | None) -> float:
    """The delta that `0.1`, `p50` or `p75` asks for."""
    percentile = _PERCENTILE.fullmatch(str(spec))
    if percentile:
        if calibration is None:
            raise WhyrankError(
                f"delta {spec} needs candidates to calibrate on; give a number, or --delta-from COLLECTION"
            )
        return calibration.quantile(_share(percentile[1], spec))
    try:
        value = float(spec)
    except ValueError:
        raise WhyrankError(f"delta {spec!r} is neither a number nor a percentile such as p50") from None
    if not 0 <= value < float("inf"):
        raise WhyrankError(f"delta must be a finite number, zero or more, not {spec}")
    return value


def _share(percent: str, spec: str | float) -> float:
    share = float(percent) / 100
    if share > 1:
        raise WhyrankError(f"delta {spec}: a percentile lies between p0 and p100")
    return share


@np.errstate(over="ignore", invalid="ignore")  # differences of huge scores may be infinite
def _neighbours(scores: Floats, query: Codes, k: int) -> Floats:
    tops = (_top(scores[query == q], k) for q in np.unique(query))
    return np.concatenate([np.empty(0), *(top[:-1] - top[1:] for top in tops)])


def _top(scores: Floats, k: int) -> Floats:
    return np.sort(scores[np.isfinite(scores)])[::-1][:k]


def texts_of_run(
    run: Mapping[str, Iterable[str]], queries: Mapping[str, str], docs: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Candidates as texts: query text -> doc id -> text, for queries and documents that exist.

    Two queries of the same text are one to a ranker, so they have the candidates of both.
    """
    found: dict[str, dict[str, str]] = {}
    for query_id, ids in run.items():
        if query_id in queries:
            found.setdefault(queries[query_id], {}).update({d: docs[d] for d in ids if d in docs})
    return found
