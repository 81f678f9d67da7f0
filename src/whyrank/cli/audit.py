"""`whyrank audit`: what rankers answer to studies, printed, and written as a result folder with a report."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whyrank.cli.command import argument
from whyrank.cli.console import plural, say, tell_failures, write
from whyrank.cli.options import BUNDLED_RANKERS
from whyrank.cli.studies import StudyOptions, make_request, study_pattern
from whyrank.core import Clock, Share, Whole, WhyrankError, check_writable, clocked, printable

if TYPE_CHECKING:
    from whyrank.core import Ranker
    from whyrank.data import Collection
    from whyrank.report import Audit
    from whyrank.studies import Plan
    from whyrank.studies.bias import BiasResult

RESULTS = "whyrank-results"
BUNDLED_MODEL, BUNDLED_TABLE = "cross:bundled", "bundled"
_OF_MODELS = ("torch", "transformers", "tokenizers", "safetensors")
_VALUES = 10  # values of a bias study that are shown
_NAMED = 5  # values that an error names


@dataclass(frozen=True, kw_only=True)
class AuditCommand(StudyOptions):
    """Run studies on rankers: probes, axioms and bias studies, or all that the collection allows.

    Without options: the bundled sample, and the bundled rankers bm25, ql, bm25t:bundled and, where torch and
    transformers are installed, cross:bundled, with its term table. With another collection, or with named studies, it
    is without bm25t:bundled and the table. All probes and axioms are run, and on the sample also bias/car-brand.
    The sample is small, so texts count as matched there when they differ by at most 10%, unless --tolerance says
    otherwise.
    Of each bias study 10 values are shown, and none where no study is named; --out has all.

    Attributes:
        study: names, patterns or call strings of probes, axioms and bias studies, and expressions of axioms:
            'matched/*', 'axiom/TFC1(length=5)', 'TFC1 & M-AND'; all probes and axioms when none.
        baseline: a ranker that all others are compared with, study by study on the same contrasts.
        table: a term table: the report has its rows for words of the queries, and compares bias studies with it.
        show: how many rows to show.
        alpha: level of significance, after correction.
        correction: over the whole table: holm, bonferroni, bh or none.
        by: break findings down by a label, such as relevance_group or relevance.
        sweep: also show the scores at every percentile of the calibration of delta.
        group: rankers that belong together, such as one model trained with several seeds; shows how far they differ.
        format: also write tables: markdown, latex; repeat for several.
        budget: draw contrasts so that the audit takes no more than a time such as 5m, or scores no more than a number
            such as 20000pairs with each ranker.
        width: draw no more of a study once its 95% interval is narrower than this.
        figures: a folder to write the charts into, each as SVG, PDF and PNG.
        out: where the result folder is written; whyrank-results where no study is named.
        json: print JSON on standard output.
    """

    study: tuple[str, ...] = argument("STUDY", ())
    baseline: str | None = None
    table: str | None = None
    show: Whole | None = None
    alpha: Share = 0.05
    correction: str = "holm"
    by: str | None = None
    sweep: bool = False
    group: tuple[str, ...] = ()
    format: tuple[str, ...] = ()
    budget: str | None = None
    width: float | None = None
    figures: str | None = None
    out: str | None = None
    json: bool = False

    def run(self) -> None:
        """Run the studies, print and write."""
        from whyrank import report
        from whyrank.evaluation import effectiveness_of_plan, group_rankers
        from whyrank.studies import Budget, make_plan, reading_of, usual_studies
        from whyrank.tables import open_table

        start, clock = time.perf_counter(), Clock()
        request, notes = self.with_defaults()
        if request.format and request.out is None:
            raise WhyrankError("--format writes tables into the result folder; say where with --out FOLDER")
        if request.out is not None:
            report.check_result(request.out, request.format)
        if self.figures is not None:
            check_writable(Path(self.figures) / "studies.svg")
        patterns = [study_pattern(each) for each in self.study] or usual_studies(self.collection)
        table = None if request.table is None else open_table(request.table, check=True)
        asked = make_request(
            request, patterns, table=table, by=self.by, correction=self.correction, sweep=self.sweep,
            budget=Budget.of(self.budget, self.width), tell=say,
        )  # fmt: skip
        with clocked(clock):
            plan = make_plan(asked)
            if (
                self.table
                and not request.out
                and not any(reading_of(study).has_table for study in plan.studies.values())
            ):
                raise WhyrankError("--table is for bias studies and the report; name one of them, or --out FOLDER")
            if self.baseline is not None:
                plan = replace(plan, baseline=plan.rankers[0].name)
            measure = partial(effectiveness_of_plan, plan, self.candidates, self.analyzer)
            audit = report.run_plan(
                plan,
                request._settings(plan),
                out=request.out,
                keep=False,
                swept=self.sweep,
                groups=group_rankers(self.group, [ranker.name for ranker in plan.rankers]),
                effectiveness=measure if request.out and not (plan.budget and plan.budget.pairs) else None,
            )
        if self.figures is not None:
            report.write_figures(self.figures, audit)
        tell_failures(audit.failures)
        if self.json:
            print(printable(report.to_json(audit.findings)))
        else:
            self._show(plan, audit)
        for note in audit.notes[len(plan.collection.notes) :]:
            say(f"note: {note}")
        contrasts = sum({f.study: f.n for f in audit.findings if f.group is None}.values())
        counts = plural(len(plan.studies), "study", "studies"), plural(contrasts, "contrast")
        where = f"; report: {request.out}/report.html" if request.out else ""
        said = f"{' with '.join(counts)}, {plural(len(plan.rankers), 'ranker')}, on {plan.collection.name}"
        parts = f" ({clock})" if str(clock) else ""
        say(f"{said} in {time.perf_counter() - start:.1f} s{parts}{where}")
        for note in notes:
            say(f"note: {note}")
        _check_answered(audit.details)

    def open_rankers(self, specs: Sequence[str], collection: Collection, typed: bool = False) -> list[Ranker]:
        """Open the rankers; a group of rankers that are not there is an error before anything is scored."""
        from whyrank.evaluation import group_rankers

        found = super().open_rankers(specs, collection, typed)
        group_rankers(self.group, [ranker.name for ranker in found])
        return found

    def with_defaults(self) -> tuple[AuditCommand, list[str]]:
        """The request with rankers, tolerance and result folder filled in, and notes on these."""
        from whyrank.studies import DEMO_TOLERANCE

        changes: dict[str, Any] = {"out": self.out or (None if self.study else RESULTS)}
        notes: list[str] = []
        if not self.ranker:
            missing = next((name for name in _OF_MODELS if find_spec(name) is None), None)
            with_table = not self.study and self.collection == "sample"
            table = [f"bm25t:{BUNDLED_TABLE}"] if with_table else []
            changes["ranker"] = (*BUNDLED_RANKERS, *table, *([] if missing else [BUNDLED_MODEL]))
            if with_table and self.table is None:
                changes["table"] = BUNDLED_TABLE
            if missing:
                how = f"it needs {missing}; pip install 'whyrank[models]'"
                notes.append(f"{BUNDLED_MODEL}, a neural ranker, is left out: {how}")
        if self.baseline is not None:
            rankers = changes.get("ranker", self.ranker)
            changes["ranker"] = (self.baseline, *(each for each in rankers if each != self.baseline))
        if self.collection == "sample" and self.tolerance is None:
            changes["tolerance"] = DEMO_TOLERANCE
            way = f"texts count as matched within {DEMO_TOLERANCE} (--tolerance 0: exactly)"
            notes.append(f"the sample is small, so {way}")
        return replace(self, **changes), notes

    def _settings(self, plan: Plan) -> dict[str, Any]:
        """The request, for the result folder."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {
            name: value
            for name, value in given.items()
            if value is not None or name not in ("table", "figures", *self.files)
        }
        return {
            "command": "audit",
            "formats": list(self.format),
            **{name: list(value) if isinstance(value, tuple) else value for name, value in given.items()},
            "rankers": {ranker.name: repr(ranker) for ranker in plan.rankers},
            "studies": {name: study.id for name, study in plan.studies.items()},
            "collection_name": plan.collection.name,
        }

    def _show(self, plan: Plan, audit: Audit) -> None:
        from whyrank.cli import show

        level = self.alpha, self.correction
        write(str(audit))
        short = audit.names if sys.stdout.isatty() else {}  # a pipe gets every column, and call strings
        found = [replace(each, ranker=short.get(each.ranker, each.ranker)) for each in audit.findings]
        results = [replace(each, ranker=short.get(each.ranker, each.ranker)) for each in audit.details]
        biased = {result.study for result in results}
        others = [finding for finding in found if finding.study not in biased]
        if others or not results:
            show.findings(others, plan.thresholds, *level)
        if results:
            show.bias(results, self.show or (_VALUES if self.study else 0), *level)
        if audit.sweep:
            show.sweep(audit.sweep, short)
        if audit.spreads is not None:
            show.stability(audit.spreads)


def _check_answered(results: Sequence[BiasResult]) -> None:
    """Raise an error where a ranker has no template with all scores; the others' results are out by then."""
    for name in dict.fromkeys(result.ranker for result in results):
        own = [result for result in results if result.ranker == name]
        if not any(result.n_templates for result in own) and any(result.nonfinite for result in own):
            raise WhyrankError(f"ranker {name!r} {_missing_scores(own)}; take one that scores any text")


def _missing_scores(results: Sequence[BiasResult]) -> str:
    """What a ranker did not score: any text, or some values, of which the most often missing are named."""
    some = [result for result in results if result.nonfinite]
    if all(sum(result.unscored.values()) == result.nonfinite * result.n_values for result in some):
        return "has no finite score for any template"
    lacking = {value: count for result in some for value, count in result.unscored.items()}
    most = sorted(lacking, key=lambda value: -lacking[value])
    more = f" and {len(most) - _NAMED:,} more" if len(most) > _NAMED else ""
    return f"has no template with a finite score for every value: it lacks {', '.join(most[:_NAMED])}{more}"
