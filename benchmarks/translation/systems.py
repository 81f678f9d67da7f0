"""Each system of the comparison: its parts, their parameters from dev, its weights from the fusion part, its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from indexed import Run, Texts, added, pool_of
from targets import Target

from whyrank.core import Call, parse_call
from whyrank.data import Collection
from whyrank.evaluation import evaluate
from whyrank.evaluation.effectiveness import measure_of
from whyrank.evaluation.fusion import DEPTH as WEIGHED
from whyrank.evaluation.fusion.ascent import fit
from whyrank.evaluation.fusion.objectives import objective_of, ties_ascend
from whyrank.evaluation.tuning import DEFAULT_GRIDS
from whyrank.tables import open_table

QUERIES = 300  # of a part, to tune on
GRID = {"p_self": (0.05, 0.15, 0.3, 0.5, 0.7), "lam": (0.05, 0.15, 0.3, 0.5)}


@dataclass(frozen=True, eq=False)
class Work:
    """What one target needs, and what was found for it."""

    target: Target
    texts: Texts
    candidates: dict[str, Run] = field(default_factory=dict)
    tuned: dict[str, str] = field(default_factory=dict)
    weights: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def part(self, name: str) -> tuple[Collection, Run]:
        collection = getattr(self.target, name)
        if name not in self.candidates:
            self.candidates[name] = self.texts.search("lucene", collection.queries)
        return collection, self.candidates[name]

    def run(self, specs: Sequence[str], name: str) -> list[Run]:
        collection, candidates = self.part(name)
        return [self.texts.scores(spec, collection.queries, candidates) for spec in specs]


def tuned(work: Work, spec: str, like: Work | None) -> str:
    """A part with the parameters that are best on dev; from another target where there is no dev part."""
    if spec not in work.tuned:
        source = work if work.target.dev is not None else like
        work.tuned[spec] = source.tuned[spec] if source is not work else best_on_dev(work, spec)
    return work.tuned[spec]


def best_on_dev(work: Work, spec: str) -> str:
    call, measure = parse_call(spec), work.target.measures[0]
    grid = grid_of(call)
    collection, candidates = work.part("dev")
    some = dict(list(candidates.items())[:QUERIES])
    judged = {q: collection.qrels[q] for q in some if q in collection.qrels}
    fewer = Collection.of(collection.docs, {q: collection.queries[q] for q in some}, judged, name=collection.name)
    values = {}
    for chosen in product(*grid.values()):
        made = str(call._replace(arguments={**call.arguments, **dict(zip(grid, chosen, strict=True))}))
        values[made] = evaluate(fewer, {"": work.texts.scores(made, fewer.queries, some)}, [measure])[0].mean
    return max(values, key=values.get) if values else spec


def grid_of(call: Call) -> Mapping[str, Sequence[float]]:
    """BM25's default grid, a coarser one of the published values for Model 1, none for the table of a network."""
    if call.name != "model1":
        return DEFAULT_GRIDS[call.name]
    return {} if open_table(str(call.resource)).facts.get("lam") == 0 else GRID


def fused(work: Work, specs: Sequence[str], like: Work | None) -> tuple[float, ...]:
    """Weights from the fusion part; from another target where there is none. One part needs none."""
    if len(specs) == 1:
        return (1.0,)
    key = " + ".join(specs)
    if key not in work.weights:
        source = work if work.target.fusion is not None else like
        work.weights[key] = source.weights[key] if source is not work else fitted(work, specs)
    return work.weights[key]


def fitted(work: Work, specs: Sequence[str]) -> tuple[float, ...]:
    measure = measure_of(work.target.measures[0])
    runs, collection = work.run([work.tuned[spec] for spec in specs], "fusion"), work.target.fusion
    pool = pool_of(runs, WEIGHED, ties_ascend(measure))
    return fit(pool.matrix, objective_of(measure, collection, pool)).weights


def system_run(work: Work, specs: Sequence[str], like: Work | None) -> Run:
    """The run of a system on the test part."""
    chosen = [tuned(work, spec, like) for spec in specs]
    weights = fused(work, specs, like)
    return added(work.run(chosen, "test"), weights)
