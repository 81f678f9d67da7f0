"""A trial before anything long runs: a study that is not ours fails on two contrasts, and not after hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

import numpy as np

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.studies.catalogue import faults_of, is_own
from whyrank.studies.contrasts import Contrasts
from whyrank.studies.reading import Context, Reading, reading_of
from whyrank.studies.runner import Plan

TRIED = 2  # queries, or contrasts
_DOCS = 20  # documents of each of these queries


def try_out(plan: Plan) -> None:
    """Build and read two contrasts of each study that is not ours, with scores that mean nothing.

    A ranker needs no trial: the engine gives one up that scores none of the first pairs.
    """
    own = {name: study for name, study in plan.studies.items() if is_own(study)}
    some = excerpt(plan.collection) if own else plan.collection
    for name, study in own.items():
        with faults_of(name, study):
            try:
                few = study.contrasts(some)
            except Exception:  # it may need more than an excerpt
                few = study.contrasts(plan.collection)
            if not isinstance(few, Contrasts):
                raise WhyrankError(
                    f"study {name!r}: contrasts() returns {type(few).__name__}, not Contrasts (Contrasts.from_pairs)"
                )
            few = few.take(slice(TRIED))
            scores = np.arange(few.doc.size, dtype=np.float64).reshape(few.doc.shape)
            reading = Reading.of(few, scores, 0.0, study.symmetric)
            context = Context("trial", plan.collection.name, 0.0, study=name, draws=TRIED)
            reading_of(study).read(study, few, reading, context)


def excerpt(collection: Collection) -> Collection:
    """The first judged queries of a collection, or the first ones, with some of their documents."""
    named = [query for query in collection.qrels if query in collection.queries] or list(collection.queries)
    queries = {query: collection.queries[query] for query in named[:TRIED]}
    qrels = {query: dict(islice(collection.qrels.get(query, {}).items(), _DOCS)) for query in queries}
    runs = {
        name: {query: dict(islice(run[query].items(), _DOCS)) for query in queries if query in run}
        for name, run in collection.runs.items()
    }
    lists: list[Mapping[str, Mapping[str, float]]] = [qrels, *runs.values()]
    ids = {doc for each in lists for docs in each.values() for doc in docs}
    docs = {doc: collection.docs[doc] for doc in ids if doc in collection.docs}
    docs = docs or dict(islice(collection.docs.items(), _DOCS))
    return replace(collection, docs=docs, queries=queries, qrels=qrels if collection.qrels else {}, runs=runs)
