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

from whyrank.core import Floats, UnknownName, WhyrankError, check_whole, generator, mean_interval, seed_for
from whyrank.data import Collection, first_stage, open_run, texts_of
from whyrank.evaluation.effectiveness import Effectiveness, Run, evaluate
from whyrank.scoring import rerank
from whyrank.studies import Plan, or_none
from whyrank.text import Analyzer, Tokens, analyzers

MEASURE, GROUPS = "nDCG@10", 3
RELEVANT = ("random", "mean", "max")
ALL: str = "all"
RETRIEVED: str = "retrieved"


class Share(NamedTuple):
    """The share of a query's distinct terms that its relevant documents have, and the ids of these documents."""

    query_id: str
    share: float
    doc_ids: tuple[str, ...]


class Group(NamedTuple):
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
    chosen = {q: found for q in sorted(collection.qrels) if (found := _relevant(collection, q))}
    if relevant == "random":
        chosen = {q: [found[generator(seed, "overlap", q).integers(len(found))]] for q, found in chosen.items()}
    measured = _measured(collection, chosen, analyzers.create(analyzer))
    return [_share(q, chosen[q], values, relevant) for q, values in measured.items() if not np.isnan(values).any()]


def split(found: Sequence[Share], groups: int = GROUPS, seed: int = 0) -> list[list[Share]]:
    """Groups of ascending share whose sizes differ by at most one; ties go by a hash of the query id."""
    check_whole("groups", groups, 1)
    if len(found) < groups:
        have = f"only {len(found)} of the judged queries have terms and a relevant document with a text"
        raise WhyrankError(f"the overlap split needs a query per group, {groups} at least: {have}")
    ordered = sorted(found, key=lambda share: (share.share, seed_for(seed, "overlap", share.query_id)))
    return [[ordered[i] for i in part] for part in np.array_split(np.arange(len(ordered)), groups)]


def overlap_split(
    collection: Collection,
    runs: Mapping[str, Run],
    candidates: Run | None = None,
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
    measured = evaluate(collection, runs, measures)
    parts = list(_groups(split(shares(collection, analyzer, relevant, seed), groups, seed), candidates))
    base = {row.measure: row for row in measured if row.run == baseline}
    rows = [(row, group, _row(row, group)) for row in measured for group in parts]
    return [
        _against(made, row, base[row.measure], group) if baseline not in (None, row.run) else made
        for row, group, made in rows
    ]


def overlap_of_plan(plan: Plan, candidates: str | None = None, analyzer: str = "lucene") -> list[OverlapRow] | None:
    """The split for the rankers of a plan, each re-ranking the candidates of the first stage.

    `candidates` is a run, by default the one that delta is calibrated on, whose scores the engine's store may have.
    None where there is no such run, or not a query with a relevant document for every group.
    """
    name = candidates or first_stage(plan.collection)
    if name is None or len(shares(plan.collection, analyzer, seed=plan.seed)) < GROUPS:
        return None
    first = open_run(plan.collection, name).run
    runs = {ranker.name: rerank(plan.engine, ranker, plan.collection, first)[0] for ranker in plan.rankers}
    return overlap_split(plan.collection, runs, first, analyzer=analyzer, seed=plan.seed)


def _relevant(collection: Collection, query_id: str) -> list[str]:
    """The relevant documents of a query that exist, sorted, so that the order of judgements decides nothing."""
    judged = collection.qrels[query_id].items() if query_id in collection.queries else ()
    return sorted(d for d, grade in judged if grade >= collection.grades.relevant and d in collection.docs)


def _measured(collection: Collection, chosen: Mapping[str, Sequence[str]], analyzer: Analyzer) -> dict[str, Floats]:
    """By query, the share of its terms that each document has; NaN where it has no terms."""
    queries = analyzer.queries([collection.queries[q] for q in chosen])
    docs = analyzer.docs(texts_of(collection.docs, (d for found in chosen.values() for d in found)))
    edges = np.cumsum([0, *map(len, chosen.values())]).tolist()
    rows = zip(chosen, pairwise(edges), strict=True)
    return {q: _covered(_terms(queries, i), docs, *ends) for i, (q, ends) in enumerate(rows)}


def _covered(terms: set[int], docs: Tokens, start: int, end: int) -> Floats:
    covered = [len(terms & _terms(docs, i)) for i in range(start, end)]
    return np.array(covered, dtype=np.float64) / (len(terms) or np.nan)


def _terms(tokens: Tokens, i: int) -> set[int]:
    return set(tokens.ids[tokens.offsets[i] : tokens.offsets[i + 1]].tolist())


def _share(query_id: str, doc_ids: Sequence[str], values: Floats, relevant: str) -> Share:
    if relevant == "mean":
        return Share(query_id, float(values.mean()), tuple(doc_ids))
    best = int(values.argmax())
    return Share(query_id, float(values[best]), (doc_ids[best],))


def _groups(parts: Sequence[Sequence[Share]], candidates: Run | None) -> Iterator[Group]:
    for number, part in enumerate(parts, 1):
        yield Group(ALL, number, part, part)
    if candidates is not None:
        for number, part in enumerate(parts, 1):
            yield Group(RETRIEVED, number, part, [s for s in part if _found(s, candidates)])


def _found(share: Share, candidates: Run) -> bool:
    return any(doc_id in candidates.get(share.query_id, ()) for doc_id in share.doc_ids)


def _row(row: Effectiveness, group: Group) -> OverlapRow:
    values = _values(row, group)
    low, high = group.whole[0].share, group.whole[-1].share
    return OverlapRow(
        row.run, row.measure, group.queries, group.number, low, high, len(values), *_estimate(values, (0, 1))
    )


def _against(made: OverlapRow, row: Effectiveness, base: Effectiveness, group: Group) -> OverlapRow:
    mean, low, high = _estimate(_values(row, group) - _values(base, group), (-1, 1))
    return replace(made, baseline=base.run, difference=mean, difference_low=low, difference_high=high)


def _values(row: Effectiveness, group: Group) -> Floats:
    return np.array([row.per_query.get(share.query_id, 0.0) for share in group.counted])


def _estimate(values: Floats, bounds: tuple[float, float]) -> tuple[float | None, float | None, float | None]:
    """Mean and interval; None where they are undefined."""
    interval = mean_interval(values, bounds=bounds)
    mean = float(values.mean()) if len(values) else np.nan
    return or_none(mean), or_none(interval.low), or_none(interval.high)
