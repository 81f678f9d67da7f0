"""Fidelity on a collection: targets and surrogates score the same candidates, and are compared query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from whyrank.core import Ranker
from whyrank.data import Collection, Run
from whyrank.evaluation.effectiveness import Effectiveness, evaluate
from whyrank.evaluation.fidelity.agreement import KS, PerQuery, compare_common, compare_runs
from whyrank.evaluation.fidelity.rows import Cell, Pair
from whyrank.scoring import Engine, Failure, scored

MEASURE = "nDCG@10"


@dataclass(frozen=True, eq=False)
class Compared:
    """What was found on one collection.

    Attributes:
        collection: the collection.
        candidates: the documents that were scored, by query.
        runs: the scores of every ranker, by its name.
        cells: by target and surrogate, their fidelity per query.
        failures: pairs without a finite score.
        identities: what the scores of every ranker depend on, by its name.
    """

    collection: Collection
    candidates: Run
    runs: Mapping[str, Run]
    cells: Mapping[Cell, PerQuery]
    failures: list[Failure] = field(default_factory=list)
    identities: Mapping[str, str] = field(default_factory=dict)


def compare_rankers(
    collection: Collection, targets: Sequence[Ranker], surrogates: Sequence[Ranker], candidates: Run, engine: Engine,
    ks: Sequence[int] = KS, missing: str = "drop",
) -> Compared:  # fmt: skip
    """Score the candidates with every ranker, and compare every surrogate with every target."""
    runs: dict[str, Run] = {}
    failures: list[Failure] = []
    rankers = {ranker.name: ranker for ranker in (*targets, *surrogates)}
    for name, ranker in rankers.items():
        runs[name], failed = scored(engine, ranker, collection, candidates)
        failures += failed
    cells = {
        (target.name, surrogate.name): compare_runs(runs[target.name], runs[surrogate.name], ks, missing)
        for target in targets
        for surrogate in surrogates
    }
    return Compared(collection, candidates, runs, cells, failures, {name: repr(r) for name, r in rankers.items()})


def common_pairs(found: Compared, baseline: str, ks: Sequence[int] = KS) -> dict[Cell, Pair]:
    """For surrogates that have scored other documents than the baseline: both, over those that both have scored.

    Over fewer documents a correlation is another one, however faithful the surrogate.
    """
    documents = {name: {q: set(docs) for q, docs in run.items()} for name, run in found.runs.items()}
    other = [cell for cell in found.cells if documents[cell[1]] != documents[baseline]]
    return {
        (target, name): compare_common(found.runs[target], found.runs[name], found.runs[baseline], ks)
        for target, name in other
    }


def effectiveness(
    found: Compared, baseline: str | None, measure: str = MEASURE, correction: str = "holm", seed: int = 0
) -> list[Effectiveness]:
    """How well every ranker ranks the candidates by the judgements; nothing where there are none."""
    if not found.collection.qrels:
        return []
    return evaluate(found.collection, found.runs, [measure], baseline, correction, seed)
