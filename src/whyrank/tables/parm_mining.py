"""Queries and candidate texts for PaRM: the collections' own queries or cuts of texts, and what BM25 finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core.errors import WhyrankError
from whyrank.core.progress import Progress
from whyrank.core.seeds import generator
from whyrank.training.distilling import Distillation, distillation_set
from whyrank.training.mining import BEST

if TYPE_CHECKING:
    from whyrank.rankers.index import LexicalIndex

Numbers = npt.NDArray[np.int32]
DRAWN = (3, 3, 1)  # of BM25's first ten, of its next ones, at random
DEPTH = 60
_CHUNK = 5000  # queries that are searched for at a time


class Asked(NamedTuple):
    """Queries, texts, and the text that each query belongs to."""

    queries: Sequence[str]
    docs: Sequence[str]
    source: Numbers


def asked(data: Mapping[str, Any], seed: int = 0) -> Asked:
    """The queries and texts that the `data` of a recipe names.

    The judged queries of `collection`, and queries cut from the texts of the collections that `cut` names (or of all,
    where it is a number), but none that the collections `without` have.
    """
    own = {name: data[name] for name in ("collection", "without", "limit") if data.get(name)}
    found = distillation_set({**own, "cut": _cuts(data), "teachers": {"": 1.0}}, seed)
    assert isinstance(found.sampler, Distillation)
    if len(found.docs) < 2:
        raise WhyrankError("data: there are fewer than two texts to compare; name a larger collection")
    return Asked(found.queries, found.docs, found.sampler.source)


def candidates(index: LexicalIndex, given: Asked, data: Mapping[str, Any], seed: int = 0) -> Numbers:
    """The candidates of each query, all different: its own text, BM25's best and next best, some at random."""
    drawn, depth = tuple(data.get("candidates", DRAWN)), int(data.get("depth", DEPTH))
    random, width = generator(seed, "parm", "candidates"), min(1 + sum(drawn), len(given.docs))
    found = np.empty((len(given.queries), width), np.int32)
    with Progress("finding candidates: queries", len(given.queries)) as progress:
        for number, ranked in enumerate(_ranked(index, given.queries, depth)):
            row = _row(int(given.source[number]), ranked, drawn, random)
            found[number] = _filled(row, width, len(given.docs), random)
            progress.step()
    return found


def _ranked(index: LexicalIndex, queries: Sequence[str], depth: int) -> Iterator[list[int]]:
    """BM25's best texts of each query."""
    for start in range(0, len(queries), _CHUNK):
        chunk = {str(i): query for i, query in enumerate(queries[start : start + _CHUNK])}
        yield from ([int(doc) for doc in found] for found in index.search(chunk, depth).values())


def _row(source: int, ranked: Sequence[int], drawn: Sequence[int], random: np.random.Generator) -> list[int]:
    others = [doc for doc in ranked if doc != source]
    best, rest = others[:BEST], others[BEST:]
    chosen = [part[i] for part, n in ((best, drawn[0]), (rest, drawn[1])) for i in _some(len(part), n, random)]
    return [source, *chosen]


def _some(size: int, n: int, random: np.random.Generator) -> list[int]:
    found: list[int] = random.permutation(size)[:n].tolist()
    return found


def _filled(row: list[int], width: int, docs: int, random: np.random.Generator) -> list[int]:
    """The row with texts at random until it is full; none occurs twice."""
    known = dict.fromkeys(row[:width])
    while len(known) < width:
        known.update(dict.fromkeys(random.integers(0, docs, width - len(known)).tolist()))
    return list(known)


def _cuts(data: Mapping[str, Any]) -> dict[str, int]:
    """How many queries are cut from each text of each collection."""
    cut, names = data.get("cut", {}), data.get("collection") or []
    if isinstance(cut, Mapping):
        return {str(name): int(n) for name, n in cut.items()}
    return {name: int(cut) for name in ([names] if isinstance(names, str) else names)} if cut else {}
