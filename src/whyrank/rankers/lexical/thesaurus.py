"""BM25T and QLT: lexical formulas over frequencies to which the related terms of a term table add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from whyrank.core import Codes, Floats, Ints, NonNegative, Positive, Share, Within
from whyrank.rankers.base import Described
from whyrank.rankers.lexical import kernels
from whyrank.rankers.lexical.kernels import FIRST, MAX_TF, SUM, WIDTH
from whyrank.rankers.lexical.ranker import BM25, K3, QL, Form, LexicalRanker, Partners, Smoothing, TermCounts
from whyrank.rankers.lexical.table_fit import TableRanker, analyzer_of, check_fit, readable_table
from whyrank.rankers.opening import Setting
from whyrank.tables import TermTable
from whyrank.text import Tokens

MATCHES = {"first": FIRST, "max-tf": MAX_TF, "sum": SUM}
_COUNTERS = {FIRST: kernels.first, MAX_TF: kernels.max_tf, SUM: kernels.add_up}


class ThesaurusFormula(Described):
    """A lexical formula over a term table, and how the related terms of the table count."""

    resource: str
    match: str
    analyzer: str | None
    stats: str | None

    explains: ClassVar[bool] = True

    @property
    def formula(self) -> BM25 | QL:
        """The lexical formula of the same form."""
        raise NotImplementedError

    def bind(self, setting: Setting) -> ThesaurusRanker:
        """Open the table; take analyzer and statistics from the configuration, the table or the setting."""
        table = readable_table(self.resource)
        analyzer = analyzer_of(table, self.resource, self.analyzer, setting)
        background = setting.background(analyzer, self.stats)
        if len(table):
            check_fit(self.registered, table, self.resource, analyzer, setting, background)
        return ThesaurusRanker(self.formula, analyzer, background, self, table)


@dataclass(frozen=True)
class BM25T(ThesaurusFormula):
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
        k1: as in `bm25`.
        b: as in `bm25`.
        k2: as in `bm25`.
        k3: as in `bm25`.
        variant: as in `bm25`, but parm by default.
        analyzer: without it the one that the table was learned with.
        stats: a collection, or a file of statistics.
    """

    resource: str
    match: Literal["first", "max-tf", "sum"] = "first"
    k1: NonNegative | None = None
    b: Share | None = None
    k2: NonNegative | None = None
    k3: NonNegative = K3
    variant: Form = "parm"
    analyzer: str | None = None
    stats: str | None = None

    registered: ClassVar[str] = "bm25t"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.formula  # checks the arguments of BM25

    @property
    def formula(self) -> BM25:
        """BM25 of the same form."""
        return BM25(self.k1, self.b, self.k3, self.variant, k2=self.k2)


@dataclass(frozen=True)
class QLT(ThesaurusFormula):
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
        mu: as in `ql`.
        lam: as in `ql`.
        smoothing: as in `ql`.
        variant: as in `ql`, but parm by default.
        analyzer: without it the one that the table was learned with.
        stats: a collection, or a file of statistics.
    """

    resource: str
    mu: Positive = 1000.0
    lam: Within = 0.1
    smoothing: Smoothing = "dirichlet"
    variant: Literal["plain", "parm"] = "parm"
    analyzer: str | None = None
    stats: str | None = None

    registered: ClassVar[str] = "qlt"
    match: ClassVar[str] = "sum"  # type: ignore[misc]

    @property
    def formula(self) -> QL:
        """Query likelihood of the same form."""
        return QL(self.mu, self.lam, self.smoothing, variant=self.variant)


@dataclass(frozen=True, repr=False, eq=False)
class ThesaurusRanker(TableRanker, LexicalRanker):
    """A lexical formula over frequencies to which related terms add."""

    settings: ThesaurusFormula
    table: TermTable

    expands: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """Call string of the ranker."""
        return self.settings.name

    @property
    def retrieves(self) -> bool:
        """Whether an index can be searched by it: always."""
        return True

    def __repr__(self) -> str:
        how = f"{self.settings.registered}(match={self.settings.match}) {self.formula.parameters}"
        known = f"analyzer={self.analyzer.identity} statistics={self.background.digest}"
        return f"{how} table={self.table.digest} {known}"

    @property
    def match(self) -> int:
        """How partners count, as the kernels name it."""
        return MATCHES[self.settings.match]

    def count(self, terms: Codes, tokens: Tokens, rows: Codes, slots: Callable[[], Codes]) -> Floats:
        """How often each of the texts `rows` has each query term, its partners included; some terms at a time."""
        found, own = np.zeros((len(rows), len(terms))), 0.0 if self.match == FIRST else 1.0
        for start in range(0, len(terms), WIDTH):
            some = terms[start : start + WIDTH]
            tf, (starts, ids, related) = np.zeros((len(rows), len(some))), self.entries(some)
            slot = slots()  # after the entries: the vocabulary may grow meanwhile
            table = kernels.spread(some, starts, ids, related, own, slot)
            _COUNTERS[self.match](tokens.ids, tokens.offsets, rows, slot, table, len(some), tf)
            kernels.clear(some, ids, slot)
            found[:, start : start + len(some)] = tf
        return found

    def partners(self, term: int) -> Partners:
        """The document terms that count for a query term, as far as any text had them."""
        return Partners(*self.entries(np.array([term], np.int32))[1:])

    def entries(self, terms: Codes) -> tuple[Ints, Codes, kernels.Singles]:
        """The partners of several query terms, one after another: where those of each begin, ids, and weights.

        Weights of 0, and those of a term for itself, are left out.
        """
        names, numbers = self.analyzer.vocabulary.terms, self.table.query_numbers
        rows = np.array([numbers.get(names[term], -1) for term in terms.tolist()], np.int64)
        return kernels.partners(*self.table.by_query, rows, terms, self._ids())

    def _ids(self) -> Codes:
        """The id of each document term of the table, -1 for those that the analyzer has not met so far."""
        names, numbers = self.analyzer.vocabulary.terms, self.table.doc_numbers
        (ids, met), whole = self._met, len(names)  # the vocabulary may grow meanwhile
        for i in range(int(met[0]), whole):
            if (number := numbers.get(names[i])) is not None:
                ids[number] = i
        met[0] = whole
        return ids

    @cached_property
    def _met(self) -> tuple[Codes, Ints]:
        return np.full(len(self.table.doc_terms), -1, np.int32), np.zeros(1, np.int64)

    def frequencies(self, query_ids: Codes, doc: TermCounts) -> Floats:
        """What each document term adds to the frequency of each query term."""
        related = np.zeros((len(query_ids), len(doc.ids)))
        for row, term in zip(related, query_ids.tolist(), strict=True):
            known = dict(zip(*(part.tolist() for part in self.partners(term)), strict=True))
            row[:] = [known.get(word, 0.0) for word in doc.ids.tolist()]
        same = query_ids[:, None] == doc.ids
        each = np.where(same, doc.counts, related * (1 if self.match == FIRST else doc.counts))
        if self.match == SUM or not len(doc.ids):
            return each
        ordered = np.where(same, np.inf, each) if self.match == FIRST else each
        best = ordered.max(axis=1, keepdims=True)
        chosen = np.where((same & (each == best)).any(axis=1), same.argmax(axis=1), ordered.argmax(axis=1))
        return np.where(np.arange(len(doc.ids)) == chosen[:, None], each, 0.0)

    def notes(self, query_ids: Codes) -> list[str]:
        """Which query terms have no entry in the table, and which have one for themselves."""
        terms = [self.analyzer.vocabulary.terms[i] for i in query_ids.tolist()]
        alone = [term for term in terms if not self.table.doc_terms_for(term, 1)]
        itself = [term for term in terms if self.table.weight(term, term) > 0]
        found = {"without an entry in the table": alone, "entries of a term for itself are left out": itself}
        return [f"{what}: {' '.join(words)}" for what, words in found.items() if words]
