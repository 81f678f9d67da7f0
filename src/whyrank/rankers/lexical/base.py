"""Explanations of the lexical rankers: a document term gives to the query term that is the same word, or related."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from whyrank.core import Codes, Floats, Ints
from whyrank.rankers.lexical import kernels
from whyrank.rankers.lexical.background import Background
from whyrank.rankers.lexical.explanations import Explanation
from whyrank.text import Analyzer, Tokens

if TYPE_CHECKING:
    from whyrank.rankers.lexical.index import LexicalIndex

# What all lexical rankers share: analysis, counting, and the loop over queries.


class Counted(NamedTuple):
    """Distinct term ids in order of appearance, and how often each occurs."""

    ids: Codes
    counts: Ints


class Weights(NamedTuple):
    """How to weigh the counts of one query's terms: a kind of `kernels.weigh` and its arguments."""

    kind: int
    weights: Floats
    priors: Floats
    a: float
    b: float = 0.0


class Finder(Protocol):
    """Finds documents of an index for an analysed query, and scores them."""

    def find(self, terms: Codes, weights: Weights, k: int) -> Codes:
        """Documents among which the k best are."""
        ...

    def rescore(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """Exact scores of the documents `rows`."""
        ...


class Formula(Protocol):
    """A lexical model: the weights it gives to the terms of a query."""

    @property
    def id(self) -> str:
        """Call string of the model as the user wrote it."""
        ...

    @property
    def parameters(self) -> str:
        """All parameters, defaults included."""
        ...

    @property
    def scale(self) -> str:
        """What its scores are, in words."""
        ...

    def weights(self, background: Background, terms: Sequence[str], counts: Ints) -> Weights:
        """Weights for the distinct terms of a query and how often each occurs in it."""
        ...


@dataclass(frozen=True, repr=False)
class LexicalRanker:
    """A lexical model with its analyzer and background statistics: scores any text."""

    formula: Formula
    analyzer: Analyzer
    background: Background
    batch_size = 250_000

    @property
    def name(self) -> str:
        """Call string of the model."""
        return self.formula.id

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        return self.formula.scale

    def __repr__(self) -> str:
        return f"{self.formula.parameters} analyzer={self.analyzer.identity} statistics={self.background.digest}"

    @property
    def retrieves(self) -> bool:
        """Whether the score is a sum over terms that occur, so that an inverted index can retrieve by it."""
        return self.formula.weights(self.background, [], np.zeros(0, np.int64)).kind == kernels.SATURATED

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Score aligned pairs of texts."""
        query, query_of = _indexed(queries)
        doc, doc_of = _indexed(docs)
        scorer = self.scorer(self.analyzer.docs(doc))
        found = np.empty(len(query_of))
        order = np.argsort(query_of, kind="stable")
        edges = np.searchsorted(query_of[order], np.arange(len(query) + 1))
        for i, text in enumerate(query):
            rows = order[edges[i] : edges[i + 1]]
            found[rows] = scorer.score(text, doc_of[rows])
        return found

    def query(self, text: str) -> tuple[Codes, Weights]:
        """Distinct term ids of a query in order of appearance, and their weights."""
        asked = counted(self.analyzer.queries([text]).ids)
        terms = [self.analyzer.vocabulary.terms[i] for i in asked.ids]
        return asked.ids, self.formula.weights(self.background, terms, asked.counts)

    def scorer(self, tokens: Tokens) -> TextScorer:
        """What scores analysed texts."""
        return TextScorer(self, tokens)

    def finder(self, index: LexicalIndex) -> Finder | None:
        """What finds documents of an index in its place, for a ranker that matches more than equal terms."""
        return None

    def parts(self, asked: Codes, told: Counted) -> Floats:
        """What each term of a text adds to the frequency of each query term: its count, where it is the same."""
        return np.where(asked[:, None] == told.ids, told.counts, 0).astype(np.float64)

    def notes(self, asked: Codes) -> list[str]:
        """What is worth knowing about an explanation for these query terms, a line each."""
        return []

    def explain(self, query: str, text: str) -> Explanation:
        """The matrix behind the score of one text."""
        pass  # INNER

        return explain(self, query, text)


class TextScorer:
    """Scores analysed texts against one query after another."""

    def __init__(self, ranker: LexicalRanker, tokens: Tokens) -> None:
        self._ranker, self._tokens = ranker, tokens
        self._lengths = np.diff(tokens.offsets)
        self._slot = np.full(0, -1, np.int32)

    def score(self, query: str, rows: Codes) -> Floats:
        """Scores of the texts `rows` for a query."""
        return self.scored(*self._ranker.query(query), rows)

    def scored(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """The same for an analysed query."""
        tf = np.zeros((len(rows), len(terms)), np.int32)
        kernels.scan(self._tokens.ids, self._tokens.offsets, rows, terms, self._slots(), tf)
        return weighed(weights, tf, self._lengths[rows])

    def _slots(self) -> Codes:
        if len(self._slot) < len(self._ranker.analyzer.vocabulary):
            self._slot = np.full(len(self._ranker.analyzer.vocabulary), -1, np.int32)
        return self._slot


def counted(ids: Codes) -> Counted:
    """Count term ids."""
    distinct, first, counts = np.unique(ids, return_index=True, return_counts=True)
    order = np.argsort(first)
    return Counted(distinct[order].astype(np.int32), counts[order])


def weighed(weights: Weights, tf: Codes | Floats, lengths: Ints) -> Floats:
    """Scores from counts."""
    out = np.empty(len(tf))
    kernels.weigh(weights.kind, tf, lengths, weights.weights, weights.priors, weights.a, weights.b, out)
    return out


def _indexed(texts: Sequence[str]) -> tuple[list[str], Codes]:
    found: dict[str, int] = {}
    codes = np.array([found.setdefault(text, len(found)) for text in texts], dtype=np.int32)
    return list(found), codes


class _Cells(NamedTuple):
    """A matrix and what each of its rows has without any document term."""

    cells: Floats
    background: Floats


def explain(ranker: LexicalRanker, query: str, text: str) -> Explanation:
    """The matrix behind the score of one text."""
    asked, weights = ranker.query(query)
    told = counted(ranker.analyzer.docs([text]).ids)
    tf, notes = ranker.parts(asked, told), tuple(ranker.notes(asked))
    names = ranker.analyzer.vocabulary.terms
    terms, words = ([names[i] for i in ids.tolist()] for ids in (asked, told.ids))
    score = float(ranker.score([query], [text])[0])
    if weights.kind == kernels.SATURATED:
        return Explanation.additive(terms, words, _saturated(weights, tf, int(told.counts.sum())), score, notes)
    found = _likelihoods(weights, tf, int(told.counts.sum()))
    return Explanation.log(terms, words, found.cells, score, found.background, weights.weights, notes=notes)


def _saturated(weights: Weights, tf: Floats, length: int) -> Floats:
    """Term weights times saturated frequencies, each shared out among the document terms that it is made of."""
    compared = tf.sum(axis=1, keepdims=True) + (weights.a + weights.b * length)
    saturated = np.divide(tf, compared, out=np.zeros_like(tf), where=tf > 0)
    return np.asarray(weights.weights[:, None] * saturated)


def _likelihoods(weights: Weights, tf: Floats, length: int) -> _Cells:
    """What text and collection give to the smoothed probability of each term."""
    if weights.kind == kernels.DIRICHLET:
        whole = length + weights.a
        return _Cells(tf / whole, weights.a * weights.priors / whole)
    return _Cells((1 - weights.a) * tf / max(length, 1), weights.a * weights.priors)
