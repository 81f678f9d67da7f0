"""`whyrank rank`: a TREC run from a ranker."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import setup

Depth = Annotated[int, typer.Option("--depth", metavar="K", help="Documents per query.", min=1)]


def rank(
    collection: o.CollectionOption = "sample",
    ranker: o.RankerOption = None,
    analyzer: o.AnalyzerOption = "lucene",
    stats: o.StatsOption = None,
    candidates: o.CandidatesOption = None,
    depth: Depth = 1000,
    executor: o.ExecutorOption = "serial",
    batch_size: o.BatchOption = None,
    store: o.StoreOption = None,
    out: o.OutOption = None,
    strict: o.StrictOption = False,
) -> None:
    """Retrieve from the collection with BM25, or re-rank the candidates of a run with any ranker."""
    from whyrank.core.errors import WhyrankError
    from whyrank.data.trec import run_lines, write_run
    from whyrank.scoring.ranking import rerank, retrieve

    opened = setup.open_collection(collection, strict)
    rankers = setup.open_rankers(ranker or ["bm25"], opened, analyzer, stats)
    if len(rankers) > 1:
        raise WhyrankError("rank takes one --ranker at a time")
    engine = setup.make_engine(executor, batch_size, store)
    if candidates:
        run, failures = rerank(engine, rankers[0], opened, setup.open_run(opened, candidates, strict))
    else:
        run, failures = retrieve(engine, rankers[0], opened, depth, analyzer)
    setup.report_failures(failures)
    if out:
        write_run(out, run, rankers[0].name)
    else:
        sys.stdout.writelines(line + "\n" for line in run_lines(run, rankers[0].name))
    lines = sum(map(len, run.values()))
    setup.say(f"{lines:,} lines for {len(run):,} queries by {rankers[0].name}" + (f": {out}" if out else ""))
