"""What explains the mean scores of values: weights of a term table, frequency in the collection, or neither."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from whyrank.core import Flags, Floats, Ints, WhyrankError, generator
from whyrank.studies.bias.templates import Grid
from whyrank.studies.findings import or_none
from whyrank.tables import TermTable
from whyrank.text import Analyzer, analyzers

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


def correlations_of(
    figures: dict[str, Floats], ordered: bool, seed: int = 0, permutations: int = PERMUTATIONS
) -> list[Correlation]:
    """All correlations that a study reports, of the figures `mean score`, `weight` and `count` that are known."""
    figures = {name: column for name, column in figures.items() if np.isfinite(column).any()}
    if "count" in figures:
        figures["log count"] = np.log1p(figures["count"])
    reported = [("mean score", "weight", ""), ("mean score", "count", ""), ("mean score", "log count", "")]
    reported += [("weight", "count", ""), ("weight", "log count", "")]
    reported += [("mean score", "weight", "count"), ("mean score", "weight", "log count")]
    found = []
    for names in reported:
        columns = [figures.get(name) for name in names if name]
        if all(column is not None for column in columns):
            first, second, *given = columns
            options: dict[str, Any] = {"ordered": ordered, "permutations": permutations, "seed": seed}
            found.append(correlate(first, second, *given, names=names, **options))  # type: ignore[arg-type]
    return found


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
    from scipy.stats import rankdata

    columns = [np.asarray(c, dtype=np.float64) for c in (first, second, given) if c is not None]
    columns = [column[np.isfinite(columns).all(axis=0)] for column in columns]
    n, control = len(columns[0]), columns[2] if given is not None else None
    found = Correlation(names[0], names[1], names[2] if given is not None else "", n)
    if n < FEWEST + (given is not None):  # what is given takes a degree of freedom
        return found
    x, y = columns[:2] if control is None else [_residuals(column, control) for column in columns[:2]]
    a, b = _unit(x), _unit(y)
    if a is None or b is None:  # nothing is known where a figure does not vary
        return found
    unit, r = None if control is None else _unit(control), pearson(x, y)
    low, high = _interval(columns[0], columns[1], control, seed)
    hits, random, most = 0, generator(seed, "bias", "correlation"), max(1, _BLOCK // n)
    for start in range(0, permutations, most):
        rows = random.permuted(np.broadcast_to(b, (min(most, permutations - start), n)), axis=1)
        hits += int(np.count_nonzero(_as_large(a, rows, unit, r)))
    shifts = _as_large(a, np.stack([np.roll(b, step) for step in range(n)]), unit, r)
    return replace(
        found,
        pearson=r,
        low=low,
        high=high,
        p_value=(1 + hits) / (1 + permutations),
        p_shift=float(np.mean(shifts)) if ordered else None,
        spearman=or_none(pearson(rankdata(x), rankdata(y))),
    )


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
    found: Floats = x - x.mean()
    if (unit := _unit(given)) is not None:
        found = found - (found @ unit) * unit
    found[np.abs(found) <= _TIE * np.abs(x).max(initial=0.0)] = 0.0
    return found


def _as_large(a: Floats, rows: Floats, given: Floats | None, r: float) -> Flags:
    """Whether |r| of a column with each row, freed of what is given, is as large as `r`; all are of length 1."""
    found: Floats = rows @ a
    if given is not None:
        left = 1 - (rows @ given) ** 2
        found = np.divide(found, np.sqrt(np.abs(left)), out=np.zeros_like(found), where=left > _TIE)
    return np.abs(found) >= abs(r) - _TIE


def _interval(x: Floats, y: Floats, given: Floats | None, seed: int) -> tuple[float | None, float | None]:
    """The middle 95% of r when values are drawn with replacement; every draw is freed of what is given by itself."""
    rows = generator(seed, "bias", "values").integers(0, len(x), size=(DRAWS, len(x)))
    third = None if given is None else _resample(given, rows, None)
    a, b = (_resample(column, rows, third) for column in (x, y))
    scale = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    drawn = np.divide((a * b).sum(axis=1), scale, out=np.full(DRAWS, np.nan), where=scale > 0)
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return or_none(float(low)), or_none(float(high))


def _resample(column: Floats, rows: Ints, given: Floats | None) -> Floats:
    """Draws of a column, centred and freed of draws of another one; zero where only rounding is left."""
    found: Floats = column[rows] - column[rows].mean(axis=1, keepdims=True)
    if given is not None:
        square = (given**2).sum(axis=1)
        slope = np.divide((found * given).sum(axis=1), square, out=np.zeros(len(rows)), where=square > 0)
        found = found - slope[:, None] * given
    found[np.linalg.norm(found, axis=1) <= _TIE * np.linalg.norm(column - column.mean())] = 0.0
    return found


# What a term table says of the values of a grid.


def table_weights(table: TermTable, grid: Grid) -> Floats:
    """The weight of each value for the grid's query term; NaN where the table has no entry.

    Where values are appended to words: the weight of the longer word for the word itself, on average over templates.
    """
    if not grid.appended:
        return np.array([_weight(table, grid.term, value) for value in grid.values])
    found = [_weight(table, t.term, t.term + value) for t in grid.templates for value in grid.values]
    return appended_weights(np.array(found).reshape(len(grid), len(grid.values)))


def appended_weights(found: Floats) -> Floats:
    """The mean weight of each value (columns) over templates; NaN where none has an entry.

    What templates weigh is out of it where some entries are missing: it is the mean of all, and how much more a value
    weighs than all values of the same template that have an entry. Templates with one entry tell nothing.
    """
    found = found[np.isfinite(found).sum(axis=1) > 1]
    known = np.isfinite(found)
    if not known.any():
        return np.full(known.shape[1], np.nan)
    gaps = found - np.nanmean(found, axis=1, keepdims=True)
    count = known.sum(axis=0)
    means: Floats = np.divide(np.nansum(gaps, axis=0), count, out=np.full(len(count), np.nan), where=count > 0)
    return means + float(found[known].mean())


@lru_cache(maxsize=100_000)
def spelled(analyzer: str, word: str, query: bool) -> str:
    """A word as an analyzer writes it; in small letters where it is unknown or makes not one term of the word."""
    made = _create_analyzer(analyzer)
    if made is None:
        return word.lower()
    terms = made.query_terms(word) if query else made.terms(word)
    return terms[0] if len(terms) == 1 else word.lower()


def doc_term(table: TermTable, value: str) -> str:
    """A value as a document term of a table: as its analyzer writes it, in small letters where it has only those."""
    analyzer = str(table.facts.get("analyzer", ""))
    term = spelled(analyzer, value, False)
    return term if term in table.doc_numbers else spelled(analyzer, value.lower(), False)


@lru_cache(maxsize=8)
def _create_analyzer(analyzer: str) -> Analyzer | None:
    """An analyzer, made once: some read a lexicon. None for that of a table from elsewhere."""
    try:
        return analyzers.create(analyzer) if analyzer else None
    except WhyrankError:
        return None


def _weight(table: TermTable, term: str | None, value: str) -> float:
    """NaN without an entry: a pair below the threshold of a table is not known to weigh nothing."""
    if not term:
        return np.nan
    query_term, found = spelled(str(table.facts.get("analyzer", "")), term, True), doc_term(table, value)
    return table.weight(query_term, found) if table.has(query_term, found) else np.nan
