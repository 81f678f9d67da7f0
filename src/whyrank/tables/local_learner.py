"""Local-to-global as a learner by name: `local-to-global(target='cross:bundled',method=bm25)`."""

from __future__ import annotations

from dataclasses import dataclass, fields

from whyrank.core.checks import check_text, check_whole
from whyrank.core.errors import WhyrankError
from whyrank.core.registry import call_of
from whyrank.data import Collection
from whyrank.data.term_table import TermTable
from whyrank.tables.local_explaining import LocalSettings


@dataclass(frozen=True)
class LocalToGlobal:
    """Local explanations of a ranker's lists, added up: how often a word explains the lists of a query term.

    The settings are those of `LocalSettings`; `analyzer` and `queries` those of `learn_local`. The target is opened
    with `stats` and `precision`; `candidates` is a run of the collection, or a run file, in the place of BM25's.
    """

    target: str
    method: str = "occlusion"
    variant: str = "plain"
    depth: int = 1000
    top: int = 10
    words: int = 10
    samples: int = 100
    pool: int = 100
    threshold: float = 0.0
    seed: int = 0
    analyzer: str | None = None
    queries: int | None = None
    candidates: str | None = None
    stats: str | None = None
    precision: str | None = None

    def __post_init__(self) -> None:
        for name in ("target", "analyzer", "candidates", "stats", "precision"):
            check_text(f"local-to-global: {name}", getattr(self, name))
        if self.queries is not None:
            check_whole("local-to-global: queries", self.queries, 1)
        _ = self.settings

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "local-to-global")

    @property
    def settings(self) -> LocalSettings:
        """How lists are explained."""
        return LocalSettings(**{field.name: getattr(self, field.name) for field in fields(LocalSettings)})

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table of a collection; nothing is kept of the scores."""
        from whyrank.data import open_run
        from whyrank.rankers import Setting, open_ranker
        from whyrank.scoring import Engine
        from whyrank.tables.local_to_global import default_analyzer, learn_local

        if collection is None:
            raise WhyrankError("local-to-global learns from the queries and documents of a collection; give one")
        chosen = self.analyzer or default_analyzer()
        target = open_ranker(self.target, Setting(collection, chosen, self.stats, self.precision))
        given = open_run(collection, self.candidates).run if self.candidates else None
        opened = {"candidates": self.candidates, "stats": self.stats, "precision": self.precision}
        return learn_local(collection, target, Engine(), self.settings, chosen, self.queries, given, opened).table
