"""What BM25T and QLT share: a term table beside a lexical formula, so that related terms count as well."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from whyrank.core.errors import WhyrankError
from whyrank.core.protocols import Codes, Floats, Ints
from whyrank.data.term_table import TermTable, open_table
from whyrank.rankers import thesaurus_kernels as kernels
from whyrank.rankers.background import Background
from whyrank.rankers.lexical import Counted, Formula, LexicalRanker, TextScorer, Weights, weighed
from whyrank.rankers.opening import Setting
from whyrank.rankers.table_fit import analyzer_of, check_few, readable_table
from whyrank.text import Analyzer, Tokens

if TYPE_CHECKING:
    from whyrank.rankers.index import LexicalIndex
    from whyrank.rankers.thesaurus_retrieval import ThesaurusFinder

MATCHES = {"first": kernels.FIRST, "max-tf": kernels.MAX_TF, "sum": kernels.SUM}
_COUNTERS = {kernels.FIRST: kernels.first, kernels.MAX_TF: kernels.max_tf, kernels.SUM: kernels.add_up}


class Partners(NamedTuple):
    """Document terms that speak for a query term, as ids of the analyzer, and how much."""

    ids: Codes
    weights: kernels.Singles


class Configured(Protocol):
    """The configuration of a ranker over a table."""

    registered: ClassVar[str]

    @property
    def resource(self) -> str:
        """The file with the table."""
        ...

    @property
    def match(self) -> str:
        """One of `MATCHES`."""
        ...

    @property
    def analyzer(self) -> str | None:
        """The analyzer, where it is named."""
        ...

    @property
    def stats(self) -> str | None:
        """The source of statistics, where it is named."""
        ...

    @property
    def id(self) -> str:
        """Call string."""
        ...

    @property
    def formula(self) -> Formula:
        """What makes a score of frequencies."""
        ...


@dataclass(frozen=True, eq=False)
class Thesaurus:
    """A term table in the term ids of an analyzer; weights of 0, and those of a term for itself, are left out."""

    table: TermTable
    analyzer: Analyzer

    def partners(self, term: int) -> Partners:
        """The document terms that speak for a query term, as far as any text had them."""
        return Partners(*self.joined(np.array([term], np.int32))[1:])

    def joined(self, terms: Codes) -> tuple[Ints, Codes, kernels.Singles]:
        """The partners of several query terms behind one another: where those of each begin, ids, and weights."""
        names, numbers = self.analyzer.vocabulary.terms, self.table.query_numbers
        rows = np.array([numbers.get(names[term], -1) for term in terms.tolist()], np.int64)
        return kernels.partners(*self.table.by_query, rows, terms, self._ids())

    def weights(self, asked: Codes, told: Codes) -> Floats:
        """The weight of each query term and document term."""
        rows = []
        for term in asked.tolist():
            known = dict(zip(*(part.tolist() for part in self.partners(term)), strict=True))
            rows.append([known.get(word, 0.0) for word in told.tolist()])
        return np.array(rows, np.float64).reshape(len(asked), len(told))

    def notes(self, asked: Codes) -> list[str]:
        """Which query terms have no entry, and which have one for themselves."""
        terms = [self.analyzer.vocabulary.terms[i] for i in asked.tolist()]
        alone = [term for term in terms if not self.table.answers(term, 1)]
        itself = [term for term in terms if self.table.weight(term, term) > 0]
        found = {"without an entry in the table": alone, "entries of a term for itself are left out": itself}
        return [f"{what}: {' '.join(words)}" for what, words in found.items() if words]

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


@dataclass(frozen=True, repr=False, eq=False)
class ThesaurusRanker(LexicalRanker):
    """A lexical formula over frequencies to which related terms add."""

    settings: Configured
    table: TermTable

    @property
    def name(self) -> str:
        """Call string of the ranker."""
        return self.settings.id

    @property
    def retrieves(self) -> bool:
        """Whether an index can be searched by it: always, see `finder`."""
        return True

    def __repr__(self) -> str:
        how = f"{self.settings.registered}(match={self.settings.match}) {self.formula.parameters}"
        known = f"analyzer={self.analyzer.identity} statistics={self.background.digest}"
        return f"{how} table={self.table.digest} {known}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to other processes without the table, which is opened again there."""
        return reopened, (self.settings, self.analyzer, self.background, self.table.digest)

    @cached_property
    def thesaurus(self) -> Thesaurus:
        """The table in the term ids of the analyzer."""
        return Thesaurus(self.table, self.analyzer)

    @property
    def match(self) -> int:
        """How partners count, as the kernels name it."""
        return MATCHES[self.settings.match]

    def scorer(self, tokens: Tokens) -> TextScorer:
        """What scores analysed texts."""
        return ThesaurusScorer(self, tokens)

    def finder(self, index: LexicalIndex) -> ThesaurusFinder:
        """What finds the documents of an index."""
        from whyrank.rankers.thesaurus_retrieval import ThesaurusFinder

        return ThesaurusFinder(self, index)

    def parts(self, asked: Codes, told: Counted) -> Floats:
        """What each term of a text adds to the frequency of each query term."""
        same = asked[:, None] == told.ids
        times = 1 if self.match == kernels.FIRST else told.counts
        each = np.where(same, told.counts, self.thesaurus.weights(asked, told.ids) * times)
        if self.match == kernels.SUM or not len(told.ids):
            return each
        ordered = np.where(same, np.inf, each) if self.match == kernels.FIRST else each
        best = ordered.max(axis=1, keepdims=True)
        chosen = np.where((same & (each == best)).any(axis=1), same.argmax(axis=1), ordered.argmax(axis=1))
        return np.where(np.arange(len(told.ids)) == chosen[:, None], each, 0.0)

    def notes(self, asked: Codes) -> list[str]:
        """What the table lacks, and what of it is left out."""
        return self.thesaurus.notes(asked)


class ThesaurusScorer(TextScorer):
    """Scores analysed texts against one query after another, related terms included."""

    def __init__(self, ranker: ThesaurusRanker, tokens: Tokens) -> None:
        super().__init__(ranker, tokens)
        self._thesaurus, self._match = ranker.thesaurus, ranker.match

    def scored(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """Scores of the texts `rows` for an analysed query."""
        found = np.zeros((len(rows), len(terms)))
        for start in range(0, len(terms), kernels.WIDTH):
            some = terms[start : start + kernels.WIDTH]
            found[:, start : start + len(some)] = self._counted(some, rows)
        return weighed(weights, found, self._lengths[rows])

    def _counted(self, terms: Codes, rows: Codes) -> Floats:
        """The frequencies of a few terms."""
        found, (starts, ids, weights) = np.zeros((len(rows), len(terms))), self._thesaurus.joined(terms)
        slot, own = self._slots(), 0.0 if self._match == kernels.FIRST else 1.0
        table = kernels.spread(terms, starts, ids, weights, own, slot)
        _COUNTERS[self._match](self._tokens.ids, self._tokens.offsets, rows, slot, table, len(terms), found)
        kernels.clear(terms, ids, slot)
        return found


def bound(settings: Configured, setting: Setting) -> ThesaurusRanker:
    """Open the table; take analyzer and statistics from the configuration, the table or the setting."""
    table = readable_table(settings.resource)
    analyzer = analyzer_of(table, settings.resource, settings.analyzer, setting)
    background = setting.background(analyzer, settings.stats)
    check_few(settings.registered, table, settings.resource, analyzer, setting, background)
    return ThesaurusRanker(settings.formula, analyzer, background, settings, table)


def reopened(settings: Configured, analyzer: Analyzer, background: Background, digest: str) -> ThesaurusRanker:
    """The ranker with its table opened again; an error when that has changed."""
    table = open_table(settings.resource)
    if table.digest != digest:
        raise WhyrankError(f"{settings.resource}: the table has changed meanwhile; start again")
    return ThesaurusRanker(settings.formula, analyzer, background, settings, table)
