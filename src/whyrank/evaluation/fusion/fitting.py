"""The weights of a `fuse` from the judged queries of a training split.

With ranges in its parts, weights are fitted for every setting of the parts, and the best one is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from whyrank.core import WhyrankError, parse_call, track
from whyrank.evaluation.effectiveness import evaluate, measure_of
from whyrank.evaluation.fusion.ascent import RESTARTS, TOLERANCE, Fitted, fit
from whyrank.evaluation.fusion.objectives import objective_of, pool_of, ties_ascend
from whyrank.evaluation.tuning import MOST, Runner, Split, combinations, without_ranges
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


def fit_best(spec: str, split: Split, measure: str, runner: Runner, **chosen: Any) -> tuple[Fusion, int]:
    """The best fusion on the development queries, of all settings of its parts, and how many there were.

    A part may have ranges, `fuse(of=['bm25(k1=0.6:1.2:0.3)','ql'])`; ties go to the first setting. `chosen` are
    further arguments of `fit_fusion`.
    """
    settings = list(_settings(config_of(spec)))
    found = [
        fit_fusion(each.name, split, measure, runner, **chosen)
        for each in track(settings, "settings of parts", len(settings))
    ]
    return max(found, key=lambda fusion: fusion.rows[-1].dev), len(settings)


def _settings(config: Fuse) -> Iterator[Fuse]:
    """The fuse with each combination of values of its parts' ranges; itself where there is none."""
    parts = [without_ranges(parse_call(part)) for part in config.of]
    calls, grids = [call for call, _ in parts], [list(combinations(grid)) for _, grid in parts]
    total = math.prod(map(len, grids))
    if total > MOST:
        raise WhyrankError(f"the ranges of the parts have {total:,} settings together; at most {MOST:,} are tried")
    for values in product(*grids):
        made = [str(c._replace(arguments={**c.arguments, **v})) for c, v in zip(calls, values, strict=True)]
        yield replace(config, of=made)
