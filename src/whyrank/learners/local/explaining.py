"""Local explanations of ranked lists: the words for which a ranker puts the best documents of a query on top."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from whyrank.core import Codes, Flags, Floats, Ranker, UnknownName, check_number, check_whole, generator
from whyrank.learners.local import masks as local_masks
from whyrank.learners.local.masks import expansion
from whyrank.rankers.lexical import LexicalRanker
from whyrank.scoring import Engine, Failure

METHODS = ("occlusion", "lime", "bm25")
VARIANTS = ("plain", "min-frequency", "uniform")
CHARACTERS = 50_000_000  # of changed texts that are scored together: those of a long text would fill any memory
SAMPLES = 100_000  # texts of a document at most
DIGITS = 6  # weights are compared with so many digits of the largest one; the rest depends on batches


@dataclass(frozen=True)
class LocalSettings:
    """How lists are explained and what becomes of the words.

    Attributes:
        method: `occlusion`, `lime` or `bm25`.
        variant: `plain`, `min-frequency` or `uniform`.
        depth: documents that BM25 retrieves for each query and the target scores.
        top: of these the best, which are explained.
        words: explanation words per query, at most.
        samples: texts per document (`lime`).
        pool: terms per query that are tried (`bm25`).
        threshold: smaller weights are left out of the table.
        seed: of the choice of queries, and of the random texts.
    """

    method: str = "occlusion"
    variant: str = "plain"
    depth: int = 1000
    top: int = 10
    words: int = 10
    samples: int = 100
    pool: int = 100
    threshold: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownName("method of local explanation", self.method, METHODS)
        if self.variant not in VARIANTS:
            raise UnknownName("variant of local-to-global", self.variant, VARIANTS)
        for name in ("depth", "top", "words", "pool"):
            check_whole(name, getattr(self, name), 1)
        check_whole("samples", self.samples, 2)
        check_number("samples", self.samples, 2, SAMPLES)
        check_number("threshold", self.threshold, 0, 1)


class RankedList(NamedTuple):
    """A query with its terms as the analyzer writes them, and its documents, best first, with the target's scores."""

    query_id: str
    query: str
    terms: Sequence[str]
    texts: Sequence[str]
    scores: Floats


class Explanations(NamedTuple):
    """The words of each list, best first, and the pairs that the target has no finite score for."""

    words: list[list[str]]
    failures: list[Failure]


def explain_lists(
    lists: Sequence[RankedList], target: Ranker, engine: Engine, bm25: LexicalRanker, settings: LocalSettings
) -> Explanations:
    """Explain ranked lists; the analyzer and the statistics are those of `bm25`."""
    if settings.method == "bm25":
        how = settings.top, settings.pool, settings.words
        return Explanations([expansion(bm25, each.query, each.texts, each.scores, *how) for each in lists], [])
    parts = list(_parts(lists, bm25, settings))
    scores, failures = _scored(lists, parts, target, engine)
    totals: list[dict[str, float]] = [{} for _ in lists]
    for part, values in zip(parts, scores, strict=True):
        for term, weight in zip(part.masked.terms, part.weights(values).tolist(), strict=True):
            totals[part.number][term] = totals[part.number].get(term, 0.0) + weight
    return Explanations([best_words(total, settings.words) for total in totals], failures)


def best_words(weights: Mapping[str, float], most: int) -> list[str]:
    """The terms of the largest positive weights; those that differ by rounding alone in alphabetical order."""
    largest = max(weights.values(), default=0.0)
    if not largest > 0:
        return []
    shares = {term: round(weight / largest, DIGITS) for term, weight in weights.items()}
    return sorted((term for term, share in shares.items() if share > 0), key=lambda term: (-shares[term], term))[
        :most
    ]


@dataclass(frozen=True, eq=False)
class _Part:
    """One document of one list, and the terms to keep in each of its changed texts; None for occlusion."""

    number: int
    masked: local_masks.MaskedText
    masks: Flags | None = None

    def texts(self) -> Iterator[str]:
        masks = local_masks.occlusion_masks(len(self.masked.terms)) if self.masks is None else self.masks
        return (self.masked.text(mask) for mask in masks)

    def weights(self, scores: Floats) -> Floats:
        if self.masks is None:
            return local_masks.occlusion_weights(scores)
        return local_masks.lime_weights(self.masks, scores)


def _parts(lists: Sequence[RankedList], bm25: LexicalRanker, settings: LocalSettings) -> Iterator[_Part]:
    for number, each in enumerate(lists):
        for text in each.texts[: settings.top]:
            masked = local_masks.MaskedText.of(text, bm25.analyzer, frozenset(each.terms))
            if not masked.terms:
                continue
            if settings.method == "occlusion":
                yield _Part(number, masked)
            else:
                random = generator(settings.seed, "lime", each.query, text)
                yield _Part(number, masked, local_masks.lime_masks(len(masked.terms), settings.samples, random))


def _scored(
    lists: Sequence[RankedList], parts: Sequence[_Part], target: Ranker, engine: Engine
) -> tuple[list[Floats], list[Failure]]:
    """The scores of all changed texts, by part."""
    scores: list[list[float]] = [[] for _ in parts]
    failures: list[Failure] = []
    for some in _together((place, text) for place, part in enumerate(parts) for text in part.texts()):
        query: Codes = np.array([parts[place].number for place, _ in some], np.int32)
        doc: Codes = np.arange(len(some), dtype=np.int32)
        found = engine.score(target, [each.query for each in lists], [text for _, text in some], query, doc)
        failures += found.failures
        for (place, _), score in zip(some, found.values.tolist(), strict=True):
            scores[place].append(score)
    return [np.array(each) for each in scores], failures


def _together(texts: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """As many texts at a time as memory holds with ease."""
    some: list[tuple[int, str]] = []
    size = 0
    for each in texts:
        some.append(each)
        size += len(each[1])
        if size > CHARACTERS:
            yield some
            some, size = [], 0
    if some:
        yield some
