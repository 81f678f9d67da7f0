"""`whyrank tables learn local-to-global`: a term table from local explanations of ranked lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import setup

if TYPE_CHECKING:
    from whyrank.learners.local import Explained

Target = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        metavar="SPEC",
        help="The ranker to be explained.",
        show_default=False,
        callback=o.hide_secrets,
    ),
]
Out = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="TABLE", help="A .parquet, .arrow, .tsv or .tsv.gz file.", show_default=False
    ),
]
Method = Annotated[str, typer.Option("--method", metavar="NAME", help="occlusion, lime or bm25.")]
Variant = Annotated[str, typer.Option("--variant", metavar="NAME", help="plain, min-frequency or uniform.")]
Depth = Annotated[
    int, typer.Option("--depth", metavar="N", help="Documents per query that the target scores.", min=1)
]
Top = Annotated[int, typer.Option("--top", metavar="N", help="Of these the best, which are explained.", min=1)]
Words = Annotated[int, typer.Option("--words", metavar="N", help="Explanation words per query, at most.", min=1)]
Samples = Annotated[int, typer.Option("--samples", metavar="N", help="Texts per document (lime).", min=2)]
Pool = Annotated[int, typer.Option("--pool", metavar="N", help="Terms per query that are tried (bm25).", min=1)]
Queries = Annotated[
    int | None, typer.Option("--queries", metavar="N", help="So many, drawn at random. Default: all.", min=1)
]
Threshold = Annotated[float, typer.Option("--threshold", metavar="W", help="Smaller weights are left out.")]
Analyzer = Annotated[
    str | None,
    typer.Option("--analyzer", metavar="SPEC", help="What a term is. Default: krovetz if installed, else lucene."),
]
Kept = Annotated[
    str | None,
    typer.Option("--explanations", metavar="FILE.jsonl", help="Also write the words of each query, with alignment."),
]


def local_to_global(
    target: Target,
    out: Out,
    collection: o.CollectionOption = "sample",
    method: Method = "occlusion",
    variant: Variant = "plain",
    candidates: o.CandidatesOption = None,
    depth: Depth = 1000,
    top: Top = 10,
    words: Words = 10,
    samples: Samples = 100,
    pool: Pool = 100,
    queries: Queries = None,
    threshold: Threshold = 0.0,
    analyzer: Analyzer = None,
    stats: o.StatsOption = None,
    precision: o.PrecisionOption = None,
    seed: o.SeedOption = 0,
    explanations: Kept = None,
    executor: o.ExecutorOption = "serial",
    batch_size: o.BatchOption = None,
    store: o.StoreOption = None,
    fresh: o.FreshOption = False,
    timeout: o.TimeoutOption = None,
    strict: o.StrictOption = False,
) -> None:
    """Learn a table from local explanations of a ranker's lists: the words that put documents on top, added up."""
    from whyrank.learners.local import LocalToGlobal, default_analyzer
    from whyrank.tables import writer

    o.check_filled(out=out, candidates=candidates, analyzer=analyzer, stats=stats, store=store)
    o.check_filled(explanations=explanations, precision=precision)
    writer(out)
    _check_places(out, explanations)
    chosen = analyzer or default_analyzer()
    learner = LocalToGlobal(
        target, method, variant, depth, top, words, samples, pool, threshold, seed, chosen, queries, candidates,
        stats, precision, explanations,
    )  # fmt: skip
    opened = setup.open_collection(collection, strict)
    [ranker] = setup.open_rankers([target], opened, chosen, stats, precision)
    given = setup.open_run(opened, candidates, strict) if candidates else None
    engine = setup.make_engine(executor, batch_size, store, fresh, timeout)
    learned = learner.explain(opened, ranker, engine, given)
    setup.report_failures(learned.failures)
    learned.table.save(out)
    if explanations:
        learned.save_explanations(explanations)
    _conclude(learned.explained, len(learned.table), learned.table.facts["analyzer"], out)


def _check_places(out: str, explanations: str | None) -> None:
    """What cannot be written is said before anything is scored."""
    from pathlib import Path

    from whyrank.core import WhyrankError, check_place

    check_place(out)
    if explanations is not None:
        check_place(explanations)
        if Path(explanations).resolve() == Path(out).resolve():
            raise WhyrankError("--out and --explanations name one file; give each one of its own")


def _conclude(explained: Sequence[Explained], entries: int, analyzer: str, out: str) -> None:
    bare = sum(not each.words for each in explained)
    if bare:
        setup.say(f"note: {setup.plural(bare, 'query', 'queries')} without an explanation word")
    words = setup.plural(sum(len(each.words) for each in explained), "explanation word")
    queries = setup.plural(len(explained), "query", "queries")
    setup.say(f"{words} of {queries}, terms by {analyzer}; {setup.plural(entries, 'entry', 'entries')}: {out}")
