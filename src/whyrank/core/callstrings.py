"""Call strings: `name:resource(key=value, ...)`, the one notation for configured objects.

The same string is the command-line argument, the report heading and part of the cache key. Values are Python
literals; a bare run without `, ( ) = ' "` or blanks is a string; anything else is quoted.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from whyrank.core.errors import WhyrankError

_BARE = re.compile(r"[^,()='\"\s\[\]{}]+")
_KEY = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class Call(NamedTuple):
    """A parsed call string; `str` gives the canonical notation, which parses back to an equal call."""

    name: str
    resource: str | None = None
    arguments: Mapping[str, Any] = {}

    def __str__(self) -> str:
        head = self.name if self.resource is None else f"{self.name}:{self.resource}"
        inside = ",".join(f"{key}={format_value(value)}" for key, value in self.arguments.items())
        needs_brackets = inside or (self.resource or "").endswith(")")
        return f"{head}({inside})" if needs_brackets else head


def parse_call(text: str) -> Call:
    """Parse a call string; raise a `WhyrankError` that quotes it when it is malformed."""
    head, inside = _split_arguments(text.strip())
    name, colon, resource = head.partition(":")
    if not name or (colon and not resource):
        raise WhyrankError(f"{text!r} is not a call string; write NAME, NAME:RESOURCE or NAME(key=value,...)")
    return Call(name, resource if colon else None, _arguments(inside, text))


def format_value(value: Any) -> str:
    """Write a value so that it parses back: bare where a string needs no quotes, else a literal."""
    if isinstance(value, str):
        return value if _BARE.fullmatch(value) and _literal(value) == value else repr(value)
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "1e999" if value > 0 else "-1e999"
    return repr(value)


def arguments_of(obj: Any) -> dict[str, Any]:
    """Fields of a dataclass instance that differ from their defaults, as keyword arguments."""
    return {f.name: value for f in dataclasses.fields(obj) if f.init and (value := getattr(obj, f.name)) != _default(f)}


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _split_arguments(text: str) -> tuple[str, str]:
    """Cut `head(inside)` at the last bracket that closes at the end."""
    if not text.endswith(")"):
        return text, ""
    start = _opening_of_last(text)
    if start is None:
        raise WhyrankError(f"{text!r}: the brackets do not match")
    return text[:start], text[start + 1 : -1]


def _opening_of_last(text: str) -> int | None:
    """Index of the bracket that the final `)` closes; quoted parts do not count."""
    for start in (i for i, c in enumerate(text) if c == "("):
        if _closing(text, start) == len(text) - 1:
            return start
    return None


def _closing(text: str, start: int) -> int | None:
    """Index of the bracket that closes the one at `start`, skipping quoted strings."""
    stack, i = [_CLOSING[text[start]]], start + 1
    while i < len(text) and stack:
        quoted = _QUOTED.match(text, i)
        if quoted:
            i = quoted.end()
            continue
        if text[i] in _CLOSING:
            stack.append(_CLOSING[text[i]])
        elif text[i] == stack[-1]:
            stack.pop()
        elif text[i] in ")]}":
            return None
        i += 1
    return None if stack else i - 1


def _arguments(inside: str, whole: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    rest = inside.strip()
    while rest:
        key = _KEY.match(rest)
        if not key:
            raise WhyrankError(f"{whole!r}: expected key=value at {rest!r}")
        value, rest = _take_value(rest[key.end() :], whole)
        if key[1] in found:
            raise WhyrankError(f"{whole!r}: {key[1]!r} is given twice")
        found[key[1]] = value
        rest = _after_comma(rest, whole)
    return found


def _take_value(rest: str, whole: str) -> tuple[Any, str]:
    """Read one value off the front of `rest`; give it and what follows."""
    quoted, bare = _QUOTED.match(rest), _BARE.match(rest)
    if quoted:
        return ast.literal_eval(quoted[0]), rest[quoted.end() :]
    if rest[:1] in _CLOSING and (end := _closing(rest, 0)) is not None:
        return _bracketed(rest[: end + 1], whole), rest[end + 1 :]
    if bare:
        return _literal(bare[0]), rest[bare.end() :]
    raise WhyrankError(f"{whole!r}: a value is missing at {rest!r}; quote values with blanks or brackets")


def _after_comma(rest: str, whole: str) -> str:
    rest = rest.lstrip()
    if not rest:
        return ""
    if rest[0] != ",":
        raise WhyrankError(f"{whole!r}: expected a comma at {rest!r}; quote values with blanks or brackets")
    return rest[1:].lstrip()


def _bracketed(text: str, whole: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise WhyrankError(f"{whole!r}: {text!r} is not a Python literal") from None


def _literal(text: str) -> Any:
    """The Python literal that `text` spells, or `text` itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
