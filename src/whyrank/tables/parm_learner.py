"""The table of a trained PaRM as a learner by name: `parm:FOLDER(query_terms=1000)`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from whyrank.core.checks import check_flag, check_number, check_text, check_whole
from whyrank.core.errors import WhyrankError
from whyrank.core.registry import call_of
from whyrank.data import Collection
from whyrank.data.term_table import TermTable


@dataclass(frozen=True)
class Parm:
    """The relevance thesaurus of a trained PaRM over the vocabulary of a collection: `parm:FOLDER`.

    `whyrank tables learn parm` trains the network, and `whyrank tables build` is the same with more settings, in
    blocks that outlive a stop. `analyzer` is by default the one that the network learned with.
    """

    resource: str
    query_terms: int = 10_000
    doc_terms: int = 100_000
    threshold: float = 0.1
    top: int | None = None
    from_queries: bool = False
    analyzer: str | None = None

    def __post_init__(self) -> None:
        check_text("parm: analyzer", self.analyzer)
        check_flag("parm: from_queries", self.from_queries)
        check_number("parm: threshold", self.threshold, 0, 1)
        for name in ("query_terms", "doc_terms", *(["top"] if self.top is not None else [])):
            check_whole(f"parm: {name}", getattr(self, name), 1)

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "parm")

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table of the network over the terms of a collection."""
        from whyrank.networks.term_pairs_task import Settings
        from whyrank.tables.building import Build, build_table

        if collection is None:
            raise WhyrankError("parm needs the vocabulary of a collection; give one")
        size, settings = (self.query_terms, self.doc_terms), Settings(threshold=self.threshold)
        build = Build(self.resource, [collection], self.analyzer, *size, self.from_queries, settings=settings)
        with TemporaryDirectory() as folder:
            made = build_table(build, Path(folder) / "table.parquet", top=self.top, say=lambda _: None)
        assert made is not None, "without a time limit a table is built to its end"
        return replace(made.table, facts={**made.table.facts, "learner": self.name}, trusted=True)
