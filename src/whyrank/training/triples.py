"""Files of triples: query, positive and negative text, and perhaps a teacher's score of either."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from whyrank.core.errors import BadInput
from whyrank.data.raw import every_line
from whyrank.training.examples import Examples, Fixed, Texts, TrainingSet

_REMEDY = "write query, positive and negative text with tabs between them, and perhaps two scores"


class Triple(NamedTuple):
    """One line: the targets are 1 and 0 where there are no scores."""

    query: str
    positive: str
    negative: str
    targets: tuple[float, float] = (1.0, 0.0)


def triples(path: str, limit: int | None = None) -> TrainingSet:
    """A training set from a TSV file, plain or gzip; the first `limit` lines."""
    queries, texts, rows, targets = Texts(), Texts(), [], []
    for triple in islice(_lines(Path(path).expanduser()), limit):
        rows.append((queries.number(triple.query), texts.number(triple.positive), texts.number(triple.negative)))
        targets.append(triple.targets)
    if not rows:
        raise BadInput(path, "holds no triples", _REMEDY)
    table = np.array(rows, dtype=np.int32)
    examples = Examples(table[:, 0], table[:, 1:], np.array(targets, dtype=np.float32))
    return TrainingSet(list(queries.found), list(texts.found), Fixed(examples))


def _lines(path: Path) -> Iterator[Triple]:
    return (_triple(line.text.split("\t"), path, line.number) for line in every_line(path))


def _triple(parts: list[str], path: Path, number: int) -> Triple:
    if len(parts) not in (3, 5):
        raise BadInput(path, f"has {len(parts)} columns, not 3 or 5", _REMEDY, line=number)
    if len(parts) == 3:
        return Triple(parts[0], parts[1], parts[2])
    try:
        scores = float(parts[3]), float(parts[4])
    except ValueError:
        scores = (math.nan, math.nan)
    if not all(map(math.isfinite, scores)):
        raise BadInput(path, f"has the scores {parts[3]!r} and {parts[4]!r}", _REMEDY, line=number)
    return Triple(parts[0], parts[1], parts[2], scores)
