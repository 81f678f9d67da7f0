"""Checks of the arguments that users write in call strings."""

from __future__ import annotations

import math

from whyrank.core.errors import WhyrankError


def check_number(what: str, value: object, low: float, high: float = math.inf, strict: bool = False) -> None:
    """Raise an error unless a value is a finite number from `low` to `high`, or with `strict` between them."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if number and (low < value < high or (not strict and value in (low, high))):  # type: ignore[operator]
        return
    ends = f"{low:g} and {high:g}" if high < math.inf else f"{low:g} and infinity"
    raise WhyrankError(f"{what} must be a number between {ends}{' (both excluded)' if strict else ''}, not {value!r}")
