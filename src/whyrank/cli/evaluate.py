"""`whyrank evaluate`: measures of runs, with per-query values and paired tests."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyrank.cli import options as o
from whyrank.cli import overlap, setup

if TYPE_CHECKING:
    from whyrank.audit.effectiveness import Effectiveness
    from whyrank.data import Collection
    from whyrank.data.trec import Run

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


def evaluate(
    collection: o.CollectionOption = "sample",
    run: Runs = None,
    baseline: Baseline = None,
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
    if by is not None:
        overlap.check(by, out)
    opened = setup.open_collection(collection, strict)
    runs = _runs(opened, run, baseline, strict)
    if by is not None:
        asked: dict[str, Any] = {"measures": measure or ["nDCG@10"], "groups": groups, "relevant": relevant}
        asked |= {"analyzer": analyzer, "baseline": baseline, "seed": seed}
        overlap.show(overlap.rows_of(opened, runs, candidates, strict, **asked), out, json_)
    else:
        _evaluate(opened, runs, measure, baseline, correction, alpha, seed, out, json_)
    setup.say(
        f"{len(runs)} runs on {len(opened.qrels):,} judged queries of {opened.name}" + (f": {out}" if out else "")
    )


def _evaluate(
    opened: Collection, runs: dict[str, Run], measure: list[str] | None, baseline: str | None,
    correction: str, alpha: float, seed: int, out: str | None, json_: bool,
) -> None:  # fmt: skip
    from whyrank.audit.effectiveness import default_measures, evaluate

    rows = evaluate(opened, runs, measure or default_measures(opened), baseline, correction, seed)
    if out:
        _write(rows, Path(out))
    print(json.dumps([asdict(row) for row in rows], indent=1)) if json_ else _show(rows, alpha, correction)


def _runs(collection: Collection, given: list[str] | None, baseline: str | None, strict: bool) -> dict[str, Run]:
    from whyrank.core.errors import WhyrankError

    names = list(dict.fromkeys([*([baseline] if baseline else []), *(given or collection.runs)]))
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
    import csv

    from whyrank.core.files import replacing

    with replacing(path) as beside, open(beside, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["run", "measure", "query_id", "value"])
        writer.writerows([row.run, row.measure, q, value] for row in rows for q, value in row.per_query.items())


def _show(rows: list[Effectiveness], alpha: float, correction: str) -> None:
    from whyrank.cli.show import figure, p_value, table

    compared = any(row.baseline for row in rows)
    header = ["run", "measure", "mean", "queries"] + (
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
        shown.append([row.run, row.measure, f"{row.mean:.4f}", f"{row.n_queries:,}", *(more if compared else [])])
    caption = (
        f"p: randomisation test over queries; * p < {alpha:g} after correction ({correction})" if compared else ""
    )
    table("", header, shown, 2, caption)
