"""BM25 in five published forms and query likelihood: the weights of query terms, scores of any text, explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from whyrank.core import Codes, Floats, Ints, NonNegative, Positive, Share, WhyrankError, Within
from whyrank.rankers.base import Described, distinct, rows_by_code
from whyrank.rankers.lexical import kernels
from whyrank.rankers.lexical.background import Background
from whyrank.rankers.lexical.explanations import ScoreMatrix
from whyrank.rankers.lexical.kernels import DIRICHLET, JELINEK_MERCER, SATURATED
from whyrank.rankers.opening import Setting
from whyrank.text import Analyzer, Tokens

K2, K3 = 100.0, 8.0
UNSEEN = 1e-8  # P(t|C) of a term that the collection lacks, in QL of the variant parm
Smoothing = Literal["dirichlet", "jm"]
_SMOOTHING = {"dirichlet": DIRICHLET, "jm": JELINEK_MERCER}


class Weights(NamedTuple):
    """How to weigh the counts of one query's terms: a kind of `kernels.weigh` and its arguments."""

    kind: int
    weights: Floats
    priors: Floats
    a: float
    b: float = 0.0


def weighed(weights: Weights, tf: Codes | Floats, lengths: Ints) -> Floats:
    """Scores of texts from the counts of query terms in them."""
    out = np.empty(len(tf))
    kernels.weigh(weights.kind, tf, lengths, weights.weights, weights.priors, weights.a, weights.b, out)
    return out


class Formula(Described):
    """A lexical model: the weights it gives to the terms of a query.

    Attributes:
        analyzer: how words are counted; by default as the command or the setting says.
        stats: background statistics: a collection, or a file of `data stats`; by default the collection's own.
    """

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


class Variant(NamedTuple):
    """What distinguishes one published form of BM25 from another."""

    idf: Callable[[Floats, float], Floats]
    k1: float
    b: float
    scaled: bool


def _odds(df: Floats, n: float) -> Floats:
    return np.asarray((n - df + 0.5) / (df + 0.5))


Form = Literal["lucene", "robertson", "atire", "terrier", "parm"]
VARIANTS: Mapping[Form, Variant] = {
    "lucene": Variant(lambda df, n: np.log1p(_odds(df, n)), 0.9, 0.4, False),
    "robertson": Variant(lambda df, n: np.log(np.maximum(_odds(df, n), 1.0)), 1.2, 0.75, False),
    "atire": Variant(lambda df, n: np.log(np.maximum(n, 1.0) / np.maximum(df, 1.0)), 0.9, 0.4, True),
    "terrier": Variant(lambda df, n: np.log2(_odds(df, n)), 1.2, 0.75, True),
    "parm": Variant(lambda df, n: np.log1p(_odds(df, n)), 0.9, 0.4, True),
}


@dataclass(frozen=True)
class BM25(Formula):
    """BM25: sum over query terms of idf(t) * tf / (tf + k1 * (1 - b + b * length / average length)).

    | variant | idf | k1, b by default | also |
    | --- | --- | --- | --- |
    | lucene | ln(1 + (N - df + 0.5) / (df + 0.5)) | 0.9, 0.4 | |
    | robertson | ln((N - df + 0.5) / (df + 0.5)), at least 0 | 1.2, 0.75 | |
    | atire | ln(N / df) | 0.9, 0.4 | times k1 + 1 |
    | terrier | log2((N - df + 0.5) / (df + 0.5)), may be negative | 1.2, 0.75 | times k1 + 1; k3, see below |
    | parm | as lucene | 0.9, 0.4 | times k1 + 1; k2, see below |

    A query term that occurs qtf times counts qtf times. For terrier it counts (k3 + 1) qtf / (k3 + qtf) times with
    k3 = 8, for parm (k2 + 1) qtf / (k2 + qtf) times with k2 = 100.
    Robertson et al., TREC-3 (1994); Kamphuis et al., "Which BM25 do you mean?", ECIR 2020; Trotman et al.,
    "Improvements to BM25 and language models examined", ADCS 2014. The variant parm is the form under `bm25t`.

    Attributes:
        k1: how slowly the weight of a term saturates with its frequency; by default the variant's.
        b: how much the length of a text counts, from 0 to 1; by default the variant's.
        k3: of variant terrier: how slowly the weight saturates with the frequency in the query.
        variant: lucene, robertson, atire, terrier or parm.
        k2: of variant parm: what k3 is for terrier; 100.
    """

    k1: NonNegative | None = None
    b: Share | None = None
    k3: NonNegative = K3
    variant: Form = "lucene"
    analyzer: str | None = None
    stats: str | None = None
    k2: NonNegative | None = None

    registered: ClassVar[str] = "bm25"
    scale: ClassVar[str] = "sum of term weights"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k2 is not None and self.variant != "parm":
            raise WhyrankError(f"bm25: k2 is for variant=parm; leave it out for {self.variant}")
        if self.k3 != K3 and self.variant == "parm":
            raise WhyrankError("bm25: k3 is for variant=terrier; parm has k2 in its place")

    @property
    def _numbers(self) -> tuple[float, float, float]:
        """The values of k1, b and k2, by default those of the variant."""
        known = VARIANTS[self.variant].k1, VARIANTS[self.variant].b, K2
        given = self.k1, self.b, self.k2
        k1, b, k2 = (default if own is None else own for own, default in zip(given, known, strict=True))
        return k1, b, k2

    @property
    def parameters(self) -> str:
        """All parameters, defaults included."""
        k1, b, k2 = self._numbers
        of_query = f"k2={float(k2)}" if self.variant == "parm" else f"k3={self.k3}"
        return f"bm25(k1={k1},b={b},{of_query},variant={self.variant})"

    def weights(self, background: Background, terms: Sequence[str], counts: Ints) -> Weights:
        """Weight of each query term: idf, times how often the query has it."""
        variant, (k1, b, k2) = VARIANTS[self.variant], self._numbers
        idf = variant.idf(background.frequencies(terms)[0].astype(np.float64), float(background.n_docs))
        qtf = counts.astype(np.float64)
        if self.variant in ("terrier", "parm"):
            k = self.k3 if self.variant == "terrier" else k2
            qtf = (k + 1) * counts / (k + counts)
        scale, none = k1 + 1 if variant.scaled else 1.0, np.zeros(len(terms))
        return Weights(SATURATED, idf * qtf * scale, none, k1 * (1 - b), k1 * b / background.average_length)


@dataclass(frozen=True)
class QL(Formula):
    """Log probability of the query tokens under the smoothed language model of the text.

    dirichlet: sum of log((tf + mu P(t|C)) / (length + mu)), mu = 1000.
    jm: sum of log((1 - lam) tf / length + lam P(t|C)), lam = 0.1.
    P(t|C) = max(cf, 0.5) / tokens in the collection, so that an unseen term is rare, not impossible.
    variant="parm": each distinct term of the query counts once, and P(t|C) = cf / tokens, or 1e-8 for an unseen term.
    Zhai and Lafferty, "A study of smoothing methods for language models", SIGIR 2001.

    Attributes:
        mu: of dirichlet: how many tokens the collection's language model counts for.
        lam: of jm: the share of the collection's language model.
        smoothing: dirichlet or jm.
        variant: plain or parm.
    """

    mu: Positive = 1000.0
    lam: Within = 0.1
    smoothing: Smoothing = "dirichlet"
    analyzer: str | None = None
    stats: str | None = None
    variant: Literal["plain", "parm"] = "plain"

    registered: ClassVar[str] = "ql"
    scale: ClassVar[str] = "log probability"

    @property
    def parameters(self) -> str:
        """All parameters, defaults included."""
        more = "" if self.variant == "plain" else f",variant={self.variant}"
        return f"ql(mu={self.mu},lam={self.lam},smoothing={self.smoothing}{more})"

    def weights(self, background: Background, terms: Sequence[str], counts: Ints) -> Weights:
        """How often the query has each term, and its probability in the collection."""
        cf, tokens = background.frequencies(terms)[1], max(background.n_tokens, 1)
        weights, priors = counts.astype(np.float64), np.maximum(cf, 0.5) / tokens
        if self.variant == "parm":
            weights, priors = np.ones(len(terms)), np.where(cf > 0, cf / tokens, UNSEEN)
        strength = self.mu if self.smoothing == "dirichlet" else self.lam
        return Weights(_SMOOTHING[self.smoothing], weights, priors, strength)


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
        return self.formula.weights(self.background, [], np.zeros(0, np.int64)).kind == SATURATED

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Score aligned pairs of texts."""
        query, doc = distinct(queries), distinct(docs)
        scorer = self.scorer(self.analyzer.docs(doc.texts))
        found = np.empty(len(query.codes))
        for text, rows in zip(query.texts, rows_by_code(query.codes, len(query.texts)), strict=True):
            found[rows] = scorer.score(text, doc.codes[rows])
        return found

    def scorer(self, tokens: Tokens) -> TextScorer:
        """What scores analysed texts."""
        return TextScorer(self, tokens)

    def query(self, text: str) -> tuple[Codes, Weights]:
        """Distinct term ids of a query in order of appearance, and their weights."""
        ids, counts = count_terms(self.analyzer.queries([text]).ids)
        terms = [self.analyzer.vocabulary.terms[i] for i in ids]
        return ids, self.formula.weights(self.background, terms, counts)

    def count(self, terms: Codes, tokens: Tokens, rows: Codes, slots: Callable[[], Codes]) -> Codes | Floats:
        """How often each of the texts `rows` has each query term; `slots` gives -1 for every term so far."""
        tf = np.zeros((len(rows), len(terms)), np.int32)
        kernels.scan(tokens.ids, tokens.offsets, rows, terms, slots(), tf)
        return tf

    def partners(self, term: int) -> Partners:
        """The document terms that count for a query term besides itself: none."""
        return Partners(np.zeros(0, np.int32), np.zeros(0, np.float32))

    def explain(self, query: str, text: str) -> ScoreMatrix:
        """The matrix behind the score of one text: what each document term adds to each query term."""
        query_ids, weights = self.query(query)
        doc = count_terms(self.analyzer.docs([text]).ids)
        tf, length = self.frequencies(query_ids, doc), int(doc.counts.sum())
        names = self.analyzer.vocabulary.terms
        terms, words = ([names[i] for i in ids.tolist()] for ids in (query_ids, doc.ids))
        score, notes = float(self.score([query], [text])[0]), tuple(self.notes(query_ids))
        a, b = weights.a, weights.b
        if weights.kind == SATURATED:  # a row's saturated frequency is shared out among its document terms
            compared = tf.sum(axis=1, keepdims=True) + (a + b * length)
            cells = np.divide(tf, compared, out=np.zeros_like(tf), where=tf > 0)
            return ScoreMatrix.additive(terms, words, weights.weights[:, None] * cells, score, notes)
        if weights.kind == DIRICHLET:
            cells, background = tf / (length + a), a * weights.priors / (length + a)
        else:
            cells, background = (1 - a) * tf / max(length, 1), a * weights.priors
        return ScoreMatrix.log(terms, words, cells, score, background, weights.weights, notes=notes)

    def frequencies(self, query_ids: Codes, doc: TermCounts) -> Floats:
        """What each document term adds to the frequency of each query term: its count, where it is the same."""
        return np.where(query_ids[:, None] == doc.ids, doc.counts, 0).astype(np.float64)

    def notes(self, query_ids: Codes) -> list[str]:
        """What is worth knowing about an explanation for these query terms, a line each."""
        return []


class TextScorer:
    """Scores analysed texts against one query after another."""

    def __init__(self, ranker: LexicalRanker, tokens: Tokens) -> None:
        self._ranker, self._tokens, self._lengths = ranker, tokens, np.diff(tokens.offsets)
        self._slots = np.full(0, -1, np.int32)

    def score(self, query: str, rows: Codes) -> Floats:
        """Scores of the texts `rows` for a query."""
        return self.score_terms(*self._ranker.query(query), rows)

    def score_terms(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """Scores of the texts `rows` for an analysed query."""
        return weighed(weights, self._ranker.count(terms, self._tokens, rows, self.slots), self._lengths[rows])

    def slots(self) -> Codes:
        """A number per term of the vocabulary, which may have grown: -1."""
        if len(self._slots) < len(self._ranker.analyzer.vocabulary):
            self._slots = np.full(len(self._ranker.analyzer.vocabulary), -1, np.int32)
        return self._slots
