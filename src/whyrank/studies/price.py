"""What an audit costs: how many distinct pairs each ranker has to score, and how long a pair takes it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from whyrank.core import WhyrankError
from whyrank.data import Collection
from whyrank.rankers.fields import DocFields
from whyrank.scoring import whose
from whyrank.studies.catalogue import faults_of
from whyrank.studies.contrasts import index_texts, text_position
from whyrank.studies.pools import candidates_of
from whyrank.studies.runner import Plan

BATCH = 64  # pairs that are scored to see how long a pair takes
USABLE = 0.75  # of a time budget for scoring; the rest is for building, statistics and the report


class Price(NamedTuple):
    """The pairs that each study adds, in the order in which studies are run, and the seconds of a pair by ranker."""

    new: Mapping[str, int]
    seconds: Mapping[str, float]

    @property
    def pairs(self) -> int:
        """How many distinct pairs each ranker has to score at most."""
        return sum(self.new.values())

    def __str__(self) -> str:
        """In words, for people who are about to wait."""
        times = ", ".join(f"{name} {_duration(self.pairs * each)}" for name, each in self.seconds.items())
        return f"up to {self.pairs:,} distinct pairs for each ranker" + (f": {times}" if times else "")


def new_pairs(plan: Plan) -> dict[str, int]:
    """How many pairs each study has that no study before it has, at most: an edit may not apply to a text.

    Studies over the documents of a query list these (`text_ids`) and say whether they make a text of each
    (`makes_texts`); the contrasts of others are made and counted.
    """
    families, known, found = plan.families, set[tuple[str, str]](), dict[str, int]()
    for name in sorted(plan.studies, key=lambda name: families[name]):
        study, before = plan.studies[name], len(known)
        listed, made = getattr(study, "text_ids", None), 0
        if listed is not None:
            texts = listed(plan.collection)
            known.update(texts)
            made = len(texts) if getattr(study, "makes_texts", False) else 0
        else:
            with faults_of(name, study):
                known |= study.contrasts(plan.collection).text_pairs
        found[name] = len(known) - before + made
    return found


def seconds_per_pair(plan: Plan) -> dict[str, float]:
    """How long a pair takes each ranker, measured on a few pairs of the collection; none where it has no pairs.

    Scores of a service are kept, as each costs money; a service of which all are known already costs no time.
    """
    pairs = _some_pairs(plan.collection, plan.seed)
    if len(pairs) < 2:
        return {}
    (queries, query), (doc_ids, doc) = index_texts(q for q, _ in pairs), index_texts(d for _, d in pairs)
    docs, fields = [plan.collection.docs[d] for d in doc_ids], DocFields(doc_ids, plan.collection.fields)
    found = {}
    for ranker in plan.rankers:
        own = plan.engine if whose(ranker) == "a service's" else replace(plan.engine, store=None)
        try:
            own.score(ranker, queries, docs, query[:1], doc[:1], fields)  # loads what there is to load
            start = time.perf_counter()
            scored = own.score(ranker, queries, docs, query[1:], doc[1:], fields).scored
        except WhyrankError:
            continue  # the audit itself says what is wrong
        found[ranker.name] = (time.perf_counter() - start) / (len(pairs) - 1) if scored else 0.0
    return found


def _some_pairs(collection: Collection, seed: int) -> list[tuple[str, str]]:
    """A few pairs of a query and the id of a text, those that are drawn first."""
    members = candidates_of(collection) or candidates_of(collection, "all")
    ids = [(q, d) for q, docs in islice(members.items(), BATCH) for d in docs if q in collection.queries]
    chosen = sorted(ids, key=lambda each: text_position(seed, *each))[:BATCH]
    found = [(collection.queries[q], d) for q, d in chosen if d in collection.docs]
    return found or list(zip(collection.queries.values(), islice(collection.docs, BATCH), strict=False))


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
