"""Where the values of a bias study stand: each against those of its class that do not stand out themselves."""

from __future__ import annotations

from typing import NamedTuple

from whyrank.audit.bias_asking import BiasAnswer
from whyrank.audit.bias_grid import finite_columns, finite_rows
from whyrank.audit.bias_statistics import Clustered, Sums, cluster_scores, mean_bounds
from whyrank.audit.discovery_tests import Compared, against_rest
from whyrank.contrasts.correction import adjust
from whyrank.core.protocols import Floats

DRAWS = 10_000


class Standing(NamedTuple):
    """How much higher a value scores than the others, the 95% interval, and p corrected (Holm) over the values."""

    effect: float
    low: float
    high: float
    p_adjusted: float


def standings(answer: BiasAnswer, seed: int = 0) -> dict[str, Standing]:
    """The values of a study, compared as those of a table are; none without two independent templates."""
    columns = finite_columns(answer.scores)
    grid, scores = answer.grid.of_values(columns), answer.scores[:, columns]
    usable = finite_rows(scores)
    sums = cluster_scores(scores[usable], *(way[usable] for way in grid.clusters))
    if sums.size < 2:
        return {}
    compared = against_rest(sums, DRAWS, seed)
    adjusted = adjust([one.p_value for one in compared], "holm").tolist()
    found = zip(compared, adjusted, strict=True)
    return {grid.values[one.value]: Standing(*_figures(sums, one), p) for one, p in found}


def _figures(sums: Clustered, one: Compared) -> tuple[float, float, float]:
    """The mean difference of a value from those that it is compared with, and its interval."""

    def apart(way: Sums) -> Floats:
        others: Floats = way.effects[:, one.others].mean(axis=1, keepdims=True)
        return way.effects[:, [one.value]] - others

    low, high = mean_bounds(sums, apart)
    return float((low[0] + high[0]) / 2), float(low[0]), float(high[0])
