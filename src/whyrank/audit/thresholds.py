"""A delta per ranker: calibrated on the candidates of a collection, or given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from whyrank.audit.runner import Threshold
from whyrank.contrasts import calibrate
from whyrank.contrasts.delta import delta_of, texts_of_run
from whyrank.contrasts.pools import candidates_of
from whyrank.core.protocols import Ranker
from whyrank.data import Collection
from whyrank.data.trec import read_run
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
    scores = collection.runs[name] if name in collection.runs else read_run(name)
    return Candidates(texts_of_run(scores, collection.queries, collection.docs), f"run {name} of {collection.name}")


def thresholds(
    spec: str, rankers: Sequence[Ranker], candidates: Candidates | None, engine: Engine
) -> dict[str, Threshold]:
    """The delta that `spec` (a number, or a percentile such as p50) means for each ranker."""
    return {ranker.name: _threshold(spec, ranker, candidates, engine) for ranker in rankers}


def _threshold(spec: str, ranker: Ranker, candidates: Candidates | None, engine: Engine) -> Threshold:
    if candidates is None or not any(len(texts) > 1 for texts in candidates.texts.values()):
        return Threshold(delta_of(spec, None))
    calibration = calibrate(engine, ranker, candidates.texts, source=candidates.source)
    return Threshold(delta_of(spec, calibration), calibration)


def _own_run(collection: Collection) -> str | None:
    names = list(collection.runs)
    plain = [name for name in names if name.lower().split(".")[0] == "bm25"]
    return (plain or names)[0] if plain or len(names) == 1 else None
