"""Fidelity: how well the scores of one ranker stand in for those of another, query by query.

    found = compare_runs(target, surrogate)  # runs: query id -> document id -> score
    found.values["pearson"]

Per query, over the documents that both have scored:

- pearson: Pearson's correlation of the two lists of scores;
- kendall: Kendall's tau-b, which makes allowance for ties (Kendall, The treatment of ties in ranking problems,
  Biometrika 33, 1945), in O(n log n) (Knight, JASA 61, 1966);
- agreement: of the pairs of documents that the target does not tie, the share that the surrogate orders the same way,
  half of those that it ties included: (d + 1) / 2 with Somers' d of the surrogate given the target. Where the target
  ties no pair, that is (tau-a + 1) / 2;
- topK: the share of the target's best K documents that are among the surrogate's best K. Ties at the border are
  broken at random, and the expected share is taken.

A list that is constant, or of fewer than two documents, orders nothing: all are undefined (NaN). So is topK for K
documents or fewer, which every list has on top.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from whyrank.core import Floats, Ints, Ranker, UnknownName, Whole, WhyrankError, check
from whyrank.data import Collection, Run
from whyrank.evaluation.effectiveness import AnyRun
from whyrank.evaluation.fidelity import kernels
from whyrank.scoring import Engine, Failure, score_candidates

Scores = Mapping[str, float]
KS = (10, 100)
MISSING = ("drop", "zero")
ORDERS = ("pearson", "kendall", "agreement")
Cell = tuple[str, str]  # target, surrogate


@dataclass(frozen=True, eq=False)
class PerQuery:
    """The fidelity of one surrogate to one target for every query; NaN where it is undefined.

    Attributes:
        queries: their ids.
        documents: how many documents were compared.
        one_sided: how many only one of the two had scored.
        values: by measure, one value per query.
    """

    queries: Sequence[str]
    documents: Ints
    one_sided: Ints
    values: Mapping[str, Floats]


def measures_of(ks: Sequence[int] = KS) -> list[str]:
    """The names of all measures."""
    return [*ORDERS, *(f"top{k}" for k in ks)]


def check_settings(ks: Sequence[int], missing: str) -> None:
    """Raise an error for settings that make no sense."""
    if missing not in MISSING:
        raise UnknownName("treatment of missing documents", missing, MISSING)
    for k in ks:
        check("k", k, Whole)
    if len(set(ks)) < len(ks):
        raise WhyrankError(f"k = {', '.join(map(str, ks))}: give each k once")


def compare_runs(target: AnyRun, surrogate: AnyRun, ks: Sequence[int] = KS, missing: str = "drop") -> PerQuery:
    """Compare the scores of two runs, for every query that one of them has.

    Args:
        target: the scores to be explained.
        surrogate: the scores that stand in for them.
        ks: of the overlaps.
        missing: what becomes of a document that only one of the two has scored: `drop` leaves it out, `zero` gives
            it the score 0 on the other side. A score that is not finite counts as missing.
    """
    check_settings(ks, missing)
    queries = list(dict.fromkeys([*target, *surrogate]))
    lists = [_align(target.get(q, {}), surrogate.get(q, {}), missing) for q in queries]
    documents = np.array([len(x) for x, _, _ in lists], np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(documents)])
    x, y = (np.concatenate([np.zeros(0), *(each[side] for each in lists)]) for side in (0, 1))
    out = np.empty((len(queries), len(ORDERS) + len(ks)))
    most = int(documents.max(initial=0))  # for a larger k every overlap is undefined
    kernels.compare(x, y, offsets, np.array([min(k, most) for k in ks], np.int64), out)
    values = {name: out[:, i].copy() for i, name in enumerate(measures_of(ks))}
    return PerQuery(queries, documents, np.array([alone for _, _, alone in lists], np.int64), values)


def _align(target: Scores, surrogate: Scores, missing: str) -> tuple[Floats, Floats, int]:
    """The two lists of scores of the same documents, and how many documents only one side has."""
    x, y = _finite(target), _finite(surrogate)
    common = x.keys() & y.keys() if len(x) != len(y) or x.keys() != y.keys() else x.keys()
    alone = len(x) + len(y) - 2 * len(common)
    kept = [d for d in x if d in common] if missing == "drop" else list({**x, **y})
    one, other = (np.fromiter((side.get(d, 0.0) for d in kept), np.float64, len(kept)) for side in (x, y))
    return one, other, alone


def _finite(scores: Scores) -> Scores:
    """The scores that are numbers: a ranker that fails on a text has none for it."""
    if all(map(math.isfinite, scores.values())):
        return scores
    return {d: s for d, s in scores.items() if math.isfinite(s)}


@dataclass(frozen=True, eq=False)
class Comparison:
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
) -> Comparison:  # fmt: skip
    """Score the candidates with every ranker, and compare every surrogate with every target."""
    runs: dict[str, Run] = {}
    failures: list[Failure] = []
    rankers = {ranker.name: ranker for ranker in (*targets, *surrogates)}
    for name, ranker in rankers.items():
        runs[name], failed = score_candidates(engine, ranker, collection, candidates)
        failures += failed
    cells = {
        (target.name, surrogate.name): compare_runs(runs[target.name], runs[surrogate.name], ks, missing)
        for target in targets
        for surrogate in surrogates
    }
    return Comparison(collection, candidates, runs, cells, failures, {name: repr(r) for name, r in rankers.items()})


def common_pairs(found: Comparison, baseline: str, ks: Sequence[int] = KS) -> dict[Cell, tuple[PerQuery, PerQuery]]:
    """For surrogates that have scored other documents than the baseline: both, over those that both have scored.

    Over fewer documents a correlation is another one, however faithful the surrogate.
    """
    documents = {name: {q: set(docs) for q, docs in run.items()} for name, run in found.runs.items()}
    base, pairs = found.runs[baseline], {}
    for target, name in found.cells:
        if documents[name] != documents[baseline]:
            own, run = found.runs[target], found.runs[name]
            both = compare_runs(own, _within(run, base), ks), compare_runs(own, _within(base, run), ks)
            pairs[target, name] = both
    return pairs


def _within(run: AnyRun, other: AnyRun) -> AnyRun:
    """A run with those documents alone that another one has scored too."""
    known = {query: _finite(other.get(query, {})) for query in run}
    return {query: {d: s for d, s in docs.items() if d in known[query]} for query, docs in run.items()}
