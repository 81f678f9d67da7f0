"""Correlation over the values of a class: of their mean scores with weights of a table and with their frequency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whyrank.core import Floats, Ints, generator
from whyrank.studies.findings import or_none

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
    as large; with `given`, both are first freed of it by least squares, the residuals are permuted, and freed of it
    again. Freedman and Lane, A nonstochastic interpretation of reported significance levels, JBES 1 (1983).
    """
    columns = [np.asarray(c, dtype=np.float64) for c in (first, second, given) if c is not None]
    known = np.isfinite(columns).all(axis=0)
    x, y, *rest = (column[known] for column in columns)
    enough = len(x) >= FEWEST + len(rest)  # what is given takes a degree of freedom
    figures = _figures(x, y, rest[0] if rest else None, ordered, permutations, seed) if enough else {}
    return Correlation(names[0], names[1], names[2] if rest else "", len(x), **figures)


def _figures(
    first: Floats, second: Floats, given: Floats | None, ordered: bool, permutations: int, seed: int
) -> dict[str, float | None]:
    """What is known of two columns; nothing where one of them does not vary."""
    x, y = (column if given is None else _residuals(column, given) for column in (first, second))
    a, b, c, r = _unit(x), _unit(y), None if given is None else _unit(given), pearson(x, y)
    if a is None or b is None:
        return {}
    low, high = _interval(first, second, given, seed)
    return {
        "pearson": r,
        "low": low,
        "high": high,
        "p_value": _permutation_p(a, b, c, r, permutations, seed),
        "p_shift": _shift_p(a, b, c, r) if ordered else None,
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


def _correlations(a: Floats, rows: Floats, given: Floats | None) -> Floats:
    """The correlation of a column with each of several rows, which are freed of what is given; all are units."""
    found: Floats = rows @ a
    if given is None:
        return found
    left = 1 - (rows @ given) ** 2
    return np.divide(found, np.sqrt(np.abs(left)), out=np.zeros_like(found), where=left > _TIE)


def _permutation_p(a: Floats, b: Floats, given: Floats | None, r: float, permutations: int, seed: int) -> float:
    random = generator(seed, "bias", "correlation")
    hits, most = 0, max(1, _BLOCK // len(a))
    for start in range(0, permutations, most):
        rows = random.permuted(np.broadcast_to(b, (min(most, permutations - start), len(b))), axis=1)
        hits += int(np.count_nonzero(np.abs(_correlations(a, rows, given)) >= abs(r) - _TIE))
    return (1 + hits) / (1 + permutations)


def _shift_p(a: Floats, b: Floats, given: Floats | None, r: float) -> float:
    """The share of circular shifts, none included, with |r| at least as large."""
    rows = np.stack([np.roll(b, step) for step in range(len(b))])
    return float(np.mean(np.abs(_correlations(a, rows, given)) >= abs(r) - _TIE))


def _interval(x: Floats, y: Floats, given: Floats | None, seed: int) -> tuple[float | None, float | None]:
    """The middle 95% of r when values are drawn with replacement; every draw is freed of what is given by itself."""
    rows = generator(seed, "bias", "values").integers(0, len(x), size=(DRAWS, len(x)))
    third = None if given is None else _drawn(given, rows, None)
    a, b = (_drawn(column, rows, third) for column in (x, y))
    scale = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    drawn = np.divide((a * b).sum(axis=1), scale, out=np.full(DRAWS, np.nan), where=scale > 0)
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return or_none(float(low)), or_none(float(high))


def _drawn(column: Floats, rows: Ints, given: Floats | None) -> Floats:
    """Draws of a column, centred and freed of draws of another one; zero where only rounding is left."""
    found: Floats = column[rows] - column[rows].mean(axis=1, keepdims=True)
    if given is not None:
        square = (given**2).sum(axis=1)
        slope = np.divide((found * given).sum(axis=1), square, out=np.zeros(len(rows)), where=square > 0)
        found = found - slope[:, None] * given
    found[np.linalg.norm(found, axis=1) <= _TIE * np.linalg.norm(column - column.mean())] = 0.0
    return found


def _ranks(x: Floats) -> Floats:
    from scipy.stats import rankdata

    ranks: Floats = rankdata(x)
    return ranks
