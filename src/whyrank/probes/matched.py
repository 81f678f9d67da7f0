"""Measure-and-match probes: two documents of one query, equal in one characteristic, different in another.

MacAvaney et al., "ABNIRML: Analyzing the Behavior of Neural IR Models", TACL 2022 (and arXiv 2011.00696v1, 2020).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from whyrank.contrasts.assembly import assembled
from whyrank.contrasts.contrasts import Contrasts
from whyrank.contrasts.pools import Pool, Pools, Source
from whyrank.core.checks import check_number, check_text, tolerance_of
from whyrank.core.errors import UnknownName
from whyrank.core.protocols import Codes
from whyrank.core.registry import call_of
from whyrank.probes.characteristics import characteristics, in_words, measured
from whyrank.probes.matching import Tolerance, match, walk

_COMPAT = ("abnirml",)


@dataclass(frozen=True)
class Matched:
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
    margin: float = 0.0
    compat: str | None = None
    analyzer: str = "lucene"
    pairs: str = "judged"
    candidates: str | None = None

    def __post_init__(self) -> None:
        if self.compat not in (None, *_COMPAT):
            raise UnknownName("compat mode of matched probes", str(self.compat), _COMPAT)
        _tolerance(self.tolerance, self.margin)
        for name in ("analyzer", "pairs", "candidates"):
            check_text(name, getattr(self, name))

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
    def symmetric(self) -> bool:
        """A matched probe has a direction."""
        return False

    def contrasts(self, collection: Any) -> Contrasts:
        """All matched pairs of all queries."""
        pools = Pools.of(collection, Source(self.pairs, self.candidates, self.analyzer))
        found = [(pool, self._pairs(pool)) for pool in pools]
        graded = (pool.relevance[~np.isnan(pool.relevance)] for pool in pools) if self.variable == "relevance" else ()
        one_grade = sum(len(set(grades.tolist())) < 2 for grades in graded)
        return assembled(pools, found, dropped={"queries with one grade only": one_grade})

    def _pairs(self, pool: Pool) -> Codes:
        control, variable = measured(self.control, pool), measured(self.variable, pool)
        enumerate_pairs = walk if self.compat == "abnirml" else match
        return enumerate_pairs(control, variable, _tolerance(self.tolerance, self.margin))


class MatchedFamily:
    """All ordered pairs of different characteristics, those registered by others included."""

    arguments = ("tolerance", "margin", "compat", "analyzer", "pairs", "candidates")

    def names(self) -> Iterable[str]:
        """Ids such as `matched/relevance|length`."""
        return [f"matched/{a}|{b}" for a, b in permutations(characteristics.names(), 2)]

    def make(self, name: str, **arguments: Any) -> Matched:
        """The probe with this id."""
        variable, _, control = name.removeprefix("matched/").partition("|")
        return Matched(variable, control, **arguments)


family = MatchedFamily()


def _tolerance(given: float | str, margin: float) -> Tolerance:
    check_number("margin", margin, 0)
    return Tolerance(*tolerance_of("tolerance", given), margin)
