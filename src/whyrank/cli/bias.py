"""`whyrank bias`: put the values of a class into the same texts, and see which ones a ranker favours."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli import setup
from whyrank.cli.request import Request, with_request

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.data import Collection
    from whyrank.scoring import Engine
    from whyrank.studies.bias import BiasPlan, BiasResult

Patterns = Annotated[
    list[str] | None,
    typer.Argument(metavar="[GLOB]...", help="Names or call strings of bias studies; all presets when none."),
]
TableOption = Annotated[
    str | None, typer.Option("--table", metavar="TABLE", help="A term table to compare the values with.")
]
Top = Annotated[
    int, typer.Option("--top", metavar="N", help="Values to show of each study; all are in --out.", min=1)
]
_NAMED = 5  # values that an error names
_WITHOUT = ("pairs", "max_tokens", "tolerance", "by", "format", "sweep", "group")


@with_request(without=_WITHOUT)
def bias(request: Request, patterns: Patterns = None, table: TableOption = None, top: Top = 10) -> None:
    """Which values of a class (brands, years, names, ...) does a ranker favour in otherwise equal texts?"""
    from whyrank.cli import show_bias
    from whyrank.report import write_bias

    start = time.perf_counter()
    plan = make_plan(request, patterns or ["bias/*"], table)
    results = answered(plan, request.correction)
    if request.out:
        facts = {"command": "bias", **request.settings(), "table": table, "rankers": [repr(r) for r in plan.rankers]}
        write_bias(request.out, results, facts, request.alpha)
    if request.json:
        print(json.dumps([result.as_dict() for result in results], indent=1))
    else:
        show_bias.show(results, top, request.alpha, request.correction)
    conclude(request.out, plan, time.perf_counter() - start)
    _check_answered(results)


def make_plan(request: Request, patterns: Sequence[str], table: str | None) -> BiasPlan:
    """Open everything that the request names; whatever is wrong shows before anything is scored."""
    from whyrank.core import adjust
    from whyrank.studies import Catalogue, most_templates
    from whyrank.studies.bias import BiasPlan, bias_studies
    from whyrank.tables import open_table

    adjust([], request.correction)
    made = setup.make_studies(patterns, Catalogue(bias_studies), request, most_templates(request.limit))
    for note in made.notes:
        setup.say(f"note: {note}")
    opened = open_table(table, check=True) if table is not None else None
    collection = setup.open_collection(request.collection, request.strict)
    rankers = setup.open_rankers(request.ranker, collection, request.analyzer, request.stats, request.precision)
    engine = setup.make_engine(request.executor, request.batch_size, request.store, request.fresh, request.timeout)
    deltas = deltas_of(request, collection, rankers, engine)
    return BiasPlan(collection, made.studies, rankers, engine, opened, deltas, request.correction, request.seed)


def answered(plan: BiasPlan, correction: str) -> list[BiasResult]:
    """The results of all studies and rankers; pairs without a score are told."""
    from whyrank.core import track
    from whyrank.studies.bias import bias_answers, with_adjusted_omnibus

    found = list(track(bias_answers(plan), "bias studies", len(plan.studies) * len(plan.rankers)))
    setup.report_failures([failure for answer in found for failure in answer.failures])
    return with_adjusted_omnibus([answer.result for answer in found], correction)


def _check_answered(results: Sequence[BiasResult]) -> None:
    """Raise an error where a ranker has no template with all scores; the others' results are out by then."""
    from whyrank.core import WhyrankError

    for name in dict.fromkeys(result.ranker for result in results):
        own = [result for result in results if result.ranker == name]
        if not any(result.n_templates for result in own) and any(result.nonfinite for result in own):
            raise WhyrankError(f"ranker {name!r} {_lacking(own)}; take one that scores any text")


def _lacking(results: Sequence[BiasResult]) -> str:
    """What a ranker did not score: any text, or some values, of which the most often missing are named."""
    asked = [result for result in results if result.nonfinite]
    if all(sum(result.unscored.values()) == result.nonfinite * result.n_values for result in asked):
        return "has no finite score for any template"
    lacking = {value: count for result in asked for value, count in result.unscored.items()}
    most = sorted(lacking, key=lambda value: -lacking[value])
    more = f" and {len(most) - _NAMED:,} more" if len(most) > _NAMED else ""
    return f"has no template with a finite score for every value: it lacks {', '.join(most[:_NAMED])}{more}"


def deltas_of(
    request: Request, collection: Collection, rankers: Sequence[Ranker], engine: Engine
) -> dict[str, float]:
    """A delta per ranker, for effects in its units; none with `--delta none` or nothing to calibrate on."""
    from whyrank.core import WhyrankError
    from whyrank.studies import needs_calibration, uncalibrated
    from whyrank.studies.thresholds import thresholds

    if request.delta == "none":
        return {}
    if request.delta is not None and not needs_calibration(request.delta, ()):
        return {name: threshold.delta for name, threshold in uncalibrated(request.delta, rankers).items()}
    found: dict[str, float] = {}
    try:
        candidates = setup.delta_candidates(collection, request.delta_from, request.candidates, request.strict)
        for ranker in rankers:
            found[ranker.name] = thresholds(request.delta, [ranker], candidates, engine)[ranker.name].delta
    except WhyrankError as error:
        if request.delta or request.delta_from or request.candidates:
            raise
        lacking = ", ".join(ranker.name for ranker in rankers if ranker.name not in found)
        setup.say(f"note: effects of {lacking} are in scores alone: {error}")
    return found


def conclude(out: str | None, plan: BiasPlan, seconds: float) -> None:
    """The last line: what was asked, where, how long it took."""
    studies, rankers = setup.plural(len(plan.studies), "study", "studies"), setup.plural(len(plan.rankers), "ranker")
    where = f"; report: {out}/report.html" if out else ""
    setup.say(f"{studies}, {rankers}, on {plan.collection.name} in {seconds:.1f} s{where}")
