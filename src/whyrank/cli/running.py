"""What all commands over studies do: build the plan, run it, write the result folder, print the findings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from whyrank.cli import setup
from whyrank.cli.request import Request
from whyrank.core import WhyrankError, printable

if TYPE_CHECKING:
    from whyrank.core import Study
    from whyrank.report import Audit
    from whyrank.studies import Catalogue, Finding, Options, Plan, Threshold
    from whyrank.studies.bias import BiasResult

    Printer = Callable[[Sequence[Finding], Mapping[str, Threshold], float, str], None]
    DetailsPrinter = Callable[[Sequence[BiasResult], float, str], None]


def run(
    request: Request,
    patterns: Sequence[str],
    catalogue: Catalogue,
    command: str,
    show: Printer,
    table: str | None = None,
    show_details: DetailsPrinter | None = None,
    to_json: Callable[[Audit], str] | None = None,
) -> Audit:
    """Put the studies that the patterns name to the rankers; `show` the findings, and write them with `--out`.

    Studies that say more than a finding holds, as bias studies do, are shown by `show_details` instead. The values of
    bias studies are compared with the weights of a term table, where one is named.
    """
    from whyrank import report
    from whyrank.cli.show import stability_table, sweep_table
    from whyrank.cli.show_bias import show_briefly
    from whyrank.evaluation import group_rankers, overlap_of_plan

    start = time.perf_counter()
    if request.out is not None:
        report.check_result(request.out, request.format or ())
    plan = make_plan(request, patterns, catalogue, table, limited=True)
    groups = group_rankers(request.group or (), [ranker.name for ranker in plan.rankers])
    splits = command == "audit" and request.out is not None
    audit = report.run_plan(
        plan,
        _settings(request, plan, command, table),
        out=request.out,
        keep=False,
        swept=request.sweep,
        groups=groups,
        overlap=(lambda: overlap_of_plan(plan, request.candidates, request.analyzer)) if splits else None,
    )
    setup.report_failures(audit.failures)
    if request.json:
        print(printable(to_json(audit) if to_json else report.to_json(audit.findings)))
    else:
        told = {result.study for result in audit.details}
        others = [finding for finding in audit.findings if finding.study not in told]
        if others or not audit.details:
            show(others, plan.thresholds, request.alpha, request.correction)
        if audit.details:
            (show_details or show_briefly)(audit.details, request.alpha, request.correction)
        if audit.sweep:
            sweep_table(audit.sweep)
        if audit.spreads is not None:
            stability_table(audit.spreads)
    _conclude(request, plan, audit, time.perf_counter() - start)
    return audit


def make_plan(
    request: Request, patterns: Sequence[str], catalogue: Catalogue, table: str | None = None, limited: bool = False
) -> Plan:
    """Open everything that the request names; whatever is wrong shows before anything is scored.

    Where studies are `limited`, the limit is also one of the templates of bias studies.
    """
    from whyrank.core import adjust
    from whyrank.evaluation import group_rankers
    from whyrank.studies import Plan, limit_options, reading_of
    from whyrank.tables import open_table

    adjust([], request.correction)
    by_kind: dict[str, Options] = limit_options(request.limit) if limited else {}
    opened = None if table is None else open_table(table, check=True)
    collection, (studies, notes) = setup.open_studies(patterns, catalogue, request, by_kind)
    if opened is not None and not any(reading_of(study).has_table for study in studies.values()):
        raise WhyrankError("--table is for bias studies, and none of them is asked for; name one, such as 'bias/*'")
    rankers = setup.open_rankers(request.ranker, collection, request.analyzer, request.stats, request.precision)
    group_rankers(request.group or (), [ranker.name for ranker in rankers])  # a wrong group is an error at once
    engine = setup.make_engine(request.executor, request.batch_size, request.store, request.fresh, request.timeout)
    plan = Plan(collection, studies, rankers, engine, seed=request.seed, limit=request.limit, by=request.by)
    used = _thresholds(request, plan)
    bare = [ranker for ranker, threshold in used.items() if threshold.calibration is None]
    if request.sweep and bare:
        ways = "give --candidates RUN or --delta-from COLLECTION"
        raise WhyrankError(f"--sweep needs candidates to calibrate {bare[0]} on; {ways}")
    notes = [*notes, *_tied(studies, used), *_without_chance(studies, used)]
    return replace(plan, thresholds=used, notes=notes, table=opened, correction=request.correction)


def _thresholds(request: Request, plan: Plan) -> dict[str, Threshold]:
    """Delta for each ranker; a number, or axioms alone, need no calibration, but for a sweep or a named source.

    Studies that can do without a delta take `none` for it, and none where there is nothing to calibrate on.
    """
    from whyrank.studies import Threshold, needs_calibration, reading_of, thresholds, uncalibrated

    needed = any(reading_of(study).needs_delta for study in plan.studies.values())
    unknown = {ranker.name: Threshold(known=False).for_ranker(ranker) for ranker in plan.rankers}
    if request.delta == "none" and not needed:
        return unknown
    asked = request.sweep or (request.delta is not None and request.delta_from is not None)
    if not asked and not needs_calibration(request.delta, plan.studies.values()):
        if request.candidates:  # no such run is an error, whether pairs come from it or not
            setup.open_run(plan.collection, request.candidates, request.strict)
        return uncalibrated(request.delta, plan.rankers)
    found: dict[str, Threshold] = {}
    try:
        candidates = setup.delta_candidates(plan.collection, request.delta_from, request.candidates, request.strict)
        for ranker in plan.rankers:
            found |= thresholds(request.delta, [ranker], candidates, plan.engine)
    except WhyrankError as error:
        if needed or request.delta or request.delta_from or request.candidates:
            raise
        lacking = ", ".join(name for name in unknown if name not in found)
        setup.say(f"note: effects of {lacking} are in scores alone: {error}")
    return unknown | found


def _tied(studies: Mapping[str, Study], used: Mapping[str, Threshold]) -> list[str]:
    """A note on each ranker whose tie tolerance decides what is equal in any of the studies."""
    tied = {
        r: t.tolerance for r, t in used.items() if any(t.of(s).delta == t.tolerance > 0 for s in studies.values())
    }
    return [
        f"{ranker}: scores that differ by no more than {least:.3g} count as equal" for ranker, least in tied.items()
    ]


def _without_chance(studies: Mapping[str, Study], used: Mapping[str, Threshold]) -> list[str]:
    """A note on symmetric studies that have no p-value, because nothing says what chance gives."""
    from whyrank.studies import reading_of

    found = [name for name, study in studies.items() if reading_of(study).needs_chance(study)]
    if not found or any(threshold.calibration for threshold in used.values()):
        return []
    why = "delta is given, so it is not calibrated; for p-values give a percentile such as p50, or --delta-from"
    return [f"no p-values for {', '.join(found)}: {why}"]


def _settings(request: Request, plan: Plan, command: str, table: str | None) -> dict[str, object]:
    """What was asked, for the result folder."""
    return {
        "command": command,
        "formats": request.format or [],
        **request.settings(),
        **({} if table is None else {"table": table}),
        "rankers": {ranker.name: repr(ranker) for ranker in plan.rankers},
        "studies": {name: study.id for name, study in plan.studies.items()},
        "collection_name": plan.collection.name,
    }


def _conclude(request: Request, plan: Plan, audit: Audit, seconds: float) -> None:
    asked = sum({f.study: f.n for f in audit.findings if f.group is None}.values())
    studies, rankers = setup.plural(len(plan.studies), "study", "studies"), setup.plural(len(plan.rankers), "ranker")
    where = f"; report: {request.out}/report.html" if request.out else ""
    contrasts = setup.plural(asked, "contrast")
    for note in audit.notes[len(plan.collection.notes) :]:
        setup.say(f"note: {note}")
    setup.say(f"{studies} with {contrasts}, {rankers}, on {plan.collection.name} in {seconds:.1f} s{where}")
