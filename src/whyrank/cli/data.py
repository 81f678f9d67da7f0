"""`whyrank data`: background statistics of a collection, and disjoint parts of its queries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from whyrank.cli.command import argument
from whyrank.cli.console import Cell, plural, say, show_rows
from whyrank.cli.options import Input, check_file

if TYPE_CHECKING:
    from whyrank.data import Collection
    from whyrank.text import Analyzer, Tokens

TEXTS = 10_000  # texts that are analyzed at a time


@dataclass(frozen=True, kw_only=True)
class StatsCommand(Input):
    """Write the background statistics of a collection (.parquet), to be used with --stats FILE.

    Attributes:
        analyzer: how words are counted: lucene, krovetz, terrier(stopwords=FILE), whitespace, ...
        out: a .parquet file.
    """

    analyzer: str = "lucene"
    out: str

    def run(self) -> None:
        """Count and write."""
        from whyrank.rankers import Background
        from whyrank.text import analyzers

        check_file(self.out, [".parquet"], "statistics")
        collection = self.open_collection()
        background = Background.of(collection.docs, analyzers.create(self.analyzer))
        background.save(self.out)
        facts = f"{background.n_docs:,} documents, {background.n_tokens:,} tokens, {len(background.terms):,} terms"
        say(f"{facts} of {collection.name}: {self.out}")


@dataclass(frozen=True, kw_only=True)
class SplitCommand(Input):
    """Split the judged queries of a collection at random into disjoint parts; queries with one text stay together.

    Attributes:
        out: a new folder; FOLDER:PART opens.
        parts: NAME=SHARE,..., parts and their shares of the judged queries.
        copy_corpus: copy the documents; by default the folder says where they are.
        analyzer: how words are counted: lucene, krovetz, terrier(stopwords=FILE), whitespace, ...
        seed: seed of everything random.
        json: print JSON on standard output.
    """

    collection: str = argument("COLLECTION", "sample")
    out: str
    parts: str = "modelling=0.6,fusion=0.2,dev=0.1,test=0.1"
    copy_corpus: bool = False
    analyzer: str = "lucene"
    seed: int = 0
    json: bool = False

    def run(self) -> None:
        """Split, write and print."""
        from whyrank.data import corpus_of, parse_parts, split_collection, write_split
        from whyrank.text import analyzers

        wanted, counting = parse_parts(self.parts), analyzers.create(self.analyzer)
        collection = self.open_collection()
        made = split_collection(collection, wanted, self.seed)
        rows = part_statistics(made, counting)
        facts = {"collection": self.collection, "seed": self.seed, "parts": wanted, "analyzer": self.analyzer}
        report = json.dumps({**facts, "statistics": rows}, indent=1)
        corpus = None if self.copy_corpus else corpus_of(self.collection)
        write_split(self.out, collection, made, corpus, report + "\n")
        if self.json:
            print(report)
        else:
            columns: dict[str, Cell] = {
                "part": "part", "queries": ("queries", ","), "judged": ("judged", ","),
                "relevant": ("relevant", ","), "per query": ("relevant_per_query", ".2f"),
                "query length": ("query_length", ".1f"), "relevant length": ("relevant_length", ".1f"),
                "shared": ("shared", ","),
            }  # fmt: skip
            shared = "shared: relevant documents that are relevant in another part too"
            show_rows("", rows, columns, caption=f"lengths: mean number of tokens; {shared}")
        left = len(collection.queries) - sum(row["queries"] for row in rows)
        note = f"; {plural(left, 'query', 'queries')} in no part" if left else ""
        say(f"{plural(len(made), 'part')} of {collection.name}{note}: {self.out}")


def part_statistics(parts: Mapping[str, Collection], analyzer: Analyzer) -> list[dict[str, Any]]:
    """How many queries and judgements each part has, and how long its texts are on average, in tokens.

    `shared` counts relevant documents that are relevant in another part too. Each relevant document counts once in
    `relevant_length`; lengths are None where there is nothing to measure.
    """
    from whyrank.data import texts_of

    relevant = {
        name: [d for judged in part.qrels.values() for d, grade in judged.items() if grade >= part.grades.relevant]
        for name, part in parts.items()
    }
    found = []
    for name, part in parts.items():
        own, elsewhere = relevant[name], {d for other in parts if other != name for d in relevant[other]}
        distinct = sorted({d for d in own if d in part.docs})
        chunks = (distinct[start : start + TEXTS] for start in range(0, len(distinct), TEXTS))
        found.append(
            {
                "part": name,
                "queries": len(part.queries),
                "judged": sum(map(len, part.qrels.values())),
                "relevant": len(own),
                "relevant_per_query": len(own) / max(len(part.queries), 1),
                "query_length": _mean_length([analyzer.queries(list(part.queries.values()))]),
                "relevant_length": _mean_length(analyzer.docs(texts_of(part.docs, chunk)) for chunk in chunks),
                "shared": len(set(own) & elsewhere),
            }
        )
    return found


def _mean_length(tokens: Iterable[Tokens]) -> float | None:
    lengths = np.concatenate([np.zeros(0), *(np.diff(each.offsets) for each in tokens)])
    return float(lengths.mean()) if len(lengths) else None
