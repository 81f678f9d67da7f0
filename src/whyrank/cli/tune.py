"""`whyrank tune`: search a ranker's parameters on a development split."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import setup

if TYPE_CHECKING:
    from whyrank.audit.tuning import Trial

Grid = Annotated[
    list[str] | None,
    typer.Option(
        "--grid",
        metavar="NAME=VALUES",
        help="k1=0.6,0.9,1.2 or k1=0.6:1.2:0.3; repeat for several. Default: a grid for bm25 and ql.",
    ),
]
Measure = Annotated[str, typer.Option("--measure", "-m", metavar="NAME", help="What to maximise.")]
Depth = Annotated[int, typer.Option("--depth", metavar="K", help="Documents per query when retrieving.", min=1)]
DevShare = Annotated[
    float,
    typer.Option(
        "--dev-share",
        metavar="SHARE",
        help="Tune on this share of the queries, drawn at random; measure the rest too.",
    ),
]


def tune(
    collection: o.CollectionOption = "sample",
    ranker: o.RankerOption = None,
    grid: Grid = None,
    measure: Measure = "nDCG@10",
    candidates: o.CandidatesOption = None,
    depth: Depth = 1000,
    dev_share: DevShare = 1.0,
    analyzer: o.AnalyzerOption = "lucene",
    stats: o.StatsOption = None,
    seed: o.SeedOption = 0,
    json_: o.JsonOption = False,
    strict: o.StrictOption = False,
) -> None:
    """Search parameters on the judged queries of a development split, such as --collection PATH:dev."""
    from whyrank.audit.tuning import Runner, parse_grid, split_queries
    from whyrank.audit.tuning import tune as search
    from whyrank.core.errors import WhyrankError
    from whyrank.rankers import Setting
    from whyrank.scoring import Engine

    specs, grids = ranker or ["bm25"], dict(map(parse_grid, grid or []))
    if len(specs) > 1 or len(grids) < len(grid or []):
        raise WhyrankError("tune takes one --ranker, and one --grid for each of its parameters")
    opened = setup.open_collection(collection, strict)
    given = setup.open_run(opened, candidates, strict) if candidates else None
    runner = Runner(Engine(), Setting(opened, analyzer, stats), given, depth)
    split = split_queries(opened, dev_share, seed)
    trials = search(specs[0], grids, split, measure, runner)
    print(json.dumps([trial._asdict() for trial in trials], indent=1)) if json_ else _show(trials, measure)
    setup.say(
        f"best of {len(trials)} settings on {len(split.dev.queries):,} queries of {opened.name}: {trials[0].ranker}"
    )


def _show(trials: list[Trial], measure: str) -> None:
    from whyrank.cli.show import figure, table

    held_out = trials[0].test is not None
    header = ["ranker", f"{measure} dev", *(["held out"] if held_out else [])]
    rows = [[t.ranker, f"{t.dev:.4f}", *([figure(t.test, ".4f")] if held_out else [])] for t in trials]
    table("", header, rows)
