"""The formulas of lexical rankers: BM25 in five published forms, and query likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from whyrank.core import Floats, Ints, UnknownName, WhyrankError, check_number
from whyrank.rankers.lexical.background import Background
from whyrank.rankers.lexical.base import Formula, Weights
from whyrank.rankers.lexical.kernels import DIRICHLET, JELINEK_MERCER, SATURATED

K2, K3 = 100.0, 8.0
UNSEEN = 1e-8  # P(t|C) of a term that the collection lacks, in QL of the variant parm
_SMOOTHING = {"dirichlet": DIRICHLET, "jm": JELINEK_MERCER}


class Variant(NamedTuple):
    """What distinguishes one published form of BM25 from another."""

    idf: Callable[[Floats, float], Floats]
    k1: float
    b: float
    scaled: bool


def _lucene_idf(df: Floats, n: float) -> Floats:
    return np.asarray(np.log1p((n - df + 0.5) / (df + 0.5)))


def _robertson_idf(df: Floats, n: float) -> Floats:
    return np.asarray(np.log(np.maximum((n - df + 0.5) / (df + 0.5), 1.0)))


def _atire_idf(df: Floats, n: float) -> Floats:
    return np.asarray(np.log(np.maximum(n, 1.0) / np.maximum(df, 1.0)))


def _terrier_idf(df: Floats, n: float) -> Floats:
    return np.asarray(np.log2((n - df + 0.5) / (df + 0.5)))


VARIANTS: Mapping[str, Variant] = {
    "lucene": Variant(_lucene_idf, 0.9, 0.4, False),
    "robertson": Variant(_robertson_idf, 1.2, 0.75, False),
    "atire": Variant(_atire_idf, 0.9, 0.4, True),
    "terrier": Variant(_terrier_idf, 1.2, 0.75, True),
    "parm": Variant(_lucene_idf, 0.9, 0.4, True),
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

    A query term that occurs qtf times counts qtf times; for terrier (k3 + 1) qtf / (k3 + qtf) times, k3 = 8; for parm
    (k2 + 1) qtf / (k2 + qtf) times, k2 = 100.
    Robertson et al., TREC-3 (1994); Kamphuis et al., "Which BM25 do you mean?", ECIR 2020; Trotman et al.,
    "Improvements to BM25 and language models examined", ADCS 2014; parm is the form under BM25T (see `bm25t`).
    """

    k1: float | None = None
    b: float | None = None
    k3: float = K3
    variant: str = "lucene"
    analyzer: str | None = None
    stats: str | None = None
    k2: float | None = None

    registered: ClassVar[str] = "bm25"
    scale: ClassVar[str] = "sum of term weights"

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise UnknownName("BM25 variant", self.variant, VARIANTS)
        check_number("bm25: k1", self._k1, 0)
        check_number("bm25: b", self._b, 0, 1)
        check_number("bm25: k3", self.k3, 0)
        check_number("bm25: k2", self._k2, 0)
        if self.k2 is not None and self.variant != "parm":
            raise WhyrankError(f"bm25: k2 is for variant=parm; leave it out for {self.variant}")
        if self.k3 != K3 and self.variant == "parm":
            raise WhyrankError("bm25: k3 is for variant=terrier; parm has k2 in its place")

    @property
    def parameters(self) -> str:
        """All parameters, defaults included."""
        of_query = f"k2={float(self._k2)}" if self.variant == "parm" else f"k3={self.k3}"
        return f"bm25(k1={self._k1},b={self._b},{of_query},variant={self.variant})"

    def weights(self, background: Background, terms: Sequence[str], counts: Ints) -> Weights:
        """Weight of each query term: idf, times how often the query has it."""
        variant = VARIANTS[self.variant]
        idf = variant.idf(background.frequencies(terms)[0].astype(np.float64), float(background.n_docs))
        scale = self._k1 + 1 if variant.scaled else 1.0
        a, b = self._k1 * (1 - self._b), self._k1 * self._b / background.average_length
        qtf = counts.astype(np.float64)
        if self.variant in ("terrier", "parm"):
            k = self.k3 if self.variant == "terrier" else self._k2
            qtf = (k + 1) * counts / (k + counts)
        return Weights(SATURATED, idf * qtf * scale, np.zeros(len(terms)), a, b)

    @property
    def _k1(self) -> float:
        return VARIANTS[self.variant].k1 if self.k1 is None else self.k1

    @property
    def _b(self) -> float:
        return VARIANTS[self.variant].b if self.b is None else self.b

    @property
    def _k2(self) -> float:
        return K2 if self.k2 is None else self.k2


@dataclass(frozen=True)
class QL(Formula):
    """Log probability of the query tokens under the smoothed language model of the text.

    dirichlet: sum of log((tf + mu P(t|C)) / (length + mu)), mu = 1000.
    jm: sum of log((1 - lam) tf / length + lam P(t|C)), lam = 0.1.
    P(t|C) = max(cf, 0.5) / tokens in the collection, so that an unseen term is rare, not impossible.
    variant="parm": each distinct term of the query counts once, and P(t|C) = cf / tokens, or 1e-8 for an unseen term.
    Zhai and Lafferty, "A study of smoothing methods for language models", SIGIR 2001.
    """

    mu: float = 1000.0
    lam: float = 0.1
    smoothing: str = "dirichlet"
    analyzer: str | None = None
    stats: str | None = None
    variant: str = "plain"

    registered: ClassVar[str] = "ql"
    scale: ClassVar[str] = "log probability"

    def __post_init__(self) -> None:
        if self.smoothing not in _SMOOTHING:
            raise UnknownName("smoothing", self.smoothing, _SMOOTHING)
        if self.variant not in ("plain", "parm"):
            raise UnknownName("query likelihood variant", self.variant, ("plain", "parm"))
        check_number("ql: mu", self.mu, 0, strict=True)
        check_number("ql: lam", self.lam, 0, 1, strict=True)

    @property
    def parameters(self) -> str:
        """All parameters, defaults included."""
        more = "" if self.variant == "plain" else f",variant={self.variant}"
        return f"ql(mu={self.mu},lam={self.lam},smoothing={self.smoothing}{more})"

    def weights(self, background: Background, terms: Sequence[str], counts: Ints) -> Weights:
        """How often the query has each term, and its probability in the collection."""
        cf, tokens = background.frequencies(terms)[1], max(background.n_tokens, 1)
        strength = self.mu if self.smoothing == "dirichlet" else self.lam
        if self.variant == "parm":
            once, priors = np.ones(len(terms)), np.where(cf > 0, cf / tokens, UNSEEN)
            return Weights(_SMOOTHING[self.smoothing], once, priors, strength)
        return Weights(_SMOOTHING[self.smoothing], counts.astype(np.float64), np.maximum(cf, 0.5) / tokens, strength)
