"""Model 1: how probable the query is as a translation of the text, `model1:TABLE`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from whyrank.core import Floats, UnknownName, WhyrankError, call_of, check_flag, check_number, check_text
from whyrank.rankers.grouping import distinct, rows_by_code
from whyrank.rankers.lexical import translation as kernels
from whyrank.rankers.lexical.background import Background
from whyrank.rankers.lexical.base import count_terms
from whyrank.rankers.lexical.explanations import Explanation
from whyrank.rankers.lexical.table_fit import analyzer_of, check_fit, readable_table, reopen_table
from whyrank.rankers.lexical.translation import Translation
from whyrank.rankers.opening import Setting
from whyrank.tables import TermTable
from whyrank.text import Analyzer

LEAST_PROBABILITY = 1e-8
LEAST_PRIOR = 1e-9
_CHOICES = {"keep": ("add", "replace"), "threshold_on": ("raw", "rescaled"), "normalise": ("unique", "tokens"),
            "background": (None, "table", "collection")}  # fmt: skip


@dataclass(frozen=True)
class Model1:
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
    lam: float | None = None
    p_self: float | None = None
    keep: str = "add"
    threshold: float = 0.0
    threshold_on: str = "raw"
    renormalize: bool = False
    normalise: str = "unique"
    analyzer: str | None = None
    background: str | None = None
    stats: str | None = None

    explains: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if (given := getattr(self, name)) not in known:
                raise UnknownName(f"value of model1: {name}", str(given), [each for each in known if each])
        for name in ("lam", "p_self"):
            if getattr(self, name) is not None:
                check_number(f"model1: {name}", getattr(self, name), 0, 1)
        check_number("model1: threshold", self.threshold, 0)
        check_flag("model1: renormalize", self.renormalize)
        check_text("model1: stats", self.stats)
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
        return Model1Ranker(call_of(self, "model1"), completed, analyzer, table, background)

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
class Model1Ranker:
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to other processes without the table, which is opened again there."""
        return reopen_model1, (self.name, self.settings, self.analyzer, self.table.digest, self.background)

    @property
    def lam(self) -> float:
        """The weight of the collection model."""
        return float(self.settings.lam or 0.0)

    @cached_property
    def translation(self) -> Translation:
        """The table with thresholds and self-translation."""
        how = self.settings
        on_sum, replaced = how.threshold_on == "rescaled", how.keep == "replace"
        p_self, threshold = float(how.p_self or 0.0), float(how.threshold)
        return Translation(self.table, p_self, replaced, threshold, on_sum, how.renormalize)

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Floats:
        """Score aligned pairs of texts."""
        query, doc = distinct(queries), distinct(docs)
        texts = self.translation.numbered(self.analyzer, self.analyzer.docs(doc.texts))
        lengths, dense = np.diff(texts.offsets), self.translation.dense()
        found = np.empty(len(query.codes))
        for text, rows in zip(query.texts, rows_by_code(query.codes, len(query.texts)), strict=True):
            (terms, weights), docs_of_query, out = self.query(text), doc.codes[rows], np.zeros(len(rows))
            sums, priors = self.translation.sums(terms, texts, docs_of_query, dense), self.priors(terms)
            kernels.likelihoods(sums, lengths, docs_of_query, weights, priors, self.lam, LEAST_PROBABILITY, out)
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

    def explain(self, query: str, text: str) -> Explanation:
        """The matrix behind the score of one text: parts of the probability of each query term."""
        terms, weights = self.query(query)
        ids, counts = count_terms(self.translation.numbered(self.analyzer, self.analyzer.docs([text])).ids)
        share = (1 - self.lam) * counts / max(int(counts.sum()), 1)
        cells, background = self.translation.cells(terms, ids) * share, self.lam * self.priors(terms)
        sides = {"query": terms, "text": list(dict.fromkeys(self.analyzer.terms(text)))}
        unknown = {side: [t for t in given if t not in self.translation.numbers] for side, given in sides.items()}
        notes = [f"not in the table, of the {side}: {' '.join(words)}" for side, words in unknown.items() if words]
        score, words = float(self.score([query], [text])[0]), self.translation.terms(ids)
        baseline, floor = (np.log(background), 0.0) if self.lam else (None, LEAST_PROBABILITY)
        return Explanation.log(terms, words, cells, score, background, weights, baseline, floor, notes)

    @cached_property
    def _table_tokens(self) -> int:
        return 0 if self.table.counts is None else int(self.table.counts.sum())


def reopen_model1(
    name: str, settings: Model1, analyzer: Analyzer, digest: str, background: Background | None
) -> Model1Ranker:
    """The ranker in another process, with its table opened again."""
    table = reopen_table(settings.resource, digest)
    return Model1Ranker(name, settings, analyzer, table, background)
