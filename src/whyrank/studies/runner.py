"""Puts every study to every ranker: contrasts, scores, readout."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from whyrank.core import Flags, Floats, Ints, Ranker, Study, adjust
from whyrank.data import Collection
from whyrank.rankers import tie_tolerance
from whyrank.scoring import Engine, Failure, Scores
from whyrank.studies.bias import BiasResult
from whyrank.studies.contrasts import Categories, Contrasts
from whyrank.studies.delta import Calibration
from whyrank.studies.findings import Finding
from whyrank.studies.reading import Reading, Setting, read_out
from whyrank.tables import TermTable

# Scores by ids: for a ranker that knows documents by id, where contrasts say which documents they compare.


@runtime_checkable
class ScoresIds(Protocol):
    """A ranker that scores pairs of ids, and can tell whether a text is what an id names."""

    def score_ids(self, query_ids: Sequence[str], doc_ids: Sequence[str]) -> Floats:
        """Scores of aligned pairs of ids; NaN where there is none."""
        ...

    def is_query(self, query_id: str, text: str) -> bool:
        """Whether the query of this id has this text."""
        ...

    def is_doc(self, doc_id: str, text: str, whole: bool = False) -> bool:
        """Whether a text is the document of this id, or unless it must be `whole`, its beginning."""
        ...


class _Asked(NamedTuple):
    """Distinct pairs with their ids and texts; `inverse` has the pair of each text of each contrast."""

    query_ids: list[str]
    doc_ids: list[str]
    queries: list[str]
    docs: list[str]
    inverse: Ints


def scores_by_ids(ranker: object, contrasts: Contrasts) -> Scores | None:
    """Scores of all texts of all contrasts; None where the ranker knows no ids, or the contrasts have none.

    An edited text may carry the id of the text that it was made from: a text that is not the document of its id has
    no score. Where every id stands for one text, a document cut to its beginning counts as the document.
    """
    query_ids, doc_ids = (contrasts.labels.get(name) for name in ("query_id", "doc_ids"))
    if not isinstance(ranker, ScoresIds) or not _names(query_ids, 1) or not _names(doc_ids, 2):
        return None
    start, asked = time.perf_counter(), _asked(contrasts, query_ids, doc_ids)
    genuine = _genuine(ranker, asked)
    values = np.where(genuine, ranker.score_ids(asked.query_ids, asked.doc_ids), np.nan)
    failures = [_failure(asked, i, bool(genuine[i])) for i in np.flatnonzero(~np.isfinite(values)).tolist()]
    return Scores(values[asked.inverse], failures, len(values), 0, time.perf_counter() - start)


def _names(column: object, dimensions: int) -> TypeGuard[Categories]:
    return isinstance(column, Categories) and column.codes.ndim == dimensions


def _asked(contrasts: Contrasts, query_ids: Categories, doc_ids: Categories) -> _Asked:
    of_query = [np.repeat(codes, contrasts.size) for codes in (query_ids.codes, contrasts.query)]
    columns = [doc_ids.codes.ravel(), contrasts.doc.ravel(), *of_query]
    pair = columns[0].astype(np.int64)
    for column in columns[1:]:
        pair = _joined(pair, column)
    first, inverse = _first_rows(pair)
    names = (doc_ids.names, contrasts.docs, query_ids.names, contrasts.queries)
    doc_id, doc, query_id, query = (
        [texts[i] for i in column[first].tolist()] for texts, column in zip(names, columns, strict=True)
    )
    return _Asked(query_id, doc_id, query, doc, inverse)


def _joined(codes: Ints, others: npt.NDArray[np.int32]) -> Ints:
    """A code per distinct pair of codes; the first ones themselves where the second follow from them."""
    if not len(codes):
        return codes
    follows = np.zeros(int(codes.max()) + 1, np.int32)
    follows[codes] = others
    if np.array_equal(follows[codes], others):
        return codes
    _, joined = np.unique(codes * (int(others.max()) + 1) + others, return_inverse=True)
    return np.asarray(joined, dtype=np.int64)


def _first_rows(codes: Ints) -> tuple[Ints, Ints]:
    """A row of each code that occurs, and the place of each row's code among them."""
    row = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    row[codes[::-1]] = np.arange(len(codes))[::-1]
    place = np.cumsum(row >= 0) - 1
    return row[row >= 0], place[codes]


def _genuine(ranker: ScoresIds, asked: _Asked) -> Flags:
    """Whether the texts of each pair are what its ids name."""
    texts: dict[str, set[str]] = {}
    for doc_id, doc in zip(asked.doc_ids, asked.docs, strict=True):
        texts.setdefault(doc_id, set()).add(doc)
    known = {
        (doc_id, doc): ranker.is_doc(doc_id, doc, whole=len(found) > 1)
        for doc_id, found in texts.items()
        for doc in found
    }
    rows = zip(asked.query_ids, asked.queries, asked.doc_ids, asked.docs, strict=True)
    return np.array([known[d, doc] and ranker.is_query(q, query) for q, query, d, doc in rows], dtype=np.bool_)


def _failure(asked: _Asked, i: int, genuine: bool) -> Failure:
    query_id, doc_id = asked.query_ids[i], asked.doc_ids[i]
    reason = f"no score for query {query_id} and document {doc_id}"
    other = f"the texts are not query {query_id} and document {doc_id} of the collection"
    return Failure(asked.queries[i], asked.docs[i], reason if genuine else other)


FEW_QUERIES = 8  # from here on, 95% intervals were seen to hold the true value in 91% of samples or more


def is_exact(study: Study) -> bool:
    """Whether every difference counts in a study, so that its delta is zero unless one is asked for."""
    return bool(getattr(study, "exact", False))


@dataclass(frozen=True)
class Threshold:
    """The delta used for one ranker, and the calibration that it came from, if any.

    Studies that say `exact`, as axioms do, use the delta `exact` in its place. `origin` says where a delta comes from
    that is not taken from the calibration: there is none, or the delta is `given` as a number. Neither delta is below
    the `tolerance` within which the ranker's scores are equal.
    """

    delta: float = 0.0
    calibration: Calibration | None = None
    exact: float = 0.0
    origin: str = "given"
    given: bool = False
    tolerance: float = 0.0

    @property
    def source(self) -> str:
        """Where delta comes from, in words."""
        if self.delta == self.tolerance > 0:
            return "tie tolerance of the ranker"
        return self.calibration.source if self.calibration and not self.given else self.origin

    def for_ranker(self, ranker: Ranker) -> Threshold:
        """The same with the tie tolerance of the ranker."""
        least = tie_tolerance(ranker)
        return replace(self, delta=max(self.delta, least), exact=max(self.exact, least), tolerance=least)

    def of(self, study: Study) -> Threshold:
        """The threshold that applies to a study."""
        return replace(self, delta=self.exact) if is_exact(study) else self

    @property
    def chance(self) -> float:
        """Share of ordinary neighbours that differ by more than delta."""
        return self.calibration.exceeding(self.delta) if self.calibration else float("nan")


@dataclass(frozen=True)
class Plan:
    """What is asked of whom, and how; each study under the name that it has in the findings.

    A term table and a correction are for bias studies: their values are compared with the table, and corrected for
    each other.
    """

    collection: Collection
    studies: Mapping[str, Study]
    rankers: Sequence[Ranker]
    engine: Engine
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    seed: int = 0
    limit: int | None = None
    by: str | None = None
    notes: Sequence[str] = ()
    table: TermTable | None = None
    correction: str = "holm"

    def threshold(self, study: Study, ranker: Ranker) -> Threshold:
        """The threshold for a study and a ranker; where none is given, the ranker's tie tolerance."""
        return (self.thresholds.get(ranker.name) or Threshold().for_ranker(ranker)).of(study)


@dataclass(frozen=True)
class Answer:
    """What one ranker answered to one study; of a bias study also its result, value by value."""

    name: str
    study: Study
    ranker: str
    contrasts: Contrasts
    reading: Reading
    findings: list[Finding]
    failures: list[Failure]
    bias: BiasResult | None = None


def answers(plan: Plan) -> Iterator[Answer]:
    """Every study put to every ranker, one answer at a time."""
    controls = Controls(plan)
    for name, study in plan.studies.items():
        start = time.perf_counter()
        contrasts = _contrasts(plan, study)
        building = time.perf_counter() - start
        for ranker in plan.rankers:
            yield _answer(plan, name, contrasts, ranker, building, controls.score(study, ranker, contrasts))


class Controls:
    """Scores of the controls that studies name (attribute `control_study`), on the texts that the study asks about.

    Each text of a control is put to each ranker once.
    """

    def __init__(self, plan: Plan) -> None:
        """Start with nothing asked."""
        self._plan = plan
        self._contrasts: dict[str, Contrasts] = {}
        self._effects: dict[tuple[str, str], Floats] = {}

    def score(self, study: Study, ranker: Ranker, contrasts: Contrasts) -> float | None:
        """The score of the study's control; None where it has none, or no contrasts."""
        control: Study | None = getattr(study, "control_study", None)
        if control is None or not len(contrasts) or bool(getattr(control, "unavailable", False)):
            return None
        if control.id not in self._contrasts:
            self._contrasts[control.id] = control.contrasts(self._plan.collection)
        same = _same_texts(self._contrasts[control.id], contrasts)
        effects = self._asked(control, ranker, same)[same]
        usable = effects[np.isfinite(effects)]
        return float(usable.mean()) if len(usable) else None

    def _asked(self, control: Study, ranker: Ranker, rows: Flags) -> Floats:
        """The effects of a control, by row: NaN where the scores are not finite, infinite where not yet asked."""
        whole = self._contrasts[control.id]
        effects = self._effects.setdefault((control.id, ranker.name), np.full(len(whole), np.inf))
        fresh = rows & np.isinf(effects)
        if fresh.any():
            part, threshold = whole.take(fresh), self._plan.threshold(control, ranker)
            reading = _reading(part, _scores(self._plan.engine, ranker, part), threshold, control)
            effects[fresh] = np.where(reading.finite, reading.effects, np.nan)
        return effects


def _same_texts(control: Contrasts, contrasts: Contrasts) -> Flags:
    """The rows of a control whose query and documents a study asks about too; all where ids do not tell."""
    known, asked = _ids(control), _ids(contrasts)
    if known is None or asked is None:
        return np.ones(len(control), np.bool_)
    wanted = set(asked)
    return np.array([ids in wanted for ids in known], dtype=np.bool_)


def _ids(contrasts: Contrasts) -> list[tuple[str, ...]] | None:
    query, docs = contrasts.labels.get("query_id"), contrasts.labels.get("doc_ids")
    if not isinstance(query, Categories) or not isinstance(docs, Categories):
        return None
    return [(q, *d) for q, d in zip(query.values().tolist(), docs.values().tolist(), strict=True)]


def few_queries(findings: Sequence[Finding]) -> list[str]:
    """A note that names the studies with too few queries for an interval that keeps its level."""
    few = list(dict.fromkeys(f.study for f in findings if f.n and f.n_queries < FEW_QUERIES))
    if not few:
        return []
    names = ", ".join(few[:3]) + (f" and {len(few) - 3} more" if len(few) > 3 else "")
    return [f"fewer than {FEW_QUERIES} queries, too few for reliable intervals and p-values: {names}"]


def with_adjusted_p(findings: Sequence[Finding], method: str) -> list[Finding]:
    """The same findings with p-values corrected over the whole table."""
    raw = np.array([np.nan if f.p_value is None else f.p_value for f in findings])
    corrected = adjust(raw, method)
    return [
        replace(f, p_adjusted=None if np.isnan(p) else float(p)) for f, p in zip(findings, corrected, strict=True)
    ]


def _answer(
    plan: Plan, name: str, contrasts: Contrasts, ranker: Ranker, building: float, control: float | None
) -> Answer:
    start, study = time.perf_counter(), plan.studies[name]
    threshold = plan.threshold(study, ranker)
    scores = _scores(plan.engine, ranker, contrasts)
    reading = _reading(contrasts, scores, threshold, study)
    findings = read_out(study, contrasts, reading, setting_of(plan, name, ranker, control), plan.by)
    seconds = building + time.perf_counter() - start
    timed = [replace(finding, seconds=round(seconds, 3)) for finding in findings]
    return Answer(name, study, ranker.name, contrasts, reading, timed, scores.failures)


def setting_of(plan: Plan, name: str, ranker: Ranker, control: float | None = None) -> Setting:
    """What the readout of a study and a ranker needs to know besides the scores."""
    study = plan.studies[name]
    threshold = plan.threshold(study, ranker)
    source = getattr(study, "source", plan.collection.name)  # a study over text pairs ignores the collection
    setting = Setting(ranker.name, source, threshold.delta, plan.seed, threshold.chance, study=name, control=control)
    grades = plan.collection.grades if plan.collection.qrels else None
    return replace(setting, scale=str(getattr(ranker, "scale", "")), grades=grades)


def _reading(contrasts: Contrasts, scores: Scores, threshold: Threshold, study: Study) -> Reading:
    return Reading.of(contrasts, scores.values.reshape(-1, contrasts.size), threshold.delta, study.symmetric)


def _contrasts(plan: Plan, study: Study) -> Contrasts:
    contrasts = study.contrasts(plan.collection)
    return contrasts.sample(plan.limit, plan.seed) if plan.limit else contrasts


def _scores(engine: Engine, ranker: Ranker, contrasts: Contrasts) -> Scores:
    by_ids = scores_by_ids(ranker, contrasts)
    if by_ids is not None:
        return by_ids
    query = np.repeat(contrasts.query, contrasts.size)
    return engine.score(ranker, contrasts.queries, contrasts.docs, query, contrasts.doc.ravel())
