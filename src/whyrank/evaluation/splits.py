"""Statistics of a split: how many queries and judgements each part has, and how long its texts are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from whyrank.data import Collection, texts_of
from whyrank.text import Analyzer, Tokens

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
    relevant = {
        name: [d for judged in part.qrels.values() for d, grade in judged.items() if grade >= part.grades.relevant]
        for name, part in parts.items()
    }
    found = []
    for name, part in parts.items():
        own, elsewhere = relevant[name], {d for other in parts if other != name for d in relevant[other]}
        distinct = sorted({d for d in own if d in part.docs})
        chunks = (distinct[start : start + _CHUNK] for start in range(0, len(distinct), _CHUNK))
        found.append(
            PartStatistics(
                part=name,
                queries=len(part.queries),
                judged=sum(map(len, part.qrels.values())),
                relevant=len(own),
                relevant_per_query=len(own) / max(len(part.queries), 1),
                query_length=_mean_length([analyzer.queries(list(part.queries.values()))]),
                relevant_length=_mean_length(analyzer.docs(texts_of(part.docs, chunk)) for chunk in chunks),
                shared=len(set(own) & elsewhere),
            )
        )
    return found


def _mean_length(tokens: Iterable[Tokens]) -> float | None:
    lengths = np.concatenate([np.zeros(0), *(np.diff(each.offsets) for each in tokens)])
    return float(lengths.mean()) if len(lengths) else None
