"""Checks of the arguments that users write in call strings."""

from __future__ import annotations

import math

from whyrank.core.errors import WhyrankError


def check_number(what: str, value: object, low: float, high: float = math.inf, strict: bool = False) -> None:
    """Raise an error unless a value is a finite number from `low` to `high`, or with `strict` between them."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if math.isfinite(number) and (low < number < high or (not strict and number in (low, high))):
        return
    ends = f"{low:g} and {high:g}" if high < math.inf else f"{low:g} and infinity"
    raise WhyrankError(f"{what} must be a number between {ends}{' (both excluded)' if strict else ''}, not {value!r}")
