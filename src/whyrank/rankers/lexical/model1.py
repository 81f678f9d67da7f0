"""Model 1: how probable the query is as a translation of the text, `model1:TABLE`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from numba import njit

from whyrank.core import Codes, Floats, Ints, NonNegative, Share, WhyrankError
from whyrank.rankers.base import Described, distinct, rows_by_code
from whyrank.rankers.lexical.background import Background
from whyrank.rankers.lexical.explanations import ScoreMatrix
from whyrank.rankers.lexical.ranker import count_terms
from whyrank.rankers.lexical.table_fit import TableRanker, analyzer_of, check_fit, readable_table
from whyrank.rankers.opening import Setting
from whyrank.tables import TermTable, self_entries
from whyrank.text import Analyzer, Tokens

Singles = npt.NDArray[np.float32]
LEAST_PROBABILITY = 1e-8
LEAST_PRIOR = 1e-9
WIDTH = 8  # query terms that are read at a time


@dataclass(frozen=True)
class Model1(Described):
    """Log probability of the query as a translation of the text, over a term table: `model1:TABLE`.

    P(q|D) = sum over the tokens d of the text of T'(q|d) / |D|, where |D| counts the tokens that the table knows, and
    T'(q|d) = (1 - p_self) T(q|d) + p_self [q = d].

    score = sum over distinct query terms q of n(q) g(q) / number of distinct query terms, where n(q) counts q in the
    query and g(q) = ln((1 - lam) P(q|D) + lam C(q)) - ln(lam C(q)), or for lam = 0 g(q) = ln(max(1e-8, P(q|D))).

    C(q) = max(1e-9, share of q among all tokens), counted in what the table was learned from, or in the collection. A
    query term that the table does not know gives 0, or for lam = 0 ln(1e-8).
    Berger and Lafferty, "Information retrieval as statistical translation", SIGIR 1999; Boytsov and Kolter,
    "Exploring classic and neural lexical translation models for information retrieval", ECIR 2021.

    Attributes:
        resource: a file with a term table.
        lam: the weight of C(q); without it what the table's facts say, else 0.1.
        p_self: self-translation; without it 0 for a table whose facts say that it has it already, else 0.05.
        keep: "add" keeps a learned T(q|q) on top of p_self, "replace" does not.
        threshold: T(q|d) below it are left out.
        threshold_on: "raw" compares T(q|d) alone, "rescaled" T'(q|d) too, as the published code does.
        renormalize: scale what is left of T(q|d), so that it adds up to 1 over q; a T(q|q) that is replaced is not.
        normalise: divide by the number of distinct query terms, or "tokens", of all, as the paper says.
        analyzer: without it the one that the table was learned with.
        background: where C(q) is counted, "table" or "collection"; without it the table where it has counts.
        stats: a collection, or a file of statistics, for C(q).
    """

    resource: str
    lam: Share | None = None
    p_self: Share | None = None
    keep: Literal["add", "replace"] = "add"
    threshold: NonNegative = 0.0
    threshold_on: Literal["raw", "rescaled"] = "raw"
    renormalize: bool = False
    normalise: Literal["unique", "tokens"] = "unique"
    analyzer: str | None = None
    background: Literal["table", "collection"] | None = None
    stats: str | None = None

    registered: ClassVar[str] = "model1"
    explains: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stats and self.background == "table":
            raise WhyrankError("model1: stats are for background=collection; leave out one of the two")

    def bind(self, setting: Setting) -> Model1Ranker:
        """Open the table; take analyzer and statistics from it or from the setting."""
        table = readable_table(self.resource)
        analyzer = analyzer_of(table, self.resource, self.analyzer, setting)
        check_fit("model1", table, self.resource, analyzer, setting)
        lam = table.facts.get("lam", 0.1) if self.lam is None else self.lam
        p_self = (0.0 if "p_self" in table.facts else 0.05) if self.p_self is None else self.p_self
        background = self._background(table, analyzer, setting) if lam else None
        completed = replace(self, lam=lam, p_self=p_self)
        return Model1Ranker(self.name, completed, analyzer, table, background)

    def _background(self, table: TermTable, analyzer: Analyzer, setting: Setting) -> Background | None:
        """The collection's counts, or None where those of the table are used."""
        default = "table" if table.counts is not None and not self.stats else "collection"
        if (self.background or default) == "table":
            if table.counts is None:
                raise WhyrankError(f"model1: {self.resource} has no counts of terms; leave out background=table")
            return None
        found = setting.background(analyzer, self.stats)
        if not found.n_tokens:
            raise WhyrankError(f"model1: no counts for C(q) of {self.resource}; give stats=COLLECTION, or lam=0")
        return found


@dataclass(frozen=True, repr=False, eq=False)
class Model1Ranker(TableRanker):
    """Model 1 with its table, analyzer and counts; `background` is None where the table's own counts are used."""

    name: str
    settings: Model1
    analyzer: Analyzer
    table: TermTable
    background: Background | None

    batch_size: ClassVar[int] = 250_000

    @property
    def scale(self) -> str:
        """What the scores are, in words."""
        per = "distinct query term" if self.settings.normalise == "unique" else "query token"
        return f"log {'probability ratio' if self.lam else 'probability'} per {per}"

    def __repr__(self) -> str:
        elsewhere, how = ("resource", "analyzer", "background", "stats"), vars(self.settings)
        numbers = {key: float(how[key]) for key in ("lam", "p_self", "threshold")}  # 0 and 0.0 are one identity
        parameters = ",".join(f"{key}={value}" for key, value in (how | numbers).items() if key not in elsewhere)
        counts = "none" if not self.lam else "table" if self.background is None else self.background.digest
        # stored scores must not outlive their rules: T(q|q) was part of the sum once though it was replaced
        rules = " rules=2" if self.settings.renormalize and self.settings.keep == "replace" else ""
        known = f"analyzer={self.analyzer.identity} statistics={counts}{rules}"
        return f"model1({parameters}) table={self.table.digest} {known}"

    @property
    def lam(self) -> float:
        """The weight of the collection model."""
        return float(self.settings.lam or 0.0)

    @cached_property
    def translation(self) -> Translation:
        """The table with thresholds and self-translation."""
        return Translation(self.table, self.settings)

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Score aligned pairs of texts."""
        query, doc = distinct(queries), distinct(docs)
        texts = self.translation.to_numbers(self.analyzer, self.analyzer.docs(doc.texts))
        lengths, dense = np.diff(texts.offsets), self.translation.dense()
        found = np.empty(len(query.codes))
        for text, rows in zip(query.texts, rows_by_code(query.codes, len(query.texts)), strict=True):
            (terms, weights), docs_of_query, out = self.query(text), doc.codes[rows], np.zeros(len(rows))
            sums, priors = self.translation.sums(terms, texts, docs_of_query, dense), self.priors(terms)
            likelihoods(sums, lengths, docs_of_query, weights, priors, self.lam, LEAST_PROBABILITY, out)
            found[rows] = out
        return found

    def query(self, text: str) -> tuple[list[str], Floats]:
        """The distinct terms of a query in order of appearance, and how much each counts."""
        ids, counts = count_terms(self.analyzer.queries([text]).ids)
        whole = len(ids) if self.settings.normalise == "unique" else int(counts.sum())
        return [self.analyzer.vocabulary.terms[i] for i in ids.tolist()], counts / max(whole, 1)

    def priors(self, terms: Sequence[str]) -> Floats:
        """C(q) of each term."""
        if not self.lam:
            return np.ones(len(terms))
        if self.background is not None:
            counts, whole = self.background.frequencies(terms)[1], self.background.n_tokens
        else:
            known, numbers, whole = self.table.counts, self.table.doc_numbers, self._table_tokens
            assert known is not None
            counts = np.array([int(known[numbers[term]]) if term in numbers else 0 for term in terms], np.int64)
        return np.maximum(LEAST_PRIOR, counts / max(whole, 1))

    def explain(self, query: str, text: str) -> ScoreMatrix:
        """The matrix behind the score of one text: parts of the probability of each query term."""
        terms, weights = self.query(query)
        ids, counts = count_terms(self.translation.to_numbers(self.analyzer, self.analyzer.docs([text])).ids)
        share = (1 - self.lam) * counts / max(int(counts.sum()), 1)
        cells, background = self.translation.cells(terms, ids) * share, self.lam * self.priors(terms)
        sides = {"query": terms, "text": list(dict.fromkeys(self.analyzer.terms(text)))}
        unknown = {side: [t for t in given if t not in self.translation.numbers] for side, given in sides.items()}
        notes = [f"not in the table, of the {side}: {' '.join(words)}" for side, words in unknown.items() if words]
        score, words = float(self.score([query], [text])[0]), self.translation.terms(ids)
        baseline, floor = (np.log(background), 0.0) if self.lam else (None, LEAST_PROBABILITY)
        return ScoreMatrix.log(terms, words, cells, score, background, weights, baseline, floor, notes)

    @cached_property
    def _table_tokens(self) -> int:
        return 0 if self.table.counts is None else int(self.table.counts.sum())


# Compiled loops of Model 1: spread the rows of a few query terms out over all document terms, then read texts.
#
# A row of `dense` belongs to a document term and has a column for each of `WIDTH` query terms, so that a token costs
# one short addition of neighbouring numbers, and no search.


@njit(cache=True, nogil=True)
def spread(
    indptr: Ints, indices: Codes, weights: Singles, sums: Floats, rows: Ints, own: Ints, p_self: float, replace: bool,
    raw: float, rescaled: float, dense: Singles,
) -> None:  # fmt: skip
    """Write T'(q|d) into column j for the query term j, which is the row `rows[j]` of the table, or none (-1).

    Weights below `raw` are left out, the others divided by `sums` where it is given; what is then below `rescaled` is
    left out too. `own[j]` is the number of query term j among the document terms, or -1.
    """
    for j in range(len(rows)):
        if rows[j] >= 0:
            for entry in range(indptr[rows[j]], indptr[rows[j] + 1]):
                d = indices[entry]
                if weights[entry] < np.float32(raw) or (replace and d == own[j]):
                    continue
                whole = sums[d] if len(sums) else 1.0
                dense[d, j] = (1.0 - p_self) * weights[entry] / whole if whole > 0 else 0.0
                if d != own[j] and dense[d, j] < np.float32(rescaled):
                    dense[d, j] = 0.0
        if own[j] >= 0:
            dense[own[j], j] += p_self
            if dense[own[j], j] < np.float32(rescaled):
                dense[own[j], j] = 0.0


@njit(cache=True, nogil=True)
def clear(indptr: Ints, indices: Codes, rows: Ints, own: Ints, dense: Singles) -> None:
    """Undo `spread`."""
    for j in range(len(rows)):
        if rows[j] >= 0:
            for entry in range(indptr[rows[j]], indptr[rows[j] + 1]):
                dense[indices[entry], j] = 0.0
        if own[j] >= 0:
            dense[own[j], j] = 0.0


@njit(cache=True, nogil=True)
def add_up(ids: Codes, offsets: Ints, rows: Codes, dense: Singles, sums: Floats) -> None:
    """Add the rows of all tokens of each of the texts `rows`; `sums` is all zero before."""
    for i in range(len(rows)):
        for position in range(offsets[rows[i]], offsets[rows[i] + 1]):
            d = ids[position]
            for j in range(WIDTH):
                sums[i, j] += dense[d, j]


@njit(cache=True, nogil=True)
def likelihoods(
    sums: Floats, lengths: Ints, rows: Codes, weights: Floats, priors: Floats, lam: float, floor: float, out: Floats
) -> None:
    """Add to `out` what the query terms give to the score of each of the texts `rows`.

    With P = sum / length and C the prior: weight * (ln((1 - lam) P + lam C) - ln(lam C)), or for lam = 0
    weight * ln(max(floor, P)).
    """
    for i in range(len(rows)):
        length = max(lengths[rows[i]], 1)
        for j in range(len(weights)):
            if lam > 0.0:
                out[i] += weights[j] * np.log1p((1.0 - lam) * (sums[i, j] / length) / (lam * priors[j]))
            else:
                out[i] += weights[j] * np.log(max(floor, sums[i, j] / length))


@dataclass(frozen=True, eq=False)
class Translation:
    """T'(q|d) = (1 - p_self) T(q|d) + p_self [q = d] with the settings of a ranker, for the query terms at hand.

    The table itself stays as it is, so that a memory-mapped one is read where it is needed.
    """

    table: TermTable
    settings: Model1

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each term as a document term; query terms that are no document terms come last."""
        known, more = self.table.doc_numbers, len(self.table.doc_terms)
        return {**known, **{term: more + i for i, term in enumerate(self._extra)}} if self._extra else known

    def terms(self, numbers: Codes | Ints) -> list[str]:
        """The terms of numbers."""
        whole = len(self.table.doc_terms)
        return [self.table.doc_terms[i] if i < whole else self._extra[i - whole] for i in numbers.tolist()]

    def to_numbers(self, analyzer: Analyzer, tokens: Tokens) -> Tokens:
        """Analysed texts in the numbers of the table, without the tokens that it does not know."""
        numbers = self._numbers(analyzer)[tokens.ids]
        known = numbers >= 0
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])[tokens.offsets]
        return Tokens(numbers[known], offsets)

    def sums(self, terms: Sequence[str], texts: Tokens, rows: Codes, dense: Singles) -> Floats:
        """The sum of T'(q|d) over the tokens d of each of the texts `rows`, a column for each query term."""
        found = np.empty((len(rows), len(terms)))
        for start, width in self._spread_in(terms, dense):
            added = np.zeros((len(rows), WIDTH))
            add_up(texts.ids, texts.offsets, rows, dense, added)
            found[:, start : start + width] = added[:, :width]
        return found

    def cells(self, terms: Sequence[str], numbers: Codes | Ints) -> Floats:
        """T'(q|d) of each query term and each document term."""
        found, dense = np.empty((len(terms), len(numbers))), self.dense()
        for start, width in self._spread_in(terms, dense):
            found[start : start + width] = dense[numbers, :width].T
        return found

    def dense(self) -> Singles:
        """Room for a few query terms, all zero."""
        return np.zeros((len(self.numbers), WIDTH), np.float32)

    def _spread_in(self, terms: Sequence[str], dense: Singles) -> Iterator[tuple[int, int]]:
        """Write T'(q|d) of a few query terms at a time into `dense`; where they start, and how many they are."""
        how, p_self = self.settings, float(self.settings.p_self or 0.0)
        limits = float(how.threshold), float(how.threshold if how.threshold_on == "rescaled" else 0.0)
        for start in range(0, len(terms), WIDTH):
            some = terms[start : start + WIDTH]
            rows = np.array([self.table.query_numbers.get(term, -1) for term in some], np.int64)
            own = np.array([self.numbers.get(term, -1) for term in some], np.int64)
            spread(*self.table.by_query, self._whole, rows, own, p_self, how.keep == "replace", *limits, dense)
            yield start, len(some)
            clear(self.table.indptr, self.table.indices, rows, own, dense)

    @cached_property
    def _whole(self) -> Floats:
        """The sum of the weights of each document term that are not left out, where they are to be scaled."""
        if not self.settings.renormalize:
            return np.zeros(0)
        enough = self.table.weights >= np.float32(self.settings.threshold)
        if self.settings.keep == "replace":
            enough &= ~self_entries(self.table)
        given = self.table.weights[enough]
        return np.bincount(self.table.indices[enough], given, len(self.table.doc_terms)).astype(np.float64)

    def _numbers(self, analyzer: Analyzer) -> Codes:
        """The number of every term that the analyzer has met so far, -1 for those that the table does not know."""
        names = analyzer.vocabulary.terms
        before = self._met.get(analyzer.identity, np.zeros(0, np.int32))
        if len(before) < len(names):
            more = [self.numbers.get(name, -1) for name in names[len(before) :]]
            before = self._met[analyzer.identity] = np.concatenate([before, np.array(more, np.int32)])
        return before

    @cached_property
    def _extra(self) -> list[str]:
        return [term for term in self.table.query_terms if term not in self.table.doc_numbers]

    @cached_property
    def _met(self) -> dict[str, Codes]:
        return {}
