"""Query likelihood: how probable the query is under a language model of the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whyrank.core import Ints, UnknownName, call_of, check_number
from whyrank.rankers.lexical.background import Background
from whyrank.rankers.lexical.base import LexicalRanker, Weights
from whyrank.rankers.lexical.kernels import DIRICHLET, JELINEK_MERCER
from whyrank.rankers.opening import Setting

_KINDS = {"dirichlet": DIRICHLET, "jm": JELINEK_MERCER}
VARIANTS = ("plain", "parm")
UNSEEN = 1e-8


@dataclass(frozen=True)
class QL:
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

    explains: ClassVar[bool] = True
    scale: ClassVar[str] = "log probability"

    def __post_init__(self) -> None:
        if self.smoothing not in _KINDS:
            raise UnknownName("smoothing", self.smoothing, _KINDS)
        if self.variant not in VARIANTS:
            raise UnknownName("query likelihood variant", self.variant, VARIANTS)
        check_number("ql: mu", self.mu, 0, strict=True)
        check_number("ql: lam", self.lam, 0, 1, strict=True)

    @property
    def id(self) -> str:
        """Call string."""
        return call_of(self, "ql")

    @property
    def parameters(self) -> str:
        """All parameters, defaults included."""
        more = "" if self.variant == "plain" else f",variant={self.variant}"
        return f"ql(mu={self.mu},lam={self.lam},smoothing={self.smoothing}{more})"

    def bind(self, setting: Setting) -> LexicalRanker:
        """Take analyzer and statistics from the setting."""
        analyzer = setting.analyzer_for(self.analyzer)
        return LexicalRanker(self, analyzer, setting.background(analyzer, self.stats))

    def weights(self, background: Background, terms: Sequence[str], counts: Ints) -> Weights:
        """How often the query has each term, and its probability in the collection."""
        cf, tokens = background.frequencies(terms)[1], max(background.n_tokens, 1)
        strength = self.mu if self.smoothing == "dirichlet" else self.lam
        if self.variant == "parm":
            once, priors = np.ones(len(terms)), np.where(cf > 0, cf / tokens, UNSEEN)
            return Weights(_KINDS[self.smoothing], once, priors, strength)
        return Weights(_KINDS[self.smoothing], counts.astype(np.float64), np.maximum(cf, 0.5) / tokens, strength)
