"""Tuning: search a ranker's parameters on the queries of a development split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from whyrank.core import Call, Ranker, WhyrankError, generator, parse_call, track
from whyrank.data import Collection
from whyrank.evaluation.effectiveness import AnyRun, evaluate
from whyrank.rankers import Setting, open_ranker
from whyrank.rankers.lexical import LexicalIndex, LexicalRanker
from whyrank.scoring import Engine, rerank, rescore
from whyrank.tables import open_table

MOST = 1_000  # values of one parameter
BM25_GRID: Mapping[str, Sequence[float]] = {
    "k1": (0.6, 0.9, 1.2, 1.5, 2.0),
    "b": (0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9),
}
# model1: the grid of Boytsov and Kolter, "Exploring classic and neural lexical translation models", ECIR 2021
# qlt: that of Kim, Rahimi and Allan, EMNLP 2024
DEFAULT_GRIDS: Mapping[str, Mapping[str, Sequence[float]]] = {
    "bm25": BM25_GRID,
    "bm25t": BM25_GRID,
    "ql": {"mu": (100.0, 250.0, 500.0, 1000.0, 1500.0, 2500.0)},
    "qlt": {"mu": (10.0, 100.0, 500.0, 2000.0)},
    "model1": {
        "p_self": (0.05, 0.1, 0.15, 0.25, 0.3, 0.35, 0.45, 0.5, 0.55, 0.6, 0.7, 0.75),
        "lam": (0.05, 0.1, 0.15, 0.25, 0.3, 0.35, 0.45, 0.5),
    },
}


class Trial(NamedTuple):
    """One setting of the parameters, and its mean measure on the development and on the held-out queries."""

    ranker: str
    parameters: Mapping[str, Any]
    dev: float
    test: float | None


class Split(NamedTuple):
    """The queries to tune on, and those held out (none when all are used)."""

    dev: Collection
    test: Collection | None


def tune(spec: str, grid: Mapping[str, Sequence[Any]], split: Split, measure: str, runner: Runner) -> list[Trial]:
    """Measure every combination of the grid, best on the development queries first; ties keep the grid's order."""
    call = parse_call(spec)
    settings = list(combinations(grid)) if grid else _default_settings(call)
    if not any(settings):
        raise WhyrankError(f"there is no default grid for {call.name!r}; give one with --grid NAME=V1,V2,...")

    def mean(ranker: str, collection: Collection) -> float:
        return evaluate({ranker: runner.run(ranker, collection)}, collection, [measure])[0].mean

    trials = []
    for chosen in track(settings, "tuning", len(settings)):
        ranker = str(call._replace(arguments={**call.arguments, **chosen}))
        dev = mean(ranker, split.dev)
        trials.append(Trial(ranker, chosen, dev, mean(ranker, split.test) if split.test else None))
    return sorted(trials, key=lambda trial: -trial.dev)


def _default_settings(call: Call) -> list[dict[str, Any]]:
    """The default grid; first what a table says of itself, whose own p_self is not added a second time."""
    grid = dict(DEFAULT_GRIDS.get(call.name, {}))
    if call.name != "model1" or not call.resource:
        return list(combinations(grid))
    own = grid.keys() & open_table(call.resource).facts.keys()
    given = grid.keys() & call.arguments.keys()
    if "p_self" in own:
        del grid["p_self"]
    return [*([{}] if own or given else []), *combinations(grid)]


def combinations(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every combination of the values of a grid."""
    return (dict(zip(grid, values, strict=True)) for values in product(*grid.values()))


def split_queries(collection: Collection, share: float, seed: int) -> Split:
    """A seeded random share of the judged queries to tune on, the rest held out."""
    if not 0 < share <= 1:
        raise WhyrankError(f"the development share must lie above 0 and at most 1, not {share}")
    judged = sorted(q for q in collection.qrels if q in collection.queries)
    order = generator(seed, "split").permutation(len(judged))
    dev = {judged[i] for i in order[: max(1, round(share * len(judged)))]}
    rest = set(judged) - dev

    def only(queries: set[str]) -> Collection:
        kept = {q: text for q, text in collection.queries.items() if q in queries}
        return replace(collection, queries=kept, qrels={q: v for q, v in collection.qrels.items() if q in queries})

    return Split(only(dev), only(rest) if rest else None)


class Runner:
    """Makes the run of a ranker for a collection: re-ranks given candidates, or retrieves."""

    def __init__(self, engine: Engine, setting: Setting, candidates: AnyRun | None, depth: int) -> None:
        self.engine, self.setting, self.depth = engine, setting, depth
        self._candidates = candidates
        self._index: LexicalIndex | None = None

    def run(self, spec: str, collection: Collection) -> AnyRun:
        """The run of the ranker that a call string describes."""
        ranker = open_ranker(spec, self.setting)
        if not isinstance(ranker, LexicalRanker):
            return rerank(self.engine, ranker, collection, self.candidates(collection))[0]
        index = self._indexed(ranker)
        if self._candidates is None and ranker.retrieves:
            return index.search(collection.queries, self.depth)
        return rescore(index, collection.queries, self.candidates(collection))

    def candidates(self, collection: Collection) -> AnyRun:
        """The candidates of a collection's queries: the given ones, else those that BM25 with defaults retrieves."""
        if self._candidates is None:
            index = self._indexed(open_ranker("bm25", self.setting))
            every = self.setting.collection.queries if self.setting.collection else {}
            self._candidates = index.search(every, self.depth)
        return {q: docs for q, docs in self._candidates.items() if q in collection.queries}

    def _indexed(self, ranker: Ranker) -> LexicalIndex:
        if not isinstance(ranker, LexicalRanker) or self.setting.collection is None:
            raise WhyrankError(f"{ranker.name} needs a collection to retrieve from")
        if self._index is None or self._index.ranker.analyzer != ranker.analyzer:
            self._index = LexicalIndex.of(ranker, self.setting.collection.docs)
        return self._index.using(ranker)


def parse_grid(text: str) -> tuple[str, list[float]]:
    """Parse `k1=0.6,0.9,1.2` or `k1=0.6:1.2:0.3` (from, to, step; both ends included)."""
    name, _, values = text.partition("=")
    try:
        # a whole number where it is written so, for parameters that count something
        written = [v.strip() for v in values.replace(":", ",").split(",")]
        parts = [int(v) if v.isdecimal() and v.isascii() else float(v) for v in written]
    except ValueError:
        parts = []
    if not name or not parts or (":" in values and (len(parts) != 3 or parts[2] <= 0)):
        raise WhyrankError(f"--grid {text!r}: write NAME=V1,V2,... or NAME=FROM:TO:STEP")
    if ":" not in values:
        return name, parts
    if not 0 <= (parts[1] - parts[0]) / parts[2] <= MOST:
        raise WhyrankError(
            f"--grid {text!r}: from must not lie above to, and at most {MOST:,} steps fit between them"
        )
    count = int(np.floor((parts[1] - parts[0]) / parts[2] + 1e-9)) + 1
    return name, [round(parts[0] + i * parts[2], 10) for i in range(max(count, 1))]
