"""How much of a table a cascade has found: a lower bound on its recall that holds with a stated probability.

m pairs are drawn from all of them, each with the same chance, whatever the cascade did. h of them belong in the table
and are not in it: h is binomial with m draws and the rate of what was missed. Its upper bound u after Clopper and
Pearson ("The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika 1934) gives

    recall >= found / (found + u * pairs)

Given how many of the draws fall into a stratum, the same holds within it. Half of the error probability is spent on
all pairs together, the other half in equal shares on the strata, so that all bounds hold at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

LEVEL = 0.95
_STEPS = 200  # of a bisection: far more than doubles can tell apart
_TERMS = 10_000  # of the continued fraction; it ends long before


class Tally(NamedTuple):
    """Of some pairs: how many there are, how many were found, drawn, and of those drawn missed."""

    pairs: int
    found: int
    drawn: int
    missed: int


class Bound(NamedTuple):
    """A tally and what follows from it."""

    tally: Tally
    missed_at_most: float
    recall: float


class Certificate(NamedTuple):
    """Lower bounds on recall that all hold at once with probability `level`."""

    level: float
    whole: Bound
    strata: list[Bound]

    @property
    def recall(self) -> float:
        """The bound over all pairs: the better of that of all draws and of what the strata add up to."""
        return max(self.whole.recall, _recall(self.whole.tally.found, sum(s.missed_at_most for s in self.strata)))

    def facts(self) -> dict[str, Any]:
        """The certificate as plain values."""
        if not self.strata:
            rule = "all pairs were scored"
            return {"recall": self.recall, "level": self.level, "rule": rule, "pairs": self.whole.tally.pairs}
        strata = [bound.tally._asdict() | {"recall": bound.recall} for bound in self.strata]
        rule = "Clopper-Pearson; half of the error on all pairs, half in equal shares on the strata"
        return {
            "recall": self.recall,
            "level": self.level,
            "rule": rule,
            **self.whole.tally._asdict(),
            "strata": strata,
        }


def certificate(strata: Sequence[Tally], error: float = 1 - LEVEL) -> Certificate:
    """The bounds that strata and all pairs together allow, all at once wrong with probability `error` at most."""
    whole = Tally(*(sum(column) for column in zip(*strata, strict=True)))
    bounds = [bound(tally, error / (2 * len(strata))) for tally in strata]
    return Certificate(1 - error, bound(whole, error / 2), bounds)


def everything(pairs: int) -> Certificate:
    """What there is to say where all pairs were scored: nothing was missed."""
    return Certificate(1.0, Bound(Tally(pairs, 0, 0, 0), 0.0, 1.0), [])


def needed(pairs: int, found: float, recall: float, error: float) -> int:
    """How many draws are enough for a recall with half of the error on all pairs; `pairs` where so few are not.

    Enough, if half of what may be missed is missed, and one standard deviation more of it is drawn than expected.
    """
    rate = found * (1 - recall) / recall / pairs
    low, high = 0, 1
    while high < pairs and not _prove(high, rate, error / 2):
        low, high = high, 2 * high
    while high - low > 1 + high // 100:  # per cent are near enough
        middle = (low + high) // 2
        low, high = (low, middle) if _prove(middle, rate, error / 2) else (middle, high)
    return min(high, pairs)


def _prove(drawn: int, rate: float, error: float) -> bool:
    expected = drawn * rate / 2
    hits = math.ceil(expected + math.sqrt(expected))
    return hits < drawn and incomplete_beta(hits + 1, drawn - hits, rate) >= 1 - error


def at_best(pairs: int, found: float, drawn: int, error: float) -> float:
    """The largest recall that so many draws can show, when none of them is missed."""
    return _recall(found, upper_rate(0, drawn, error / 2) * pairs)


def bound(tally: Tally, error: float) -> Bound:
    """The lower bound on recall from one tally."""
    missed = upper_rate(tally.missed, tally.drawn, error) * tally.pairs
    missed = min(missed, float(tally.pairs - tally.found))
    return Bound(tally, missed, _recall(tally.found, missed))


def upper_rate(hits: int, drawn: int, error: float) -> float:
    """Upper bound of a rate after Clopper and Pearson: a larger one makes so few hits less probable than `error`."""
    if hits >= drawn:
        return 1.0
    low, high = hits / drawn, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if incomplete_beta(hits + 1, drawn - hits, middle) < 1 - error:
            low = middle
        else:
            high = middle
    return high


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, from the front (Lentz)."""
    c, d = 1.0, _inverse(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = _inverse(1 + term * d), 1 + term / c
            found *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return found


def _inverse(value: float) -> float:
    return 1 / (value if abs(value) > 1e-300 else 1e-300)


def _recall(found: float, missed: float) -> float:
    return found / (found + missed) if found else 0.0
