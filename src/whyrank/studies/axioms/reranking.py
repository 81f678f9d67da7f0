"""Re-ranking by an axiom: its preferences between the documents of a query become an order."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from whyrank.core import UnknownName, check_whole, generator
from whyrank.data import Collection, Run, ranking
from whyrank.studies.axioms.algebra import check_pairs
from whyrank.studies.axioms.axiom import Axiom, Signs
from whyrank.studies.axioms.expressions import axiom_of
from whyrank.studies.axioms.view import View, Views
from whyrank.studies.pools import Pools, Source

_GIVEN = "the run to re-rank"
Scores = Mapping[str, Mapping[str, float]]


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
        collection: its queries and documents; what is in the run and not here keeps its place.
        run: query id -> document id -> score.
        method: `kwiksort` (around random pivots) or `tournament` (wins minus losses over all pairs).
        seed: of the pivots.
        depth: only the first so many documents are re-ranked; the others keep their place.
    """
    if method not in METHODS:
        raise UnknownName("method of re-ranking", method, METHODS)
    asked, views = _setting(axiom, collection, run, depth)
    found = {query_id: _descending(ranking(scores)) for query_id, scores in run.items()}
    for pool in views.pools:
        preferred = _decided(asked.matrix(View(pool, views)))
        order = METHODS[method](preferred, generator(seed, method, pool.query_id))
        found[pool.query_id] = _descending(_moved(list(found[pool.query_id]), [pool.doc_ids[i] for i in order]))
    return found


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


def _setting(axiom: Axiom | str, collection: Collection, run: Scores, depth: int | None) -> tuple[Axiom, Views]:
    """The axiom, and what it sees: for each query the first documents of the run."""
    asked = axiom_of(axiom)
    check_pairs(asked)
    if depth is not None:
        check_whole("depth", depth, 1)
    deepest = depth or max([1, *map(len, run.values())])
    runs: Any = ChainMap({_GIVEN: run}, collection.runs)  # type: ignore[arg-type]
    source = Source(f"top:{deepest}", _GIVEN, asked.analyzer, asked.max_tokens)
    pools = Pools(replace(collection, runs=runs), source)
    return replace(asked, candidates=asked.candidates or _GIVEN), Views(pools, collection, asked.stats)


def _decided(matrix: Signs) -> Signs:
    """Signs between any two documents of a ranking: those of the matrix, and where it is 0 the order itself."""
    earlier = np.triu(np.ones_like(matrix), 1)
    return np.where(matrix != 0, matrix, earlier - earlier.T)


def _moved(doc_ids: Sequence[str], order: Sequence[str]) -> list[str]:
    """A ranking in which some documents stand in another order, on the places that they had together."""
    moving, following = set(order), iter(order)
    return [next(following) if doc_id in moving else doc_id for doc_id in doc_ids]


def _descending(doc_ids: Sequence[str]) -> dict[str, float]:
    """Scores that give this order: n, n - 1, ..., 1."""
    return {doc_id: float(len(doc_ids) - i) for i, doc_id in enumerate(doc_ids)}
