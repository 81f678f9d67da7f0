"""The weights of a `fuse` from the judged queries of a training split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from whyrank.core import WhyrankError
from whyrank.evaluation.effectiveness import evaluate, measure_of
from whyrank.evaluation.fusion.ascent import RESTARTS, TOLERANCE, Fitted, fit
from whyrank.evaluation.fusion.objectives import objective_of, pool_of, ties_ascend
from whyrank.evaluation.tuning import Runner, Split
from whyrank.rankers import Fuse, contents_of, rankers, write_weights

DEPTH = 20  # candidates per training query, as Boytsov and Kolter, ECIR 2021, have it
FITTED, EQUAL = "fitted", "equal weights"


class Weighing(NamedTuple):
    """One choice of weights, and its mean measure on the development and on the held-out queries."""

    name: str
    weights: tuple[float, ...]
    dev: float
    test: float | None


@dataclass(frozen=True)
class Fusion:
    """A `fuse` with fitted weights: beside each part alone and all with equal weights, and how they were found."""

    config: Fuse
    fitted: Fitted
    rows: Sequence[Weighing]
    facts: Mapping[str, Any]

    @property
    def spec(self) -> str:
        """The call string with the weights in it."""
        return replace(self.config, weights=list(self.fitted.weights)).name

    def save(self, path: str) -> str:
        """Write the weights to a file, and give the call string that reads them."""
        config = self.config
        facts = {"ranker": config.name, "numbers": config.numbers, **self.facts}
        write_weights(path, config.parts, config.normalise, self.fitted.weights, facts)
        return replace(config, weights=path).name


def fit_fusion(
    spec: str, split: Split, measure: str, runner: Runner, restarts: int = RESTARTS, seed: int = 0,
    tolerance: float = TOLERANCE,
) -> Fusion:  # fmt: skip
    """Fit the weights of a `fuse` to the candidates of the development queries; weights that it has are not used."""
    config, parsed = config_of(spec), measure_of(measure)
    fused = config.bind(runner.setting)
    collections = [split.dev, *([split.test] if split.test else [])]
    pools = [
        pool_of(fused, each, runner.candidates(each), runner.engine, runner.depth, ties_ascend(parsed))
        for each in collections
    ]
    found = fit(pools[0].matrix, objective_of(parsed, split.dev, pools[0]), restarts, seed, tolerance)
    size = len(config.parts)
    choices = {part: tuple(float(i == j) for j in range(size)) for i, part in enumerate(config.parts)}
    choices |= {EQUAL: (1.0 / size,) * size, FITTED: found.weights}
    rows = []
    for name, weights in choices.items():
        runs = zip(collections, pools, strict=True)
        dev, *test = (evaluate({name: pool.run(weights)}, each, [measure])[0].mean for each, pool in runs)
        rows.append(Weighing(name, weights, dev, test[0] if test else None))
    facts = {
        "measure": measure, "dev": rows[-1].dev, "equal": rows[-2].dev, "held_out": rows[-1].test,
        "collection": split.dev.name, "queries": len(split.dev.queries), "depth": runner.depth,
        "restarts": restarts, "seed": seed, "tolerance": tolerance,
        "contents": contents_of(fused.parts), "ascents": [ascent._asdict() for ascent in found.ascents],
    }  # fmt: skip
    return Fusion(config, found, rows, facts)


def config_of(spec: str) -> Fuse:
    """The fuse of a call string, without weights; an error for any other ranker."""
    config = rankers.create(spec)
    if not isinstance(config, Fuse):
        raise WhyrankError(f"weights are fitted for a fuse of rankers, such as fuse(of=['bm25','ql']), not {spec!r}")
    return replace(config, weights=None)
