"""A run for a collection: one of its own by name, or a file; and what is odd about it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from whyrank.core import BadInput
from whyrank.data.collection import Collection, References
from whyrank.data.trec import Run, read_run


class OpenedRun(NamedTuple):
    """A run and notes on what it mentions that the collection does not have."""

    run: Run
    notes: list[str]


def open_run(collection: Collection, name: str, strict: bool = False) -> OpenedRun:
    """The run of this name, else the run file at this path; an error when it has no query of the collection."""
    opened = _own(collection, name) if name in collection.runs else _file(collection, name, strict)
    if opened.run and not opened.run.keys() & collection.queries.keys():
        raise BadInput(name, f"has no query of collection {collection.name}", "take a run of its queries")
    return opened


def _own(collection: Collection, name: str) -> OpenedRun:
    """A run of the collection; what is odd about it joins the notes of the collection when it is read."""
    known = len(collection.notes)
    run = collection.runs[name]
    return OpenedRun(run, list(collection.notes[known:]))


def _file(collection: Collection, name: str, strict: bool) -> OpenedRun:
    if not Path(name).exists():
        runs = ", ".join(collection.runs) or "none"
        remedy = f"runs of {collection.name}: {runs}; `whyrank rank -r bm25 --out FILE` writes one"
        raise BadInput(name, "there is no such run file", remedy)
    run = read_run(name)
    return OpenedRun(run, References(collection.queries, collection.docs, strict).check(Path(name), run))


def first_stage(collection: Collection) -> str | None:
    """The name of the run that candidates come from: the collection's BM25 run, else its only one."""
    names = list(collection.runs)
    plain = [name for name in names if name.lower().split(".")[0] == "bm25"]
    return (plain or names)[0] if plain or len(names) == 1 else None
