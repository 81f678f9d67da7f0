"""Delta: how large a score difference has to be to matter to a ranker; calibrated for each ranker, or given.

Per query, take the ten best candidates by the ranker's own score and the nine differences between neighbours;
delta is the median of all these differences over all queries (MacAvaney et al., ABNIRML, TACL 2022). A sweep shows
how findings change with delta: the authors find the order of systems stable from about the median on (section 4.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from whyrank.core import Floats, Ranker, Study, WhyrankError, seed_for
from whyrank.data import Collection, first_stage, open_run
from whyrank.rankers import tie_tolerance
from whyrank.rankers.fields import DocFields
from whyrank.scoring import Engine, one_line
from whyrank.studies.pools import candidates_of
from whyrank.studies.reading import reading_of

if TYPE_CHECKING:
    from whyrank.studies.runner import Answer

DEFAULT = "p50"
TOP = 10  # of each ranking, whose neighbours are compared
MEDIAN: int = 50
LAST: int = 95  # beyond the 95th percentile nearly all is neutral and orders are noise
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
        """Share of ordinary neighbours that differ by more than delta: what chance gives a symmetric study."""
        diffs = self.calibration.diffs if self.calibration else np.empty(0)
        return float(np.mean(diffs > self.delta)) if len(diffs) else float("nan")

    def for_ranker(self, ranker: Ranker) -> Threshold:
        """The threshold raised to the tie tolerance of the ranker."""
        least = tie_tolerance(ranker)
        return replace(self, delta=max(self.delta, least), exact=max(self.exact, least), tolerance=least)

    def of(self, study: Study) -> Threshold:
        """The threshold that applies to a study."""
        return replace(self, delta=self.exact) if reading_of(study).exact else self


class CalibrationTexts(NamedTuple):
    """Texts to calibrate on: query text -> document id -> text; where they come from, in words; fields by id."""

    texts: Mapping[str, Mapping[str, str]]
    source: str
    fields: Mapping[str, Mapping[str, Any]] = {}

    def draw(self, pairs: int, seed: int) -> CalibrationTexts:
        """All queries, or some that have about so many texts together, drawn at random."""
        if sum(map(len, self.texts.values())) <= pairs:
            return self
        drawn: dict[str, Mapping[str, str]] = {}
        for query in sorted(self.texts, key=lambda query: seed_for(seed, "delta", query)):
            if drawn and sum(map(len, drawn.values())) + len(self.texts[query]) > pairs:
                break
            drawn[query] = self.texts[query]
        return CalibrationTexts(drawn, f"{len(drawn)} of {len(self.texts)} queries of {self.source}", self.fields)


def candidates_for_delta(collection: Collection, run: str | None = None) -> CalibrationTexts:
    """The given run, else the collection's BM25 or only run, else its judged documents."""
    name = run or first_stage(collection)
    found: Mapping[str, Iterable[str]] = candidates_of(collection) if name is None else open_run(collection, name).run
    source = "judged documents" if name is None else f"run {name}"
    queries, docs, texts = collection.queries, collection.docs, dict[str, dict[str, str]]()
    for query_id, ids in found.items():
        if query_id in queries:  # two queries of the same text are one to a ranker: it has the candidates of both
            texts.setdefault(queries[query_id], {}).update({d: docs[d] for d in ids if d in docs})
    return CalibrationTexts(texts, f"{source} of {collection.name}", collection.fields)


def calibrate(
    engine: Engine, ranker: Ranker, candidates: Mapping[str, Mapping[str, str]], source: str = "",
    fields: Mapping[str, Mapping[str, Any]] | None = None,
) -> Calibration:  # fmt: skip
    """Score every query's candidates (query text -> doc id -> text); the differences of neighbours in the top ten."""
    listed = [item for texts in candidates.values() for item in texts.items()]
    position = {item: i for i, item in enumerate(dict.fromkeys(listed))}
    doc = np.array([position[item] for item in listed], dtype=np.int32)
    sizes = [len(texts) for texts in candidates.values()]
    query = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    docs, known = [text for _, text in position], DocFields([doc_id for doc_id, _ in position], fields or {})
    scores = engine.score(ranker, list(candidates), docs, query, doc, known)
    reason = scores.failures[0].reason if scores.failures else ""
    found = [np.empty(0)]
    for number in range(len(sizes)):
        here = scores.values[query == number]
        top = np.sort(here[np.isfinite(here)])[::-1][:TOP]
        with np.errstate(over="ignore", invalid="ignore"):  # differences of huge scores may be infinite
            found.append(top[:-1] - top[1:])
    return Calibration(np.sort(np.concatenate(found)), source, reason)


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
    spec: str | None, rankers: Sequence[Ranker], candidates: CalibrationTexts, engine: Engine
) -> dict[str, Threshold]:
    """The delta that `spec` (a number, or a percentile such as p50) means for each ranker.

    Without a spec: the median, and zero for exact studies. No delta is below the ranker's tie tolerance.
    """
    wanted, found = spec or DEFAULT, dict[str, Threshold]()
    for ranker in rankers:
        calibration = None
        ways = "--candidates RUN (make one with 'whyrank rank --out RUN'), --delta-from COLLECTION or --delta VALUE"
        otherwise = f"{candidates.source}: no query has two texts to calibrate delta on; give {ways}"
        if any(len(texts) > 1 for texts in candidates.texts.values()):
            made = calibrate(engine, ranker, candidates.texts, candidates.source, candidates.fields)
            calibration = made if len(made.diffs) else None
            why = f" ({one_line(made.reason)})" if made.reason else ""
            reason = f"ranker {ranker.name!r} gave no two finite scores for any query of {candidates.source}{why}"
            otherwise = f"{reason}, so delta cannot be calibrated; mend it, or give --delta VALUE"
        if calibration is None and is_percentile(wanted):
            raise WhyrankError(otherwise)
        delta = delta_of(wanted, calibration)
        exact = 0.0 if spec is None else delta
        used = Threshold(delta, calibration, exact, given=not is_percentile(wanted))
        found[ranker.name] = used.for_ranker(ranker)
    return found


def given_thresholds(spec: str | None, rankers: Sequence[Ranker]) -> dict[str, Threshold]:
    """Thresholds without a calibration: a number, or for exact studies without a spec zero; or the tie tolerance."""
    delta = 0.0 if spec is None else delta_of(spec, None)
    used = Threshold(delta, exact=delta, origin=EXACT_ONLY if spec is None else "given")
    return {ranker.name: used.for_ranker(ranker) for ranker in rankers}


# Sweeps: how findings change with delta, from no threshold at all to the 99th percentile of the calibration.


class SweepPoint(NamedTuple):
    """The score of one ranker on one study at one percentile of its calibration."""

    study: str
    ranker: str
    percentile: int
    delta: float
    score: float | None


def sweep(answer: Answer, threshold: Threshold) -> list[SweepPoint]:
    """Scores at every percentile from 0 to 99; no score where there are no contrasts."""
    if threshold.calibration is None:
        raise WhyrankError(f"the sweep needs a calibration of {answer.ranker}; give --candidates RUN or --delta-from")
    diffs = np.sort(answer.reading.diffs[answer.reading.finite])
    points = []
    for percentile, delta in threshold.calibration.curve():
        positive = len(diffs) - int(np.searchsorted(diffs, delta, side="right"))
        negative = int(np.searchsorted(diffs, -delta, side="left"))
        score = (positive - negative) / len(diffs) if len(diffs) else None
        points.append(SweepPoint(answer.name, answer.ranker, percentile, delta, score))
    return points


def stable_from(points: Sequence[SweepPoint]) -> dict[str, int | None]:
    """By study, the lowest percentile from which on no two rankers change places (up to the 95th), or None.

    A tie agrees with any order. With a single ranker there is nothing to change.
    """
    scores: dict[str, dict[str, list[float]]] = {}
    for point in points:
        curves = scores.setdefault(point.study, {})
        if point.score is not None:
            curves.setdefault(point.ranker, []).append(point.score)
    return {study: _stable(list(curves.values())) for study, curves in scores.items()}


def _stable(curves: Sequence[Sequence[float]]) -> int | None:
    if len(curves) < 2:
        return None
    signs = np.array([np.sign(np.subtract(a, b)) for a, b in combinations(curves, 2)])
    for start in range(LAST):
        rest = signs[:, start : LAST + 1]
        if not ((rest.max(axis=1) > 0) & (rest.min(axis=1) < 0)).any():
            return start
    return None
