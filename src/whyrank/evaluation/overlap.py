"""The overlap split: how effective runs are on queries whose relevant document has few, some or most of their terms.

Câmara and Hauff, "Diagnosing BERT with retrieval heuristics", ECIR 2020, figure 1: queries in three groups of equal
size by the share of query terms that occur in a relevant document; effectiveness in each group, over all its queries
and over those whose relevant document was retrieved by the first stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from whyrank.core import Floats, UnknownName, Whole, WhyrankError, check, generator, mean_interval, seed_for
from whyrank.data import Collection, first_stage, open_run, texts_of
from whyrank.evaluation.effectiveness import AnyRun, Effectiveness, default_measures, evaluate
from whyrank.scoring import rerank
from whyrank.studies import Plan, or_none
from whyrank.text import Tokens, analyzers

MEASURE, GROUPS = "nDCG@10", 3
RELEVANT = ("random", "mean", "max")
ALL: str = "all"
RETRIEVED: str = "retrieved"


class Share(NamedTuple):
    """The share of a query's distinct terms that its relevant documents have, and the ids of these documents."""

    query_id: str
    share: float
    doc_ids: tuple[str, ...]


class OverlapGroup(NamedTuple):
    """One group of queries, numbered from the smallest overlap on: the whole group, and those that are counted."""

    queries: str
    number: int
    whole: Sequence[Share]
    counted: Sequence[Share]


@dataclass(frozen=True)
class OverlapRow:
    """The mean of a measure over one group of queries; group 1 has the smallest overlap.

    `queries` is `all`, or `retrieved` for those whose relevant document is among the candidates of the first stage.
    `share_low` and `share_high` bound the shares of the whole group; `ci_low` and `ci_high` bound the mean (interval
    over queries). `difference` is the mean less that of the `baseline`, with an interval of its own.
    """

    run: str
    measure: str
    queries: str
    group: int
    share_low: float
    share_high: float
    n: int
    mean: float | None
    ci_low: float | None = None
    ci_high: float | None = None
    baseline: str | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None


def shares(collection: Collection, analyzer: str = "lucene", relevant: str = "random", seed: int = 0) -> list[Share]:
    """The overlap of every query that has terms and a relevant document with a text, by query id.

    Of several relevant documents, `random` takes one at random (by seed and query), `max` the first of those with the
    largest share, and `mean` the mean over all of them.
    """
    if relevant not in RELEVANT:
        raise UnknownName("choice of relevant documents", relevant, RELEVANT)
    chosen: dict[str, list[str]] = {}
    for query_id in sorted(collection.qrels.keys() & collection.queries.keys()):
        judged = collection.qrels[query_id].items()
        # sorted, so that the order of judgements decides nothing
        docs = sorted(d for d, grade in judged if grade >= collection.grades.relevant and d in collection.docs)
        if docs and relevant == "random":
            docs = [docs[generator(seed, "overlap", query_id).integers(len(docs))]]
        if docs:
            chosen[query_id] = docs
    made = analyzers.create(analyzer)
    queries = _distinct_terms(made.queries([collection.queries[q] for q in chosen]))
    texts = _distinct_terms(made.docs(texts_of(collection.docs, (d for docs in chosen.values() for d in docs))))
    found = []
    for (query_id, docs), terms in zip(chosen.items(), queries, strict=True):
        covered = [len(terms & next(texts)) for _ in docs]
        if terms:
            values = np.array(covered, dtype=np.float64) / len(terms)
            best = int(values.argmax())
            of_best = Share(query_id, float(values[best]), (docs[best],))
            found.append(Share(query_id, float(values.mean()), tuple(docs)) if relevant == "mean" else of_best)
    return found


def _distinct_terms(tokens: Tokens) -> Iterator[set[int]]:
    """The different terms of each text."""
    return (set(tokens.ids[start:end].tolist()) for start, end in pairwise(tokens.offsets.tolist()))


def split(found: Sequence[Share], groups: int = GROUPS, seed: int = 0) -> list[list[Share]]:
    """Groups of ascending share whose sizes differ by at most one; ties go by a hash of the query id."""
    check("groups", groups, Whole)
    if len(found) < groups:
        have = f"only {len(found)} of the judged queries have terms and a relevant document with a text"
        raise WhyrankError(f"the overlap split needs a query per group, {groups} at least: {have}")
    ordered = sorted(found, key=lambda share: (share.share, seed_for(seed, "overlap", share.query_id)))
    return [[ordered[i] for i in part] for part in np.array_split(np.arange(len(ordered)), groups)]


def overlap_split(
    collection: Collection,
    runs: Mapping[str, AnyRun],
    candidates: AnyRun | None = None,
    *,
    measures: Sequence[str] = (MEASURE,),
    groups: int = GROUPS,
    analyzer: str = "lucene",
    relevant: str = "random",
    baseline: str | None = None,
    seed: int = 0,
) -> list[OverlapRow]:
    """The effectiveness of every run in every group; without `candidates` over all queries only.

    A query that a run lacks counts as zero. With a `baseline`, the rows of the other runs have the difference to it.
    """
    if baseline is not None and baseline not in runs:
        raise WhyrankError(f"the baseline {baseline!r} is not among the runs: {', '.join(runs)}")
    measured = evaluate(runs, collection, measures)
    parts = split(shares(collection, analyzer, relevant, seed), groups, seed)
    cells = [OverlapGroup(ALL, number, part, part) for number, part in enumerate(parts, 1)]
    if candidates is not None:
        for number, part in enumerate(parts, 1):
            retrieved = [s for s in part if any(d in candidates.get(s.query_id, ()) for d in s.doc_ids)]
            cells.append(OverlapGroup(RETRIEVED, number, part, retrieved))
    base = {row.measure: row for row in measured if row.run == baseline}
    return [
        _row(row, group, base[row.measure] if baseline not in (None, row.run) else None)
        for row in measured
        for group in cells
    ]


class PlanEffectiveness(NamedTuple):
    """How effective the rankers of a plan are, and the overlap split, empty with too few queries for its groups."""

    measured: list[Effectiveness]
    overlap: list[OverlapRow]


def effectiveness_of_plan(
    plan: Plan, candidates: str | None = None, analyzer: str = "lucene"
) -> PlanEffectiveness | None:
    """The effectiveness of the rankers of a plan, each re-ranking the candidates of the first stage.

    `candidates` is a run, by default the one that delta is calibrated on, whose scores the engine's store may have.
    None where there is no such run, or nothing is judged.
    """
    name = candidates or first_stage(plan.collection)
    if name is None or not plan.collection.qrels:
        return None
    first = open_run(plan.collection, name).run
    runs = {ranker.name: rerank(plan.engine, ranker, plan.collection, first)[0] for ranker in plan.rankers}
    measured = evaluate(runs, plan.collection, default_measures(plan.collection))
    if len(shares(plan.collection, analyzer, seed=plan.seed)) < GROUPS:
        return PlanEffectiveness(measured, [])
    return PlanEffectiveness(measured, overlap_split(plan.collection, runs, first, analyzer=analyzer, seed=plan.seed))


def _row(row: Effectiveness, group: OverlapGroup, base: Effectiveness | None) -> OverlapRow:
    values = _values(row, group)
    low, high = group.whole[0].share, group.whole[-1].share
    found = OverlapRow(
        row.run, row.measure, group.queries, group.number, low, high, len(values), *_estimate(values, (0, 1))
    )
    if base is None:
        return found
    mean, low_end, high_end = _estimate(values - _values(base, group), (-1, 1))
    return replace(found, baseline=base.run, difference=mean, difference_low=low_end, difference_high=high_end)


def _values(row: Effectiveness, group: OverlapGroup) -> Floats:
    return np.array([row.per_query.get(share.query_id, 0.0) for share in group.counted])


def _estimate(values: Floats, bounds: tuple[float, float]) -> tuple[float | None, float | None, float | None]:
    """Mean and interval; None where they are undefined."""
    interval = mean_interval(values, bounds=bounds)
    mean = float(values.mean()) if len(values) else None
    return mean, or_none(interval.low), or_none(interval.high)
