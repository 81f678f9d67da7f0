"""`whyrank data`: background statistics of a collection, and disjoint parts of its queries."""

from __future__ import annotations

import json
from dataclasses import dataclass

from whyrank.cli.command import argument
from whyrank.cli.console import figure, plural, say, table
from whyrank.cli.options import Input, open_collection


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
        from whyrank.core import WhyrankError
        from whyrank.rankers import Background
        from whyrank.text import analyzers

        if not self.out.endswith(".parquet"):
            raise WhyrankError("data stats needs --out FILE.parquet")
        collection = self.open_collection()
        background = Background.of(collection.docs, analyzers.create(self.analyzer))
        background.save(self.out)
        facts = f"{background.n_docs:,} documents, {background.n_tokens:,} tokens, {len(background.terms):,} terms"
        say(f"{facts} of {collection.name}: {self.out}")


@dataclass(frozen=True, kw_only=True)
class SplitCommand:
    """Split the judged queries of a collection at random into disjoint parts; queries with one text stay together.

    Attributes:
        collection: a folder, PATH:SPLIT, a BEIR folder, irds:ID, or 'sample'.
        out: a new folder; FOLDER:PART opens.
        parts: NAME=SHARE,..., parts and their shares of the judged queries.
        copy_corpus: copy the documents; by default the folder says where they are.
        analyzer: how words are counted: lucene, krovetz, terrier(stopwords=FILE), whitespace, ...
        seed: seed of everything random.
        json: print JSON on standard output.
        strict: make doubtful input an error: judgements that point nowhere.
    """

    collection: str = argument("COLLECTION")
    out: str
    parts: str = "modelling=0.6,fusion=0.2,dev=0.1,test=0.1"
    copy_corpus: bool = False
    analyzer: str = "lucene"
    seed: int = 0
    json: bool = False
    strict: bool = False

    def run(self) -> None:
        """Split, write and print."""
        from whyrank.data import corpus_of, parse_parts, split_collection, write_split
        from whyrank.evaluation import part_statistics
        from whyrank.text import analyzers

        wanted, counting = parse_parts(self.parts), analyzers.create(self.analyzer)
        collection = open_collection(self.collection, self.strict)
        made = split_collection(collection, wanted, self.seed)
        rows = part_statistics(made, counting)
        facts = {"collection": self.collection, "seed": self.seed, "parts": wanted, "analyzer": self.analyzer}
        report = json.dumps({**facts, "statistics": [row.row() for row in rows]}, indent=1)
        corpus = None if self.copy_corpus else corpus_of(self.collection)
        write_split(self.out, collection, made, corpus, report + "\n")
        if self.json:
            print(report)
        else:
            header = ["part", "queries", "judged", "relevant", "per query", "query length", "relevant length",
                      "shared"]  # fmt: skip
            shown = [
                [row.part, f"{row.queries:,}", f"{row.judged:,}", f"{row.relevant:,}",
                 f"{row.relevant_per_query:.2f}", figure(row.query_length, ".1f"), figure(row.relevant_length, ".1f"),
                 f"{row.shared:,}"]
                for row in rows
            ]  # fmt: skip
            caption = (
                "lengths: mean number of tokens; shared: relevant documents that are relevant in another part too"
            )
            table("", header, shown, 1, caption)
        left = len(collection.queries) - sum(row.queries for row in rows)
        note = f"; {plural(left, 'query', 'queries')} in no part" if left else ""
        say(f"{plural(len(made), 'part')} of {collection.name}{note}: {self.out}")
