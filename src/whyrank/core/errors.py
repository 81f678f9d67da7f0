"""Errors that a user can mend: one line that says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from os import PathLike


class WhyrankError(Exception):
    """A request or its input was wrong; the message is one clear line for the user."""


class BadInput(WhyrankError):
    """A file holds something that cannot be used; the message names file, line and remedy."""

    def __init__(self, path: str | PathLike[str], what: str, remedy: str = "", line: int | None = None) -> None:
        place = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{place}: {what}" + (f"; {remedy}" if remedy else ""))
        self.path, self.what, self.remedy, self.line = path, what, remedy, line

    def __reduce__(self) -> tuple[type[BadInput], tuple[object, ...]]:
        return type(self), (self.path, self.what, self.remedy, self.line)


class UnknownName(WhyrankError):
    """A name that nothing is registered under; the message suggests the nearest known names."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        super().__init__(f"unknown {kind} {name!r}; {suggestion(name, names)}")
        self.kind, self.name, self.known = kind, name, tuple(names)

    def __reduce__(self) -> tuple[type[UnknownName], tuple[object, ...]]:
        return type(self), (self.kind, self.name, self.known)


class MissingExtra(WhyrankError):
    """An optional dependency is not installed; the message says which extra brings it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency; install it with: pip install 'whyrank[{extra}]'")
        self.what, self.extra = what, extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[object, ...]]:
        return type(self), (self.what, self.extra)


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
