"""A delta per ranker: calibrated on the candidates of a collection, or given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from whyrank.audit.runner import Threshold
from whyrank.contrasts import calibrate
from whyrank.contrasts.delta import delta_of, is_percentile, texts_of_run
from whyrank.contrasts.pools import candidates_of
from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Ranker
from whyrank.data import Collection, open_run
from whyrank.scoring import Engine


class Candidates(NamedTuple):
    """Texts to calibrate on: query text -> document id -> text; and where they come from, in words."""

    texts: Mapping[str, Mapping[str, str]]
    source: str


def candidates_for_delta(collection: Collection, run: str | None = None) -> Candidates:
    """The given run, else the collection's BM25 or only run, else its judged documents."""
    name = run or _own_run(collection)
    if name is None:
        found = candidates_of(collection)
        return Candidates(
            texts_of_run(found, collection.queries, collection.docs), f"judged documents of {collection.name}"
        )
    scores = open_run(collection, name).run
    return Candidates(texts_of_run(scores, collection.queries, collection.docs), f"run {name} of {collection.name}")


def thresholds(
    spec: str, rankers: Sequence[Ranker], candidates: Candidates | None, engine: Engine
) -> dict[str, Threshold]:
    """The delta that `spec` (a number, or a percentile such as p50) means for each ranker."""
    return {ranker.name: _threshold(spec, ranker, candidates, engine) for ranker in rankers}


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
        reason = f"ranker {ranker.name} gave no two finite scores for any query of {candidates.source}"
        return Threshold(_number(spec, f"{reason}, so delta cannot be calibrated; mend it, or give --delta VALUE"))
    return Threshold(delta_of(spec, calibration), calibration)


def _number(spec: str, otherwise: str) -> float:
    """A delta that is a number and needs no calibration; what to say where it is a percentile."""
    if is_percentile(spec):
        raise WhyrankError(otherwise)
    return delta_of(spec, None)


def _own_run(collection: Collection) -> str | None:
    names = list(collection.runs)
    plain = [name for name in names if name.lower().split(".")[0] == "bm25"]
    return (plain or names)[0] if plain or len(names) == 1 else None
