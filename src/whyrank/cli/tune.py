"""`whyrank tune`: search a ranker's parameters on a development split, or fit the weights of a fuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whyrank.cli import options as o
from whyrank.cli import setup

if TYPE_CHECKING:
    from whyrank.data import Collection
    from whyrank.evaluation import Split, Trial
    from whyrank.evaluation.fusion import Fusion

Grid = Annotated[
    list[str] | None,
    typer.Option(
        "--grid",
        metavar="NAME=VALUES",
        help="k1=0.6,0.9,1.2 or k1=0.6:1.2:0.3; repeat for several. Default: for bm25, ql, bm25t, qlt and model1.",
    ),
]
Measure = Annotated[str, typer.Option("--measure", "-m", metavar="NAME", help="What to maximise.")]
Depth = Annotated[
    int | None,
    typer.Option(
        "--depth",
        metavar="K",
        help="Documents per query when retrieving (1000); candidates per query when weights are fitted (20).",
        min=1,
    ),
]
DevShare = Annotated[
    float,
    typer.Option(
        "--dev-share",
        metavar="SHARE",
        help="Tune on this share of the queries, drawn at random; measure the rest too.",
    ),
]
Restarts = Annotated[
    int | None,
    typer.Option("--restarts", metavar="N", help="Of coordinate ascent, for the weights of a fuse; 10.", min=1),
]
Tolerance = Annotated[
    float | None,
    typer.Option("--tolerance", metavar="GAIN", help="An ascent ends with a pass that gains less; 0.00001.", min=0.0),
]


def tune(
    collection: o.CollectionOption = "sample",
    ranker: o.RankerOption = None,
    grid: Grid = None,
    measure: Measure = "nDCG@10",
    candidates: o.CandidatesOption = None,
    depth: Depth = None,
    dev_share: DevShare = 1.0,
    restarts: Restarts = None,
    tolerance: Tolerance = None,
    analyzer: o.AnalyzerOption = "lucene",
    stats: o.StatsOption = None,
    seed: o.SeedOption = 0,
    out: o.OutOption = None,
    json_: o.JsonOption = False,
    strict: o.StrictOption = False,
) -> None:
    """Search parameters on the judged queries of a development split, such as --collection PATH:dev.

    Without a grid, the weights of a fuse(of=[...]) are fitted by coordinate ascent; --out FILE.json keeps them.
    """
    from whyrank.core import WhyrankError
    from whyrank.evaluation import Runner, parse_grid, split_queries
    from whyrank.evaluation.fusion import DEPTH
    from whyrank.rankers import Setting
    from whyrank.scoring import Engine

    o.check_filled(candidates=candidates, analyzer=analyzer, stats=stats, out=out)
    specs, grids = ranker or ["bm25"], dict(map(parse_grid, grid or []))
    if len(specs) > 1 or len(grids) < len(grid or []):
        raise WhyrankError("tune takes one --ranker, and one --grid for each of its parameters")
    fitting = _fits(specs[0], bool(grids), restarts, tolerance)
    opened = setup.open_collection(collection, strict)
    given = setup.open_run(opened, candidates, strict) if candidates else None
    runner = Runner(Engine(), Setting(opened, analyzer, stats), given, depth or (DEPTH if fitting else 1000))
    split = split_queries(opened, dev_share, seed)
    if fitting:
        chosen: dict[str, Any] = {"restarts": restarts, "seed": seed, "tolerance": tolerance}
        _fit(specs[0], split, measure, runner, {k: v for k, v in chosen.items() if v is not None}, out, json_)
    else:
        _search(specs[0], grids, split, measure, runner, opened, out, json_)


def _fits(spec: str, grid: bool, restarts: int | None, tolerance: float | None) -> bool:
    """Whether weights are to be fitted; an error for options of that where they are not."""
    from whyrank.core import WhyrankError, parse_call
    from whyrank.evaluation import without_ranges

    call, ranges = without_ranges(parse_call(spec))
    fitting = call.name == "fuse" and not grid and not ranges
    for name in (name for name, given in (("restarts", restarts), ("tolerance", tolerance)) if given is not None):
        if not fitting:
            raise WhyrankError(f"--{name} is for the weights of a fuse(of=[...]) without --grid; leave it out")
    return fitting


def _search(
    spec: str, grids: Any, split: Split, measure: str, runner: Any, opened: Collection, out: str | None, json_: bool
) -> None:
    from whyrank.core import write_text
    from whyrank.evaluation import tune as search

    trials = search(spec, grids, split, measure, runner)
    text = json.dumps([trial._asdict() for trial in trials], indent=1)
    if out:
        write_text(out, text + "\n")
    print(text) if json_ else _show(trials, measure)
    settings, queries = setup.plural(len(trials), "setting"), setup.plural(len(split.dev.queries), "query", "queries")
    best = f"best of {settings} on {queries} of {opened.name}: {trials[0].ranker}"
    setup.say(best + (f"; all settings: {out}" if out else ""))


def _fit(
    spec: str, split: Split, measure: str, runner: Any, chosen: dict[str, Any], out: str | None, json_: bool
) -> None:
    from whyrank.evaluation.fusion import fit_best

    found, settings = fit_best(spec, split, measure, runner, **chosen)
    use = found.save(out) if out else found.spec
    print(_json(found)) if json_ else _show_fusion(found, measure)
    each = f" for each of {settings:,} settings of the parts" if settings > 1 else ""
    ascents = setup.plural(len(found.fitted.ascents), "ascent")
    queries = setup.plural(len(split.dev.queries), "query", "queries")
    setup.say(f"best of {ascents}{each} on {queries} of {split.dev.name}: {use}")


def _json(found: Fusion) -> str:
    rows = [row._asdict() for row in found.rows]
    return json.dumps({"ranker": found.spec, "choices": rows, **found.facts}, indent=1)


def _show(trials: list[Trial], measure: str) -> None:
    from whyrank.cli.show import figure, table

    held_out = trials[0].test is not None
    header = ["ranker", f"{measure} dev", *(["held out"] if held_out else [])]
    rows = [[t.ranker, f"{t.dev:.4f}", *([figure(t.test, ".4f")] if held_out else [])] for t in trials]
    table("", header, rows)


def _show_fusion(found: Fusion, measure: str) -> None:
    from whyrank.cli.show import figure, table

    held_out = found.rows[0].test is not None
    parts = len(found.config.parts)
    header = ["", "weights", *map(str, range(1, 1 + parts)), f"{measure} dev", *(["held out"] if held_out else [])]
    rows = [
        [str(i) if i <= parts else "", row.name, *(f"{w:.4f}" for w in row.weights), f"{row.dev:.4f}",
         *([figure(row.test, ".4f")] * held_out)]
        for i, row in enumerate(found.rows, 1)
    ]  # fmt: skip
    table("", header, rows, 2)
