"""Perplexity of a bitext under a translation table."""

from __future__ import annotations

import math
from collections.abc import Sequence


def perplexity(log_likelihood: float, tokens: float) -> float:
    """exp(-log likelihood / tokens), or NaN without tokens.

    The log likelihood is the sum over all target tokens q of log( (1 / (l + 1)) * sum of T(q|d) ), where d goes over
    NULL and the l source tokens of the pair; without NULL the factor is 1 / l. It leaves out the probability of the
    length of the target, as that is the same for every table. Other programs print other constants: MGIZA and
    fast_align have a prior for NULL, and logarithms to the base 2, so compare the falls rather than the values.
    """
    return math.exp(-log_likelihood / tokens) if tokens else math.nan


def gains_too_little(perplexities: Sequence[float], stop: float) -> bool:
    """Whether the last perplexity is lower than the one before by less than the share `stop` of it."""
    before, now = perplexities[-2:]
    return before - now < stop * before


def lowest(held_out: Sequence[float], last: int) -> int:
    """The iteration with the lowest held-out perplexity, the first of several; the last where none is held out."""
    if not held_out or any(map(math.isnan, held_out)):
        return last
    return min(range(1, len(held_out)), key=held_out.__getitem__)
