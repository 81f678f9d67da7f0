"""The reference of the Python interface: every public name with its signature, its parameters and its examples."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import whyrank
from generate.markdown import paragraphs, prose, table
from whyrank.cli.command import attributes
from whyrank.studies import Pool
from whyrank.studies.axioms.axiom import LongQuery, QueryTerms, SimilarLength
from whyrank.studies.axioms.view import Hits, View

_SECTION = re.compile(r"^(Args|Attributes|Examples?|Returns|Raises):\n", re.MULTILINE)
_ARRAYS = {"Codes": "int32 array", "Ints": "int64 array", "Floats": "float64 array", "Flags": "bool array"}
_INTRODUCTION = """# Python

Everything that `import whyrank` offers. Rankers and collections are given as call strings or as objects."""
_AUTHORS = """# For authors

What the author of a [study](../extend/index.md) may ask. A `Pool` has the documents of a query, a `View` what
an axiom may use of them. The other classes are preconditions of axioms."""


def api_page() -> str:
    """The page in Markdown."""
    blocks = [_INTRODUCTION]
    names = sorted(whyrank.__all__, key=lambda name: (isinstance(getattr(whyrank, name), type), name.lower()))
    for name in names:
        thing = getattr(whyrank, name)  # `explain` is a package that is called as its function
        blocks += _entry(f"whyrank.{name}", getattr(thing, name) if inspect.ismodule(thing) else thing, "##")
    return "\n\n".join(blocks) + "\n"


def authors_page() -> str:
    """The page of what the author of a study may ask."""
    blocks = [_AUTHORS]
    for thing in (Pool, View, Hits, SimilarLength, QueryTerms, LongQuery):
        blocks += _entry(thing.__name__, thing, "##")
    return "\n\n".join(blocks) + "\n"


def _entry(name: str, thing: Any, level: str) -> Iterator[str]:
    """A function or a class, the methods and properties of a class after it."""
    yield f"{level} {'class ' if isinstance(thing, type) else ''}{name.removeprefix('whyrank.')}"
    yield f"```python\n{_signature(name, thing)}\n```"
    yield from _docstring(thing)
    if isinstance(thing, type):
        members = {key: member for key, member in vars(thing).items() if not key.startswith("_")}
        got = {key: getattr(each, "fget", getattr(each, "func", None)) for key, each in members.items()}
        if rows := [[f"`{key}`", _type(get), prose(inspect.getdoc(get) or "")] for key, get in got.items() if get]:
            yield table(["attribute", "type", "meaning"], rows)
        for key, member in members.items():
            inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if callable(inner) and not got[key]:
                yield from _entry(f"{thing.__name__}.{key}", inner, f"{level}#")


def _type(get: Any) -> str:
    """The type of a property as it is written, arrays by their numbers."""
    written = str(get.__annotations__["return"])
    return f"`{_ARRAYS.get(written, written)}`"


def _signature(name: str, thing: Any) -> str:
    """A call as one writes it, without types."""
    signature = inspect.signature(thing)
    kept = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name not in ("self", "cls")]
    text = f"{name}{signature.replace(parameters=kept, return_annotation=signature.empty)}"
    return textwrap.fill(text, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _docstring(thing: Any) -> Iterator[str]:
    """What the docstring says: text, a table of parameters, examples."""
    head, *rest = _SECTION.split(inspect.getdoc(getattr(thing, "func", thing)) or "")
    yield paragraphs(head)
    if helps := {key: value for key, value in attributes(thing).items() if value}:
        yield table(["parameter", "meaning"], [[f"`{key}`", prose(value)] for key, value in helps.items()])
    for title, text in zip(rest[::2], rest[1::2], strict=True):
        if title.startswith("Example") or title in ("Returns", "Raises"):
            yield f"**{title}:**"
            yield paragraphs(inspect.cleandoc(text))
