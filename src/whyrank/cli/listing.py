"""`whyrank list`: what is registered, with one line each, and the parameters of one thing."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from whyrank.cli.command import argument, attributes, description
from whyrank.cli.console import table
from whyrank.cli.studies import StudyOptions
from whyrank.core import UnknownName, format_value, hints_of, in_words

if TYPE_CHECKING:
    from whyrank.core import Registry

EDITED = "edited/"


@dataclass(frozen=True, kw_only=True)
class ListCommand:
    """List what is registered, that of installed plugins included; of one thing its parameters.

    Attributes:
        what: kinds (probes, axioms, characteristics, edits, query_strategies, rankers, analyzers, collections, ...),
            or names of things, such as bm25 or axiom/TFC1; all kinds when none.
        json: print JSON on standard output.
    """

    what: tuple[str, ...] = argument("KIND|NAME", ())
    json: bool = False

    def run(self) -> None:
        """List."""
        known = registries()
        found: dict[str, Any] = {}
        for each in self.what or known:
            if each in known:
                found[each] = {name: _line(known[each], name) for name in known[each].names()}
                continue
            homes = [registry for registry in known.values() if each in registry]
            if not homes:
                names = [name for registry in known.values() for name in registry.names()]
                raise UnknownName("kind or name", each, [*known, *names])
            for registry in homes:
                found[f"{registry.one} {each}"] = _parameters(registry, each)
        if self.json:
            print(json.dumps(found, indent=1))
            return
        for title, rows in found.items():
            if title in known:
                table(title, ["name", "what it is"], [[name, line] for name, line in rows.items()], left=2)
                continue
            shown = [[name, *each.values()] for name, each in rows["parameters"].items()]
            table(f"{title}: {rows['line']}", ["parameter", "default", "values", "what it is"], shown, left=4)


def registries() -> dict[str, Registry[Any]]:
    """All registries by kind."""
    from whyrank.core import executors
    from whyrank.data import collections
    from whyrank.data.pairs import pair_layouts
    from whyrank.learners import table_learners
    from whyrank.networks import networks
    from whyrank.rankers import rankers
    from whyrank.studies.axioms import axioms
    from whyrank.studies.bias import bias_filters, bias_studies
    from whyrank.studies.probes import probes, query_strategies
    from whyrank.studies.probes.characteristics import characteristics
    from whyrank.text import analyzers
    from whyrank.text.edits import edits

    studies = (probes, axioms, bias_studies, bias_filters, characteristics, edits, query_strategies)
    rest = (rankers, networks, table_learners, analyzers, collections, pair_layouts, executors)
    return {registry.kind: registry for registry in (*studies, *rest)}


def _line(registry: Registry[Any], name: str) -> str:
    """What a study favours, else the first line of the factory's docstring."""
    factory = registry.factory(name)
    if hasattr(factory, "make"):
        return str(factory.make(name).positive)
    return (inspect.getdoc(factory) or "").split("\n")[0]


def _parameters(registry: Registry[Any], name: str) -> dict[str, Any]:
    """One line on a thing, and its parameters with their defaults and what they are."""
    from whyrank.text.edits import edits, options_of

    factory = registry.factory(name)
    if hasattr(factory, "make"):  # a family, whose members have the values
        member = factory.make(name)
        declared = getattr(factory, "arguments", ())
        defaults = {key: getattr(member, key, None) for key in (declared(name) if callable(declared) else declared)}
        documented: Any = type(member)
    else:
        documented, defaults = factory, _defaults(factory)
    helps = attributes(StudyOptions) | attributes(documented)  # an option fills the parameter of the same name
    hints = hints_of(documented)
    if name.startswith(EDITED):
        edit = edits.factory(name.removeprefix(EDITED))
        helps, hints = helps | attributes(edit), hints_of(edit) | hints
        defaults |= {key: value for key, value in _defaults(edit).items() if key in options_of(edit)}
    shown = {
        key: {"default": "required" if value is inspect.Parameter.empty else format_value(value),
              "values": in_words(hints.get(key)), "help": helps.get(key, "")}
        for key, value in defaults.items()
    }  # fmt: skip
    return {"line": _line(registry, name) or description(documented), "parameters": shown}


def _defaults(factory: Any) -> dict[str, Any]:
    """The parameters of a class or a function with their defaults."""
    given = inspect.signature(factory).parameters.values()
    found = {each.name: each.default for each in given if each.kind is not each.VAR_KEYWORD}
    made = {each.name: each.default_factory for each in fields(factory)} if is_dataclass(factory) else {}
    return found | {name: make() for name, make in made.items() if make is not MISSING and name in found}
