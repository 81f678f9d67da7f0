"""The grid of a bias study: a text for every template and value, scored once, and as contrasts of two values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from whyrank.core import Codes, Flags, Floats, Ranker, UnknownName
from whyrank.scoring import Engine, Failure
from whyrank.studies import Categories, Contrasts
from whyrank.studies.bias.templates import Template
from whyrank.studies.contrasts import Labels, index_texts

CLUSTERS = ("both", "doc", "query", "pair")


class Scored(NamedTuple):
    """Scores by template and value, and the pairs that have none; NaN there."""

    values: Floats
    failures: list[Failure]


@dataclass(frozen=True, eq=False)
class Grid:
    """Templates and values.

    Attributes:
        templates: a query and a text with a slot each.
        values: what goes into the slots, one after the other.
        cluster: which templates are not independent: those of one `doc`, those of one `query`, `both` kinds, or none
            but the `pair` itself.
        term: the query term whose weights in a table belong to the values; where values are appended to a word, each
            template has its own.
        appended: values are appended to the template's term, and scores are changes from the text without one.
        counts: how often each value occurs in the collection, where that is known; NaN where it is not.
        dropped: templates that were not kept, by reason.
        ordered: whether neighbours among the values are alike, as years are.
    """

    templates: Sequence[Template]
    values: tuple[str, ...]
    cluster: str = "both"
    term: str | None = None
    appended: bool = False
    counts: Floats | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    ordered: bool = False

    def __post_init__(self) -> None:
        if self.cluster not in CLUSTERS:
            raise UnknownName("cluster of templates", self.cluster, CLUSTERS)

    def __len__(self) -> int:
        return len(self.templates)

    @property
    def clusters(self) -> list[Codes]:
        """The cluster of each template, in each way that templates are clustered."""
        texts, queries = ["".join(t.slotted.parts) for t in self.templates], [t.query for t in self.templates]
        keys = {
            "doc": texts,
            "query": queries,
            "pair": [f"{q}\t{text}" for q, text in zip(queries, texts, strict=True)],
        }
        ways = ("doc", "query") if self.cluster == "both" else (self.cluster,)
        return [index_texts(keys[way])[1] for way in ways]

    def of_values(self, kept: Flags) -> Grid:
        """The grid of some of the values."""
        values = tuple(value for value, keep in zip(self.values, kept.tolist(), strict=True) if keep)
        return replace(self, values=values, counts=None if self.counts is None else self.counts[kept])

    def texts(self) -> list[list[str]]:
        """The filled texts, a row per template and a column per value."""
        return [[t.slotted.filled(value) for value in self.values] for t in self.templates]

    def scored(self, engine: Engine, ranker: Ranker) -> Scored:
        """The score of every text; of an appended value, its difference from the text without it."""
        rows = self.texts()
        if self.appended:
            rows = [[*row, t.slotted.filled("")] for t, row in zip(self.templates, rows, strict=True)]
        scores = _scored(engine, ranker, self.templates, rows, len(self.values) + self.appended)
        if not self.appended:
            return scores
        return Scored(scores.values[:, :-1] - scores.values[:, -1:], scores.failures)

    def paired(self, scores: Floats) -> Floats:
        """Scores by template and value as those of the contrasts, two a row."""
        first, second = np.triu_indices(len(self.values), 1)
        return np.stack([scores[:, first], scores[:, second]], axis=-1).reshape(-1, 2)

    def contrasts(self) -> Contrasts:
        """Every template with every two values, in the order of the values."""
        docs, codes = index_texts(text for row in self.texts() for text in row)
        queries, query = index_texts(template.query for template in self.templates)
        grid, (first, second) = codes.reshape(len(self), len(self.values)), np.triu_indices(len(self.values), 1)
        pairs = np.stack([grid[:, first], grid[:, second]], axis=-1).reshape(-1, 2)
        times, ways = len(first), self.clusters
        several = [way for way in ways if way.max(initial=0) > 0] or ways
        coarsest = min(several, key=lambda way: int(way.max(initial=0)))
        labels: dict[str, Labels] = {
            "query_id": _named([t.query_id or t.query for t in self.templates], times),
            "cluster": Categories(np.repeat(coarsest, times), [str(c) for c in range(len(self))]),
            "values": Categories(
                np.tile(np.stack([first, second], -1), (len(self), 1)).astype(np.int32), self.values
            ),
        }
        return Contrasts(queries, docs, np.repeat(query, times), pairs, labels, self.dropped).take(slice(None))


def original_scores(engine: Engine, ranker: Ranker, templates: Sequence[Template]) -> Floats:
    """The ranker's score of each template as it was found."""
    return _scored(engine, ranker, templates, [[template.original] for template in templates], 1).values[:, 0]


def finite_columns(values: Floats) -> Flags:
    """The values to compare: those with a finite score in any template; all of them where fewer than two have one."""
    known = np.asarray(np.isfinite(values).any(axis=0))
    return known if np.count_nonzero(known) > 1 else np.ones_like(known)


def finite_rows(values: Floats) -> Flags:
    """The templates that have a finite score for every value."""
    return np.asarray(np.isfinite(values).all(axis=1))


def _scored(
    engine: Engine, ranker: Ranker, templates: Sequence[Template], rows: Sequence[Sequence[str]], size: int
) -> Scored:
    """The scores of rows of texts, `size` each."""
    docs, doc = index_texts(text for row in rows for text in row)
    queries, query = index_texts(template.query for template in templates)
    scores = engine.score(ranker, queries, docs, np.repeat(query, size), doc)
    return Scored(scores.values.reshape(len(rows), size), scores.failures)


def _named(names: Sequence[str], times: int) -> Categories:
    found, codes = index_texts(names)
    return Categories(np.repeat(codes, times), found)
