"""What BM25T and QLT share: a term table beside a lexical formula, so that related terms count as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from whyrank.core import Codes, Floats, Ints, WhyrankError
from whyrank.rankers.lexical import thesaurus_kernels as kernels
from whyrank.rankers.lexical.background import Background
from whyrank.rankers.lexical.base import Counted, Formula, LexicalRanker, TextScorer, Weights, weighed
from whyrank.rankers.lexical.index import LexicalIndex
from whyrank.rankers.lexical.kernels import DIRICHLET, SATURATED
from whyrank.rankers.lexical.table_fit import analyzer_of, check_few, readable_table
from whyrank.rankers.opening import Setting
from whyrank.tables import TermTable, open_table
from whyrank.text import Analyzer, Tokens

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
        pass  # INNER

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


# Retrieval by BM25T and QLT: term at a time over inverted lists, until no other document can be among the best.
#
# The score of a document is what it has without any match, plus a gain for each query term. No gain is above its
# bound,
# which follows from the highest frequency that any document can have. Once the k-th best score so far is above all
# that
# a document without a match yet could reach, only documents are left that can still be among the best; they are
# scored
# exactly from their tokens.

POSTINGS_PER_TOKEN = 1.0  # a token of a candidate costs about as much as a posting of an inverted list
_MARGIN = 1e-9  # beyond what the order of additions does to a score


class Asked(NamedTuple):
    """A query term, the inverted lists to walk for it, and the most that it can add at each length of a document."""

    number: int
    own: int
    ids: Codes
    related: Floats
    postings: int
    bound: Floats


class ThesaurusFinder:
    """Finds the documents of an index among which the best of a query are, and scores them."""

    def __init__(self, ranker: ThesaurusRanker, index: LexicalIndex) -> None:
        self._ranker, self._index = ranker, index
        self._scorer = ranker.scorer(index.tokens)
        self._lengths, self._length_of = np.unique(index.lengths, return_inverse=True)

    def rescore(self, terms: Codes, weights: Weights, rows: Codes) -> Floats:
        """Exact scores of the documents `rows`, to the bit as from their texts."""
        return self._scorer.scored(terms, weights, rows)

    def find(self, terms: Codes, weights: Weights, k: int) -> Codes:
        """All documents that may be among the k best of those with a query term or a partner of one."""
        asked = self._asked(terms, weights)
        search = Search(self._index, self._lengths, self._length_of, weights, self._ranker.match)
        for place, term in enumerate(asked):
            if (found := search.settled(asked[:place], asked[place:], k)) is not None:
                return found
            search.add(term)
        return search.possible([], search.least([], k))

    def _asked(self, terms: Codes, weights: Weights) -> list[Asked]:
        """The query terms that any document can match, those first that can add most."""
        found = [self._lists(number, term, weights) for number, term in enumerate(terms.tolist())]
        return sorted((each for each in found if each.postings), key=lambda each: -float(each.bound.max()))

    def _lists(self, number: int, term: int, weights: Weights) -> Asked:
        starts = self._index.lists[0]
        ids, related = self._ranker.thesaurus.partners(term)
        inside = ids < len(starts) - 1
        ids, given = ids[inside], related[inside].astype(np.float64)
        own = term if term < len(starts) - 1 else -1
        postings = int((starts[ids + 1] - starts[ids]).sum()) + (
            int(starts[own + 1] - starts[own]) if own >= 0 else 0
        )
        return Asked(number, own, ids, given, postings, self._bound(number, own, ids, given, weights))

    def _bound(self, number: int, own: int, ids: Codes, related: Floats, weights: Weights) -> Floats:
        """The most that a query term can add to the score of a document of each length."""
        most = np.full(len(self._lengths), self._most(own, ids, related))
        if self._ranker.match != kernels.FIRST:
            most = np.minimum(most, self._lengths * max(1.0, float(related.max(initial=0.0))))
        how = weights.weights[number], weights.priors[number], weights.a, weights.b
        return np.maximum(kernels.gains(weights.kind, most, self._lengths, *how), 0.0)

    def _most(self, own: int, ids: Codes, related: Floats) -> float:
        """The highest frequency of a query term that a document can have."""
        highest = self._index.highest
        count = float(highest[own]) if own >= 0 else 0.0
        if self._ranker.match == kernels.SUM:
            return count + float((related * highest[ids]).sum())
        times = 1 if self._ranker.match == kernels.FIRST else highest[ids]
        return max(count, float((related * times).max(initial=0.0)))


class Search:
    """What one query has found so far: the scores of documents, and those among them with a match."""

    def __init__(self, index: LexicalIndex, lengths: Ints, length_of: Ints, weights: Weights, match: int) -> None:
        self._index, self._length_of, self._weights, self._match = index, length_of, weights, match
        self._start = _start(weights, lengths)
        self._scores, n = self._start[length_of], len(length_of)
        self._f, self._hit = np.zeros(n), np.zeros(n, np.bool_)
        self._touched, self._matched, self._n = np.empty(n, np.int32), np.empty(n, np.int32), 0

    def add(self, term: Asked) -> None:
        """Add the gains of a query term."""
        lists, how = self._index.lists, self._weights
        found = kernels.walk(*lists, term.own, term.ids, term.related, self._match, self._f, self._touched)
        given = how.weights[term.number], how.priors[term.number], how.a, how.b
        touched, lengths = self._touched[:found], self._index.lengths
        self._n = kernels.collect(
            how.kind, lengths, *given, touched, self._f, self._scores, self._hit, self._matched, self._n
        )

    def settled(self, done: Sequence[Asked], left: Sequence[Asked], k: int) -> Codes | None:
        """The documents that may be among the best, once no others can and they are read sooner than what is left."""
        highest = float((self._start + self._rest(left)).max())
        if self._n < k or float((self._start + self._rest(done)).max()) <= highest:
            return None
        least = self.least(left, k)
        if not least > highest + _margin(least):
            return None
        found = self.possible(left, least)
        tokens, postings = int(self._index.lengths[found].sum()), sum(term.postings for term in left)
        return found if tokens * POSTINGS_PER_TOKEN < postings else None

    def possible(self, left: Sequence[Asked], least: float) -> Codes:
        """The documents with a match so far that may have the score `least` when the terms `left` are added."""
        matched = self._matched[: self._n]
        most = self._scores[matched] + self._rest(left)[self._length_of[matched]]
        return matched[~(most < least - _margin(least))]

    def least(self, left: Sequence[Asked], k: int) -> float:
        """What the k-th best document has at least in the end; nothing is certain where there are fewer."""
        if self._n < k:
            return -np.inf
        scores = self._scores[self._matched[: self._n]]
        below = sum(min(0.0, float(self._weights.weights[term.number])) for term in left)
        return float(np.partition(scores, len(scores) - k)[len(scores) - k]) + below

    def _rest(self, left: Sequence[Asked]) -> Floats:
        """The most that the terms `left` can add at each length."""
        return np.asarray(sum((term.bound for term in left), np.zeros(len(self._start))))


def _start(weights: Weights, lengths: Ints) -> Floats:
    """The score of a document of each length that matches nothing."""
    if weights.kind == SATURATED:
        return np.zeros(len(lengths))
    with np.errstate(divide="ignore"):
        logs = np.log(weights.a * weights.priors)
    whole = float((weights.weights * logs).sum())
    shorter = weights.weights.sum() * np.log(lengths + weights.a) if weights.kind == DIRICHLET else 0.0
    return np.asarray(np.full(len(lengths), whole) - shorter)


def _margin(score: float) -> float:
    return _MARGIN * max(1.0, abs(score)) if np.isfinite(score) else 0.0
