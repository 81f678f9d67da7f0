"""Checks of the arguments that users write in call strings."""

from __future__ import annotations

import math
from fractions import Fraction

from whyrank.core.errors import WhyrankError


def check_number(what: str, value: object, low: float, high: float = math.inf, strict: bool = False) -> None:
    """Raise an error unless a value is a finite number from `low` to `high`, or with `strict` between them."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if math.isfinite(number) and (low < number < high or (not strict and number in (low, high))):
        return
    ends = f"{low:g} and {high:g}" if high < math.inf else f"{low:g} and infinity"
    raise WhyrankError(f"{what} must be a number between {ends}{' (both excluded)' if strict else ''}, not {value!r}")


def check_whole(what: str, value: object, low: int) -> None:
    """Raise an error unless a value is a whole number from `low` up."""
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise WhyrankError(f"{what} must be a whole number, {low} or more, not {value!r}")


def check_flag(what: str, value: object) -> None:
    """Raise an error unless a value is True or False."""
    if not isinstance(value, bool):
        raise WhyrankError(f"{what} must be True or False, not {value!r}")


def check_text(what: str, value: object) -> None:
    """Raise an error unless a value is a string or None."""
    if value is not None and not isinstance(value, str):
        raise WhyrankError(f"{what} must be text, not {value!r}; write it in quotes")


def tolerance_of(what: str, given: object) -> tuple[float, float]:
    """How far two values may lie apart, as an absolute part and a share of the larger one (`10%` is 0.1)."""
    text = str(given).strip()
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if isinstance(given, bool) or not 0 <= value < math.inf:
        raise WhyrankError(f"{what} {given!r}: give a number, zero or more, or a share such as 10%")
    return (0.0, _share(value)) if text.endswith("%") else (value, 0.0)


def _share(percent: float) -> float:
    """A percentage as a share, rounded up: 29% of 100 is 29, and not a little less."""
    share = percent / 100
    return share if Fraction(share) >= Fraction(repr(percent)) / 100 else math.nextafter(share, math.inf)
