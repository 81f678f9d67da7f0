"""What a network is distilled from: queries with the texts that they belong to, and the bi-encoders that teach it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whyrank.core import WhyrankError
from whyrank.networks import Pieces
from whyrank.training.data import Examples, Texts, TrainingSet
from whyrank.training.keywords import cut_queries
from whyrank.training.lexical import lexical_top
from whyrank.training.mining import Mined, Numbers, embed, joined, mined_top

if TYPE_CHECKING:
    from whyrank.data import Collection

_QUERY, _TEXT = 64, 256  # pieces that the teachers read
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class Distillation:
    """Queries without candidates yet: the teachers find these where the network is trained.

    Attributes:
        source: the text that each query belongs to.
        shares: the weight of each teacher.
        top: how many candidates are drawn from the teachers' first ten, their next ones, and at random.
        depth: how far their rankings go.
        lexical: how many are drawn from BM25's first sixty.
    """

    source: Numbers
    shares: Sequence[float]
    top: tuple[int, int, int] = (4, 4, 1)
    depth: int = 100
    lexical: int = 0

    def epoch(self, seed: int, epoch: int) -> Examples:
        """The queries with their own texts; candidates and targets are not known here."""
        n = len(self.source)
        return Examples(np.arange(n, dtype=np.int32), self.source[:, None], np.ones((n, 1), np.float32))

    def mined(self, data: TrainingSet, teachers: Sequence[Path], device: str, say: Callable[[str], None]) -> Mined:
        """The candidates, found by the teachers and by BM25."""
        vectors = [_vectors(str(teacher), data, device, say) for teacher in teachers]
        queries = joined([one for one, _ in vectors], self.shares)
        docs = joined([two for _, two in vectors])
        ranked = mined_top(queries, docs, self.depth)
        found = Mined(self.source, ranked, queries, docs, self.top, self._by_words(data, teachers[0], device))
        say(f"mined {ranked.shape[1]} candidates for each of {len(ranked):,} queries")
        return found

    def _by_words(self, data: TrainingSet, teacher: Path, device: str) -> tuple[Numbers, int] | None:
        if not self.lexical:
            return None
        pieces = Pieces(teacher)
        queries, docs = pieces.ids(data.queries, _QUERY), pieces.ids(data.docs, _TEXT)
        return lexical_top(queries, docs, len(pieces), device=device), self.lexical


def ready(data: TrainingSet, teachers: Sequence[Path], device: str, say: Callable[[str], None]) -> TrainingSet:
    """The same data with its candidates, where they are yet to be found."""
    if not isinstance(data.sampler, Distillation):
        return data
    return TrainingSet(data.queries, data.docs, data.sampler.mined(data, teachers, device, say))


def distillation_set(data: Mapping[str, Any], seed: int = 0) -> TrainingSet:
    """The queries and texts that the `data` of a recipe with `teachers` describes.

    The queries of `collection` that have a relevant text, with the first of these; and queries cut from the texts of
    the collections that `cut` names, so many per text. No query and no text of the collections `without` is among
    them.
    """
    from whyrank.data import open_collection

    kept, texts = _Kept.of(map(open_collection, _names(data.get("without", [])))), Texts()
    found: dict[str, int] = {}
    for query, text in _all_queries(data, texts, kept, seed):
        found.setdefault(query, text)
    if not found:
        raise WhyrankError("data: there is not one query to learn from; name collections, or cut more queries")
    chosen = list(found)[: data.get("limit")]
    source = np.array([found[query] for query in chosen], np.int32)
    shares = [float(share) for share in data["teachers"].values()]
    top = tuple(data.get("candidates", Distillation.top))
    made = Distillation(source, shares, top, data.get("depth", Distillation.depth), data.get("lexical", 0))
    return TrainingSet(chosen, list(texts.found), made)


def _all_queries(data: Mapping[str, Any], texts: Texts, kept: _Kept, seed: int) -> Iterator[tuple[str, int]]:
    from whyrank.data import open_collection

    asked, cut = _names(data.get("collection", [])), data.get("cut", {})
    for name in dict.fromkeys([*asked, *cut]):
        collection = open_collection(name)
        own = [text for text in map(_plain, collection.docs.values()) if kept.text(text)]
        numbers = texts.numbers(own)
        if name in asked:
            yield from _real(collection, texts, kept)
        for query, source in cut_queries(own, cut.get(name, 0), seed) if cut.get(name) else ():
            if kept.query(query):
                yield query, int(numbers[source])


def _real(collection: Collection, texts: Texts, kept: _Kept) -> Iterator[tuple[str, int]]:
    """The queries of a collection with the first text that is relevant to each."""
    for query_id, judged in collection.qrels.items():
        good = [d for d, grade in judged.items() if grade >= collection.grades.relevant and d in collection.docs]
        if not good or query_id not in collection.queries:
            continue
        query, text = _plain(collection.queries[query_id]), _plain(collection.docs[good[0]])
        if kept.query(query) and kept.text(text):
            yield query, texts.number(text)


@dataclass(frozen=True)
class _Kept:
    """Which queries and texts may be learned from: none that a collection held back has too."""

    queries: frozenset[str]
    texts: frozenset[str]

    @classmethod
    def of(cls, held_back: Iterator[Collection]) -> _Kept:
        several = list(held_back)
        queries = frozenset(_bare(query) for c in several for query in c.queries.values())
        return cls(queries, frozenset(_bare(text) for c in several for text in c.docs.values()))

    def query(self, text: str) -> bool:
        return _bare(text) not in self.queries

    def text(self, text: str) -> bool:
        return _bare(text) not in self.texts


def _names(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _bare(text: str) -> str:
    return " ".join(_WORDS.findall(text.lower()))


def _vectors(
    teacher: str, data: TrainingSet, device: str, say: Callable[[str], None]
) -> tuple[torch.Tensor, torch.Tensor]:
    queries, docs = embed(teacher, data.queries, _QUERY, 1024, device), embed(teacher, data.docs, _TEXT, 512, device)
    say(f"teacher {Path(teacher).name}: {len(queries):,} queries and {len(docs):,} texts read")
    return (queries.half(), docs.half()) if device.startswith("cuda") else (queries, docs)
