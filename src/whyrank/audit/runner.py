"""Puts every study to every ranker: contrasts, scores, readout."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from whyrank.audit.bias_result import BiasResult
from whyrank.contrasts import Calibration, Contrasts, Finding, Reading, read_out
from whyrank.contrasts.correction import adjust
from whyrank.contrasts.identified import scores_by_ids
from whyrank.contrasts.readout import Setting
from whyrank.core.protocols import Ranker, Study
from whyrank.data import Collection
from whyrank.data.term_table import TermTable
from whyrank.scoring import Engine, Failure, Scores


def is_exact(study: Study) -> bool:
    """Whether every difference counts in a study, so that its delta is zero unless one is asked for."""
    return bool(getattr(study, "exact", False))


@dataclass(frozen=True)
class Threshold:
    """The delta used for one ranker, and the calibration that it came from, if any.

    Studies that say `exact`, as axioms do, use the delta `exact` in its place. `origin` says where a delta without a
    calibration comes from.
    """

    delta: float = 0.0
    calibration: Calibration | None = None
    exact: float = 0.0
    origin: str = "given"

    @property
    def source(self) -> str:
        """Where delta comes from, in words."""
        return self.calibration.source if self.calibration else self.origin

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
        """The threshold for a study and a ranker; zero where none is given."""
        return self.thresholds.get(ranker.name, Threshold()).of(study)


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
            yield _answer(plan, name, contrasts, ranker, building, controls.score(study, ranker))


class Controls:
    """Scores of the controls that studies name (attribute `control_study`): each put to each ranker once."""

    def __init__(self, plan: Plan) -> None:
        """Start with nothing asked."""
        self._plan = plan
        self._contrasts: dict[str, Contrasts] = {}
        self._scores: dict[tuple[str, str], float | None] = {}

    def score(self, study: Study, ranker: Ranker) -> float | None:
        """The score of the study's control; None where it has none, or no contrasts."""
        control: Study | None = getattr(study, "control_study", None)
        if control is None or bool(getattr(control, "unavailable", False)):
            return None
        key = (control.id, ranker.name)
        if key not in self._scores:
            self._scores[key] = self._asked(control, ranker)
        return self._scores[key]

    def _asked(self, control: Study, ranker: Ranker) -> float | None:
        if control.id not in self._contrasts:
            self._contrasts[control.id] = _contrasts(self._plan, control)
        contrasts, threshold = self._contrasts[control.id], self._plan.threshold(control, ranker)
        reading = _reading(contrasts, _scores(self._plan.engine, ranker, contrasts), threshold, control)
        return float(reading.effects[reading.finite].mean()) if reading.finite.any() else None


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
