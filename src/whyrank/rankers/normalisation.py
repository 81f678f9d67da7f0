"""Normalisation of scores for fusion: fixed shifts and scales, by query, or by the scores of fixed candidates.

A ranker scores single pairs, in batches whose composition means nothing. So no normalisation here looks at the batch:
min-max, z-score and rank compare a score with those of the query's candidates in a run that is chosen once. The same
pair has the same score whatever is scored beside it, and a text that is no candidate has one too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

import numpy as np

from whyrank.core import Answered, Floats, Ranker, WhyrankError, ask, name_of
from whyrank.data import Collection, Run, ranking, texts_of
from whyrank.rankers.lexical import BM25, QL, VARIANTS, LexicalRanker
from whyrank.rankers.opening import batch_size_of, tie_tolerance

Curve = Callable[[Floats], Floats]
_QUERIES = 4  # whose candidates are scored to see what a tie tolerance becomes


def query_scale(ranker: Ranker, query: str) -> float:
    """The sum of IDFs for BM25, the number of query tokens that count for query likelihood, else 1; never 0.

    A ranker may have a method of this name: that of neural Model 1 gives the number of distinct query tokens.
    Each distinct term of the query that the collection has counts once, with the IDF of Lucene, whatever the variant.
    """
    scale = 1.0
    if own := getattr(ranker, "query_scale", None):
        scale = float(own(query))
    elif isinstance(ranker, LexicalRanker):
        tokens = ranker.analyzer.query_terms(query)
        if isinstance(ranker.formula, QL):
            scale = float(len(set(tokens) if ranker.formula.variant == "parm" else tokens))
        elif isinstance(ranker.formula, BM25):
            df = ranker.background.frequencies(list(dict.fromkeys(tokens)))[0].astype(np.float64)
            scale = float(VARIANTS["lucene"].idf(df[df > 0], float(ranker.background.n_docs)).sum())
    return scale or 1.0


class Normalisation(Protocol):
    """Makes the scores of several rankers comparable."""

    @property
    def identity(self) -> str:
        """All that it depends on."""
        ...

    def curves(self, rankers: Sequence[Ranker], query: str) -> Sequence[Curve] | str:
        """For each ranker what to do with its scores for a query, or the reason why that is not known."""
        ...

    def tolerances(self, rankers: Sequence[Ranker], given: Sequence[float]) -> Sequence[float]:
        """What the tie tolerances of the rankers become."""
        ...


@dataclass(frozen=True)
class FixedScales:
    """Fixed scales for all queries: (score - shift) / scale."""

    shifts: tuple[float, ...]
    scales: tuple[float, ...]

    @property
    def identity(self) -> str:
        """All numbers."""
        return f"shifts={list(self.shifts)} scales={list(self.scales)}"

    def curves(self, rankers: Sequence[Ranker], query: str) -> Sequence[Curve] | str:
        """One straight line per ranker."""
        return [_line(shift, scale) for shift, scale in zip(self.shifts, self.scales, strict=True)]

    def tolerances(self, rankers: Sequence[Ranker], given: Sequence[float]) -> Sequence[float]:
        """Each by its scale."""
        return [each / abs(scale) for each, scale in zip(given, self.scales, strict=True)]


@dataclass(frozen=True)
class QueryScales:
    """A score divided by the scale of its query: the sum of its IDFs, the number of its tokens."""

    identity = "query 2"  # the number is that of the rules, which stored scores must not outlive

    def curves(self, rankers: Sequence[Ranker], query: str) -> Sequence[Curve] | str:
        """One straight line through 0 per ranker."""
        return [_line(0.0, query_scale(ranker, query)) for ranker in rankers]

    def tolerances(self, rankers: Sequence[Ranker], given: Sequence[float]) -> Sequence[float]:
        """Unchanged: rankers that declare one have the scale 1."""
        return given


@dataclass(frozen=True, repr=False, eq=False)
class CandidateScores:
    """A score compared with those of the query's candidates, the best documents of a run, by the query's text.

    What each query needs is computed once.
    """

    kind: str
    k: float
    ids: Mapping[str, list[str]]
    docs: Mapping[str, str]
    _known: dict[str, Sequence[Curve] | str] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, kind: str, k: float, collection: Collection, run: Run, depth: int) -> CandidateScores:
        """The `depth` best documents of each query; queries with one text share theirs."""
        found: dict[str, dict[str, None]] = {}
        for query_id in sorted(run.keys() & collection.queries.keys()):
            known = {d: score for d, score in run[query_id].items() if d in collection.docs}
            found.setdefault(collection.queries[query_id], {}).update(dict.fromkeys(ranking(known)[:depth]))
        return cls(kind, k, {query: list(ids) for query, ids in found.items()}, collection.docs)

    @property
    def identity(self) -> str:
        """The kind, with the number of its rules where they were mended once, and a digest of all candidates."""
        kind = {"zscore": "zscore 2", "rank": "rank 2"}.get(self.kind, self.kind)
        return f"{kind} k={self.k} candidates={self._digest}"

    def __getstate__(self) -> dict[str, Any]:
        """A worker gets the texts that it may need, and no collection; functions cannot be pickled."""
        mentioned = list(dict.fromkeys(d for ids in self.ids.values() for d in ids))
        kept = dict(zip(mentioned, texts_of(self.docs, mentioned), strict=True))
        return {**self.__dict__, "docs": kept, "_digest": self._digest, "_known": {}}

    @cached_property
    def _digest(self) -> str:
        """SHA-256 (16 hex digits) over all queries and texts."""
        found = sha256()
        for query in sorted(self.ids):
            found.update(repr((query, sorted(self._texts(query)))).encode("utf-8", "surrogatepass"))
        return found.hexdigest()[:16]

    def _texts(self, query: str) -> list[str]:
        return list(texts_of(self.docs, self.ids.get(query, [])))

    def curves(self, rankers: Sequence[Ranker], query: str) -> Sequence[Curve] | str:
        """One curve per ranker from the scores of the query's candidates."""
        if query not in self._known:
            self._known[query] = self._compute(rankers, query)
        return self._known[query]

    def tolerances(self, rankers: Sequence[Ranker], given: Sequence[float]) -> Sequence[float]:
        """Each by the least scale among the first queries; ranks have none, because `_compute` respects it."""
        largest = np.zeros(len(given))
        if self.kind != "rank" and any(given):
            for query in sorted(self.ids)[:_QUERIES]:
                curves = self.curves(rankers, query)
                if not isinstance(curves, str):
                    slopes = [float(np.ptp(curve(np.array([0.0, 1.0])))) for curve in curves]
                    largest = np.maximum(largest, slopes)
        return [float(each) for each in largest * given]

    def _compute(self, rankers: Sequence[Ranker], query: str) -> Sequence[Curve] | str:
        texts, found = self._texts(query), []
        if not texts:
            return f"{self.kind}: the query has no candidates to compare with"
        for ranker in rankers:
            size = batch_size_of(ranker)
            answered = [_halving(ranker, query, texts[i : i + size]) for i in range(0, len(texts), size)]
            scores = np.concatenate([each.scores for each in answered])
            scores = scores[np.isfinite(scores)]
            if not len(scores):
                reasons = [reason for each in answered for reason in list(each.reasons.values())[:1]]
                reason = reasons[-1] if reasons else "no finite score"
                return f"{self.kind}: {name_of(ranker)} scores no candidate of the query ({reason})"
            equal = tie_tolerance(ranker) if self.kind == "rank" else 0.0
            found.append(KINDS[self.kind](scores - equal, self.k))
        return found


def _halving(ranker: Ranker, query: str, texts: Sequence[str]) -> Answered:
    """All scores that are to be had: one text that makes the ranker raise takes no other with it."""
    try:
        return ask(ranker, [query] * len(texts), list(texts))
    except WhyrankError:
        raise
    except (Exception, SystemExit) as error:  # other people's code may raise anything
        if len(texts) == 1:
            return Answered(np.full(1, np.nan), {0: f"{type(error).__name__}: {error}"})
    middle = len(texts) // 2
    return _halving(ranker, query, texts[:middle]).concatenate(_halving(ranker, query, texts[middle:]))


def _line(shift: float, scale: float) -> Curve:
    return lambda scores: (scores - shift) / scale


def _minmax(known: Floats, k: float) -> Curve:
    return _line(float(known.min()), float(np.ptp(known)) or 1.0)


def _zscore(known: Floats, k: float) -> Curve:
    if not np.ptp(known):  # the mean of equal numbers may be rounded, and then they deviate from it
        return _line(float(known[0]), 1.0)
    return _line(float(known.mean()), float(known.std()) or 1.0)


def _rank(known: Floats, k: float) -> Curve:
    ascending = np.sort(known)

    def reciprocal(scores: Floats) -> Floats:
        better = len(ascending) - np.searchsorted(ascending, scores, side="right")
        return np.where(np.isnan(scores), np.nan, 1.0 / (k + 1.0 + better))

    return reciprocal


KINDS: Mapping[str, Callable[[Floats, float], Curve]] = {"minmax": _minmax, "zscore": _zscore, "rank": _rank}
