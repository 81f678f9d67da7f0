"""Errors that a user can mend: one line that says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
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
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(repr(n) for n in near) + "?"
    shown = ", ".join(known[:12]) + (f", … ({len(known)} in all)" if len(known) > 12 else "")
    return f"known: {shown}" if known else "nothing of this kind is registered"
