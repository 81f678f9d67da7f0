"""BM25T: BM25 that counts related terms where a query term is missing, `bm25t:TABLE`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from whyrank.core import UnknownName, call_of
from whyrank.rankers.lexical.bm25 import BM25, K3
from whyrank.rankers.lexical.ql import QL
from whyrank.rankers.lexical.thesaurus import MATCHES, ThesaurusRanker, bound
from whyrank.rankers.opening import Setting


@dataclass(frozen=True)
class BM25T:
    """BM25 over a thesaurus, a term table of weights s(t, d): `bm25t:TABLE`.

    score = sum over distinct query terms t of idf(t) * qtf(t) * (k1 + 1) * f / (f + K), as `bm25` of the same variant
    has it, but for the frequency f of t in the text:

    | match | f |
    | --- | --- |
    | first | tf(t) where it is above 0, else the highest s(t, d) of a term d of the text, however often it occurs |
    | max-tf | the highest of tf(t) and all s(t, d) tf(d) |
    | sum | tf(t) plus the sum of all s(t, d) tf(d) |

    Entries of a term for itself are left out: its own count stands for them. A weight above 1 counts like as many
    occurrences. With an empty table the score is that of `bm25` to the bit.
    Kim, Rahimi and Allan, "Discovering biases in information retrieval models using relevance thesaurus as global
    explanation", EMNLP 2024.

    Attributes:
        resource: a file with a term table.
        match: how related terms count.
        k1: as in `bm25`, and so are b, k2, k3 and variant, which is parm by default.
        analyzer: without it the one that the table was learned with.
        stats: a collection, or a file of statistics.
    """

    resource: str
    match: str = "first"
    k1: float | None = None
    b: float | None = None
    k2: float | None = None
    k3: float = K3
    variant: str = "parm"
    analyzer: str | None = None
    stats: str | None = None

    explains: ClassVar[bool] = True
    registered: ClassVar[str] = "bm25t"

    def __post_init__(self) -> None:
        if self.match not in MATCHES:
            raise UnknownName("value of bm25t: match", str(self.match), MATCHES)
        _ = self.formula  # checks the arguments of BM25

    @property
    def id(self) -> str:
        """Call string."""
        return call_of(self, self.registered)

    @property
    def formula(self) -> BM25:
        """BM25 of the same form."""
        return BM25(self.k1, self.b, self.k3, self.variant, k2=self.k2)

    def bind(self, setting: Setting) -> ThesaurusRanker:
        """Open the table; take analyzer and statistics from it or from the setting."""
        return bound(self, setting)


# QLT: query likelihood that counts related terms, `qlt:TABLE`.


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
