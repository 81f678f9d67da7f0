"""What all commands over studies do: build the plan, run it, write the result folder, print the findings."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from whyrank.cli import setup
from whyrank.cli.request import Request
from whyrank.core import UnknownName, printable

if TYPE_CHECKING:
    from whyrank.core import Ranker, Study
    from whyrank.evaluation import OverlapRow, Spread
    from whyrank.report import ResultWriter
    from whyrank.scoring import Failure
    from whyrank.studies import Catalogue, Finding, Options, Plan, SweepPoint, Threshold
    from whyrank.studies.bias import BiasResult

    Printer = Callable[[Sequence[Finding], Mapping[str, Threshold], float, str], None]


class _Asked(NamedTuple):
    """Findings with corrected p-values; with `--sweep` the scores at every delta; results of bias studies."""

    findings: list[Finding]
    points: list[SweepPoint]
    bias: list[BiasResult]


def run(
    request: Request,
    patterns: Sequence[str],
    catalogue: Catalogue,
    command: str,
    show: Printer,
    table: str | None = None,
) -> list[Finding]:
    """Put the studies that the patterns name to the rankers; `show` the findings, and write them with `--out`.

    Bias studies compare their values with the weights of a term table, where one is named.
    """
    from whyrank.studies import few_queries

    start = time.perf_counter()
    plan = _bias_plan(request, patterns, catalogue, table)
    with _writer(request, plan, command, table) or nullcontext() as writer:
        findings, points, bias = _asked(request, plan, writer)
        spreads = _spreads(request, plan, findings)
        plan = replace(plan, notes=[*plan.notes, *setup.computed(plan.rankers), *few_queries(findings)])
        if writer is not None:
            notes, overlap = [*plan.collection.notes, *plan.notes], _overlap(request, plan, command)
            writer.finish(findings, plan.thresholds, notes, points, spreads, overlap, bias, plan.table)
    if request.json:
        _print_json(findings)
    else:
        told = {result.study for result in bias}
        unlike = [f for f in findings if f.study not in told]
        show(unlike, plan.thresholds, request.alpha, request.correction)
        _print_extras(request, points, spreads, bias)
    _conclude(request, plan, findings, time.perf_counter() - start)
    return findings


def make_plan(
    request: Request, patterns: Sequence[str], catalogue: Catalogue, by_kind: Mapping[str, Options] | None = None
) -> Plan:
    """Open everything that the request names; whatever is wrong shows before anything is scored."""
    from whyrank.core import adjust
    from whyrank.studies import Plan

    adjust([], request.correction)
    collection, (studies, notes) = setup.open_studies(patterns, catalogue, request, by_kind)
    rankers = setup.open_rankers(request.ranker, collection, request.analyzer, request.stats, request.precision)
    _groups(request, rankers)
    engine = setup.make_engine(request.executor, request.batch_size, request.store, request.fresh, request.timeout)
    used = _thresholds(request, Plan(collection, studies, rankers, engine))
    _check_sweep(request, used)
    notes = [*notes, *_tied(studies, used), *_without_chance(studies, used)]
    plan = Plan(collection, studies, rankers, engine, used, request.seed, request.limit, request.by, notes)
    return replace(plan, correction=request.correction)


def _bias_plan(request: Request, patterns: Sequence[str], catalogue: Catalogue, table: str | None) -> Plan:
    """The plan with what bias studies need besides: a limit on their templates, and a term table."""
    from whyrank.core import WhyrankError
    from whyrank.studies import is_bias, most_templates
    from whyrank.tables import open_table

    opened = None if table is None else open_table(table, check=True)
    plan = make_plan(request, patterns, catalogue, most_templates(request.limit))
    if opened is not None and not any(map(is_bias, plan.studies.values())):
        raise WhyrankError("--table is for bias studies, and none of them is asked for; name one, such as 'bias/*'")
    return replace(plan, table=opened)


def _thresholds(request: Request, plan: Plan) -> dict[str, Threshold]:
    """Delta for each ranker; a number, or axioms alone, need no calibration, but for a sweep or a named source."""
    from whyrank.studies import needs_calibration, uncalibrated
    from whyrank.studies.thresholds import thresholds

    asked = request.sweep or (request.delta is not None and request.delta_from is not None)
    if not asked and not needs_calibration(request.delta, plan.studies.values()):
        if request.candidates:  # no such run is an error, whether pairs come from it or not
            setup.open_run(plan.collection, request.candidates, request.strict)
        return uncalibrated(request.delta, plan.rankers)
    candidates = setup.delta_candidates(plan.collection, request.delta_from, request.candidates, request.strict)
    return thresholds(request.delta, plan.rankers, candidates, plan.engine)


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
    from whyrank.studies import is_bias

    found = [name for name, study in studies.items() if study.symmetric and not is_bias(study)]
    if not found or any(threshold.calibration for threshold in used.values()):
        return []
    why = "delta is given, so it is not calibrated; for p-values give a percentile such as p50, or --delta-from"
    return [f"no p-values for {', '.join(found)}: {why}"]


def _groups(request: Request, rankers: Sequence[Ranker]) -> dict[str, list[str]]:
    """The rankers of every group that is asked for; a pattern that names fewer than two is an error."""
    from whyrank.evaluation import group_rankers

    return group_rankers(request.group or (), [ranker.name for ranker in rankers])


def _check_sweep(request: Request, used: Mapping[str, Threshold]) -> None:
    from whyrank.core import WhyrankError

    bare = [ranker for ranker, threshold in used.items() if threshold.calibration is None]
    if request.sweep and bare:
        raise WhyrankError(
            f"--sweep needs candidates to calibrate {bare[0]} on; give --candidates RUN or --delta-from COLLECTION"
        )


def _writer(request: Request, plan: Plan, command: str, table: str | None) -> ResultWriter | None:
    if request.out is None:
        return None
    from whyrank.report import ResultWriter

    identities = {ranker.name: repr(ranker) for ranker in plan.rankers}
    facts = {
        "command": command,
        "formats": request.format or [],
        **request.settings(),
        **({} if table is None else {"table": table}),
        "rankers": identities,
        "studies": {name: study.id for name, study in plan.studies.items()},
    }
    return ResultWriter(request.out, facts | {"collection_name": plan.collection.name})


def _asked(request: Request, plan: Plan, writer: ResultWriter | None) -> _Asked:
    """Every study put to every ranker, each answer written as it comes."""
    from whyrank.core import track
    from whyrank.studies import all_answers, with_adjusted_kinds
    from whyrank.studies.bias import with_adjusted_omnibus
    from whyrank.studies.sweep import sweep

    found, points, bias, labels = [], [], [], set[str]()
    failures: dict[tuple[str, Failure], None] = {}
    for answer in track(all_answers(plan), "studies", len(plan.studies) * len(plan.rankers)):
        found += answer.findings
        failures |= {(answer.ranker, failure): None for failure in answer.failures}
        labels |= set(answer.contrasts.labels) if answer.bias is None else set()
        bias += [answer.bias] if answer.bias is not None else []
        points += sweep(answer, plan.thresholds[answer.ranker]) if request.sweep else []
        if writer is not None:
            writer.add(answer)
    if request.by is not None and labels and request.by not in labels:
        raise UnknownName("label to break findings down by", request.by, labels)
    setup.report_failures([failure for _, failure in failures])
    findings = with_adjusted_kinds(found, plan.studies, request.correction)
    return _Asked(findings, points, with_adjusted_omnibus(bias, request.correction))


def _spreads(request: Request, plan: Plan, findings: Sequence[Finding]) -> list[Spread] | None:
    """How far the rankers of each group differ; None where no groups are asked for."""
    from whyrank.evaluation.stability import stability

    return stability(findings, _groups(request, plan.rankers)) if request.group else None


def _overlap(request: Request, plan: Plan, command: str) -> Sequence[OverlapRow] | None:
    """The overlap split of an audit; None for other commands, and where the collection does not allow it."""
    from whyrank.evaluation import overlap_of_plan

    return overlap_of_plan(plan, request.candidates, request.analyzer) if command == "audit" else None


def _print_json(findings: Sequence[Finding]) -> None:
    from whyrank.report import to_json

    print(printable(to_json(findings)))


def _print_extras(
    request: Request, points: Sequence[SweepPoint], spreads: Sequence[Spread] | None, bias: Sequence[BiasResult]
) -> None:
    from whyrank.cli.show import stability_table, sweep_table
    from whyrank.cli.show_bias import print_lines, summary

    if bias:
        summary(bias, request.alpha, request.correction)
        print_lines(bias)
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
