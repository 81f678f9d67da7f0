"""Errors that a user can mend: one line that says what is wrong, where, and what to do."""

from __future__ import annotations

import copyreg
import difflib
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from os import PathLike
from typing import Any


class WhyrankError(Exception):
    """A request or its input was wrong; the message is one clear line for the user."""

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class BadInput(WhyrankError):
    """A file holds something that cannot be used; the message names file, line and remedy."""

    def __init__(self, path: str | PathLike[str], what: str, remedy: str = "", line: int | None = None) -> None:
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {what}" + (f"; {remedy}" if remedy else ""))
        self.path, self.what, self.remedy, self.line = path, what, remedy, line


class UnknownName(WhyrankError):
    """A name that nothing is registered under; the message suggests the nearest known names."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        super().__init__(f"unknown {kind} {name!r}; {suggestion(str(name), names)}")
        self.kind, self.name, self.known = kind, name, tuple(names)


class MissingExtra(WhyrankError):
    """An optional dependency is not installed; the message says which extra brings it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency; install it with: pip install 'whyrank[{extra}]'")
        self.what, self.extra = what, extra


def suggestion(name: str, known: list[str]) -> str:
    """Say which known names are nearest to a wrong one, or list them all when few."""
    near = nearest(name, known)
    if near:
        return "did you mean " + " or ".join(repr(n) for n in near) + "?"
    shown = ", ".join(known[:12]) + (f", … ({len(known)} in all)" if len(known) > 12 else "")
    return f"known: {shown}" if known else "nothing of this kind is registered"


def nearest(name: str, known: Sequence[str], most: int = 3, cutoff: float = 0.5) -> list[str]:
    """Known names that are alike in any case of letters; those that differ in case alone come first."""
    folded: dict[str, list[str]] = {}
    for each in known:
        folded.setdefault(each.casefold(), []).append(each)
    same = folded.pop(name.casefold(), [])
    alike = difflib.get_close_matches(name.casefold(), folded, n=most, cutoff=cutoff)
    return [*same, *(each for one in alike for each in folded[one])][:most]


def tolerance_of(what: str, given: object) -> tuple[float, float]:
    """How far two values may lie apart, as an absolute part and a share of the larger one (`10%` is 0.1)."""
    text = str(given).strip()
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if isinstance(given, bool) or not 0 <= value < math.inf:
        raise WhyrankError(f"{what} {given!r}: give a number, zero or more, or a share such as 10%")
    if not text.endswith("%"):
        return value, 0.0
    share = value / 100
    if Fraction(share) < Fraction(repr(value)) / 100:  # rounded up: 29% of 100 is 29, and not a little less
        share = math.nextafter(share, math.inf)
    return 0.0, share
