"""`whyrank evaluate`: measures of runs, with per-query values and paired tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from whyrank.cli import options as o
from whyrank.cli import overlap, setup
from whyrank.cli.comparing import parse_groups
from whyrank.cli.comparing import show as show_hypotheses

if TYPE_CHECKING:
    from whyrank.data import Collection, Run
    from whyrank.evaluation import Effectiveness, Hypothesis, Tested

Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        metavar="FILE|NAME",
        help="A run file, or a run of the collection; repeat for several. Default: all runs of the collection.",
    ),
]
Baseline = Annotated[str | None, typer.Option("--baseline", metavar="RUN", help="Compare the others with this run.")]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        metavar="NAME",
        help="In the notation of ir-measures: nDCG@10, RR(rel=2)@10; repeat for several.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="overlap",
        help="Split queries by the share of their terms in a relevant document; --out writes .csv, .json or .svg.",
    ),
]
Groups = Annotated[int, typer.Option("--groups", metavar="N", help="With --by overlap: groups of equal size.", min=1)]
Relevant = Annotated[
    str,
    typer.Option(
        "--relevant",
        metavar="random|mean|max",
        help="With --by overlap: which of several relevant documents decides.",
    ),
]


Grouped = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="NAME=RUN,...",
        help="Runs of one model, such as those of several seeds: their mean per query counts; repeat for several.",
    ),
]
Hypotheses = Annotated[
    str | None,
    typer.Option(
        "--hypotheses", metavar="FILE.yaml", help="Lines NAME: A > B about runs and groups, tested together."
    ),
]


def evaluate(
    collection: o.CollectionOption = "sample",
    run: Runs = None,
    group: Grouped = None,
    baseline: Baseline = None,
    hypotheses: Hypotheses = None,
    measure: Measures = None,
    by: By = None,
    groups: Groups = 3,
    relevant: Relevant = "random",
    candidates: o.CandidatesOption = None,
    analyzer: o.AnalyzerOption = "lucene",
    correction: o.CorrectionOption = "holm",
    alpha: o.AlphaOption = 0.05,
    seed: o.SeedOption = 0,
    out: o.OutOption = None,
    json_: o.JsonOption = False,
    strict: o.StrictOption = False,
) -> None:
    """Evaluate runs: means, per-query values (--json, or --out FILE.csv), and paired tests against a baseline.

    With --by overlap: means by the share of query terms that occur in a relevant document.
    """
    o.check_filled(baseline=baseline, hypotheses=hypotheses, candidates=candidates, out=out)
    if by is not None:
        overlap.check(by, out)
        _check_plain(group, hypotheses)
    grouped, claims = parse_groups(group or []), _claims(hypotheses)
    opened = setup.open_collection(collection, strict)
    runs = _runs(opened, _names(opened, run, grouped, claims, baseline), strict)
    if by is not None:
        asked: dict[str, Any] = {"measures": measure or ["nDCG@10"], "groups": groups, "relevant": relevant}
        asked |= {"analyzer": analyzer, "baseline": baseline, "seed": seed}
        overlap.show(overlap.rows_of(opened, runs, candidates, strict, **asked), out, json_)
    else:
        from whyrank.evaluation import default_measures

        tests = Tests(baseline, claims, grouped, correction, alpha, seed)
        _evaluate(opened, runs, measure or default_measures(opened), tests, out, json_)
    judged = setup.plural(len(opened.qrels), "judged query", "judged queries")
    setup.say(f"{setup.plural(len(runs), 'run')} on {judged} of {opened.name}" + (f": {out}" if out else ""))


class Tests(NamedTuple):
    """What is compared with what, and how."""

    baseline: str | None
    claims: Sequence[Hypothesis]
    groups: Mapping[str, Sequence[str]]
    correction: str
    alpha: float
    seed: int


def _evaluate(
    opened: Collection, runs: dict[str, Run], measures: list[str], tests: Tests, out: str | None, json_: bool
) -> None:
    from whyrank.evaluation import evaluate, judge

    rows = evaluate(opened, runs, measures, tests.baseline, tests.correction, tests.seed, tests.groups)
    found = judge(rows, tests.claims, tests.correction, tests.seed) if tests.claims else []
    if out:
        _write(rows, Path(out))
    if json_:
        print(json.dumps(_plain(rows, found, tests.alpha), indent=1))
        return
    _show(rows, tests.alpha, tests.correction)
    if found:
        show_hypotheses(found, tests.alpha, tests.correction)


def _plain(rows: Sequence[Effectiveness], found: Sequence[Tested], alpha: float) -> Any:
    """The rows; where there are hypotheses, these beside them."""
    plain = [asdict(row) for row in rows]
    claims = [asdict(each) | {"verdict": each.verdict(alpha)} for each in found]
    return {"runs": plain, "hypotheses": claims} if claims else plain


def _check_plain(group: list[str] | None, hypotheses: str | None) -> None:
    from whyrank.core import WhyrankError

    for name in (name for name, given in (("group", group), ("hypotheses", hypotheses)) if given):
        raise WhyrankError(f"--{name} does not go with --by; leave out one of the two")


def _claims(path: str | None) -> list[Hypothesis]:
    from whyrank.evaluation import read_hypotheses

    return read_hypotheses(path) if path else []


def _names(
    collection: Collection, given: list[str] | None, groups: Mapping[str, Sequence[str]],
    claims: Sequence[Hypothesis], baseline: str | None,
) -> list[str]:  # fmt: skip
    """The runs that are asked for: given, in a group, claimed about, or the baseline; else all of the collection."""
    asked = [*(given or []), *(run for members in groups.values() for run in members)]
    asked += [name for claim in claims for name in (claim.better, claim.worse)]
    first = [baseline] if baseline else []
    return [name for name in dict.fromkeys([*first, *(asked or collection.runs)]) if name not in groups]


def _runs(collection: Collection, names: Sequence[str], strict: bool) -> dict[str, Run]:
    from whyrank.core import WhyrankError

    if not names:
        raise WhyrankError(
            f"collection {collection.name} has no runs; give one with --run FILE (make it with 'whyrank rank')"
        )
    found = {name: setup.open_run(collection, name, strict) for name in names}
    for name, run in found.items():
        missing = len(collection.qrels.keys() - run.keys())
        if missing:
            setup.say(
                f"note: {name}: {setup.plural(missing, 'judged query', 'judged queries')} missing, counted as zero"
            )
    return found


def _write(rows: list[Effectiveness], path: Path) -> None:
    import pyarrow as pa

    from whyrank.core import write_text
    from whyrank.report import csv_of, encodable

    cells = [(encodable(row.run), row.measure, q, value) for row in rows for q, value in row.per_query.items()]
    names, kinds = ("run", "measure", "query_id", "value"), (pa.string(), pa.string(), pa.string(), pa.float64())
    columns = list(zip(*cells, strict=True)) or [()] * len(names)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    write_text(path, csv_of(pa.table(dict(zip(names, arrays, strict=True)))))


def _show(rows: list[Effectiveness], alpha: float, correction: str) -> None:
    from whyrank.cli.show import figure, p_value, table

    compared, grouped = any(row.baseline for row in rows), any(row.runs > 1 for row in rows)
    header = ["run", "measure", "mean", *(["runs", "sd"] if grouped else []), "queries"] + (
        ["difference", "95% interval", "p", "p adj.", "p (t)"] if compared else []
    )
    shown = []
    for row in rows:
        mark = "*" if row.p_adjusted is not None and row.p_adjusted < alpha else " "
        interval = "–" if row.ci_low is None else f"[{row.ci_low:+.4f}, {row.ci_high:+.4f}]"
        more = [
            figure(row.difference, "+.4f") + mark,
            interval,
            p_value(row.p_value),
            p_value(row.p_adjusted),
            p_value(row.p_t),
        ]
        spread = [f"{row.runs:,}", figure(row.deviation, ".4f")] if grouped else []
        head = [row.run, row.measure, f"{row.mean:.4f}", *spread, f"{row.n_queries:,}"]
        shown.append([*head, *(more if compared else [])])
    caption = (
        f"p: randomisation test over queries; * p < {alpha:g} after correction ({correction})" if compared else ""
    )
    caption += "\nsd: standard deviation of the means of a group's runs" if grouped else ""
    table("", header, shown, 2, caption.strip())
