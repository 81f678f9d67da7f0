"""`whyrank evaluate`: measures of runs, with per-query values and paired tests, or split by overlap."""

from __future__ import annotations

import glob
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whyrank.cli.command import Share, Whole
from whyrank.cli.console import figure, interval, p_value, plural, say, star, table
from whyrank.cli.options import Input
from whyrank.core import BadInput, UnknownName, WhyrankError

if TYPE_CHECKING:
    from whyrank.data import Collection, Run
    from whyrank.evaluation import Effectiveness, Hypothesis, OverlapRow, Tested

SPLIT_FILES = (".csv", ".json", ".svg")


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand(Input):
    """Evaluate runs: means, per-query values (--json, or --out FILE.csv), and paired tests against a baseline.

    With --by overlap: means by the share of query terms that occur in a relevant document.

    Attributes:
        run_: a run file, or a run of the collection; repeat for several. Default: all runs of the collection.
        group: NAME=RUN,..., runs of one model, such as those of several seeds: their mean per query counts; repeat
            for several.
        baseline: compare the others with this run.
        hypotheses: a YAML file with lines NAME: A > B about runs and groups, tested together.
        measure: in the notation of ir-measures: nDCG@10, RR(rel=2)@10; repeat for several.
        by: overlap: split queries by the share of their terms in a relevant document; --out writes .csv, .json or
            .svg.
        groups: with --by overlap: groups of equal size.
        relevant: with --by overlap: which of several relevant documents decides: random, mean or max.
        candidates: with --by overlap: the first stage, a run file or a run of the collection.
        analyzer: with --by overlap: how words are counted.
        correction: over the whole table: holm, bonferroni, bh or none.
        alpha: level of significance, after correction.
        seed: seed of everything random.
        out: where the values of every query are written.
        json: print JSON on standard output.
    """

    run_: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    baseline: str | None = None
    hypotheses: str | None = None
    measure: tuple[str, ...] = ()
    by: str | None = None
    groups: Whole = 3
    relevant: str = "random"
    candidates: str | None = None
    analyzer: str = "lucene"
    correction: str = "holm"
    alpha: Share = 0.05
    seed: int = 0
    out: str | None = None
    json: bool = False

    def run(self) -> None:
        """Evaluate, print and write."""
        from whyrank.evaluation import read_hypotheses

        self._check()
        groups, claims = parse_groups(self.group), read_hypotheses(self.hypotheses) if self.hypotheses else []
        collection = self.open_collection()
        asked = [*self.run_, *(run for members in groups.values() for run in members)]
        asked += [name for claim in claims for name in (claim.better, claim.worse)]
        names = dict.fromkeys([*([self.baseline] if self.baseline else []), *(asked or collection.runs)])
        runs = self._open_runs(collection, [name for name in names if name not in groups])
        if self.by is not None:
            self._by_overlap(collection, runs)
        else:
            self._measure(collection, runs, groups, claims)
        judged = plural(len(collection.qrels), "judged query", "judged queries")
        where = f": {self.out}" if self.out else ""
        say(f"{plural(len(runs), 'run')} on {judged} of {collection.name}{where}")

    def _check(self) -> None:
        if self.by is None:
            return
        if self.by != "overlap":
            raise UnknownName("way to split queries", self.by, ("overlap",))
        if self.out is not None and Path(self.out).suffix not in SPLIT_FILES:
            remedy = f"end the name in {', '.join(SPLIT_FILES)}"
            raise BadInput(self.out, "the overlap split cannot be written so", remedy)
        for name in (name for name in ("group", "hypotheses") if getattr(self, name)):
            raise WhyrankError(f"--{name} does not go with --by; leave out one of the two")

    def _open_runs(self, collection: Collection, names: Sequence[str]) -> dict[str, Run]:
        if not names:
            remedy = "give one with --run FILE (make it with 'whyrank rank')"
            raise WhyrankError(f"collection {collection.name} has no runs; {remedy}")
        found = {name: self.open_run(collection, name) for name in names}
        for name, run in found.items():
            if missing := len(collection.qrels.keys() - run.keys()):
                queries = plural(missing, "judged query", "judged queries")
                say(f"note: {name}: {queries} missing, counted as zero")
        return found

    def _measure(
        self, collection: Collection, runs: Mapping[str, Run], groups: Mapping[str, Sequence[str]],
        claims: Sequence[Hypothesis],
    ) -> None:  # fmt: skip
        from whyrank.evaluation import default_measures, evaluate, judge

        measures = list(self.measure) or default_measures(collection)
        rows = evaluate(collection, runs, measures, self.baseline, self.correction, self.seed, groups)
        tested = judge(rows, claims, self.correction, self.seed) if claims else []
        if self.out:
            _write_values(rows, Path(self.out))
        if not self.json:
            _show(rows, self.alpha, self.correction)
            if tested:
                _show_hypotheses(tested, self.alpha, self.correction)
            return
        plain = [asdict(row) for row in rows]
        judged = [asdict(each) | {"verdict": each.verdict(self.alpha)} for each in tested]
        print(json.dumps({"runs": plain, "hypotheses": judged} if judged else plain, indent=1))

    def _by_overlap(self, collection: Collection, runs: Mapping[str, Run]) -> None:
        """The first stage is the given run, or the collection's BM25 or only run."""
        from whyrank.core import write_text
        from whyrank.data import first_stage
        from whyrank.evaluation import overlap_split
        from whyrank.report import csv_of, overlap_svg, overlap_table

        name = self.candidates or first_stage(collection)
        first = self.open_run(collection, name) if name else None
        rows = overlap_split(
            collection, runs, first, measures=list(self.measure) or ["nDCG@10"], groups=self.groups,
            relevant=self.relevant, analyzer=self.analyzer, baseline=self.baseline, seed=self.seed,
        )  # fmt: skip
        of_first = (rows[0].run, rows[0].measure, "all")
        left = len(collection.qrels) - sum(row.n for row in rows if (row.run, row.measure, row.queries) == of_first)
        if left:
            say(f"note: {plural(left, 'judged query', 'judged queries')} without terms or relevant text left out")
        lacking = "no first stage to look for relevant documents in; give it with --candidates RUN"
        say(f"note: retrieved: the relevant document is in {name}" if name else f"note: {lacking}")
        text = json.dumps([asdict(row) for row in rows], indent=1)
        if self.out:
            kind = Path(self.out).suffix
            svg_or_csv = overlap_svg(rows) if kind == ".svg" else csv_of(overlap_table(rows))
            write_text(Path(self.out), text + "\n" if kind == ".json" else svg_or_csv)
        print(text) if self.json else _show_overlap(rows)


def parse_groups(given: Sequence[str]) -> dict[str, list[str]]:
    """Groups from `NAME=RUN,RUN,...`; a pattern such as `runs/seed*.txt` stands for all files that it matches."""
    groups: dict[str, list[str]] = {}
    for text in given:
        name, _, members = (part.strip() for part in text.partition("="))
        found = [run for member in members.split(",") if member.strip() for run in _expanded(member.strip())]
        if not name or not found or name in groups:
            raise WhyrankError(f"--group {text!r}: write NAME=RUN,RUN,... with a name of its own for each group")
        groups[name] = found
    return groups


def _expanded(member: str) -> list[str]:
    matches = sorted(glob.glob(member)) if glob.has_magic(member) and not Path(member).exists() else []
    return matches or [member]


def _write_values(rows: Sequence[Effectiveness], path: Path) -> None:
    import pyarrow as pa

    from whyrank.core import write_text
    from whyrank.report import csv_of, encodable

    cells = [(encodable(row.run), row.measure, q, value) for row in rows for q, value in row.per_query.items()]
    names, kinds = ("run", "measure", "query_id", "value"), (pa.string(), pa.string(), pa.string(), pa.float64())
    columns = list(zip(*cells, strict=True)) or [()] * len(names)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    write_text(path, csv_of(pa.table(dict(zip(names, arrays, strict=True)))))


def _show(rows: Sequence[Effectiveness], alpha: float, correction: str) -> None:
    compared, grouped = any(row.baseline for row in rows), any(row.runs > 1 for row in rows)
    header = ["run", "measure", "mean", *["runs", "sd"] * grouped, "queries"]
    header += ["difference", "95% interval", "p", "p adj.", "p (t)"] * compared
    shown = []
    for row in rows:
        spread = [f"{row.runs:,}", figure(row.deviation, ".4f")] * grouped
        difference = figure(row.difference, "+.4f") + star(row.p_adjusted, alpha)
        tests = [interval(row.ci_low, row.ci_high, "+.4f"), *map(p_value, (row.p_value, row.p_adjusted, row.p_t))]
        head = [row.run, row.measure, f"{row.mean:.4f}", *spread, f"{row.n_queries:,}"]
        shown.append([*head, *[difference, *tests] * compared])
    caption = f"p: randomisation test over queries; * p < {alpha:g} after correction ({correction})" * compared
    caption += "\nsd: standard deviation of the means of a group's runs" * grouped
    table("", header, shown, 2, caption.strip())


def _show_hypotheses(rows: Sequence[Tested], alpha: float, correction: str) -> None:
    header = ["hypothesis", "claim", "measure", "means", "difference", "95% interval", "p", "p adj.", "p (t)",
              "verdict"]  # fmt: skip
    shown = [
        [row.hypothesis, f"{row.better} > {row.worse}", row.measure, f"{row.mean:.4f} {row.other:.4f}",
         f"{row.difference:+.4f}", interval(row.ci_low, row.ci_high, "+.4f"),
         *map(p_value, (row.p_value, row.p_adjusted, row.p_t)), row.verdict(alpha)]
        for row in rows
    ]  # fmt: skip
    caption = f"p: randomisation test over queries, two-sided; holds, reversed: p < {alpha:g} after correction "
    table("", header, shown, 3, f"{caption}({correction}); open: neither")


def _show_overlap(rows: Sequence[OverlapRow]) -> None:
    """Print the means, and where there is a baseline the differences from it: a column per group."""
    from whyrank.report import interval_of, mean_of, overlap_panels

    panels = overlap_panels(rows)
    kinds = [panel for panel in panels if panel.measure == panels[0].measure]
    sizes = "; ".join(f"{kind.queries} {', '.join(f'{row.n:,}' for row in kind.groups)}" for kind in kinds)
    caption = "groups by the share of query terms in a relevant document; in brackets the 95% interval, by query\n"
    caption += f"queries per group: {sizes}"
    _overlap_table("", rows, lambda row: f"{mean_of(row)} {interval_of(row)}", caption)
    compared = [row for row in rows if row.baseline is not None]
    if compared:
        _overlap_table(f"difference from {compared[0].baseline}", compared, _difference)


def _difference(row: OverlapRow) -> str:
    low, high = figure(row.difference_low, "+.3f"), figure(row.difference_high, "+.3f")
    return f"{figure(row.difference, '+.3f')} [{low}, {high}]"


def _overlap_table(
    title: str, rows: Sequence[OverlapRow], cell: Callable[[OverlapRow], str], caption: str = ""
) -> None:
    from whyrank.report import overlap_panels, shares_of

    panels = overlap_panels(rows)
    header = ["run", "measure", "queries", *(f"group {row.group}: {shares_of(row)}" for row in panels[0].groups)]
    shown = [
        [run, panel.measure, panel.queries, *map(cell, cells)]
        for panel in panels
        for run, cells in panel.runs.items()
    ]
    table(title, header, shown, 3, caption)
