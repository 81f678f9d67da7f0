"""What all commands over studies do: build the plan, run it, write the result folder, print the findings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from whyrank.cli import setup
from whyrank.cli.request import Request
from whyrank.core.errors import UnknownName

if TYPE_CHECKING:
    from whyrank.audit.catalogue import Catalogue
    from whyrank.audit.overlap import OverlapRow
    from whyrank.audit.runner import Plan, Threshold
    from whyrank.audit.stability import Spread
    from whyrank.audit.sweep import SweepPoint
    from whyrank.contrasts import Finding
    from whyrank.core.protocols import Ranker
    from whyrank.report import ResultWriter
    from whyrank.scoring import Failure

    Printer = Callable[[Sequence[Finding], Mapping[str, Threshold], float, str], None]


def run(
    request: Request, patterns: Sequence[str], catalogue: Catalogue, command: str, show: Printer
) -> list[Finding]:
    """Put the studies that the patterns name to the rankers; `show` the findings, and write them with `--out`."""
    start = time.perf_counter()
    plan = make_plan(request, patterns, catalogue)
    with _writer(request, plan, command) or nullcontext() as writer:
        findings, points = _asked(request, plan, writer)
        spreads = _spreads(request, plan, findings)
        plan = replace(plan, notes=[*plan.notes, *setup.computed(plan.rankers)])
        if writer is not None:
            notes, overlap = [*plan.collection.notes, *plan.notes], _overlap(request, plan, command)
            writer.finish(findings, plan.thresholds, notes, points, spreads, overlap)
    if request.json:
        _print_json(findings)
    else:
        show(findings, plan.thresholds, request.alpha, request.correction)
        _print_extras(points, spreads)
    _conclude(request, plan, findings, time.perf_counter() - start)
    return findings


def make_plan(request: Request, patterns: Sequence[str], catalogue: Catalogue) -> Plan:
    """Open everything that the request names; whatever is wrong shows before anything is scored."""
    from whyrank.audit.runner import Plan
    from whyrank.contrasts.correction import adjust

    adjust([], request.correction)
    collection, (studies, notes) = setup.open_studies(patterns, catalogue, request)
    rankers = setup.open_rankers(request.ranker, collection, request.analyzer, request.stats, request.precision)
    _groups(request, rankers)
    engine = setup.make_engine(request.executor, request.batch_size, request.store)
    used = _thresholds(request, Plan(collection, studies, rankers, engine))
    _check_sweep(request, used)
    return Plan(collection, studies, rankers, engine, used, request.seed, request.limit, request.by, notes)


def _thresholds(request: Request, plan: Plan) -> dict[str, Threshold]:
    """Delta for each ranker; axioms alone need no calibration, unless there is a sweep."""
    from whyrank.audit.thresholds import needs_calibration, thresholds, uncalibrated

    if not request.sweep and not needs_calibration(request.delta, plan.studies.values()):
        if request.candidates:  # no such run is an error, whether pairs come from it or not
            setup.open_run(plan.collection, request.candidates, request.strict)
        return uncalibrated(request.delta, plan.rankers)
    candidates = setup.delta_candidates(plan.collection, request.delta_from, request.candidates, request.strict)
    return thresholds(request.delta, plan.rankers, candidates, plan.engine)


def _groups(request: Request, rankers: Sequence[Ranker]) -> dict[str, list[str]]:
    """The rankers of every group that is asked for; a pattern that names fewer than two is an error."""
    from whyrank.audit.stability import group_rankers

    return group_rankers(request.group or (), [ranker.name for ranker in rankers])


def _check_sweep(request: Request, used: Mapping[str, Threshold]) -> None:
    from whyrank.core.errors import WhyrankError

    bare = [ranker for ranker, threshold in used.items() if threshold.calibration is None]
    if request.sweep and bare:
        raise WhyrankError(
            f"--sweep needs candidates to calibrate {bare[0]} on; give --candidates RUN or --delta-from COLLECTION"
        )


def _writer(request: Request, plan: Plan, command: str) -> ResultWriter | None:
    if request.out is None:
        return None
    from whyrank.report import ResultWriter

    identities = {ranker.name: repr(ranker) for ranker in plan.rankers}
    facts = {
        "command": command,
        "formats": request.format or [],
        **request.settings(),
        "rankers": identities,
        "studies": {name: study.id for name, study in plan.studies.items()},
    }
    return ResultWriter(request.out, facts | {"collection_name": plan.collection.name})


def _asked(request: Request, plan: Plan, writer: ResultWriter | None) -> tuple[list[Finding], list[SweepPoint]]:
    """Findings with corrected p-values, and with `--sweep` the scores at every delta."""
    from whyrank.audit.runner import answers, with_adjusted_p
    from whyrank.audit.sweep import sweep
    from whyrank.core.progress import track

    found, points, labels = [], [], set[str]()
    failures: dict[tuple[str, Failure], None] = {}
    for answer in track(answers(plan), "studies", len(plan.studies) * len(plan.rankers)):
        found += answer.findings
        failures |= {(answer.ranker, failure): None for failure in answer.failures}
        labels |= set(answer.contrasts.labels)
        points += sweep(answer, plan.thresholds[answer.ranker]) if request.sweep else []
        if writer is not None:
            writer.add(answer)
    if request.by is not None and labels and request.by not in labels:
        raise UnknownName("label to break findings down by", request.by, labels)
    setup.report_failures([failure for _, failure in failures])
    return with_adjusted_p(found, request.correction), points


def _spreads(request: Request, plan: Plan, findings: Sequence[Finding]) -> list[Spread] | None:
    """How far the rankers of each group differ; None where no groups are asked for."""
    from whyrank.audit.stability import stability

    return stability(findings, _groups(request, plan.rankers)) if request.group else None


def _overlap(request: Request, plan: Plan, command: str) -> Sequence[OverlapRow] | None:
    """The overlap split of an audit; None for other commands, and where the collection does not allow it."""
    from whyrank.audit.overlap import overlap_of_plan

    return overlap_of_plan(plan, request.candidates, request.analyzer) if command == "audit" else None


def _print_json(findings: Sequence[Finding]) -> None:
    from whyrank.report import to_json

    print(to_json(findings))


def _print_extras(points: Sequence[SweepPoint], spreads: Sequence[Spread] | None) -> None:
    from whyrank.cli.show import stability_table, sweep_table

    if points:
        sweep_table(points)
    if spreads is not None:
        stability_table(spreads)


def _conclude(request: Request, plan: Plan, findings: Sequence[Finding], seconds: float) -> None:
    asked = sum({f.study: f.n for f in findings if f.group is None}.values())
    studies, rankers = setup.plural(len(plan.studies), "study", "studies"), setup.plural(len(plan.rankers), "ranker")
    where = f"; report: {request.out}/report.html" if request.out else ""
    contrasts = setup.plural(asked, "contrast")
    for note in plan.notes:
        setup.say(f"note: {note}")
    setup.say(f"{studies} with {contrasts}, {rankers}, on {plan.collection.name} in {seconds:.1f} s{where}")
