"""Puts every study to every ranker: contrasts, scores, reading."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from whyrank.core import Floats, Ints, Ranker, Study, adjust, working_with
from whyrank.data import Collection
from whyrank.scoring import Engine, Failure, Scores
from whyrank.studies.contrasts import Categories, Contrasts, index_texts
from whyrank.studies.delta import Threshold
from whyrank.studies.findings import Finding
from whyrank.studies.reading import Context, Reading, reading_of
from whyrank.tables import TermTable

FEW_QUERIES = 8  # from here on, 95% intervals were seen to hold the true value in 91% of samples or more


@dataclass(frozen=True)
class Plan:
    """What is asked of whom, and how; each study under the name that it has in the findings.

    `table` is a term table whose weights are compared with the values of bias studies. `correction` is that of their
    values and pairs; findings are corrected by `with_adjusted_p`. `draws` is the number of random draws of each test,
    None for as many as the test takes by itself.
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
    draws: int | None = None

    def threshold(self, study: Study, ranker: Ranker) -> Threshold:
        """The threshold for a study and a ranker; where none is given, the ranker's tie tolerance."""
        return (self.thresholds.get(ranker.name) or Threshold().for_ranker(ranker)).of(study)

    @property
    def families(self) -> dict[str, str]:
        """The family of tests of each study."""
        return {name: reading_of(study).family for name, study in self.studies.items()}


@dataclass(frozen=True)
class Answer:
    """What one ranker answered to one study.

    `reading` has the values of every contrast. `details` is the record of a study that says more than a finding
    holds: of a bias study, the figures of every value.
    """

    name: str
    study: Study
    ranker: str
    contrasts: Contrasts
    reading: Reading
    findings: list[Finding]
    failures: list[Failure]
    details: Any = None


def answers(plan: Plan) -> Iterator[Answer]:
    """Every study put to every ranker, one answer at a time, family by family.

    Rankers share the contrasts of a study, unless it chooses texts by the scores of a ranker: such a study has the
    method `contrasts_for`, whose second argument scores aligned queries and texts.
    """
    controls, families = _Controls(plan), plan.families
    for name in sorted(plan.studies, key=lambda name: families[name]):
        study = plan.studies[name]
        choose: Callable[..., Contrasts] | None = getattr(study, "contrasts_for", None)
        for number, ranker in enumerate(plan.rankers):
            start = time.perf_counter()
            if number == 0 or choose is not None:
                score = partial(_score_texts, plan.engine, ranker)
                with working_with(plan.engine.executor):
                    contrasts = choose(plan.collection, score) if choose else study.contrasts(plan.collection)
                if plan.limit:
                    contrasts = reading_of(study).sample(contrasts, plan.limit, plan.seed)
                building = time.perf_counter() - start
            control = controls.score(study, ranker, contrasts)
            yield _answer(plan, name, ranker, contrasts, control, building)


def read_scores(plan: Plan, study: Study, ranker: Ranker, contrasts: Contrasts) -> tuple[Reading, list[Failure]]:
    """The scores of all contrasts as the study reads them, and the pairs that have none."""
    scores = scores_by_ids(ranker, contrasts)
    if scores is None:
        scores = contrasts.scored(partial(plan.engine.score, ranker))
    delta = plan.threshold(study, ranker).delta
    values = scores.values.reshape(-1, contrasts.size)
    return Reading.of(contrasts, values, delta, study.symmetric), scores.failures


def with_adjusted_p(
    findings: Sequence[Finding], method: str, families: Mapping[str, str] | None = None
) -> list[Finding]:
    """Findings, family by family, with p-values corrected over each family.

    The omnibus tests of bias studies are a family of their own, so that they say the same wherever they are asked.
    """
    named = [(families or {}).get(finding.study, "") for finding in findings]
    found: list[Finding] = []
    for family in sorted(set(named)):
        own = [finding for finding, name in zip(findings, named, strict=True) if name == family]
        raw = np.array([np.nan if finding.p_value is None else finding.p_value for finding in own])
        corrected = zip(own, adjust(raw, method).tolist(), strict=True)
        found += [replace(finding, p_adjusted=None if np.isnan(p) else p) for finding, p in corrected]
    return found


def few_queries(findings: Sequence[Finding]) -> list[str]:
    """A note that names the studies with too few queries for an interval that keeps its level."""
    few = list(dict.fromkeys(f.study for f in findings if f.n and f.n_queries < FEW_QUERIES))
    if not few:
        return []
    names = ", ".join(few[:3]) + (f" and {len(few) - 3} more" if len(few) > 3 else "")
    return [f"fewer than {FEW_QUERIES} queries, too few for reliable intervals and p-values: {names}"]


def _score_texts(engine: Engine, ranker: Ranker, queries: Sequence[str], docs: Sequence[str]) -> Floats:
    """The scores of aligned queries and texts."""
    (unique_queries, query), (unique_docs, doc) = index_texts(queries), index_texts(docs)
    return engine.score(ranker, unique_queries, unique_docs, query, doc).values


def _answer(
    plan: Plan, name: str, ranker: Ranker, contrasts: Contrasts, control: float | None, building: float
) -> Answer:
    start, study = time.perf_counter(), plan.studies[name]
    threshold = plan.threshold(study, ranker)
    reading, failures = read_scores(plan, study, ranker, contrasts)
    context = Context(
        ranker.name,
        getattr(study, "source", plan.collection.name),  # a study over text pairs ignores the collection
        threshold.delta,
        plan.seed,
        threshold.chance,
        name,
        plan.by,
        control,
        str(getattr(ranker, "scale", "")),
        plan.collection.grades if plan.collection.qrels else None,
        (threshold.delta or None) if threshold.known else None,
        plan.table,
        plan.correction,
        plan.draws,
    )
    findings, details = reading_of(study).read(study, contrasts, reading, context)
    seconds = round(building + time.perf_counter() - start, 3)
    findings = [replace(finding, seconds=seconds) for finding in findings]
    details = None if details is None else replace(details, seconds=seconds)
    return Answer(name, study, ranker.name, contrasts, reading, findings, failures, details)


class _Controls:
    """Scores of the controls that studies name (attribute `control_study`), on the texts that the study asks about.

    Each text of a control is put to each ranker once.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._contrasts: dict[str, Contrasts] = {}
        self._effects: dict[tuple[str, str], Floats] = {}

    def score(self, study: Study, ranker: Ranker, contrasts: Contrasts) -> float | None:
        """The score of the study's control; None where it has none, or no contrasts."""
        control: Study | None = getattr(study, "control_study", None)
        if control is None or not len(contrasts) or bool(getattr(control, "unavailable", False)):
            return None
        if control.id not in self._contrasts:
            with working_with(self._plan.engine.executor):
                self._contrasts[control.id] = control.contrasts(self._plan.collection)
        whole = self._contrasts[control.id]
        known, wanted = whole.ids, contrasts.ids
        rows = np.ones(len(whole), np.bool_)  # all of them where ids do not tell which texts the study asks about
        if known is not None and wanted is not None:
            distinct = set(wanted)
            rows = np.array([ids in distinct for ids in known], dtype=np.bool_)
        # the effects by row: NaN where the scores are not finite, infinite where they are not known yet
        effects = self._effects.setdefault((control.id, ranker.name), np.full(len(whole), np.inf))
        fresh = rows & np.isinf(effects)
        if fresh.any():
            reading, _ = read_scores(self._plan, control, ranker, whole.take(fresh))
            effects[fresh] = np.where(reading.finite, reading.effects, np.nan)
        usable = effects[rows & np.isfinite(effects)]
        return float(usable.mean()) if len(usable) else None


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


def scores_by_ids(ranker: object, contrasts: Contrasts) -> Scores | None:
    """Scores of all texts of all contrasts; None where the ranker knows no ids, or the contrasts have none.

    An edited text may carry the id of the text that it was made from: a text that is not the document of its id has
    no score. Where every id stands for one text, a document cut to its beginning counts as the document.
    """
    query_id, doc_id = (contrasts.labels.get(name) for name in ("query_id", "doc_ids"))
    if not isinstance(query_id, Categories) or not isinstance(doc_id, Categories):
        return None
    if not isinstance(ranker, ScoresIds) or query_id.codes.ndim != 1 or doc_id.codes.ndim != 2:
        return None
    start, size = time.perf_counter(), contrasts.size
    columns = [doc_id.codes.ravel(), contrasts.doc.ravel()]
    columns += [np.repeat(codes, size) for codes in (query_id.codes, contrasts.query)]
    first, inverse = _distinct(columns)
    names = (doc_id.names, contrasts.docs, query_id.names, contrasts.queries)
    doc_ids, docs, query_ids, queries = (
        [texts[i] for i in column[first].tolist()] for texts, column in zip(names, columns, strict=True)
    )
    forms: dict[str, set[str]] = {}  # the texts that an id stands for
    for each, doc in zip(doc_ids, docs, strict=True):
        forms.setdefault(each, set()).add(doc)
    known = {(d, doc): ranker.is_doc(d, doc, whole=len(texts) > 1) for d, texts in forms.items() for doc in texts}
    rows = zip(query_ids, queries, doc_ids, docs, strict=True)
    genuine = np.array([known[d, doc] and ranker.is_query(q, query) for q, query, d, doc in rows], dtype=np.bool_)
    values = np.where(genuine, ranker.score_ids(query_ids, doc_ids), np.nan)
    failures = []
    for i in np.flatnonzero(~np.isfinite(values)).tolist():
        named = f"query {query_ids[i]} and document {doc_ids[i]}"
        reason = f"no score for {named}" if genuine[i] else f"the texts are not {named} of the collection"
        failures.append(Failure(queries[i], docs[i], reason))
    return Scores(values[inverse], failures, len(values), 0, time.perf_counter() - start)


def _distinct(columns: Sequence[npt.NDArray[np.int32]]) -> tuple[Ints, Ints]:
    """The first row of each distinct row of some columns of codes, and which of these every row is.

    A column whose codes follow from those before it, as a text does from its id, costs no sorting.
    """
    codes = columns[0].astype(np.int64)
    for others in columns[1:] if len(codes) else ():
        follows = np.zeros(int(codes.max()) + 1, np.int32)
        follows[codes] = others
        if not np.array_equal(follows[codes], others):
            codes = np.unique(codes * (int(others.max()) + 1) + others, return_inverse=True)[1].astype(np.int64)
    row = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
    row[codes[::-1]] = np.arange(len(codes))[::-1]
    return row[row >= 0], (np.cumsum(row >= 0) - 1)[codes]
