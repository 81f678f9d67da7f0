"""QLT: query likelihood that counts related terms, `qlt:TABLE`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from whyrank.core.registry import call_of
from whyrank.rankers.opening import Setting
from whyrank.rankers.ql import QL
from whyrank.rankers.thesaurus import ThesaurusRanker, bound


@dataclass(frozen=True)
class QLT:
    """Query likelihood over a thesaurus, a term table of weights s(t, d): `qlt:TABLE`.

    score = sum over distinct query terms t of ln((f + mu P(t|C)) / (length + mu)), where f = tf(t) plus the sum of
    s(t, d) tf(d) over the terms d of the text. P(t|C) = cf / tokens in the collection, 1e-8 for an unseen term. With
    smoothing="jm" it is ln((1 - lam) f / length + lam P(t|C)), with variant="plain" as in `ql`.

    Entries of a term for itself are left out: its own count would count twice. With an empty table the score is that
    of `ql` of the same variant to the bit.
    Kim, Rahimi and Allan, "Discovering biases in information retrieval models using relevance thesaurus as global
    explanation", EMNLP 2024.

    Attributes:
        resource: a file with a term table.
        mu: as in `ql`, and so are lam, smoothing and variant, which is parm by default.
        analyzer: without it the one that the table was learned with.
        stats: a collection, or a file of statistics.
    """

    resource: str
    mu: float = 1000.0
    lam: float = 0.1
    smoothing: str = "dirichlet"
    variant: str = "parm"
    analyzer: str | None = None
    stats: str | None = None

    explains: ClassVar[bool] = True
    registered: ClassVar[str] = "qlt"
    match: ClassVar[str] = "sum"

    def __post_init__(self) -> None:
        _ = self.formula  # checks the arguments of query likelihood

    @property
    def id(self) -> str:
        """Call string."""
        return call_of(self, self.registered)

    @property
    def formula(self) -> QL:
        """Query likelihood of the same form."""
        return QL(self.mu, self.lam, self.smoothing, variant=self.variant)

    def bind(self, setting: Setting) -> ThesaurusRanker:
        """Open the table; take analyzer and statistics from it or from the setting."""
        return bound(self, setting)
