"""What the annotation of a parameter does not allow is refused wherever things are made, in one line that names it."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import pytest

from whyrank.cli.listing import registries
from whyrank.core import Call, Range, Share, UnknownName, Whole, WhyrankError, check, hints_of
from whyrank.rankers.lexical import BM25
from whyrank.text.edits import edits, options_of

KINDS = ("probes", "axioms", "bias_studies", "bias_filters", "rankers", "networks", "table_learners", "analyzers",
         "pair_layouts", "collections", "executors")  # fmt: skip
WRONG = {bool: ["yes", 1], str: [["x"]], int: [1.5, True, "1"], float: [math.nan, -math.inf, True, "1"]}


def wrong(hint):
    """Values just outside of an annotation of one type."""
    kinds = (
        [each for each in get_args(hint) if each is not NoneType]
        if get_origin(hint) in (Union, UnionType)
        else [hint]
    )
    if len(kinds) > 1:
        return []
    if get_origin(kinds[0]) is Literal:
        return [f"{get_args(kinds[0])[0]}x", 3]
    if get_origin(kinds[0]) is not Annotated:
        return WRONG.get(kinds[0], [])
    kind, (low, high, strict) = get_args(kinds[0])
    if strict:
        return [low, high, math.nan]
    if kind is int:
        return [low - 1, 1.5] + ([high + 1] if high < 1e9 else [])
    return [math.nan, math.nextafter(high, math.inf)] + ([math.nextafter(low, -math.inf)] if low > -math.inf else [])


def parameters(registry, name):
    """The annotations of the parameters of a registered thing, and what must be given besides."""
    factory = registry.factory(name)
    if hasattr(factory, "make"):
        declared, made = factory.arguments, type(factory.make(name))
        names, hints = declared(name) if callable(declared) else declared, hints_of(made)
        if name.startswith("edited/"):
            edit = edits.factory(name.removeprefix("edited/"))
            hints = hints | {key: hints_of(edit)[key] for key in options_of(edit)}
        return {key: hints[key] for key in names}, {}
    given = inspect.signature(factory).parameters.values()
    needed = {each.name: "x" for each in given if each.default is each.empty and each.kind is not each.VAR_KEYWORD}
    hints = hints_of(factory)
    return {each.name: hints[each.name] for each in given if each.name in hints}, needed


@pytest.mark.parametrize("kind", KINDS)
def test_every_registered_thing_refuses_what_its_annotations_do_not_allow(kind):
    registry, tried = registries()[kind], 0
    for name in registry.names():
        hints, needed = parameters(registry, name)
        for parameter, value in ((key, value) for key, hint in hints.items() for value in wrong(hint)):
            with pytest.raises(WhyrankError, match=rf"{parameter}( must be [^\n]*, not | ')[^\n]*\Z"):
                registry.build(Call(name, None, {**needed, parameter: value}))
            tried += 1
    assert tried


@pytest.mark.parametrize(("value", "hint", "message"), [
    (1.5, Share, "b must be a number between 0 and 1, not 1.5"),
    (math.inf, Annotated[float, Range(0, strict=True)], "b must be a number between 0 and infinity (both excluded), not inf"),
    (math.nan, float, "b must be a number, not nan"),
    (0, Whole | None, "b must be a whole number, 1 or more, not 0"),
    (21, Annotated[int, Range(1, 20)], "b must be a whole number between 1 and 20, not 21"),
    (1, bool, "b must be True or False, not 1"),
    (3, str | None, "b must be text, not 3; write it in quotes"),
    (3, Literal[1, 2], "unknown value of b '3'; known: 1, 2"),
    ("Exakt", Literal["exact", "fast"] | None, "unknown value of b 'Exakt'; did you mean 'exact'?"),
])  # fmt: skip
def test_the_message_says_what_is_allowed(value, hint, message):
    with pytest.raises(WhyrankError) as caught:
        check("b", value, hint)
    assert str(caught.value) == message
    assert isinstance(caught.value, UnknownName) == ("unknown" in message)


@pytest.mark.parametrize(("value", "hint"), [
    (0, Share), (1.0, Share), (Path("x"), str), (None, Whole | None), (1, Whole), (-math.inf, Annotated[float, Range(-math.inf)]),
    ("x", int | str), ([1], "list[int]"), ({"a": object()}, dict[str, int]), ("fast", Literal["exact", "fast"]),
])  # fmt: skip
def test_what_is_allowed_or_not_understood_passes(value, hint):
    check("b", value, hint)


def test_values_stay_as_they_are_written():
    ranker = BM25(k1=1, b=0)
    assert (type(ranker.k1), type(ranker.b), ranker.name) == (int, int, "bm25(k1=1,b=0)")
    with pytest.raises(WhyrankError, match=r"bm25: b must be a number between 0 and 1, not 1\.5"):
        BM25(b=1.5)
