"""Learners by name: how a table is learned as a call string, and the table of a collection from it.

    from whyrank.data import open_collection
    from whyrank.learners import table_learners
    table = table_learners.create("em(iterations=3,analyzer=lucene)").learn(open_collection("sample"))

A learner of a plugin is a frozen dataclass of its settings with a method `learn(collection)`, under an entry point of
the group `whyrank.table_learners`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from whyrank.core import WhyrankError, call_of, check_text, check_whole
from whyrank.data import Collection
from whyrank.tables import TermTable


class TableLearner(Protocol):
    """What a call string of the registry makes."""

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table that is learned from a collection."""
        ...


@dataclass(frozen=True)
class EM:
    """IBM Model 1 by EM, T(query term | document term), from queries beside their relevant texts.

    The arguments are those of `make_bitext` (analyzer to most) and of `learn_em` (iterations to top).
    """

    analyzer: str = "lucene"
    ratio: float = 1.5
    fertility: float = 9
    symmetrise: bool = True
    sample: float = 1.0
    relevant: int | None = None
    most: int | None = None
    iterations: int = 5
    null: bool = True
    threads: int = 1
    memory: str | None = None
    held_out: float = 0.0
    stop: float | None = None
    threshold: float = 1e-3
    top: int | None = 1_000_000
    seed: int = 0
    checkpoint: str | None = None
    check: bool = False

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "em")

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table of a collection with judgements."""
        from whyrank.learners.em import learn_em, make_bitext

        if collection is None:
            raise WhyrankError("em learns from the judged queries of a collection; give one")
        how = dict(vars(self))
        cut = ("analyzer", "ratio", "fertility", "symmetrise", "sample", "relevant", "most")
        bitext = make_bitext(collection, seed=self.seed, **{name: how.pop(name) for name in cut})
        table = learn_em(bitext, **how).table
        return replace(table, facts={**table.facts, "learner": self.name}, trusted=True)


@dataclass(frozen=True)
class Neural:
    """A trained neural Model 1 as a table, T(query piece | document piece) of all pieces: `neural:FOLDER`.

    The network has learned already: a collection only says which pieces are compared, those of its queries and texts.
    The arguments are those of `export_table`.
    """

    resource: str
    threshold: float = 1e-4
    top: int | None = None
    block: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_text("neural: device", self.device)
        if self.top is not None:
            check_whole("neural: top", self.top, 1)

    @property
    def name(self) -> str:
        """Call string."""
        return call_of(self, "neural")

    def learn(self, collection: Collection | None = None) -> TermTable:
        """The table of the network."""
        from whyrank.learners.neural import export_table, open_network

        network = open_network(self.resource)
        return export_table(network, self.threshold, self.block, self.device, top=self.top, collection=collection)
