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
from whyrank.studies.axioms import View

_SECTION = re.compile(r"^(Args|Attributes|Examples?|Returns|Raises):\n", re.MULTILINE)
_INTRODUCTION = """# Python

Everything that `import whyrank` offers. Rankers and collections are given as call strings or as objects. Two classes
at the end are what a study of your own is given: an axiom a `View`, a characteristic a `Pool`."""


def api_page() -> str:
    """The page in Markdown."""
    blocks = [_INTRODUCTION]
    names = sorted(whyrank.__all__, key=lambda name: (isinstance(getattr(whyrank, name), type), name.lower()))
    for name in names:
        blocks += _entry(f"whyrank.{name}", getattr(whyrank, name), "##")
    for given in (View, Pool):
        blocks += _entry(given.__name__, given, "##")
    return "\n\n".join(blocks) + "\n"


def _entry(name: str, thing: Any, level: str) -> Iterator[str]:
    """A function or a class, the methods and properties of a class after it."""
    yield f"{level} {'class ' if isinstance(thing, type) else ''}{name.removeprefix('whyrank.')}"
    yield f"```python\n{_signature(name, thing)}\n```"
    yield from _docstring(thing)
    if isinstance(thing, type):
        for key, member in vars(thing).items():
            inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if not key.startswith("_") and (callable(inner) or hasattr(inner, "func") or isinstance(inner, property)):
                yield from _entry(f"{thing.__name__}.{key}", inner, f"{level}#")


def _signature(name: str, thing: Any) -> str:
    """A call as one writes it, without types."""
    if not callable(thing):
        return name
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
