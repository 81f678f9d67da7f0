"""The limits of a parameter, which stand once, in its annotation: `b: Share = 0.4`, `top: Whole | None = None`.

What comes from outside is held against them: arguments of call strings, keys of recipes, options of commands. Lists
of what is registered, and the reference, show them. It is not pydantic, because networks and neural rankers import
this and run where pydantic is not installed.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from os import PathLike
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from whyrank.core.errors import UnknownName, WhyrankError

LARGEST = sys.float_info.max
_UNIONS = (Union, types.UnionType)


class Range(NamedTuple):
    """The numbers from `low` to `high`, or with `strict` between them: finite ones, unless it says otherwise."""

    low: float = -LARGEST
    high: float = LARGEST
    strict: bool = False


Whole = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
NonNegative = Annotated[float, Range(0)]
Positive = Annotated[float, Range(0, strict=True)]
Share = Annotated[float, Range(0, 1)]
Within = Annotated[float, Range(0, 1, strict=True)]


class Checked:
    """A dataclass whose values are those that its annotations allow."""

    registered: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_arguments(self.registered or type(self).__name__, type(self), vars(self))


def check_arguments(what: str, factory: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Raise an error for the first argument that the annotation of its parameter does not allow."""
    for name, value in given.items():
        check(f"{what}: {name}", value, hints_of(factory).get(name))


def check(what: str, value: object, hint: Any) -> None:
    """Raise an error unless an annotation allows a value; one that is not understood allows all."""
    if allows(hint, value):
        return
    if choices := [part for part in (hint, *get_args(hint)) if get_origin(part) is Literal]:
        raise UnknownName(f"value of {what}", str(value), _names(choices[0]))
    quotes = "; write it in quotes" if in_words(hint) == "text" else ""
    raise WhyrankError(f"{what} must be {in_words(hint)}, not {value!r}{quotes}")


@cache
def hints_of(factory: Any) -> dict[str, Any]:
    """The annotations of the fields of a dataclass, or of the parameters of a function or another class."""
    plain = isinstance(factory, type) and not is_dataclass(factory)
    try:
        return get_type_hints(factory.__init__ if plain else factory, include_extras=True)
    except (NameError, TypeError):  # what is imported for type checkers only; an object that is called
        return {}


def allows(hint: Any, value: object) -> bool:
    """Whether an annotation allows a value; a whole number is a number too, True is none, a path is text."""
    kind, (low, high, strict) = _parts(hint)
    if kind in (int, float):
        number = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
        return number and (low < value < high if strict else low <= value <= high)  # type: ignore[operator]
    if kind in (bool, str, type(None)):
        return isinstance(value, str | PathLike if kind is str else kind)
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    return get_origin(kind) not in _UNIONS or any(allows(part, value) for part in get_args(kind))


def in_words(hint: Any) -> str:
    """The values that an annotation allows; None apart, and empty for one that is not understood."""
    kind, (low, high, strict) = _parts(hint)
    if get_origin(kind) in _UNIONS:
        parts = [in_words(part) for part in get_args(kind) if part is not type(None)]
        return " or ".join(parts) if all(parts) else ""
    if get_origin(kind) is Literal:
        return ", ".join(_names(kind))
    words = {bool: "True or False", str: "text", int: "a whole number", float: "a number"}.get(kind, "")
    if low <= -LARGEST or not words:
        return words
    if kind is int and high == LARGEST:
        return f"{words}, {low:g} or more"
    end = f"{high:g}" if high < LARGEST else "infinity"
    return f"{words} between {low:g} and {end}" + (" (both excluded)" if strict else "")


def _names(choices: Any) -> list[str]:
    return [str(each) for each in get_args(choices) if each not in (None, "")]


@cache
def _parts(hint: Any) -> tuple[Any, Range]:
    """The type of an annotation, and its range."""
    if get_origin(hint) is not Annotated:
        return hint, Range()
    return get_args(hint)[0], next((mark for mark in get_args(hint) if isinstance(mark, Range)), Range())
