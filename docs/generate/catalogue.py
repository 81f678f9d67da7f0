"""The reference of everything that has a name: studies, rankers, analyzers, learners of tables and the rest."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from generate.markdown import code, paragraphs, prose, table
from whyrank.cli.command import description
from whyrank.cli.listing import ListCommand, registries

PROBES = {
    "matched": "Two documents of a query that are equal in one characteristic and differ in another.",
    "edited": "A document, and the same document with one thing changed.",
    "transferred": "Pairs of texts from a data set that was made for another task.",
}
OTHERS = ("characteristics", "edits", "query_strategies", "pair_layouts", "bias_filters", "collections", "networks",
          "executors")  # fmt: skip
_CALLS = "Names and parameters make [call strings](command-line.md#call-strings). `whyrank list NAME` prints them."


def catalogue_pages() -> dict[str, str]:
    """The pages in Markdown, by name."""
    known = registries()
    learners = "Ways to learn a term table, for `whyrank tables learn NAME` and `whyrank.learn`."
    others = "Everything else that has a name: what studies, rankers and commands use."
    pages = {
        "rankers": ["# Rankers", f"All rankers by name. {_CALLS}", *_entries(known["rankers"])],
        "analyzers": ["# Analyzers", f"An analyzer turns a text into terms. {_CALLS}", *_entries(known["analyzers"])],
        "learners": ["# Table learners", learners, *_entries(known["table_learners"])],
        "studies": ["# Studies", f"Every study, and what a positive score means. {_CALLS}", *_studies(known)],
        "names": ["# Other names", others],
    }
    for kind in OTHERS:
        title = f"## {kind.replace('_', ' ').capitalize()}"
        pages["names"] += [title, f"Entry points of plugins: `whyrank.{kind}`.", _list(known[kind])]
    return {name: "\n\n".join(blocks) + "\n" for name, blocks in pages.items()}


def _studies(known: Mapping[str, Any]) -> Iterator[str]:
    """The blocks of the page of studies, a section for each family."""
    for family, says in PROBES.items():
        yield f"## {family.capitalize()}"
        yield says
        yield from _family([name for name in known["probes"].names() if name.startswith(f"{family}/")])
    yield "## Axioms"
    yield "Which of two documents must win. [Axioms](axioms.md) has each with its formula and its parameters."
    yield _list(known["axioms"])
    yield "## Bias"
    yield "One text with one value of a class after another, such as brands of cars."
    yield from _family(known["bias_studies"].names())


def _family(names: list[str]) -> Iterator[str]:
    """What a positive score of each study means, the parameters that all have, and those that some have."""
    found = dict(zip(names, _details(names), strict=True))
    lines = [[code(name), prose(each["line"])] for name, each in found.items()]
    yield table(["study", "a positive score: the ranker"], lines)
    given = [each["parameters"] for each in found.values()]
    shared = {key: each for key, each in given[0].items() if all(other.get(key) == each for other in given)}
    yield "Parameters of all of them:"
    yield _parameters(shared)
    if any(set(each) - set(shared) for each in given):
        yield "Parameters of single studies:"
        single = [(name, row) for name, each in found.items() for row in _rows(each["parameters"], shared)]
        yield table(
            ["study", "parameter", "default", "values", "meaning"], [[code(name), *row] for name, row in single]
        )


def _entries(registry: Any) -> Iterator[str]:
    """A section for each name: what its docstring says, and its parameters."""
    names = registry.names()
    for name, details in zip(names, _details(names, registry.one), strict=True):
        yield f"## {name}"
        yield paragraphs(description(registry.factory(name)))
        if details["parameters"]:
            yield _parameters(details["parameters"])


def _list(registry: Any) -> str:
    """A line for each name."""
    lines = {name: (inspect.getdoc(registry.factory(name)) or "").partition("\n")[0] for name in registry.names()}
    return table(["name", "what it is"], [[code(name), prose(line)] for name, line in lines.items()])


def _parameters(listed: Mapping[str, Any]) -> str:
    return table(["parameter", "default", "values", "meaning"], _rows(listed))


def _rows(listed: Mapping[str, Any], without: Iterable[str] = ()) -> list[list[str]]:
    """The cells of parameters: name, default, values, meaning."""
    kept = {name: each for name, each in listed.items() if name not in without}
    return [[code(name), code(each["default"]), each["values"], prose(each["help"])] for name, each in kept.items()]


def _details(names: Iterable[str], one: str | None = None) -> list[Any]:
    """What `whyrank list NAME...` says of each name; of things of one kind where several kinds have the name."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        ListCommand(what=tuple(names), json=True).run()
    found = json.loads(printed.getvalue())
    return [details for title, details in found.items() if one is None or title.startswith(f"{one} ")]
