"""Correlation over the values of a class: of their mean scores with weights of a table and with their frequency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whyrank.contrasts.finding import or_none
from whyrank.core.protocols import Floats
from whyrank.core.seeds import generator

PERMUTATIONS, DRAWS = 100_000, 10_000
FEWEST = 4  # with three values every correlation is large
_BLOCK = 2_000_000
_TIE = 1e-10


@dataclass(frozen=True)
class Correlation:
    """The correlation of two figures over the values that have both; with `given`, the third is partialled out.

    `p_value` permutes the values; `p_shift` shifts them in a circle, which keeps the likeness of neighbours, and is
    there where values have an order. `low` and `high` bound Pearson's r (bootstrap over values). Undefined: None.
    """

    first: str
    second: str
    given: str
    n: int
    pearson: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    p_shift: float | None = None
    spearman: float | None = None


def correlate(
    first: npt.ArrayLike, second: npt.ArrayLike, given: npt.ArrayLike | None = None, *,
    names: Sequence[str] = ("first", "second", ""), ordered: bool = False, permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Correlation:  # fmt: skip
    """Pearson's r with its tests, over the positions at which all figures are finite.

    The p-value is (1 + hits) / (1 + permutations), a hit being a permutation of the second figure with |r| at least
    as large; with `given`, both are first freed of it by least squares, and the residuals are permuted. Freedman and
    Lane, A nonstochastic interpretation of reported significance levels, JBES 1 (1983).
    """
    columns = [np.asarray(c, dtype=np.float64) for c in (first, second, given) if c is not None]
    known = np.isfinite(columns).all(axis=0)
    x, y, *rest = (column[known] for column in columns)
    if rest:
        x, y = _residuals(x, rest[0]), _residuals(y, rest[0])
    figures = _figures(x, y, ordered, permutations, seed) if len(x) >= FEWEST else {}
    return Correlation(names[0], names[1], names[2] if rest else "", len(x), **figures)


def _figures(x: Floats, y: Floats, ordered: bool, permutations: int, seed: int) -> dict[str, float | None]:
    """What is known of two columns; nothing where one of them does not vary."""
    a, b, r = _unit(x), _unit(y), pearson(x, y)
    if a is None or b is None:
        return {}
    low, high = _interval(x, y, seed)
    return {
        "pearson": r,
        "low": low,
        "high": high,
        "p_value": _permutation_p(a, b, r, permutations, seed),
        "p_shift": _shift_p(a, b, r) if ordered else None,
        "spearman": or_none(pearson(_ranks(x), _ranks(y))),
    }


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's r; NaN where one of them does not vary."""
    a, b = _unit(x), _unit(y)
    return math.nan if a is None or b is None else float(np.clip(a @ b, -1.0, 1.0))


def _unit(x: Floats) -> Floats | None:
    """Centred and of length 1; None where nothing is left."""
    centred = x - x.mean() if len(x) else x
    length = float(np.linalg.norm(centred))
    if length <= _TIE * math.sqrt(max(len(x), 1)) * np.abs(x).max(initial=0.0):
        return None
    unit: Floats = centred / length
    return unit


def _residuals(x: Floats, given: Floats) -> Floats:
    unit = _unit(given)
    found: Floats = x - x.mean() if len(x) else x
    if unit is not None:
        found = found - (found @ unit) * unit
    found[np.abs(found) <= _TIE * np.abs(x).max(initial=0.0)] = 0.0
    return found


def _permutation_p(a: Floats, b: Floats, r: float, permutations: int, seed: int) -> float:
    random = generator(seed, "bias", "correlation")
    hits, most = 0, max(1, _BLOCK // len(a))
    for start in range(0, permutations, most):
        rows = min(most, permutations - start)
        drawn = random.permuted(np.broadcast_to(b, (rows, len(b))), axis=1) @ a
        hits += int(np.count_nonzero(np.abs(drawn) >= abs(r) - _TIE))
    return (1 + hits) / (1 + permutations)


def _shift_p(x: Floats, y: Floats, r: float) -> float:
    """The share of circular shifts, none included, with |r| at least as large."""
    shifted = [pearson(x, np.roll(y, step)) for step in range(len(y))]
    return float(np.mean(np.abs(shifted) >= abs(r) - _TIE))


def _interval(x: Floats, y: Floats, seed: int) -> tuple[float | None, float | None]:
    """The middle 95% of r when values are drawn with replacement."""
    rows = generator(seed, "bias", "values").integers(0, len(x), size=(DRAWS, len(x)))
    a, b = (column[rows] - column[rows].mean(axis=1, keepdims=True) for column in (x, y))
    scale = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    drawn = np.divide((a * b).sum(axis=1), scale, out=np.full(DRAWS, np.nan), where=scale > 0)
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return or_none(float(low)), or_none(float(high))


def _ranks(x: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks: Floats = rankdata(x)
    return ranks
