"""Commands from dataclasses: each field of a frozen dataclass is an option, its docstring the help.

    @dataclass(frozen=True, kw_only=True)
    class Count(Input):
        '''Count the documents of a collection.

Attributes:
            least: shorter documents do not count.
        '''

        least: Whole = 1

        def run(self) -> None: ...

    app.command("count")(command(Count))

The name of a field, with dashes, is the name of the option; its type and its default are those of the option; its
help stands in the section `Attributes:` (or `Args:`) of the class or of a base class. A tuple or a list of values is
an option that may be repeated, a bool is a flag, `argument()` makes a positional argument.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from whyrank.core import LARGEST, Range, WhyrankError, load_plugins

PLUGIN = "a Python file that registers probes, rankers and so on; repeatable (also WHYRANK_PLUGINS)."
SHORT = {"collection": "-c", "ranker": "-r", "out": "-o", "measure": "-m", "target": "-t", "surrogate": "-s"}
RANKERS = ("ranker", "target", "surrogate", "baseline")  # options whose values are call strings of rankers
METAVARS = {str: "TEXT", int: "N", float: "X"}
_SECTION = re.compile(r"^(?:Attributes|Args):\n", re.MULTILINE)
_ENTRY = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def argument(metavar: str, default: Any = MISSING) -> Any:
    """A field that is a positional argument."""
    return field(default=default, metadata={"argument": metavar})


def command(cls: type[Any]) -> Callable[..., None]:
    """A function for typer with a parameter for each field of a dataclass; it runs the instance that they make."""

    def run(**given: Any) -> None:
        cls(**values(cls, given)).run()

    return documented(run, description(cls), parameters(cls))


def documented(
    function: Callable[..., None], help_: str, options: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """The function with the help and the parameters that typer reads, and `--plugin`, which every command has."""

    def run(plugin: Sequence[str] | None = None, **given: Any) -> None:
        load_plugins(plugin or ())
        function(**given)

    run.__doc__ = help_
    named = typer.Option("--plugin", metavar="FILE", help=PLUGIN)
    last = inspect.Parameter(
        "plugin", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[list[str] | None, named]
    )
    run.__signature__ = inspect.Signature([*options, last])  # type: ignore[attr-defined]
    return run


def values(cls: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What typer gives for the fields of a dataclass, without defaults; an error for an empty value."""
    known = {each.name: each for each in fields(cls)}
    changed = {name: value for name, value in given.items() if value not in (None, [], known[name].default)}
    return {name: _value(known[name], value) for name, value in changed.items()}


def parameters(cls: type[Any], without: Sequence[str] = ()) -> list[inspect.Parameter]:
    """The parameters that typer reads as arguments and options; inherited ones come last."""
    hints, helps = get_type_hints(cls, include_extras=True), attributes(cls)
    order = list(dict.fromkeys(name for base in cls.__mro__ for name in inspect.get_annotations(base)))
    own = [each for each in fields(cls) if each.init and each.name not in without]
    own.sort(key=lambda each: order.index(each.name))
    return [_parameter(each, hints[each.name], helps.get(each.name, "")) for each in own]


def description(cls: type[Any]) -> str:
    """The docstring of a class without the sections on its attributes."""
    return _SECTION.split(inspect.getdoc(cls) or "")[0].strip()


def attributes(described: Any) -> dict[str, str]:
    """The lines of the sections `Attributes:` or `Args:` of a class and of its bases, or of a function, by name."""
    found: dict[str, str] = {}
    for base in reversed(getattr(described, "__mro__", (described,))):
        for section in _SECTION.split(inspect.cleandoc(base.__doc__ or ""))[1:]:
            found |= {name: " ".join(text.split()) for name, text in _ENTRY.findall(section)}
    return found


def option_name(field_name: str) -> str:
    """The option of a field: `run_` is --run."""
    return "--" + field_name.rstrip("_").replace("_", "-")


def refuse(request: Any, names: Sequence[str], why: str) -> None:
    """Raise an error for the first of some options that is given, although it has no meaning here."""
    for each in fields(request):
        if each.name in names and getattr(request, each.name) != each.default:
            raise WhyrankError(f"{option_name(each.name)} {why}")


def _parameter(each: Field[Any], hint: Any, help_: str) -> inspect.Parameter:
    kind, allowed, several = _kind(hint)
    required = each.default is MISSING and each.default_factory is MISSING
    default = each.default if kind is bool or not (required or several) else None
    settings: dict[str, Any] = {
        "help": help_,
        "show_default": default is not None and default is not False and default != "",
    }
    settings |= {"min": allowed.low, "max": None if allowed.high == LARGEST else allowed.high} if allowed else {}
    metavar = each.metadata.get("argument")
    if metavar:
        made: Any = typer.Argument(metavar=metavar, **settings)
    else:
        option = option_name(each.name)
        flags = f"{option}/--no-{option[2:]}" if kind is bool and default else option
        settings["metavar"] = None if kind is bool else METAVARS[kind]
        made = typer.Option(flags, *([SHORT[each.name]] if each.name in SHORT else []), **settings)
    wanted = Annotated[list[kind] if several else kind, made]  # type: ignore[valid-type]
    optional = wanted if required else Annotated[(list[kind] if several else kind) | None, made]  # type: ignore[valid-type]
    return inspect.Parameter(
        each.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else default,
        annotation=wanted if kind is bool else optional,
    )


def _kind(hint: Any) -> tuple[type[Any], Range | None, bool]:
    """The type of one value, which ones are allowed, and whether there may be several."""
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        kind, allowed, several = _kind(inner)
        return kind, next((mark for mark in marks if isinstance(mark, Range)), allowed), several
    if get_origin(hint) in (Union, types.UnionType):
        found = [_kind(part) for part in get_args(hint) if part is not type(None)]
        return found[0] if len(found) == 1 else (str, None, any(several for _, _, several in found))
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Sequence):
        kind, allowed, _ = _kind(get_args(hint)[0])
        return kind, allowed, True
    return (hint if hint in (bool, int, float) else str), None, False


def _value(each: Field[Any], given: Any) -> Any:
    """A value as it is; an error for an empty option; call strings of rankers without values that may be secrets."""
    if given == "" and "argument" not in each.metadata:
        raise WhyrankError(f"{option_name(each.name)} is empty; give a value or leave the option out")
    if isinstance(given, list):
        return tuple(_value(each, one) for one in given)
    if each.name in RANKERS and "://" in given:
        from whyrank.core import split_name
        from whyrank.rankers import hide_values

        name, call = split_name(given)
        return f"{name}={hide_values(call)}" if name else hide_values(call)
    return given
