"""`whyrank delta`: calibrate the difference that matters to a ranker."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import setup

Percentile = Annotated[
    str, typer.Option("--delta", metavar="VALUE|pNN", help="The delta that is wanted; p50 = the median.")
]


def delta(
    collection: o.CollectionOption = "sample",
    ranker: o.RankerOption = None,
    analyzer: o.AnalyzerOption = "lucene",
    stats: o.StatsOption = None,
    precision: o.PrecisionOption = None,
    candidates: o.CandidatesOption = None,
    delta: Percentile = "p50",
    executor: o.ExecutorOption = "serial",
    batch_size: o.BatchOption = None,
    store: o.StoreOption = None,
    fresh: o.FreshOption = False,
    timeout: o.TimeoutOption = None,
    json_: o.JsonOption = False,
    strict: o.StrictOption = False,
) -> None:
    """Calibrate delta: the median difference of neighbours in the top ten of a ranker's own rankings."""
    from whyrank.studies import thresholds

    opened = setup.open_collection(collection, strict)
    rankers = setup.open_rankers(ranker, opened, analyzer, stats, precision)
    source = setup.delta_candidates(opened, None, candidates, strict)
    found = thresholds(delta, rankers, source, setup.make_engine(executor, batch_size, store, fresh, timeout))
    for line in setup.computed(rankers):
        setup.say(f"note: {line}")
    rows = [
        {"ranker": name, "delta": t.delta, "differences": len(t.calibration.diffs), "source": t.calibration.source,
         "percentiles": dict(t.calibration.curve())}
        for name, t in found.items() if t.calibration is not None
    ]  # fmt: skip
    print(json.dumps(rows, indent=1)) if json_ else _show(rows, delta)


def _show(rows: list[dict[str, object]], spec: str) -> None:
    from whyrank.cli.show import table
    from whyrank.core import WhyrankError

    if not rows:
        raise WhyrankError("no query has two candidates to compare; give --candidates RUN")
    marks = (10, 25, 50, 75, 90, 99)
    header = ["ranker", f"delta ({spec})", *(f"p{mark}" for mark in marks), "differences"]
    shown = []
    for row in rows:
        curve = row["percentiles"]
        assert isinstance(curve, dict)
        shown.append(
            [
                str(row["ranker"]),
                f"{row['delta']:.6g}",
                *(f"{curve[m]:.4g}" for m in marks),
                f"{row['differences']:,}",
            ]
        )
    table("", header, shown, caption=f"differences of neighbours in the top 10, {rows[0]['source']}")
