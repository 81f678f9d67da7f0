"""Call strings: `name:resource(key=value, ...)`, the one notation for configured objects.

The same string is the command-line argument, the report heading and part of the cache key. Values are Python
literals; a bare run without `, ( ) = ' "` or blanks is a string; anything else is quoted.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from whyrank.core.errors import WhyrankError

_BARE = re.compile(r"[^,()='\"\s]+")
_KEY = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*")
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_NOT_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


class Call(NamedTuple):
    """A parsed call string; `str` gives the canonical notation, which parses back to an equal call."""

    name: str
    resource: str | None = None
    arguments: Mapping[str, Any] = {}

    def __str__(self) -> str:
        head = self.name if self.resource is None else f"{self.name}:{self.resource}"
        inside = ",".join(f"{key}={format_value(value)}" for key, value in self.arguments.items())
        needs_brackets = inside or head.endswith(")") or head != head.rstrip()
        return f"{head}({inside})" if needs_brackets else head


def parse_call(text: str) -> Call:
    """Parse a call string; raise a `WhyrankError` that quotes it when it is malformed."""
    head, arguments = _split_arguments(text.strip(), text)
    name, colon, resource = head.partition(":")
    if not _BARE.fullmatch(name := name.strip()) or (colon and not resource):
        raise WhyrankError(f"{_show(text)} is not a call string; write NAME, NAME:RESOURCE or NAME(key=value,...)")
    return Call(name, resource if colon else None, arguments)


def split_name(text: str) -> tuple[str, str]:
    """The name that a user chose for a call string, as in `prod=http:...`, and the call string; no name is empty."""
    name, _, call = text.partition("=")
    return (name.strip(), call.strip()) if name.strip() and call and not {":", "("} & set(name) else ("", text)


def format_value(value: Any) -> str:
    """Write a value so that it parses back: bare where a string needs no quotes, else a literal."""
    bare = isinstance(value, str) and _BARE.fullmatch(value) and value[0] not in _CLOSING
    return str(value) if bare and _literal(value) == value else _spell(value)


def arguments_of(obj: Any) -> dict[str, Any]:
    """Fields of a dataclass instance that differ from their defaults, as keyword arguments."""
    found = {}
    for field in dataclasses.fields(obj):
        factory = field.default_factory
        default = field.default if factory is dataclasses.MISSING else factory()
        if field.init and (value := getattr(obj, field.name)) != default:
            found[field.name] = value
    return found


def _split_arguments(text: str, whole: str) -> tuple[str, dict[str, Any]]:
    """Cut `head(arguments)` at the last bracket that closes at the end and has arguments behind it."""
    if not text.endswith(")"):
        return text, {}
    problem = WhyrankError(f"{_show(whole)}: the brackets do not match")
    for start in reversed([i for i, character in enumerate(text) if character == "("]):
        if _closing(text, start, {"(": ")"}) != len(text) - 1:
            continue
        try:
            return text[:start], _arguments(text[start + 1 : -1], whole)
        except WhyrankError as error:  # a bracket inside a quoted value, or a mistake: the first bracket knows best
            problem = error
    raise problem


def _closing(text: str, start: int, kinds: Mapping[str, str]) -> int | None:
    """Index of the bracket that closes the one at `start`, skipping quoted strings."""
    stack, i = [kinds[text[start]]], start + 1
    while i < len(text) and stack:
        quoted = _QUOTED.match(text, i)
        if quoted:
            i = quoted.end()
            continue
        if text[i] in kinds:
            stack.append(kinds[text[i]])
        elif text[i] == stack[-1]:
            stack.pop()
        elif text[i] in kinds.values():
            return None
        i += 1
    return None if stack else i - 1


def _arguments(inside: str, whole: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    rest = inside.strip()
    while rest:
        key = _KEY.match(rest)
        if not key:
            raise WhyrankError(f"{_show(whole)}: expected key=value at {_show(rest, whole)}")
        value, rest = _take_value(rest[key.end() :], whole)
        if key[1] in found:
            raise WhyrankError(f"{_show(whole)}: {key[1]!r} is given twice")
        found[key[1]] = value
        rest = rest.lstrip()
        if rest and rest[0] != ",":
            where = f"{_show(whole)}: expected a comma at {_show(rest, whole)}"
            raise WhyrankError(f"{where}; quote values with blanks or brackets")
        rest = rest[1:].lstrip()
    return found


def _take_value(rest: str, whole: str) -> tuple[Any, str]:
    """Read one value off the front of `rest`; give it and what follows."""
    quoted, bare = _QUOTED.match(rest), _BARE.match(rest)
    if quoted:
        return _evaluate(quoted[0], whole), rest[quoted.end() :]
    end = _closing(rest, 0, _CLOSING) if rest[:1] in _CLOSING else None
    if end is not None and not (bare and bare.end() > end):
        return _evaluate(rest[: end + 1], whole), rest[end + 1 :]
    if bare:
        return _literal(bare[0]), rest[bare.end() :]
    where = f"{_show(whole)}: a value is missing at {_show(rest, whole)}"
    raise WhyrankError(f"{where}; quote values with blanks or brackets")


def _evaluate(text: str, whole: str) -> Any:
    try:
        return ast.literal_eval(text)
    except _NOT_LITERAL:
        raise WhyrankError(f"{_show(whole)}: {_show(text, whole)} is not a Python literal") from None


def _show(part: str, whole: str = "") -> str:
    """A part of a call string for a message; with a URL, where a key may stand, only the beginning of the whole."""
    if "://" not in (whole or part):
        return repr(part)
    return "'…'" if whole else repr(re.sub(r"(.*?://)(?:[^/?(]*@)?([^/?(@]*).*", r"\1\2…", part, flags=re.DOTALL))


def _literal(text: str) -> Any:
    """The Python literal that `text` spells, or `text` itself; a `#` starts no comment here."""
    try:
        return text if "#" in text else ast.literal_eval(text)
    except _NOT_LITERAL:
        return text


def _spell(value: Any) -> str:
    """A Python literal for a value, with infinity as a number too large for a float."""
    match value.item() if isinstance(value, np.generic) else value:
        case float(number) if math.isnan(number):
            pass  # no literal spells it
        case float(number) if math.isinf(number):
            return "1e999" if number > 0 else "-1e999"
        case dict(items):
            return "{" + ", ".join(f"{_spell(k)}: {_spell(v)}" for k, v in items.items()) + "}"
        case list(items):
            return "[" + ", ".join(map(_spell, items)) + "]"
        case tuple(items):
            return "(" + ", ".join(map(_spell, items)) + ("," if len(items) == 1 else "") + ")"
        case None | str() | int() | float() as plain:
            return repr(plain)
    raise WhyrankError(f"{value!r} cannot be written in a call string; use strings, numbers, lists or dictionaries")
