"""`whyrank list`: what is registered, with one line each."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyrank.cli import options as o

if TYPE_CHECKING:
    from whyrank.core import Registry

Kinds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND]...",
        help="probes, axioms, characteristics, edits, query_strategies, rankers, analyzers, collections, ...",
    ),
]


def list_(kinds: Kinds = None, json_: o.JsonOption = False) -> None:
    """List what is registered, that of installed plugins included."""
    from whyrank.core import UnknownName

    known = _registries()
    for kind in kinds or []:
        if kind not in known:
            raise UnknownName("kind", kind, known)
    chosen = {kind: _described(known[kind]) for kind in kinds or known}
    print(json.dumps(chosen, indent=1)) if json_ else _show(chosen)


def _registries() -> dict[str, Registry[Any]]:
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


def _described(registry: Registry[Any]) -> dict[str, str]:
    return {name: _line(registry, name) for name in registry.names()}


def _line(registry: Registry[Any], name: str) -> str:
    """What a study favours, else the first line of the factory's docstring."""
    factory = registry.factory(name)
    if hasattr(factory, "make"):
        return str(factory.make(name).positive)
    return (inspect.getdoc(factory) or "").split("\n")[0]


def _show(chosen: dict[str, dict[str, str]]) -> None:
    from whyrank.cli.show import table

    for kind, rows in chosen.items():
        table(kind, ["name", "what it is"], [[name, line] for name, line in rows.items()], left=2)
