"""`whyrank evaluate`: measures of runs, with per-query values and paired tests, or split by overlap."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whyrank.cli.command import refuse
from whyrank.cli.console import Cell, figure, interval, plural, say, show_rows, star, table, test_columns
from whyrank.cli.options import Input, check_file
from whyrank.core import Share, Whole, WhyrankError

if TYPE_CHECKING:
    from whyrank.data import Collection, Run
    from whyrank.evaluation import Effectiveness, Hypothesis, HypothesisTest, OverlapRow

SPLIT_FILES = (".csv", ".json", ".svg")


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand(Input):
    """Evaluate runs: means, per-query values (--json, or --out FILE.csv), and paired tests against a baseline.

    With --overlap: means by the share of query terms, as --analyzer makes them, that occur in a relevant document;
    --candidates is the first stage that may have retrieved it.

    Attributes:
        run_: a run file, or a run of the collection; repeat for several. Default: all runs of the collection.
        mean_of: NAME=RUN,..., runs of one model, such as those of several seeds: their mean per query counts; repeat
            for several.
        baseline: compare the others with this run.
        hypotheses: a YAML file with lines NAME: A > B about runs and groups, tested together.
        measure: in the notation of ir-measures: nDCG@10, RR(rel=2)@10; repeat for several.
        overlap: split queries by the share of their terms in a relevant document; --out writes .csv, .json or .svg.
        groups: with --overlap: groups of equal size.
        overlap_of: with --overlap: which of several relevant documents decides: random, mean or max.
        candidates: a run file, or the name of a run of the collection.
        analyzer: how words are counted: lucene, krovetz, terrier(stopwords=FILE), whitespace, ...
        correction: over the whole table: holm, bonferroni, bh or none.
        alpha: level of significance, after correction.
        seed: seed of everything random.
        out: where the values of every query are written.
        json: print JSON on standard output.
    """

    run_: tuple[str, ...] = ()
    mean_of: tuple[str, ...] = ()
    baseline: str | None = None
    hypotheses: str | None = None
    measure: tuple[str, ...] = ()
    overlap: bool = False
    groups: Whole = 3
    overlap_of: str = "random"
    candidates: str | None = None
    analyzer: str = "lucene"
    correction: str = "holm"
    alpha: Share = 0.05
    seed: int = 0
    out: str | None = None
    json: bool = False

    def run(self) -> None:
        """Evaluate, print and write."""
        from whyrank.evaluation import parse_groups, read_hypotheses

        if self.overlap:
            check_file(self.out, SPLIT_FILES, "the overlap split")
            refuse(self, ("mean_of", "hypotheses"), "does not go with --overlap; leave out one of the two")
        groups, claims = parse_groups(self.mean_of), read_hypotheses(self.hypotheses) if self.hypotheses else []
        collection = self.open_collection()
        named = [*self.run_, *(run for members in groups.values() for run in members)]
        named += [name for claim in claims for name in (claim.better, claim.worse)]
        every = dict.fromkeys([*([self.baseline] if self.baseline else []), *(named or collection.runs)])
        if not every:
            remedy = "give one with --run FILE (make it with 'whyrank rank')"
            raise WhyrankError(f"collection {collection.name} has no runs; {remedy}")
        runs = {name: self.open_run(collection, name) for name in every if name not in groups}
        for name, run in runs.items():
            if missing := len(collection.qrels.keys() - run.keys()):
                queries = plural(missing, "judged query", "judged queries")
                say(f"note: {name}: {queries} missing, counted as zero")
        if self.overlap:
            self._by_overlap(collection, runs)
        else:
            self._measure(collection, runs, groups, claims)
        judged = plural(len(collection.qrels), "judged query", "judged queries")
        where = f": {self.out}" if self.out else ""
        say(f"{plural(len(runs), 'run')} on {judged} of {collection.name}{where}")

    def _measure(
        self, collection: Collection, runs: Mapping[str, Run], groups: Mapping[str, Sequence[str]],
        claims: Sequence[Hypothesis],
    ) -> None:  # fmt: skip
        from whyrank.core import write_text
        from whyrank.evaluation import default_measures, evaluate, judge
        from whyrank.report import csv_of, values_table

        measures = list(self.measure) or default_measures(collection)
        rows = evaluate(runs, collection, measures, self.baseline, self.correction, self.seed, groups)
        tested = judge(rows, claims, self.correction, self.seed) if claims else []
        if self.out:
            write_text(Path(self.out), csv_of(values_table(rows)))
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
        from whyrank.evaluation import OverlapRow, overlap_split
        from whyrank.report import csv_of, overlap_svg, rows_table

        name = self.candidates or first_stage(collection)
        first = self.open_run(collection, name) if name else None
        rows = overlap_split(
            collection, runs, first, measures=list(self.measure) or ["nDCG@10"], groups=self.groups,
            relevant=self.overlap_of, analyzer=self.analyzer, baseline=self.baseline, seed=self.seed,
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
            svg_or_csv = overlap_svg(rows) if kind == ".svg" else csv_of(rows_table(rows, OverlapRow))
            write_text(Path(self.out), text + "\n" if kind == ".json" else svg_or_csv)
        print(text) if self.json else _show_overlap(rows)


def _show(rows: Sequence[Effectiveness], alpha: float, correction: str) -> None:
    compared, grouped = any(row.baseline for row in rows), any(row.runs > 1 for row in rows)
    tests = {
        "difference": lambda row: figure(row.difference, "+.4f") + star(row.p_adjusted, alpha),
        **test_columns("+.4f"),
    }
    columns = {
        "run": "run", "measure": "measure", "mean": ("mean", ".4f"),
        "runs": ("runs", ",") if grouped else None, "sd": ("deviation", ".4f") if grouped else None,
        "queries": ("n_queries", ","),
    }  # fmt: skip
    caption = f"p: randomisation test over queries; * p < {alpha:g} after correction ({correction})" * compared
    caption += "\nsd: standard deviation of the means of a group's runs" * grouped
    show_rows("", rows, columns | (tests if compared else {}), 2, caption.strip())


def _show_hypotheses(rows: Sequence[HypothesisTest], alpha: float, correction: str) -> None:
    caption = f"p: randomisation test over queries, two-sided; holds, reversed: p < {alpha:g} after correction "
    columns: dict[str, Cell] = {
        "hypothesis": "hypothesis", "claim": lambda row: f"{row.better} > {row.worse}",
        "measure": "measure", "means": lambda row: f"{row.mean:.4f} {row.other:.4f}",
        "difference": ("difference", "+.4f"), **test_columns("+.4f"),
        "verdict": lambda row: row.verdict(alpha),
    }  # fmt: skip
    show_rows("", rows, columns, 3, f"{caption}({correction}); open: neither")


def _show_overlap(rows: Sequence[OverlapRow]) -> None:
    """Print the means, and where there is a baseline the differences from it: a column per group."""
    from whyrank.report import by_measure, interval_of, mean_of, shares_of

    panels = by_measure(rows)
    kinds = next(iter(panels.values()))
    header = ["run", "measure", "queries", *(f"group {row.group}: {shares_of(row)}" for row in kinds[0].groups)]
    sizes = "; ".join(f"{kind.queries} {', '.join(f'{row.n:,}' for row in kind.groups)}" for kind in kinds)
    caption = "groups by the share of query terms in a relevant document; in brackets the 95% interval, by query\n"
    caption += f"queries per group: {sizes}"
    means, differences, baseline = [], [], None
    for panel in (panel for some in panels.values() for panel in some):
        for run, cells in panel.runs.items():
            head = [run, panel.measure, panel.queries]
            means.append([*head, *(f"{mean_of(row)} {interval_of(row)}" for row in cells)])
            if cells[0].baseline is not None:
                baseline = cells[0].baseline
                shown = ((figure(r.difference, "+.3f"), interval(r.difference_low, r.difference_high)) for r in cells)
                differences.append([*head, *(" ".join(parts) for parts in shown)])
    table("", header, means, 3, caption)
    if differences:
        table(f"difference from {baseline}", header, differences, 3)
