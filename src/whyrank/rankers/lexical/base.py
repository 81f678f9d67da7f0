"""What all lexical rankers share: analysis, counting, the loop over queries, and the explanation of a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes, Floats, Ints
from whyrank.rankers.grouping import distinct, rows_by_code
from whyrank.rankers.lexical import kernels
from whyrank.rankers.lexical.background import Background
from whyrank.rankers.lexical.explanations import Explanation
from whyrank.rankers.opening import Described, Setting
from whyrank.text import Analyzer, Tokens


class Weights(NamedTuple):
    """How to weigh the counts of one query's terms: a kind of `kernels.weigh` and its arguments."""

    kind: int
    weights: Floats
    priors: Floats
    a: float
    b: float = 0.0


class Formula(Described):
    """A lexical model: the weights it gives to the terms of a query."""

    analyzer: str | None
    stats: str | None

    explains: ClassVar[bool] = True
    scale: ClassVar[str]

    @property
    def parameters(self) -> str:
        """All parameters, defaults included."""
        raise NotImplementedError

    def weights(self, background: Background, terms: Sequence[str], counts: Ints) -> Weights:
        """Weights for the distinct terms of a query and how often each occurs in it."""
        raise NotImplementedError

    def bind(self, setting: Setting) -> LexicalRanker:
        """Take analyzer and statistics from the setting."""
        analyzer = setting.analyzer_for(self.analyzer)
        return LexicalRanker(self, analyzer, setting.background(analyzer, self.stats))


class Partners(NamedTuple):
    """Document terms that count for a query term, as ids of the analyzer, and their weights."""

    ids: Codes
    weights: npt.NDArray[np.float32]


class TermCounts(NamedTuple):
    """Distinct term ids in order of appearance, and how often each occurs."""

    ids: Codes
    counts: Ints


def count_terms(ids: Codes) -> TermCounts:
    """Count term ids."""
    found, first, counts = np.unique(ids, return_index=True, return_counts=True)
    order = np.argsort(first)
    return TermCounts(found[order].astype(np.int32), counts[order])


def weighed(weights: Weights, tf: Codes | Floats, lengths: Ints) -> Floats:
    """Scores of texts from the counts of query terms in them."""
    out = np.empty(len(tf))
    kernels.weigh(weights.kind, tf, lengths, weights.weights, weights.priors, weights.a, weights.b, out)
    return out


@dataclass(frozen=True, repr=False)
class LexicalRanker:
    """A lexical model with its analyzer and background statistics: scores any text."""

    formula: Formula
    analyzer: Analyzer
    background: Background

    batch_size: ClassVar[int] = 250_000
    expands: ClassVar[bool] = False  # whether other terms count for a query term

    @property
    def name(self) -> str:
        """Call string of the model."""
        return self.formula.name

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        return self.formula.scale

    def __repr__(self) -> str:
        return f"{self.formula.parameters} analyzer={self.analyzer.identity} statistics={self.background.digest}"

    @property
    def match(self) -> int:
        """How partners count, as the kernels name it."""
        return kernels.SUM

    @property
    def retrieves(self) -> bool:
        """Whether the score is a sum over terms that occur, so that an inverted index can retrieve by it."""
        return self.formula.weights(self.background, [], np.zeros(0, np.int64)).kind == kernels.SATURATED

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Score aligned pairs of texts."""
        query, doc = distinct(queries), distinct(docs)
        scorer = self.scorer(self.analyzer.docs(doc.texts))
        found = np.empty(len(query.codes))
        for text, rows in zip(query.texts, rows_by_code(query.codes, len(query.texts)), strict=True):
            found[rows] = scorer.score(text, doc.codes[rows])
        return found

    def query(self, text: str) -> tuple[Codes, Weights]:
        """Distinct term ids of a query in order of appearance, and their weights."""
        ids, counts = count_terms(self.analyzer.queries([text]).ids)
        terms = [self.analyzer.vocabulary.terms[i] for i in ids]
        return ids, self.formula.weights(self.background, terms, counts)

    def scorer(self, tokens: Tokens) -> TextScorer:
        """What scores analysed texts."""
        return TextScorer(self, tokens)

    def partners(self, term: int) -> Partners:
        """The document terms that count for a query term besides itself: none."""
        return Partners(np.zeros(0, np.int32), np.zeros(0, np.float32))

    def explain(self, query: str, text: str) -> Explanation:
        """The matrix behind the score of one text: what each document term adds to each query term."""
        query_ids, weights = self.query(query)
        doc = count_terms(self.analyzer.docs([text]).ids)
        tf, length = self.frequencies(query_ids, doc), int(doc.counts.sum())
        names = self.analyzer.vocabulary.terms
        terms, words = ([names[i] for i in ids.tolist()] for ids in (query_ids, doc.ids))
        score, notes = float(self.score([query], [text])[0]), tuple(self.notes(query_ids))
        a, b = weights.a, weights.b
        if weights.kind == kernels.SATURATED:  # a row's saturated frequency is shared out among its document terms
            compared = tf.sum(axis=1, keepdims=True) + (a + b * length)
            cells = np.divide(tf, compared, out=np.zeros_like(tf), where=tf > 0)
            return Explanation.additive(terms, words, weights.weights[:, None] * cells, score, notes)
        if weights.kind == kernels.DIRICHLET:
            cells, background = tf / (length + a), a * weights.priors / (length + a)
        else:
            cells, background = (1 - a) * tf / max(length, 1), a * weights.priors
        return Explanation.log(terms, words, cells, score, background, weights.weights, notes=notes)

    def frequencies(self, query_ids: Codes, doc: TermCounts) -> Floats:
        """What each document term adds to the frequency of each query term: its count, where it is the same."""
        return np.where(query_ids[:, None] == doc.ids, doc.counts, 0).astype(np.float64)

    def notes(self, query_ids: Codes) -> list[str]:
        """What is worth knowing about an explanation for these query terms, a line each."""
        return []


class TextScorer:
    """Scores analysed texts against one query after another."""

    def __init__(self, ranker: LexicalRanker, tokens: Tokens) -> None:
        self._ranker, self._tokens = ranker, tokens
        self._lengths = np.diff(tokens.offsets)
        self._slot = np.full(0, -1, np.int32)

    def score(self, query: str, rows: Codes) -> Floats:
        """Scores of the texts `rows` for a query."""
        return self.score_terms(*self._ranker.query(query), rows)

    def score_terms(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """The same for an analysed query."""
        tf = np.zeros((len(rows), len(terms)), np.int32)
        kernels.scan(self._tokens.ids, self._tokens.offsets, rows, terms, self._slots(), tf)
        return weighed(weights, tf, self._lengths[rows])

    def _slots(self) -> Codes:
        """Room for a number per term of the vocabulary, which may have grown."""
        if len(self._slot) < len(self._ranker.analyzer.vocabulary):
            self._slot = np.full(len(self._ranker.analyzer.vocabulary), -1, np.int32)
        return self._slot
