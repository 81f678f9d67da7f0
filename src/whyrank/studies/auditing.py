"""Studies of every kind put to rankers: those that are contrasts, and those that are grids of values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from whyrank.core import Ranker, Study
from whyrank.studies import Contrasts, Finding, Reading, read_out
from whyrank.studies.bias import BiasAnswer, BiasPlan, bias_answers
from whyrank.studies.runner import Answer, Plan, answers, setting_of, with_adjusted_p


def is_bias(study: Study) -> bool:
    """Whether a study has a grid of templates and values, as bias studies do."""
    return hasattr(study, "grid")


def most_templates(limit: int | None) -> dict[str, Mapping[str, Any]]:
    """A limit per study as an option of bias studies, by kind of study: at most so many templates."""
    return {} if limit is None else {"bias_studies": {"most": limit}}


def with_adjusted_kinds(findings: Sequence[Finding], studies: Mapping[str, Study], method: str) -> list[Finding]:
    """The same findings, bias studies last, with p-values corrected over these, and over all others.

    The omnibus tests of bias studies are a family of their own, so that they say the same wherever they are asked.
    """
    biased = {name for name, study in studies.items() if is_bias(study)}
    kinds = [[f for f in findings if (f.study in biased) is kind] for kind in (False, True)]
    return [finding for kind in kinds for finding in with_adjusted_p(kind, method)]


def all_answers(plan: Plan) -> Iterator[Answer]:
    """Every study put to every ranker, one answer at a time, bias studies last.

    Filters of a bias study may ask the ranker, so each ranker has contrasts of its own: every template that stays,
    with every two values.
    """
    yield from answers(replace(plan, studies={n: s for n, s in plan.studies.items() if not is_bias(s)}))
    for name, study in plan.studies.items():
        for ranker in plan.rankers if is_bias(study) else ():
            [found] = bias_answers(_bias_plan(plan, name, ranker))
            yield _answer(plan, name, ranker, found)


def _bias_plan(plan: Plan, name: str, ranker: Ranker) -> BiasPlan:
    study = plan.studies[name]
    deltas = {ranker.name: plan.threshold(study, ranker).delta}
    return BiasPlan(
        plan.collection, {name: study}, [ranker], plan.engine, plan.table, deltas, plan.correction, plan.seed
    )


def _answer(plan: Plan, name: str, ranker: Ranker, found: BiasAnswer) -> Answer:
    study, contrasts = plan.studies[name], found.grid.contrasts()
    delta = plan.threshold(study, ranker).delta
    reading = Reading.of(contrasts, found.grid.paired(found.scores), delta, symmetric=True)
    finding = _finding(plan, name, ranker, contrasts, reading, found)
    return Answer(name, study, ranker.name, contrasts, reading, [finding], found.failures, found.result)


def _finding(
    plan: Plan, name: str, ranker: Ranker, contrasts: Contrasts, reading: Reading, found: BiasAnswer
) -> Finding:
    """How far values lie apart, and how many pairs of them by more than delta; the p-value is the omnibus test's."""
    setting = replace(setting_of(plan, name, ranker), chance=math.nan)
    [finding] = read_out(plan.studies[name], contrasts, reading, setting)
    result = found.result
    return replace(
        finding,
        p_value=result.p_value,
        p_omnibus=result.p_value,
        range=result.range,
        range_deltas=result.range_deltas,
        favoured=result.favoured,
        disfavoured=result.disfavoured,
        n_queries=result.n_clusters,
        seconds=result.seconds,
    )
