"""Delta: how large a score difference has to be to matter to a ranker; calibrated for each ranker, or given.

Per query, take the ten best candidates by the ranker's own score and the nine differences between neighbours;
delta is the median of all these differences over all queries (MacAvaney et al., ABNIRML, TACL 2022).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from whyrank.core import Codes, Floats, Ranker, Study, WhyrankError
from whyrank.data import Collection, first_stage, open_run
from whyrank.rankers import tie_tolerance
from whyrank.scoring import Engine, one_line
from whyrank.studies.contrasts import index_texts
from whyrank.studies.pools import candidates_of
from whyrank.studies.reading import reading_of

DEFAULT = "p50"
EXACT_ONLY = "none needed, because only axioms are asked"
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


@dataclass(frozen=True)
class Threshold:
    """The delta used for one ranker, and the calibration that it came from, if any.

    Studies whose reading is exact, as that of axioms, use the delta `exact` in its place. `origin` says where a delta
    comes from that is not taken from the calibration: there is none, or the delta is `given` as a number. Neither
    delta is below the `tolerance` within which the ranker's scores are equal. Where delta is not `known`, effects
    cannot be given in units of it.
    """

    delta: float = 0.0
    calibration: Calibration | None = None
    exact: float = 0.0
    origin: str = "given"
    given: bool = False
    tolerance: float = 0.0
    known: bool = True

    @property
    def source(self) -> str:
        """Where delta comes from, in words."""
        if self.delta == self.tolerance > 0:
            return "tie tolerance of the ranker"
        return self.calibration.source if self.calibration and not self.given else self.origin

    @property
    def chance(self) -> float:
        """Share of ordinary neighbours that differ by more than delta."""
        return self.calibration.exceeding(self.delta) if self.calibration else float("nan")

    def for_ranker(self, ranker: Ranker) -> Threshold:
        """The same with the tie tolerance of the ranker."""
        least = tie_tolerance(ranker)
        return replace(self, delta=max(self.delta, least), exact=max(self.exact, least), tolerance=least)

    def of(self, study: Study) -> Threshold:
        """The threshold that applies to a study."""
        return replace(self, delta=self.exact) if reading_of(study).exact else self


class Candidates(NamedTuple):
    """Texts to calibrate on: query text -> document id -> text; and where they come from, in words."""

    texts: Mapping[str, Mapping[str, str]]
    source: str


def candidates_for_delta(collection: Collection, run: str | None = None) -> Candidates:
    """The given run, else the collection's BM25 or only run, else its judged documents."""
    name = run or first_stage(collection)
    found: Mapping[str, Iterable[str]] = candidates_of(collection) if name is None else open_run(collection, name).run
    source = "judged documents" if name is None else f"run {name}"
    return Candidates(texts_of_run(found, collection.queries, collection.docs), f"{source} of {collection.name}")


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


@np.errstate(over="ignore", invalid="ignore")  # differences of huge scores may be infinite
def _neighbours(scores: Floats, query: Codes, k: int) -> Floats:
    found = [np.empty(0)]
    for number in np.unique(query):
        here = scores[query == number]
        top = np.sort(here[np.isfinite(here)])[::-1][:k]
        found.append(top[:-1] - top[1:])
    return np.concatenate(found)


def is_percentile(spec: str | float) -> bool:
    """Whether a delta is asked for as a percentile of the calibration, such as p50."""
    return _PERCENTILE.fullmatch(str(spec)) is not None


def delta_of(spec: str | float, calibration: Calibration | None) -> float:
    """The delta that `0.1`, `p50` or `p75` asks for."""
    percentile = _PERCENTILE.fullmatch(str(spec))
    if percentile:
        share = float(percentile[1]) / 100
        if share > 1:
            raise WhyrankError(f"delta {spec}: a percentile lies between p0 and p100")
        if calibration is None:
            ways = "give a number, or --delta-from COLLECTION"
            raise WhyrankError(f"delta {spec} needs candidates to calibrate on; {ways}")
        return calibration.quantile(share)
    try:
        value = float(spec)
    except ValueError:
        raise WhyrankError(f"delta {spec!r} is neither a number nor a percentile such as p50") from None
    if not 0 <= value < float("inf"):
        raise WhyrankError(f"delta must be a finite number, zero or more, not {spec}")
    return value


def needs_calibration(spec: str | None, studies: Iterable[Study]) -> bool:
    """Whether delta has to be calibrated: for a percentile, and without a spec unless all studies are exact."""
    return not all(reading_of(study).exact for study in studies) if spec is None else is_percentile(spec)


def thresholds(
    spec: str | None, rankers: Sequence[Ranker], candidates: Candidates, engine: Engine
) -> dict[str, Threshold]:
    """The delta that `spec` (a number, or a percentile such as p50) means for each ranker.

    Without a spec: the median, and zero for exact studies. No delta is below the ranker's tie tolerance.
    """
    found = {ranker.name: _threshold(spec or DEFAULT, ranker, candidates, engine) for ranker in rankers}
    if spec is not None:
        found = {name: replace(threshold, exact=threshold.delta) for name, threshold in found.items()}
    return {ranker.name: found[ranker.name].for_ranker(ranker) for ranker in rankers}


def uncalibrated(spec: str | None, rankers: Sequence[Ranker]) -> dict[str, Threshold]:
    """Thresholds without a calibration: a number, or for exact studies without a spec zero; or the tie tolerance."""
    delta = 0.0 if spec is None else delta_of(spec, None)
    used = Threshold(delta, exact=delta, origin=EXACT_ONLY if spec is None else "given")
    return {ranker.name: used.for_ranker(ranker) for ranker in rankers}


def _threshold(spec: str, ranker: Ranker, candidates: Candidates, engine: Engine) -> Threshold:
    if not any(len(texts) > 1 for texts in candidates.texts.values()):
        ways = "--candidates RUN (make one with 'whyrank rank --out RUN'), --delta-from COLLECTION or --delta VALUE"
        return _number(spec, f"{candidates.source}: no query has two texts to calibrate delta on; give {ways}")
    calibration = calibrate(engine, ranker, candidates.texts, source=candidates.source)
    if not len(calibration.diffs):
        why = f" ({one_line(calibration.reason)})" if calibration.reason else ""
        reason = f"ranker {ranker.name!r} gave no two finite scores for any query of {candidates.source}{why}"
        return _number(spec, f"{reason}, so delta cannot be calibrated; mend it, or give --delta VALUE")
    return Threshold(delta_of(spec, calibration), calibration, given=not is_percentile(spec))


def _number(spec: str, otherwise: str) -> Threshold:
    """A delta that is a number and needs no calibration; what to say where it is a percentile."""
    if is_percentile(spec):
        raise WhyrankError(otherwise)
    return Threshold(delta_of(spec, None))
