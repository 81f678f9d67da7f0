"""Statistics of a split: how many queries and judgements each part has, and how long its texts are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from whyrank.data import Collection, texts_of
from whyrank.text import Analyzer

_CHUNK = 10_000


@dataclass(frozen=True)
class PartStatistics:
    """What one part has; lengths are means in tokens of the analyzer, None where there is nothing to measure.

    Attributes:
        part: its name.
        queries: judged queries.
        judged: pairs of a query and a judged document.
        relevant: those of a relevant grade.
        relevant_per_query: relevant documents per query.
        query_length: of its queries.
        relevant_length: of its relevant documents, each counted once.
        shared: relevant documents that are relevant in another part too.
    """

    part: str
    queries: int
    judged: int
    relevant: int
    relevant_per_query: float
    query_length: float | None
    relevant_length: float | None
    shared: int

    def row(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)


def part_statistics(parts: Mapping[str, Collection], analyzer: Analyzer) -> list[PartStatistics]:
    """One row for each part."""
    hits = {name: _relevant(part) for name, part in parts.items()}
    return [_statistics(name, part, hits, analyzer) for name, part in parts.items()]


def _statistics(name: str, part: Collection, hits: Mapping[str, list[str]], analyzer: Analyzer) -> PartStatistics:
    own, elsewhere = hits[name], {d for other, docs in hits.items() if other != name for d in docs}
    distinct = sorted({d for d in own if d in part.docs})
    return PartStatistics(
        name,
        len(part.queries),
        sum(map(len, part.qrels.values())),
        len(own),
        len(own) / max(len(part.queries), 1),
        _mean_length(analyzer.queries(list(part.queries.values())).offsets),
        _mean_length(*(analyzer.docs(texts_of(part.docs, some)).offsets for some in _chunks(distinct))),
        len(set(own) & elsewhere),
    )


def _relevant(part: Collection) -> list[str]:
    lowest = part.grades.relevant
    return [d for grades in part.qrels.values() for d, grade in grades.items() if grade >= lowest]


def _chunks(ids: list[str]) -> Iterable[list[str]]:
    return (ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK))


def _mean_length(*offsets: Any) -> float | None:
    lengths = np.concatenate([np.zeros(0), *(np.diff(each) for each in offsets)])
    return float(lengths.mean()) if len(lengths) else None
