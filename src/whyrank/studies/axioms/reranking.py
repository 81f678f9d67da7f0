"""Orders and axioms: orders that axioms are held against, and orders that follow from their preferences."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whyrank.core import Codes, Flags, Floats, UnknownName, Whole, check, generator
from whyrank.data import Collection, Run, ranking
from whyrank.studies.axioms.algebra import check_pairs
from whyrank.studies.axioms.axiom import Axiom, Signs
from whyrank.studies.axioms.expressions import axiom_of
from whyrank.studies.axioms.view import View, Views
from whyrank.studies.pools import Pools, Source, only_run

_GIVEN = "the run to re-rank"
Scores = Mapping[str, Mapping[str, float]]


# Orders as axioms, above all to be combined with others: that of a run, and that of the judgements.


@dataclass(frozen=True, kw_only=True)
class ORIG(Axiom):
    """The text that the run `candidates` ranks higher wins; texts that are not in it say nothing."""

    name = "ORIG"
    favours = "the text that the given run ranks higher"

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """Both are in the run, `a` before `b`."""
        ranks = view.once(("ORIG", self.candidates), lambda: self._ranks(view))
        return np.asarray(ranks[a] < ranks[b])

    def _ranks(self, view: View) -> Floats:
        """The rank of each document; NaN, which is neither less nor more, where it has none."""
        collection, otherwise = view.pool.pools.collection, "axiom ORIG needs candidates=RUN"
        run = view.views.once(("ORIG", self.candidates), lambda: only_run(collection, self.candidates, otherwise))
        rank = {doc_id: i for i, doc_id in enumerate(ranking(run.get(view.pool.query_id, {})))}
        return np.array([rank.get(doc_id, np.nan) for doc_id in view.pool.doc_ids], dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class ORACLE(Axiom):
    """The text that is judged more relevant wins; a text that is not judged counts as non-relevant."""

    name = "ORACLE"
    favours = "the text that is judged more relevant"

    def wins(self, view: View, a: Codes, b: Codes) -> Flags:
        """The grade of `a` is higher; an unjudged document has the non-relevant one."""
        grades, nonrelevant = view.pool.relevance, view.pool.pools.collection.grades.nonrelevant
        known = np.where(np.isnan(grades), nonrelevant, grades)
        return np.asarray(known[a] > known[b])


# Re-ranking: preferences between the documents of a query become an order.


def rerank(
    axiom: Axiom | str,
    collection: Collection,
    run: Scores,
    method: str = "kwiksort",
    seed: int = 0,
    depth: int | None = None,
) -> Run:
    """Order the documents of each query as an axiom prefers them; where it says nothing, the order of the run stays.

    Args:
        axiom: an axiom on two documents, or an expression such as `TFC1 | DIV`; `ORIG` is the order of the run.
        collection: its queries and documents; what is in the run and not here keeps its rank.
        run: query id -> document id -> score.
        method: `kwiksort` (around random pivots) or `tournament` (wins minus losses over all pairs).
        seed: of the pivots.
        depth: only the first so many documents are re-ranked; the others keep their rank.
    """
    if method not in METHODS:
        raise UnknownName("method of re-ranking", method, METHODS)
    stated = axiom_of(axiom)
    check_pairs(stated)
    check("depth", depth, Whole | None)
    deepest = depth or max([1, *map(len, run.values())])
    runs: Any = ChainMap({_GIVEN: run}, collection.runs)  # type: ignore[arg-type]
    source = Source(f"top:{deepest}", _GIVEN, stated.analyzer, stated.max_tokens)
    pools = Pools(replace(collection, runs=runs), source)
    stated, views = replace(stated, candidates=stated.candidates or _GIVEN), Views(pools, collection, stated.stats)
    orders = {query_id: ranking(scores) for query_id, scores in run.items()}
    for pool in pools:
        matrix = stated.matrix(View(pool, views))
        earlier = np.triu(np.ones_like(matrix), 1)
        preferred = np.where(matrix != 0, matrix, earlier - earlier.T)
        order = METHODS[method](preferred, generator(seed, method, pool.query_id))
        moving, following = set(pool.doc_ids), (pool.doc_ids[i] for i in order)
        orders[pool.query_id] = [next(following) if d in moving else d for d in orders[pool.query_id]]
    return {query_id: {d: float(len(order) - i) for i, d in enumerate(order)} for query_id, order in orders.items()}


def kwiksort(preferred: Signs, random: np.random.Generator) -> list[int]:
    """An order of documents from signs between any two: those that beat a random pivot, the pivot, the others."""
    order: list[int] = []
    waiting = [np.arange(len(preferred))]
    while waiting:
        part = waiting.pop()
        if len(part) < 2:
            order += part.tolist()
            continue
        pivot = part[random.integers(len(part))]
        against = preferred[part, pivot]
        waiting += [part[against < 0], np.array([pivot]), part[against > 0]]
    return order


def tournament(preferred: Signs, random: np.random.Generator | None = None) -> list[int]:
    """An order of documents by Copeland score, wins minus losses over all others; ties by number, never at random."""
    score = preferred.sum(axis=1, dtype=np.int64)
    order: list[int] = np.argsort(-score, kind="stable").tolist()
    return order


METHODS: dict[str, Callable[[Signs, np.random.Generator], list[int]]] = {
    "kwiksort": kwiksort,
    "tournament": tournament,
}
