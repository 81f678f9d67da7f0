"""`whyrank compare`: two audits or two rankers, what differs with tests; and a gate with rules, for CI."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from whyrank.cli.command import argument, refuse
from whyrank.cli.console import Cell, plural, say, show_rows, tell_failures, write
from whyrank.cli.options import check_file
from whyrank.cli.studies import StudyOptions, make_request, study_pattern
from whyrank.core import Share, WhyrankError, printable

if TYPE_CHECKING:
    from whyrank.report import Audit, Comparison, Gate

_SHOWN = 20  # values of bias studies


@dataclass(frozen=True, kw_only=True)
class CompareCommand(StudyOptions):
    """Compare two audits, or two rankers on a collection: what changed, with intervals and tests by query.

    A and B are result folders of `whyrank audit --out`, or call strings of rankers, which are then audited on the
    same contrasts. Differences are those of B from A. With --rules, B must keep to them, else the exit code is 1; one
    folder alone can be checked too.

    Attributes:
        audits: the folders of two audits, the older one first, or two rankers.
        ranker: which ranker of the audits to compare; twice for its name in A and in B. Default: the only one, or all
            that are in both.
        study: of two rankers: names, patterns or call strings of studies; repeat for several.
        rules: a YAML file of rules on the behaviour of B.
        alpha: level of significance, after correction.
        correction: over the whole table: holm, bonferroni, bh or none.
        markdown: write what changed, and which rules hold, to a Markdown file.
        junit: write which rules hold to a file in JUnit's XML.
        card: write a behaviour card of B, a Markdown file to put beside a model card.
        json: print JSON on standard output.
    """

    audits: tuple[str, ...] = argument("A [B]", ())
    study: tuple[str, ...] = ()
    rules: str | None = None
    alpha: Share | None = None
    correction: str | None = None
    markdown: str | None = None
    junit: str | None = None
    card: str | None = None
    json: bool = False

    def run(self) -> None:
        """Compare, check, print and write; exit code 1 where a rule fails."""
        import typer

        from whyrank import report

        if len(self.audits) not in (1, 2):
            raise WhyrankError(f"compare takes two audits or two rankers, not {len(self.audits)}; see --help")
        for out, suffix, what in ((self.markdown, ".md", "a comparison"), (self.card, ".md", "a behaviour card"),
                                  (self.junit, ".xml", "a report for JUnit")):  # fmt: skip
            check_file(out, (suffix,), what)
        if self.junit and not self.rules:
            raise WhyrankError("--junit reports which rules hold; give them with --rules FILE")
        rules = report.read_rules(self.rules) if self.rules else []
        audit, comparison, names = self._compared()
        gate = report.check_rules(rules, audit, comparison, names, self.rules) if self.rules else None
        if self.json:
            found = ({} if comparison is None else comparison.to_dict()) | ({} if gate is None else gate.to_dict())
            print(printable(json.dumps(report.plain(found), indent=1, ensure_ascii=False)))
        else:
            for line in gate.lines if gate else ():
                write(line)
            if comparison is not None:
                _show(comparison)
        self._write(audit, comparison, gate, names)
        if gate is not None:
            say(gate.summary)
            if not gate.passed:
                raise typer.Exit(1)

    def _compared(self) -> tuple[Audit, Comparison | None, tuple[str, ...]]:
        """The audit of B, its comparison with A where there is one, and the rankers of B that are named."""
        from whyrank.report import compare, open_audit

        folders = [Path(each).is_dir() for each in self.audits]
        paths = [each for each in self.audits if "/" in each and ":" not in each and "(" not in each]
        if not any(folders) and not paths and len(folders) == 2:
            return self._rankers()
        for given, folder in zip(self.audits, folders, strict=True):
            if not folder:
                ways = "give a folder that `whyrank audit --out` wrote, or two rankers"
                raise WhyrankError(f"{given!r} is no result folder; {ways}")
        of_rankers = ["study", *(each.name for each in fields(StudyOptions) if each.name != "ranker")]
        refuse(self, of_rankers, "is for two rankers; audits are compared as they are")
        opened = open_audit(self.audits[-1])
        if len(folders) == 1:
            if not (self.rules or self.card):
                raise WhyrankError("one audit has nothing to be compared with; name two, or give --rules or --card")
            return opened, None, self.ranker[-1:]
        level = {"alpha": self.alpha, "correction": self.correction}
        found = compare(*map(Path, self.audits), rankers=self.ranker, **level)  # type: ignore[arg-type]
        return opened, found, self.ranker[-1:]

    def _rankers(self) -> tuple[Audit, Comparison, tuple[str, ...]]:
        from whyrank.evaluation import effectiveness_of_plan
        from whyrank.report import compare_audits, run_plan
        from whyrank.studies import DEMO_TOLERANCE, make_plan, usual_studies

        refuse(self, ("ranker",), "names a ranker of two audits; these are rankers already")
        demo = self.collection == "sample" and self.tolerance is None
        request = replace(self, ranker=self.audits, tolerance=DEMO_TOLERANCE if demo else self.tolerance)
        patterns = [study_pattern(each) for each in self.study] or usual_studies(self.collection)
        correction = self.correction or "holm"
        plan = make_plan(make_request(request, patterns, correction=correction))
        settings = {
            "command": "compare",
            "correction": correction,
            "alpha": 0.05 if self.alpha is None else self.alpha,
        }
        measure = partial(effectiveness_of_plan, plan, self.candidates, self.analyzer)
        audit = run_plan(plan, settings, effectiveness=measure)
        tell_failures(audit.failures)
        for note in audit.notes[len(plan.collection.notes) :]:
            say(f"note: {note}")
        names = [ranker.name for ranker in plan.rankers]
        return audit, compare_audits(audit, audit, names, seed=self.seed), (names[1],)

    def _write(
        self, audit: Audit, comparison: Comparison | None, gate: Gate | None, rankers: tuple[str, ...]
    ) -> None:
        from whyrank.core import write_text
        from whyrank.report import behaviour_card, encodable

        if self.junit and gate is not None:
            write_text(Path(self.junit), gate.to_junit())
        if self.markdown:
            parts = [part.to_markdown() for part in (gate, comparison) if part is not None]
            write_text(Path(self.markdown), encodable("\n".join(parts)))
        if self.card:
            write_text(Path(self.card), encodable(behaviour_card(audit, comparison, gate, rankers)))


def _show(comparison: Comparison) -> None:
    """Print the headlines, a table of studies and measures, the values of bias studies that differ, and notes."""
    write("\n".join(comparison.headlines()))

    def columns(*lead: str) -> dict[str, Cell]:
        several = len({row.ranker for row in comparison.rows}) > 1
        return {
            **{name: name for name in lead}, "ranker": "ranker" if several else None,
            "first": lambda row: row.shown(row.baseline_figure), "second": lambda row: row.shown(row.figure),
            "difference": lambda row: row.shown_difference + ("*" if row.significant(comparison.alpha) else " "),
            "95% interval": lambda row: row.shown_interval,
            "p": ("difference_p", "p"), "p adj.": ("difference_adjusted", "p"), "n": ("n", ","),
            "queries": ("n_queries", ","),
        }  # fmt: skip

    caption = f"first: {comparison.first}; second: {comparison.second}; difference: second less first\n"
    caption += "of scores, of shares satisfied, of ranges of bias studies in deltas, on the same contrasts\n"
    caption += (
        f"* p < {comparison.alpha:g} after correction ({comparison.correction}), clustered by query and document"
    )
    show_rows("", comparison.studies, columns("study"), 1, caption)
    values = [row for row in comparison.rows if row.value and row.significant(comparison.alpha)]
    if values:
        show_rows("effects of values, in deltas", values[:_SHOWN], columns("study", "value"), 2)
        if len(values) > _SHOWN:
            say(f"note: {len(values) - _SHOWN} more values differ; --json has all")
    if comparison.effectiveness:
        measures = columns()
        show_rows("", comparison.effectiveness, {"measure": "unit", **measures}, 1)
    for note in comparison.notes:
        say(f"note: {note}")
    reasons: dict[str, list[str]] = {}
    for study, reason in comparison.uncompared:
        reasons.setdefault(reason, []).append(study)
    for reason, studies in reasons.items():
        say(f"note: not compared, because {reason}: {', '.join(studies)}")
    say(f"{plural(len(comparison.studies), 'study', 'studies')} compared")
