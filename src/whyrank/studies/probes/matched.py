"""Measure-and-match probes: two documents of one query, equal in one characteristic, different in another.

MacAvaney et al., "ABNIRML: Analyzing the Behavior of Neural IR Models", TACL 2022 (and arXiv 2011.00696v1, 2020).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import permutations
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numba import njit

from whyrank.core import Checked, Codes, Floats, Ints, NonNegative, call_of, tolerance_of
from whyrank.data import Collection
from whyrank.studies.contrasts import Contrasts, TextIds
from whyrank.studies.pools import Pools, Source, assemble
from whyrank.studies.probes.characteristics import characteristics, in_words, measure


@dataclass(frozen=True)
class Matched(Checked):
    """Pairs of documents of one query with equal control and different variable, the higher variable first.

    Attributes:
        variable: the characteristic that differs.
        control: the characteristic that is held equal.
        tolerance: how far control values may lie apart: a number, or a share of the larger one such as `10%`.
        margin: by how much the variable must differ at least (more than this).
        compat: `abnirml` finds the pairs that the released code finds, slips included.
        analyzer: counts words and query terms.
        pairs: `judged`, or `top:K` of the run `candidates`.
    """

    variable: str
    control: str
    tolerance: float | str = 0.0
    margin: NonNegative = 0.0
    compat: Literal["abnirml"] | None = None
    analyzer: str = "lucene"
    pairs: str = "judged"
    candidates: str | None = None

    registered: ClassVar[str] = "matched"
    symmetric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        tolerance_of("tolerance", self.tolerance)

    @property
    def id(self) -> str:
        """Call string."""
        return call_of(self, f"matched/{self.variable}|{self.control}", without=("variable", "control"))

    @property
    def positive(self) -> str:
        """What +1 means."""
        held = f"equal {self.control}" + (f" (within {self.tolerance})" if self.tolerance else "")
        return f"prefers the text with {in_words(self.variable)}, at {held}"

    @property
    def made_of(self) -> tuple[Any, ...]:
        """Both characteristics, which may be somebody else's."""
        return characteristics.factory(self.variable), characteristics.factory(self.control)

    def text_ids(self, collection: Collection) -> list[TextIds]:
        """Every text that may be paired."""
        return self._pools(collection).text_ids

    def _pools(self, collection: Collection) -> Pools:
        return Pools.of(collection, Source(self.pairs, self.candidates, self.analyzer))

    def contrasts(self, collection: Collection) -> Contrasts:
        """All matched pairs of all queries."""
        pools = self._pools(collection)
        enumerate_pairs = walk if self.compat == "abnirml" else match
        tolerance = Tolerance(*tolerance_of("tolerance", self.tolerance), self.margin)
        measures = ((pool, measure(self.control, pool), measure(self.variable, pool)) for pool in pools)
        found = [(pool, enumerate_pairs(control, variable, tolerance)) for pool, control, variable in measures]
        graded = (pool.relevance[~np.isnan(pool.relevance)] for pool in pools) if self.variable == "relevance" else ()
        one_grade = sum(len(set(grades.tolist())) < 2 for grades in graded)
        return assemble(pools, found, dropped={"queries with one grade only": one_grade})


class MatchedFamily:
    """All ordered pairs of different characteristics, those registered by others included."""

    arguments = tuple(field.name for field in fields(Matched) if field.name not in ("variable", "control"))

    def names(self) -> Iterable[str]:
        """Ids such as `matched/relevance|length`."""
        return [f"matched/{a}|{b}" for a, b in permutations(characteristics.names(), 2)]

    def make(self, name: str, **arguments: Any) -> Matched:
        """The probe with this id."""
        variable, _, control = name.removeprefix("matched/").partition("|")
        return Matched(variable, control, **arguments)


family = MatchedFamily()


# Enumeration of matched pairs: documents equal in one characteristic and different in another.


class Tolerance(NamedTuple):
    """How far two control values may lie apart, |a - b| <= absolute + relative * max(|a|, |b|); and the least
    difference of the variable.
    """

    absolute: float = 0.0
    relative: float = 0.0
    margin: float = 0.0


def match(control: Floats, variable: Floats, tolerance: Tolerance) -> Codes:
    """Every unordered pair with equal control and different variable, once, the higher one first: [pairs, 2].

    Rows are documents. A matrix of several columns is compared as a whole: equal if every column is, higher if no
    column is lower and some column is higher. NaN is never equal and never higher.
    """
    order, starts = np.arange(len(control)), np.array([0, len(control)])
    if not tolerance.absolute and not tolerance.relative:  # only documents of one group can be equal
        usable = np.flatnonzero(~np.isnan(control).any(axis=1))
        order = usable[np.lexsort(control[usable].T)] if control.shape[1] else usable
        rows = control[order]
        new = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
        starts = np.concatenate([[0], new, [len(rows)]]).astype(np.int64)
    sizes = np.diff(starts)
    room = np.empty(((sizes * (sizes - 1) // 2).sum(), 2), np.int32)
    return room[: _match_groups(starts, order, control, variable, *tolerance, room)]


def walk(control: Floats, variable: Floats, tolerance: Tolerance) -> Codes:
    """The pairs that the released ABNIRML code finds, its two slips included.

    Documents are sorted by the sum of their control values; from each, a walk in both directions stops at the first
    document that is not equal, so that equal vectors behind an unequal one of the same sum are missed. From the
    first document the backward walk starts at the end of the list, which repeats pairs when all documents are equal.
    """
    order = np.argsort(control.sum(axis=1), kind="stable")
    control, variable = control[order], variable[order]
    n = _walk_pairs(control, variable, *tolerance, np.empty((0, 2), np.int32))  # count the pairs, then write them
    pairs = np.empty((n, 2), np.int32)
    _walk_pairs(control, variable, *tolerance, pairs)
    return order[pairs].astype(np.int32)


@njit(cache=True, nogil=True)
def _match_groups(
    starts: Ints,
    order: Ints,
    control: Floats,
    variable: Floats,
    absolute: float,
    relative: float,
    margin: float,
    out: Codes,
) -> int:
    """Write the pairs within groups of documents to `out`, which has room for all, and count them."""
    n = 0
    for group in range(len(starts) - 1):
        for a in range(starts[group], starts[group + 1]):
            for b in range(a + 1, starts[group + 1]):
                i, j = order[a], order[b]
                if not _equal(control, i, j, absolute, relative):
                    continue
                up = _higher(variable, i, j, margin)
                if up or _higher(variable, j, i, margin):
                    out[n, 0], out[n, 1] = (i, j) if up else (j, i)
                    n += 1
    return n


@njit(cache=True, nogil=True)
def _equal(values: Floats, i: int, j: int, absolute: float, relative: float) -> bool:
    for c in range(values.shape[1]):
        a, b = values[i, c], values[j, c]
        allowed = absolute + relative * max(abs(a), abs(b))
        if not abs(a - b) <= allowed:
            return False
    return True


@njit(cache=True, nogil=True)
def _higher(values: Floats, i: int, j: int, margin: float) -> bool:
    some = False
    for c in range(values.shape[1]):
        if not values[i, c] - margin >= values[j, c]:
            return False
        some = some or values[i, c] - margin > values[j, c]
    return some


@njit(cache=True, nogil=True)
def _walk_pairs(
    control: Floats, variable: Floats, absolute: float, relative: float, margin: float, out: Codes
) -> int:
    """Write the pairs to `out` if it has room, and count them."""
    n, size = 0, len(control)
    for i in range(size):
        for backwards in (False, True):
            j = i + 1
            if backwards:
                j = i - 1 if i > 0 else size - 1
            while 0 <= j < size and _equal(control, i, j, absolute, relative):
                if _higher(variable, i, j, margin):
                    if n < len(out):
                        out[n, 0], out[n, 1] = i, j
                    n += 1
                j += -1 if backwards else 1
    return n
