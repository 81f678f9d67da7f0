"""`whyrank tables surprises`: what is odd in a term table, how sure that is, and what the ranker says to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import setup

if TYPE_CHECKING:
    from whyrank.data import Collection
    from whyrank.learners.surprises import Discovery, Surprise
    from whyrank.tables import TermTable

TableFile = Annotated[
    str, typer.Argument(metavar="TABLE", help="A term table: .parquet, .arrow, .tsv or .tsv.gz.", show_default=False)
]
CollectionFor = Annotated[
    str | None,
    typer.Option("--collection", "-c", metavar="SPEC", help="For corpus evidence, and for the studies of --run."),
]
RankerFor = Annotated[
    str | None,
    typer.Option("--ranker", "-r", metavar="SPEC", help="Who is asked with --run.", callback=o.hide_secrets),
]
Run = Annotated[bool, typer.Option("--run", help="Put the studies to the ranker: which surprises are confirmed?")]
VectorsFor = Annotated[
    str | None, typer.Option("--vectors", metavar="SPEC", help="Word vectors, for classes of near terms.")
]
Pipeline = Annotated[
    str | None,
    typer.Option("--pipeline", metavar="NAME|none", help="For entity types in the collection; spaCy's if installed."),
]
Values = Annotated[str | None, typer.Option("--values", metavar="FILE|a+b+c", help="A class of your own.")]
Top = Annotated[
    int, typer.Option("--top", metavar="N", help="How many of each kind to show; with --run, to ask about.", min=1)
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", help="With --run: at most N templates of a study, drawn at random.", min=1),
]
_CAPTION = """value: the value against its class, over query terms; spread: a class for one query term
appended: a character at the end of a word; evidence: terms together in n documents, by chance in 'others'
* p < {alpha:g} after correction ({correction}) over {tests:,} tests"""


def surprises(
    table: TableFile, collection: CollectionFor = None, ranker: RankerFor = None, run: Run = False,
    vectors: VectorsFor = None, pipeline: Pipeline = None, values: Values = None, top: Top = 5,
    limit: Limit = None, alpha: o.AlphaOption = 0.05, correction: o.CorrectionOption = "bh", seed: o.SeedOption = 0,
    store: o.StoreOption = None, out: o.OutOption = None, json_: o.JsonOption = False,
) -> None:  # fmt: skip
    """Rank a table for surprises, each with its test and the study to run on it; --run runs those studies."""
    from whyrank.core import WhyrankError
    from whyrank.learners.surprises import Looking
    from whyrank.learners.surprises import surprises as search
    from whyrank.tables import open_table
    from whyrank.text.vectors import open_vectors

    o.check_filled(collection=collection, ranker=ranker, vectors=vectors, values=values, out=out)
    _check(run, ranker, collection, correction, limit)
    _check_places(out, pipeline, collection)
    opened, known = open_table(table, check=True), open_vectors(vectors) if vectors else None
    texts = setup.open_collection(collection, False) if collection else None
    chosen = _pipeline(pipeline, texts is not None)
    found = search(opened, Looking(known, chosen, values, texts, correction, seed=seed))
    shown = found.first(top)
    if run and ranker and texts is not None:
        sure = [surprise for surprise in shown if surprise.p_adjusted < alpha and surprise.study]
        shown = _asked(sure, ranker, texts, store, opened, alpha, seed, limit)
    _give(found, shown, out, json_, alpha, correction)
    _conclude(table, opened, found, shown, alpha, run)
    if run and shown and all(surprise.outcome.startswith("not answered") for surprise in shown):
        raise WhyrankError(f"ranker {ranker!r} has no finite score for any text; take one that scores any text")


def _check(run: bool, ranker: str | None, collection: str | None, correction: str, limit: int | None) -> None:
    from whyrank.core import WhyrankError, adjust

    adjust([], correction)
    if run and not (ranker and collection):
        raise WhyrankError("--run needs --ranker SPEC and --collection SPEC: who is asked, and about which texts")
    if ranker and not run:
        raise WhyrankError("--ranker is for --run, which puts the studies to it")
    if limit is not None and not run:
        raise WhyrankError("--limit is for --run: the most templates of a study")


def _check_places(out: str | None, pipeline: str | None, collection: str | None) -> None:
    from whyrank.core import BadInput, WhyrankError, check_place

    if out is not None and not out.endswith(".json"):
        raise BadInput(out, "surprises cannot be written so", "end the name in .json")
    if out is not None:
        check_place(out)
    if pipeline not in (None, "none") and collection is None:
        raise WhyrankError(f"--pipeline {pipeline} finds entity types in texts; give them with --collection SPEC")


def _pipeline(given: str | None, texts: bool) -> str | None:
    """The pipeline that finds entity types in texts: the given one, else the English one where it is installed."""
    from whyrank.core import WhyrankError
    from whyrank.text.annotation import ENGLISH, find_pipeline

    if given == "none" or (given is None and not texts):
        return None
    try:
        find_pipeline(given or ENGLISH)
    except WhyrankError as error:
        if given:
            raise
        setup.say(f"note: no classes by entity type: {error}")
        return None
    return given or ENGLISH


def _asked(
    chosen: Sequence[Surprise], ranker: str, texts: Collection, store: str | None, table: TermTable, alpha: float,
    seed: int, limit: int | None,
) -> list[Surprise]:  # fmt: skip
    from whyrank.learners.surprises import confirmed

    analyzer = str(table.facts.get("analyzer") or "lucene")
    [opened] = setup.open_rankers([ranker], texts, analyzer, None)
    return confirmed(chosen, opened, texts, setup.make_engine("serial", None, store), table, alpha, seed, limit)


def _give(
    found: Discovery, shown: Sequence[Surprise], out: str | None, json_: bool, alpha: float, correction: str
) -> None:
    """Print what is shown, and write it with all that was tested."""
    from whyrank.core import write_text

    notes = {"unjudged": found.unjudged, "notes": found.notes}
    record = {"surprises": [s.as_dict() for s in shown], **notes, "tests": len(found.surprises)}
    if out:
        every = {"tested": [s.as_dict() for s in found.surprises]}
        write_text(out, json.dumps(record | every, indent=1) + "\n")
    if json_:
        print(json.dumps(record, indent=1))
    else:
        _show(shown, len(found.surprises), alpha, correction)


def _show(shown: Sequence[Surprise], tests: int, alpha: float, correction: str) -> None:
    from whyrank.cli.show import figure, p_value, table

    header = ["kind", "class", "query term", "value", "weight", "others", "n", "p", "p adj.", "confirmed", "study"]
    rows = [
        [s.kind, s.group, s.query_term or "all", s.value, figure(s.weight, ".4g"), figure(s.others, ".4g"),
         f"{s.n:,}", p_value(s.p_value), p_value(s.p_adjusted) + ("*" if s.p_adjusted < alpha else " "),
         _answer(s), _short(s.study)]
        for s in shown
    ]  # fmt: skip
    table("", header, rows, 4, _CAPTION.format(alpha=alpha, correction=correction, tests=tests))


def _answer(surprise: Surprise) -> str:
    said = {None: surprise.outcome or "–", True: f"yes: {surprise.outcome}", False: f"no: {surprise.outcome}"}
    return said[surprise.confirmed]


def _short(study: str, room: int = 70) -> str:
    return study if len(study) <= room else study[: room - 1] + "…"


def _answers(shown: Sequence[Surprise]) -> str:
    """How many are confirmed, of those that were tested, and how many could not be."""
    answered = [s for s in shown if s.confirmed is not None]
    silent = len(shown) - len(answered)
    lacking = "no templates in the collection, no scores, no test or no study"
    without = f"{silent} {'has' if silent == 1 else 'have'} {lacking}"
    told = f"{sum(s.confirmed is True for s in answered)} of {len(answered)} asked about are confirmed"
    return f"{told}; {without}" if silent else told


def _conclude(
    name: str, table: TermTable, found: Discovery, shown: Sequence[Surprise], alpha: float, run: bool
) -> None:
    from whyrank.learners.surprises import absent_entries

    absent = absent_entries(table)
    if absent:
        setup.say(f"note: {absent} are not in this table; how low a weight is cannot be judged")
    for line in (*found.notes, *found.unjudged):
        setup.say(f"note: {line}")
    told = f"; {_answers(shown)}" if run else ""
    setup.say(f"{setup.plural(len(found.sure(alpha)), 'surprise')} in {len(found.surprises):,} tests{told}: {name}")
