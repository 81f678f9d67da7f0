"""Bias studies put to rankers, from Python: one call, results back."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from whyrank.core import Floats, Ranker
from whyrank.data import Collection, open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine, Failure
from whyrank.studies.bias import bias_studies
from whyrank.studies.bias.grid import Grid, original_scores
from whyrank.studies.bias.reading import BiasSetting, read_bias
from whyrank.studies.bias.result import BiasResult, with_adjusted_omnibus
from whyrank.studies.bias.templates import Template
from whyrank.tables import TermTable, open_table


@dataclass(frozen=True, eq=False)
class BiasPlan:
    """What is asked of whom; each study under the name that it has in the results."""

    collection: Collection
    studies: Mapping[str, Any]
    rankers: Sequence[Ranker]
    engine: Engine
    table: TermTable | None = None
    deltas: Mapping[str, float] | None = None
    correction: str = "holm"
    seed: int = 0
    resamples: int = 10_000


@dataclass(frozen=True, eq=False)
class BiasAnswer:
    """The result of one study and one ranker, the grid and its scores, and the pairs that have no score."""

    result: BiasResult
    grid: Grid
    scores: Floats
    failures: list[Failure]


def bias_answers(plan: BiasPlan) -> Iterator[BiasAnswer]:
    """Every study put to every ranker, one answer at a time; omnibus p-values are not corrected yet."""
    for name, study in plan.studies.items():
        for ranker in plan.rankers:
            yield _answer(plan, name, study, ranker)


def ask_bias(
    studies: str | Any | Sequence[str | Any],
    rankers: str | Ranker | Sequence[str | Ranker] = "bm25",
    collection: str | Collection = "sample",
    *,
    table: str | TermTable | None = None,
    deltas: Mapping[str, float] | None = None,
    correction: str = "holm",
    engine: Engine | None = None,
    seed: int = 0,
    resamples: int = 10_000,
    limit: int | None = None,
) -> list[BiasResult]:
    """Put bias studies to rankers and give what they answer.

    Args:
        studies: names, shell patterns or call strings, or study objects.
        rankers: call strings, or any objects with `name` and `score`.
        collection: a spec, or a collection.
        table: a term table, or its file: values are compared with its weights.
        deltas: by name of the ranker, a score difference that matters, for effects in its units.
        correction: of the values and pairs of a study, and of the omnibus tests: `holm`, `bonferroni`, `bh`, `none`.
        engine: who scores and keeps scores; by default nothing is kept.
        seed: of all that is random.
        resamples: permutations of values, and flips of signs.
        limit: at most so many templates of a study that does not say `most` itself, drawn at random.

    Example:
        >>> [result] = ask_bias("bias/when-year", "bm25")  # doctest: +SKIP
        >>> result.n_templates  # doctest: +SKIP
        68
    """
    opened = open_collection(collection) if isinstance(collection, str) else collection
    asked = [open_ranker(r, Setting(opened)) if isinstance(r, str) else r for r in _listed(rankers)]
    read = open_table(table, check=True) if isinstance(table, str) else table
    chosen = named_studies(_listed(studies), {"seed": seed} | ({} if limit is None else {"most": limit}))
    plan = BiasPlan(opened, chosen, asked, engine or Engine(), read, deltas, correction, seed, resamples)
    return with_adjusted_omnibus([answer.result for answer in bias_answers(plan)], correction)


def named_studies(given: Sequence[str | Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Studies by the name that they have in results; options fill what a study accepts."""
    found: dict[str, Any] = {}
    for each in given:
        if not isinstance(each, str):
            found[each.id] = each
            continue
        for name in [each] if "(" in each else bias_studies.match(each):
            found[name] = bias_studies.create(name, **options)
    return found


def _answer(plan: BiasPlan, name: str, study: Any, ranker: Ranker) -> BiasAnswer:
    start = time.perf_counter()

    def scores(templates: Sequence[Template]) -> Floats:
        return original_scores(plan.engine, ranker, templates)

    grid = study.grid(plan.collection, scores)
    scored = grid.scored(plan.engine, ranker)
    delta = (plan.deltas or {}).get(ranker.name)
    setting = BiasSetting(
        name, study.id, ranker.name, plan.collection.name, plan.table, delta, plan.correction, plan.seed,
        plan.resamples,
    )  # fmt: skip
    result = read_bias(grid, scored.values, setting)
    timed = replace(result, seconds=round(time.perf_counter() - start, 3))
    return BiasAnswer(timed, grid, scored.values, scored.failures)


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]
