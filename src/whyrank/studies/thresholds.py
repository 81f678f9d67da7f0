"""A delta per ranker: calibrated on the candidates of a collection, or given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from whyrank.core import Ranker, Study, WhyrankError
from whyrank.data import Collection, first_stage, open_run
from whyrank.scoring import Engine, one_line
from whyrank.studies import calibrate
from whyrank.studies.delta import delta_of, is_percentile, texts_of_run
from whyrank.studies.pools import candidates_of
from whyrank.studies.runner import Threshold, is_exact

DEFAULT = "p50"
EXACT_ONLY = "none needed, because only axioms are asked"


class Candidates(NamedTuple):
    """Texts to calibrate on: query text -> document id -> text; and where they come from, in words."""

    texts: Mapping[str, Mapping[str, str]]
    source: str


def candidates_for_delta(collection: Collection, run: str | None = None) -> Candidates:
    """The given run, else the collection's BM25 or only run, else its judged documents."""
    name = run or first_stage(collection)
    if name is None:
        found = candidates_of(collection)
        return Candidates(
            texts_of_run(found, collection.queries, collection.docs), f"judged documents of {collection.name}"
        )
    scores = open_run(collection, name).run
    return Candidates(texts_of_run(scores, collection.queries, collection.docs), f"run {name} of {collection.name}")


def needs_calibration(spec: str | None, studies: Iterable[Study]) -> bool:
    """Whether delta has to be calibrated: for a percentile, and without a spec unless all studies are exact."""
    return not all(map(is_exact, studies)) if spec is None else is_percentile(spec)


def thresholds(
    spec: str | None, rankers: Sequence[Ranker], candidates: Candidates | None, engine: Engine
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


def _threshold(spec: str, ranker: Ranker, candidates: Candidates | None, engine: Engine) -> Threshold:
    if candidates is None:
        return Threshold(delta_of(spec, None))
    if not any(len(texts) > 1 for texts in candidates.texts.values()):
        ways = "--candidates RUN (make one with 'whyrank rank --out RUN'), --delta-from COLLECTION or --delta VALUE"
        return Threshold(
            _number(spec, f"{candidates.source}: no query has two texts to calibrate delta on; give {ways}")
        )
    calibration = calibrate(engine, ranker, candidates.texts, source=candidates.source)
    if not len(calibration.diffs):
        why = f" ({one_line(calibration.reason)})" if calibration.reason else ""
        reason = f"ranker {ranker.name!r} gave no two finite scores for any query of {candidates.source}{why}"
        return Threshold(_number(spec, f"{reason}, so delta cannot be calibrated; mend it, or give --delta VALUE"))
    return Threshold(delta_of(spec, calibration), calibration, given=not is_percentile(spec))


def _number(spec: str, otherwise: str) -> float:
    """A delta that is a number and needs no calibration; what to say where it is a percentile."""
    if is_percentile(spec):
        raise WhyrankError(otherwise)
    return delta_of(spec, None)
