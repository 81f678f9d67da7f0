"""From options to objects: collection, rankers, engine, studies."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from whyrank.audit.thresholds import Candidates
    from whyrank.cli.request import Request
    from whyrank.core.protocols import Ranker, Study
    from whyrank.core.registry import Registry
    from whyrank.data import Collection, Run
    from whyrank.scoring import Engine, Failure

BUNDLED_RANKERS = ("bm25", "ql")


def plural(count: int, one: str, many: str = "") -> str:
    """A number and what it counts."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def say(text: str) -> None:
    """A line for the person at the terminal; standard output stays free for results."""
    print(text, file=sys.stderr)


def open_collection(spec: str, strict: bool) -> Collection:
    """Open a collection and say what was odd in it."""
    from whyrank import data

    collection = data.open_collection(spec, strict)
    for note in collection.notes:
        say(f"note: {collection.name}: {note}")
    return collection


def open_run(collection: Collection, name: str, strict: bool) -> Run:
    """Open a run of the collection or a run file, and say what was odd in it."""
    from whyrank import data

    run, notes = data.open_run(collection, name, strict)
    for note in notes:
        say(f"note: {note}")
    return run


def open_rankers(
    specs: Sequence[str] | None, collection: Collection | None, analyzer: str, stats: str | None
) -> list[Ranker]:
    """Make the rankers that are asked for, the bundled ones when none are."""
    from whyrank.core.errors import WhyrankError
    from whyrank.rankers import Setting, open_ranker

    setting = Setting(collection, analyzer, stats)
    found = [open_ranker(spec, setting) for spec in specs or BUNDLED_RANKERS]
    names = [ranker.name for ranker in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise WhyrankError(f"ranker {twice[0]!r} is given twice")
    return found


def make_engine(executor: str, batch_size: int | None, store: str | None) -> Engine:
    """An engine with the user's score store, another one, or none."""
    from whyrank.core.files import cache_folder
    from whyrank.scoring import Engine, ScoreStore
    from whyrank.scoring import executor as executor_named

    kept = None if store == "none" else ScoreStore(store or cache_folder() / "scores.sqlite")
    return Engine(kept, executor_named(executor), batch_size)


class Studies(NamedTuple):
    """The studies that are asked for by name, and notes on those that patterns found but that cannot run here."""

    studies: dict[str, Study]
    notes: list[str]


def make_studies(patterns: Sequence[str], registry: Registry[Any], request: Request) -> Studies:
    """Studies by call string (what contains a bracket) or by glob; options fill what a study accepts."""
    from whyrank.core.errors import WhyrankError

    top = (request.pairs or "").startswith("top:")
    given = {"analyzer": request.analyzer, "compat": request.compat, "pairs": request.pairs, "seed": request.seed,
             "candidates": request.candidates if top else None, "tolerance": request.tolerance}  # fmt: skip
    defaults = {name: value for name, value in given.items() if value is not None}
    names = [name for pattern in patterns for name in ([pattern] if "(" in pattern else registry.match(pattern))]
    found = {name: registry.create(name, **defaults) for name in names}
    lacking = {name: getattr(study, "unavailable", "") for name, study in found.items() if name not in patterns}
    notes = _left_out({name: reason for name, reason in lacking.items() if reason})
    studies = {name: study for name, study in found.items() if not lacking.get(name)}
    if not studies:
        raise WhyrankError("; ".join(notes))
    return Studies(studies, notes)


def _left_out(lacking: Mapping[str, str]) -> list[str]:
    """One note per reason, with the studies that it keeps from running."""
    reasons: dict[str, list[str]] = {}
    for name, reason in lacking.items():
        reasons.setdefault(reason, []).append(name)
    return [f"left out, because {reason}: {', '.join(names)}" for reason, names in reasons.items()]


def delta_candidates(collection: Collection, delta_from: str | None, run: str | None, strict: bool) -> Candidates:
    """Where delta is calibrated: the collection's own candidates, or another collection's."""
    from whyrank.audit.thresholds import candidates_for_delta

    return (
        candidates_for_delta(open_collection(delta_from, strict))
        if delta_from
        else candidates_for_delta(collection, run)
    )


def report_failures(failures: Sequence[Failure]) -> None:
    """Say how many pairs have no finite score, and name the first."""
    if failures:
        first = failures[0]
        text = first.doc if len(first.doc) <= 80 else first.doc[:77] + "..."
        where = f"{first.reason} for query {first.query!r}, text {text!r}"
        say(f"note: {len(failures):,} pairs have no finite score; the first: {where}")
