"""From a request to a plan: studies, rankers and delta, opened and checked before anything is scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from whyrank.core import Ranker, Study, Whole, WhyrankError, adjust, check, timed, working_with
from whyrank.data import Collection, open_run
from whyrank.scoring import Engine, candidates_for
from whyrank.studies.catalogue import UNJUDGED, Options, all_studies, limit_options, unjudged_options
from whyrank.studies.delta import (
    Threshold,
    candidates_for_delta,
    given_thresholds,
    needs_calibration,
    thresholds,
)
from whyrank.studies.price import USABLE, Price, new_pairs, seconds_per_pair
from whyrank.studies.reading import reading_of
from whyrank.studies.runner import Plan
from whyrank.studies.sampling import Budget
from whyrank.studies.trial import try_out
from whyrank.tables import TermTable

WORTH_TELLING = 2000  # pairs from which on people want to know how long they will wait


@dataclass(frozen=True, kw_only=True)
class Request:
    """What rankers are to be asked.

    Attributes:
        studies: names, shell patterns or call strings, or study objects.
        collection: opens the collection; called once the names of studies are known to be right.
        rankers: opens the rankers over it.
        engine: who scores.
        options: what studies accept, such as `tolerance`.
        candidates: a run that delta is calibrated on, and that documents come from where `pairs` says so.
        delta: a number, or a percentile such as p50; None for the median, and 0 for axioms.
        delta_from: opens another collection, on whose candidates delta is calibrated.
        limit: at most so many contrasts, texts or templates of each study.
        budget: draw studies in rounds.
        sweep: whether delta is calibrated whatever it is.
        strict: whether doubtful lines of the run are errors.
        tell: receives what the plan costs, in words, before anything long begins; without it nobody asks.
    """

    studies: Sequence[str | Study]
    collection: Callable[[], Collection]
    rankers: Callable[[Collection], Sequence[Ranker]]
    engine: Engine
    options: Options = field(default_factory=dict)
    candidates: str | None = None
    delta: str | None = None
    delta_from: Callable[[], Collection] | None = None
    seed: int = 0
    limit: int | None = None
    budget: Budget | None = None
    by: str | None = None
    table: TermTable | None = None
    correction: str = "holm"
    sweep: bool = False
    strict: bool = False
    tell: Callable[[str], None] | None = None


class ChosenStudies(NamedTuple):
    """The collection, the studies by the name that they have in findings, and notes on what was left out."""

    collection: Collection
    studies: dict[str, Study]
    notes: list[str]


def choose_studies(request: Request) -> ChosenStudies:
    """Make the studies of a request; of those that a pattern finds, the ones that cannot run are left out.

    A limit is one of templates for bias studies. Where nothing is judged, axioms and probes take the documents of a
    run, and where there is none, those that BM25 retrieves.
    """
    check("limit", request.limit, Whole | None)
    given, catalogue = [each for each in request.studies if isinstance(each, str)], all_studies()
    from_run = request.options.get("pairs", "judged") != "judged"  # else the run is for the calibration of delta only
    options = {**request.options, "seed": request.seed}
    options |= {"candidates": request.candidates} if request.candidates and from_run else {}
    names = [name for pattern in given for name in catalogue.match(pattern)]
    made = catalogue.make(names, options, limit_options(request.limit))
    reasons: dict[str, list[str]] = {}
    for name, study in made.items():
        if name not in given and (reason := getattr(study, "unavailable", "")):
            reasons.setdefault(reason, []).append(name)
    notes = [f"left out, because {reason}: {', '.join(some)}" for reason, some in reasons.items()]
    unavailable = {name for some in reasons.values() for name in some}
    if made and unavailable == made.keys():
        raise WhyrankError("; ".join(notes))
    axioms, compat = [name for name in made if catalogue.home(name).kind == "axioms"], options.get("compat")
    if compat == "camara-hauff":
        plain = [name for name in axioms if getattr(made[name], "compat", None) != compat]
        notes += [f"run as they are, because they have no mode {compat}: {', '.join(plain)}"] * bool(plain)
    with timed("reading"):
        collection = request.collection()
    if options.get("pairs") != "judged" and not (collection.qrels or collection.runs or request.candidates):
        collection = replace(collection, runs={})  # a copy, which the statistics of BM25 are kept for
        collection.runs = {"bm25": candidates_for(collection, collection.queries, UNJUDGED)}
    if "pairs" not in options and not collection.qrels:
        unjudged = unjudged_options(collection, request.candidates)
        again = catalogue.make(names, options, {**limit_options(request.limit), **unjudged})
        if not unjudged or any(study.id != made[name].id for name, study in again.items()):
            notes.append(unjudged_note(collection, unjudged))
            made = again
    objects = [each for each in request.studies if not isinstance(each, str)]
    for each in objects:
        if isinstance(each, type) or not isinstance(each, Study):
            needed = "an object with id, positive, symmetric and contrasts"
            raise WhyrankError(f"study {each!r} is neither a name nor {needed}")
        if not (isinstance(each.id, str) and isinstance(each.positive, str) and isinstance(each.symmetric, bool)):
            raise WhyrankError(f"study {each.id!r}: id and positive must be text, and symmetric True or False")
        if sum(each.id == other.id for other in objects) > 1:
            raise WhyrankError(f"several studies have the id {each.id!r}; give each an id of its own")
    found = {name: study for name, study in made.items() if name not in unavailable}
    return ChosenStudies(collection, found | {each.id: each for each in objects}, notes)


def unjudged_note(collection: Collection, options: Mapping[str, Options]) -> str:
    """Which documents studies take where nothing is judged; `options` are those of `unjudged_options`."""
    if not options:
        return f"{collection.name} has neither judgements nor a run to pair documents of; give --candidates RUN"
    where = f"{options['axioms']['pairs']} of {options['axioms'].get('candidates', 'the run')}"
    return f"{collection.name} has no judgements, so axioms and probes take {where} (--pairs, --candidates)"


def make_plan(request: Request) -> Plan:
    """Open everything that a request names; whatever is wrong shows before anything is scored."""
    adjust([], request.correction)
    collection, studies, notes = choose_studies(request)
    rankers = request.rankers(collection)
    plan = Plan(
        collection,
        studies,
        rankers,
        request.engine,
        seed=request.seed,
        limit=request.limit,
        by=request.by,
        table=request.table,
        correction=request.correction,
    )
    try_out(plan)
    plan = _with_price(plan, request)
    used, calibrated, said = _thresholds(request, plan)
    more = list(said)
    if plan.budget is not None:
        plan = replace(plan, budget=replace(plan.budget, calibration=calibrated))
    bare = [ranker for ranker, threshold in used.items() if threshold.calibration is None]
    if request.sweep and bare:
        ways = "give --candidates RUN or --delta-from COLLECTION"
        raise WhyrankError(f"--sweep needs candidates to calibrate {bare[0]} on; {ways}")
    for ranker, threshold in used.items():
        if any(threshold.of(study).delta == threshold.tolerance > 0 for study in studies.values()):
            more.append(f"{ranker}: scores that differ by no more than {threshold.tolerance:.3g} count as equal")
    without_chance = [name for name, study in studies.items() if reading_of(study).needs_chance(study)]
    if without_chance and not any(threshold.calibration for threshold in used.values()):
        why = "delta is given, so it is not calibrated; for p-values give a percentile such as p50, or --delta-from"
        more.append(f"no p-values for {', '.join(without_chance)}: {why}")
    return replace(plan, thresholds=used, notes=[*notes, *more])


def _with_price(plan: Plan, request: Request) -> Plan:
    """The plan with what it costs, and a time budget as the number of pairs that can be scored in that time."""
    budget, start = request.budget, time.perf_counter()
    if request.tell is None and (budget is None or budget.seconds is None):
        return replace(plan, budget=budget)
    with working_with(plan.engine.executor), timed("building"):
        price = Price(new_pairs(plan), {})
    with timed("measuring speed"):
        if price.pairs >= WORTH_TELLING:
            price = price._replace(seconds=seconds_per_pair(plan))
    if request.tell is not None and price.pairs >= WORTH_TELLING:
        request.tell(str(price))
    if budget is not None and budget.seconds is not None:
        left = USABLE * budget.seconds - (time.perf_counter() - start)
        each = sum(price.seconds.values())
        budget = replace(budget, pairs=max(1, int(left / each)) if each * price.pairs > left else price.pairs)
    return replace(plan, price=price, budget=budget)


class _Thresholds(NamedTuple):
    """Delta for each ranker, how many pairs the calibration took each of them, and notes."""

    used: dict[str, Threshold]
    pairs: int = 0
    notes: Sequence[str] = ()


def _thresholds(request: Request, plan: Plan) -> _Thresholds:
    """Delta for each ranker; a number, or axioms alone, need no calibration, but for a sweep.

    Studies that can do without a delta take `none` for it, and none where there is nothing to calibrate on. Of a
    budget, the calibration may take a quarter: some queries are drawn where all would be more.
    """
    needed = any(reading_of(study).needs_delta for study in plan.studies.values())
    unknown = {ranker.name: Threshold(known=False).for_ranker(ranker) for ranker in plan.rankers}
    if request.delta == "none" and not needed:
        return _Thresholds(unknown)
    named = request.sweep or (request.delta is not None and request.delta_from is not None)
    if not named and not needs_calibration(request.delta, plan.studies.values()):
        run = request.candidates  # no such run is an error, whether pairs come from it or not
        notes = open_run(plan.collection, run, request.strict).notes if run else ()
        return _Thresholds(given_thresholds(request.delta, plan.rankers), 0, notes)
    found, pairs = dict[str, Threshold](), 0
    try:
        if request.delta_from:
            candidates = candidates_for_delta(request.delta_from())
        else:
            candidates = candidates_for_delta(plan.collection, request.candidates)
        if plan.budget is not None and plan.budget.pairs is not None:
            candidates = candidates.draw(plan.budget.pairs // 4, request.seed)
        pairs = sum(map(len, candidates.texts.values()))
        for ranker in plan.rankers:
            found |= thresholds(request.delta, [ranker], candidates, plan.engine)
    except WhyrankError as error:
        if needed or request.delta or request.delta_from or request.candidates:
            raise
        lacking = ", ".join(name for name in unknown if name not in found)
        return _Thresholds(unknown | found, pairs, [f"effects of {lacking} are in scores alone: {error}"])
    return _Thresholds(unknown | found, pairs)
