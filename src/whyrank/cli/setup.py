"""From options to objects: collection, rankers, engine, studies."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from whyrank.cli import stopping
from whyrank.core import printable

if TYPE_CHECKING:
    from whyrank.cli.request import Request
    from whyrank.core import Ranker, Study
    from whyrank.data import Collection, Run
    from whyrank.scoring import Engine, Failure
    from whyrank.studies import Candidates, Catalogue, Options

BUNDLED_RANKERS = ("bm25", "ql")
BUNDLED_MODEL = "cross:bundled"
_OF_MODELS = ("torch", "transformers", "tokenizers", "safetensors")


def plural(count: int, one: str, many: str = "") -> str:
    """A number and what it counts."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def say(text: str) -> None:
    """A line for the person at the terminal; standard output stays free for results."""
    print(printable(text), file=sys.stderr)


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
    specs: Sequence[str] | None,
    collection: Collection | None,
    analyzer: str,
    stats: str | None,
    precision: str | None = None,
    typed: bool = False,
) -> list[Ranker]:
    """Make the rankers that are asked for, the bundled ones when none are; `typed` as in `Setting`."""
    from whyrank.core import UnknownName, WhyrankError
    from whyrank.rankers import Setting, open_ranker
    from whyrank.rankers.neural import PRECISIONS

    if precision is not None and precision not in PRECISIONS:
        raise UnknownName("value of --precision", precision, PRECISIONS)
    setting = Setting(collection, analyzer, stats, precision, typed)
    found = [open_ranker(spec, setting) for spec in specs or BUNDLED_RANKERS]
    names = [ranker.name for ranker in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise WhyrankError(f"ranker {twice[0]!r} is given twice")
    return found


def audited_rankers() -> tuple[list[str], list[str]]:
    """The bundled rankers that can run here, with a note where the neural one cannot; nothing is imported for it."""
    lacking = [name for name in _OF_MODELS if find_spec(name) is None]
    if not lacking:
        return [*BUNDLED_RANKERS, BUNDLED_MODEL], []
    how = "pip install 'whyrank[models]'"
    return [*BUNDLED_RANKERS], [f"{BUNDLED_MODEL}, a neural ranker, is left out: it needs {lacking[0]}; {how}"]


def make_engine(
    executor: str, batch_size: int | None, store: str | None, fresh: bool = False, timeout: float | None = None
) -> Engine:
    """An engine with the user's score store, another one, or none; a time limit needs a process to kill."""
    from whyrank.core import Processes, Serial, WhyrankError, cache_folder
    from whyrank.core import executor as executor_named
    from whyrank.scoring import Engine, ScoreStore

    if store != "none":
        stopping.keeps(stopping.SCORES)
    kept = None if store == "none" else ScoreStore(store or cache_folder() / "scores.sqlite")
    made = executor_named(executor)
    if timeout is not None:
        made = Processes(1) if isinstance(made, Serial) else made
        if not isinstance(made, Processes):
            raise WhyrankError(f"--timeout needs the executor serial or processes, not {executor}")
        made = replace(made, timeout=timeout)
    return Engine(kept, made, batch_size, fresh, warn=lambda text: say(f"warning: {text}"))


class Studies(NamedTuple):
    """The studies that are asked for by name, and notes on those that patterns found but that cannot run here."""

    studies: dict[str, Study]
    notes: list[str]


def open_studies(
    patterns: Sequence[str], catalogue: Catalogue, request: Request, by_kind: Mapping[str, Options] | None = None
) -> tuple[Collection, Studies]:
    """The collection, and the studies over it; a wrong name shows before a large collection is read."""
    from whyrank.studies import unjudged_options

    made = make_studies(patterns, catalogue, request, by_kind)
    collection = open_collection(request.collection, request.strict)
    if request.pairs or collection.qrels or not _of_axioms(made.studies, catalogue):
        return collection, made
    options = unjudged_options(collection, request.candidates)
    if not options:
        note = f"{collection.name} has neither judgements nor a run to pair documents of; give --candidates RUN"
        return collection, Studies(made.studies, [*made.notes, note])
    again = make_studies(patterns, catalogue, request, {**(by_kind or {}), **options})
    return collection, _paired_by_run(made, again, collection.name)


def _paired_by_run(made: Studies, again: Studies, collection: str) -> Studies:
    """The studies made again to pair documents of a run, with a note where that changed any."""
    changed = [n for n, study in made.studies.items() if study.id != again.studies[n].id]
    if not changed:
        return made
    study: Any = again.studies[changed[0]]
    run = study.candidates or "the run"
    note = f"{collection} has no judgements, so axioms pair {study.pairs} of {run} (--pairs, --candidates)"
    return Studies(again.studies, [*again.notes, note])


def make_studies(
    patterns: Sequence[str], catalogue: Catalogue, request: Request, by_kind: Mapping[str, Options] | None = None
) -> Studies:
    """Studies by call string (what contains a bracket) or by glob; options fill what a study accepts."""
    from whyrank.core import WhyrankError

    names = [name for pattern in patterns for name in catalogue.match(pattern)]
    found = catalogue.make(names, _options(request), by_kind)
    modeless = _without_mode(found, catalogue, request.compat)
    lacking = {name: getattr(study, "unavailable", "") for name, study in found.items() if name not in patterns}
    notes = _left_out({name: reason for name, reason in lacking.items() if reason})
    studies = {name: study for name, study in found.items() if not lacking.get(name)}
    if not studies:
        raise WhyrankError("; ".join(notes))
    return Studies(studies, [*notes, *modeless])


def _of_axioms(studies: Mapping[str, Study], catalogue: Catalogue) -> list[str]:
    return [name for name in studies if catalogue.home(name).kind == "axioms"]


def _without_mode(studies: Mapping[str, Study], catalogue: Catalogue, mode: str | None) -> list[str]:
    """A note on axioms that have no such compat mode: they are asked as they are."""
    axioms = _of_axioms(studies, catalogue) if mode == "camara-hauff" else []
    plain = [name for name in axioms if getattr(studies[name], "compat", None) != mode]
    return [f"asked as they are, because they have no mode {mode}: {', '.join(plain)}"] if plain else []


def _options(request: Request) -> dict[str, Any]:
    """What the request says that studies may accept."""
    from whyrank.cli.options import token_limit

    from_run = (request.pairs or "judged") != "judged"  # else the run is for the calibration of delta only
    given = {"analyzer": request.analyzer, "compat": request.compat, "pairs": request.pairs, "seed": request.seed,
             "candidates": request.candidates if from_run else None, "tolerance": request.tolerance,
             "stats": request.stats}  # fmt: skip
    found = {name: value for name, value in given.items() if value is not None}
    return found | token_limit(request.max_tokens)


def _left_out(lacking: Mapping[str, str]) -> list[str]:
    """One note per reason, with the studies that it keeps from running."""
    reasons: dict[str, list[str]] = {}
    for name, reason in lacking.items():
        reasons.setdefault(reason, []).append(name)
    return [f"left out, because {reason}: {', '.join(names)}" for reason, names in reasons.items()]


def delta_candidates(collection: Collection, delta_from: str | None, run: str | None, strict: bool) -> Candidates:
    """Where delta is calibrated: the collection's own candidates, or another collection's."""
    from whyrank.studies import candidates_for_delta

    return (
        candidates_for_delta(open_collection(delta_from, strict))
        if delta_from
        else candidates_for_delta(collection, run)
    )


def computed(rankers: Sequence[Ranker]) -> list[str]:
    """One line for each ranker, or part of one, whose scores were not computed by torch in fp32."""
    from whyrank.rankers.neural import lines_of

    return [line for ranker in rankers for line in lines_of(ranker)]


def report_failures(failures: Sequence[Failure]) -> None:
    """Say how many pairs have no finite score, and name the first."""
    from whyrank.scoring import one_line

    if failures:
        first = failures[0]
        text = first.doc if len(first.doc) <= 80 else first.doc[:77] + "..."
        where = f"{one_line(first.reason)} for query {first.query!r}, text {text!r}"
        have = "has" if len(failures) == 1 else "have"
        say(f"note: {plural(len(failures), 'pair')} {have} no finite score; the first: {where}")
