"""`whyrank split`: disjoint parts of a collection's queries, for modelling, fusion, development and test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from whyrank.cli import options as o
from whyrank.cli import setup

if TYPE_CHECKING:
    from whyrank.evaluation import PartStatistics

Spec = Annotated[str, typer.Argument(metavar="COLLECTION", help="As for --collection.", show_default=False)]
Parts = Annotated[
    str,
    typer.Option("--parts", metavar="NAME=SHARE,...", help="Parts and their shares of the judged queries."),
]
Out = Annotated[
    str, typer.Option("--out", "-o", metavar="FOLDER", help="A new folder; FOLDER:PART opens.", show_default=False)
]
Copy = Annotated[
    bool, typer.Option("--copy-corpus", help="Copy the documents; by default the folder says where they are.")
]


def split(
    collection: Spec,
    out: Out,
    parts: Parts = "modelling=0.6,fusion=0.2,dev=0.1,test=0.1",
    copy_corpus: Copy = False,
    analyzer: o.AnalyzerOption = "lucene",
    seed: o.SeedOption = 0,
    json_: o.JsonOption = False,
    strict: o.StrictOption = False,
) -> None:
    """Split the judged queries of a collection at random into disjoint parts; queries with one text stay together."""
    from whyrank.data import corpus_of, parse_parts, split_collection, write_split
    from whyrank.evaluation import part_statistics
    from whyrank.text import analyzers

    o.check_filled(out=out, analyzer=analyzer, parts=parts)
    wanted, counting = parse_parts(parts), analyzers.create(analyzer)
    opened = setup.open_collection(collection, strict)
    made = split_collection(opened, wanted, seed)
    rows = part_statistics(made, counting)
    facts = {"collection": collection, "seed": seed, "parts": wanted, "analyzer": analyzer}
    report = json.dumps({**facts, "statistics": [row.row() for row in rows]}, indent=1)
    write_split(out, opened, made, None if copy_corpus else corpus_of(collection), report + "\n")
    print(report) if json_ else _show(rows)
    left = len(opened.queries) - sum(row.queries for row in rows)
    note = f"; {setup.plural(left, 'query', 'queries')} in no part" if left else ""
    setup.say(f"{setup.plural(len(made), 'part')} of {opened.name}{note}: {out}")


def _show(rows: list[PartStatistics]) -> None:
    from whyrank.cli.show import figure, table

    header = ["part", "queries", "judged", "relevant", "per query", "query length", "relevant length", "shared"]
    shown = [
        [row.part, f"{row.queries:,}", f"{row.judged:,}", f"{row.relevant:,}", f"{row.relevant_per_query:.2f}",
         figure(row.query_length, ".1f"), figure(row.relevant_length, ".1f"), f"{row.shared:,}"]
        for row in rows
    ]  # fmt: skip
    caption = "lengths: mean number of tokens; shared: relevant documents that are relevant in another part too"
    table("", header, shown, 1, caption)
