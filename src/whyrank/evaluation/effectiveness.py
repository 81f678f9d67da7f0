"""Effectiveness: measures of runs by ir-measures, and honest comparisons of two runs on the same queries."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from shutil import which
from subprocess import CalledProcessError
from typing import Any, TypeVar

import numpy as np

from whyrank.core import WhyrankError, adjust, mean_interval, paired_t_p, sign_flip_p
from whyrank.data import Collection
from whyrank.studies import or_none

AnyRun = Mapping[str, Mapping[str, float]]  # a run that is only read
Row = TypeVar("Row", bound=Any)
_GDEVAL = 4  # the highest grade that it takes


@dataclass(frozen=True)
class Effectiveness:
    """One measure of one run: its mean, its value per query, and how it compares with the baseline.

    `ci_low`, `ci_high` bound the mean difference (interval over queries); `p_value` is a randomisation test of
    the per-query differences, `p_t` the paired t-test; `p_adjusted` corrects `p_value` over all comparisons. A group
    of `runs` has the mean over its runs for each query, and the standard `deviation` of the means of its runs.
    """

    run: str
    measure: str
    mean: float
    n_queries: int
    per_query: Mapping[str, float]
    baseline: str | None = None
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p_value: float | None = None
    p_t: float | None = None
    p_adjusted: float | None = None
    runs: int = 1
    deviation: float | None = None


def evaluate(
    collection: Collection, runs: Mapping[str, AnyRun], measures: Sequence[str], baseline: str | None = None,
    correction: str = "holm", seed: int = 0, groups: Mapping[str, Sequence[str]] | None = None,
) -> list[Effectiveness]:  # fmt: skip
    """Measure every run on all judged queries; a query that a run lacks counts as zero.

    A group of runs, such as those of one model trained with several seeds, takes the place of its runs: for each
    query the mean over them, before anything is tested.
    """
    if not collection.qrels:
        raise WhyrankError(f"collection {collection.name} has no relevance judgements to evaluate with")
    _check_groups(groups or {}, runs)
    parsed = [measure_of(text) for text in measures]
    single = [row for name, run in runs.items() for row in _measured(collection, name, run, parsed)]
    rows = _grouped(single, groups) if groups else single
    if baseline is None:
        return rows
    _check_baseline(baseline, rows, groups or {})
    base = {row.measure: row for row in rows if row.run == baseline}
    compared = [row if row.run == baseline else against(row, base[row.measure], seed) for row in rows]
    return with_adjusted_p(compared, correction)


def default_measures(collection: Collection) -> list[str]:
    """nDCG@10, and RR and AP with the grade from which a document counts as relevant here."""
    relevant = collection.grades.relevant
    return ["nDCG@10", f"RR(rel={relevant})@10", f"AP(rel={relevant})@100"]


def measure_of(text: str) -> Any:
    """Parse a measure in the notation of ir-measures, such as nDCG@10 or AP(rel=2)@100."""
    import ir_measures

    try:
        measure = ir_measures.parse_measure(text)
    except (NameError, ValueError, TypeError) as error:
        raise WhyrankError(f"measure {text!r}: {error}; write it as nDCG@10, RR(rel=2)@10 or AP@100") from None
    if missing := [n for n, known in measure.SUPPORTED_PARAMS.items() if known.required and n not in measure.params]:
        settings = ",".join(f"{name}=..." for name in missing if name != "cutoff")
        way = (f"{measure.NAME}({settings})" if settings else text) + "@10" * ("cutoff" in missing)
        raise WhyrankError(f"measure {text!r} lacks its {' and '.join(missing)}; write it as {way}")
    cutoff = measure.params.get("cutoff")
    if cutoff is not None and not (isinstance(cutoff, int) and cutoff > 0):
        raise WhyrankError(f"measure {text!r}: the cutoff after @ must be 1 or more")
    return measure


def against(row: Effectiveness, base: Effectiveness, seed: int) -> Effectiveness:
    """The row with its paired comparison with another one, without correction."""
    queries = [q for q in row.per_query if q in base.per_query]
    diffs = np.array([row.per_query[q] - base.per_query[q] for q in queries])
    interval = mean_interval(diffs)
    return replace(
        row,
        baseline=base.run,
        difference=float(diffs.mean()),
        ci_low=or_none(interval.low),
        ci_high=or_none(interval.high),
        p_value=or_none(sign_flip_p(diffs, 100_000, seed)),
        p_t=or_none(paired_t_p(diffs)),
    )


def with_adjusted_p(rows: Sequence[Row], correction: str) -> list[Row]:
    """Rows with `p_adjusted`, the correction of `p_value` over all of them; None where nothing was tested."""
    raw = np.array([np.nan if row.p_value is None else row.p_value for row in rows])
    return [replace(row, p_adjusted=or_none(p)) for row, p in zip(rows, adjust(raw, correction), strict=True)]


def _measured(collection: Collection, name: str, run: AnyRun, measures: Sequence[Any]) -> list[Effectiveness]:
    import ir_measures

    values: dict[str, dict[str, float]] = {str(measure): {} for measure in measures}
    given = {q: dict(docs) for q, docs in run.items()}
    _check_gdeval(collection, run, measures)
    try:
        for metric in ir_measures.iter_calc(measures, collection.qrels, given):
            values[str(metric.measure)][metric.query_id] = float(metric.value)
    except Exception as error:  # a measure may need a program that is not there
        names, why = ", ".join(map(str, measures)), " ".join(str(error).split())
        if isinstance(error, CalledProcessError):
            why = f"a program that it starts, {error.cmd[0]}, ended with code {error.returncode}"
        raise WhyrankError(
            f"ir-measures cannot compute {names} here ({why}); leave out the one that fails"
        ) from error
    return [_row(name, measure, per_query) for measure, per_query in values.items()]


def _check_gdeval(collection: Collection, run: AnyRun, measures: Sequence[Any]) -> None:
    """Refuse beforehand what gdeval, a program behind ir-measures, would end at with lines of its own."""
    if which("perl") is None:  # then it is not asked
        return
    cut = [m for m in measures if "cutoff" in m.params]
    by_it = [m for m in cut if m.NAME == "ERR" or m.params.get("dcg") == "exp-log2"]
    grades = (grade for docs in collection.qrels.values() for grade in docs.values())
    numbered = all(re.fullmatch("[0-9]+", q) for q in (*collection.qrels, *run))
    if by_it and not (numbered and max(grades, default=0) <= _GDEVAL):
        what = f"is computed by gdeval, which takes query ids that are numbers and grades up to {_GDEVAL}"
        raise WhyrankError(f"measure {str(by_it[0])!r} {what}; those of {collection.name} are others: leave it out")


def _row(run: str, measure: str, per_query: Mapping[str, float]) -> Effectiveness:
    ordered = {q: per_query[q] for q in sorted(per_query)}
    mean = float(np.mean(list(ordered.values()))) if ordered else float("nan")
    return Effectiveness(run, measure, mean, len(ordered), ordered)


def _grouped(rows: Sequence[Effectiveness], groups: Mapping[str, Sequence[str]]) -> list[Effectiveness]:
    """The rows of runs that are in no group, and for each group and measure the means over its runs by query."""
    inside = {member for members in groups.values() for member in members}
    found = [row for row in rows if row.run not in inside]
    for name, members in groups.items():
        for measure in dict.fromkeys(row.measure for row in rows):
            some = [row for row in rows if row.run in members and row.measure == measure]
            per_query = {q: float(np.mean([row.per_query[q] for row in some])) for q in some[0].per_query}
            deviation = float(np.std([row.mean for row in some], ddof=1)) if len(some) > 1 else None
            found.append(replace(_row(name, measure, per_query), runs=len(some), deviation=deviation))
    return found


def _check_baseline(baseline: str, rows: Sequence[Effectiveness], groups: Mapping[str, Sequence[str]]) -> None:
    if inside := [name for name, members in groups.items() if baseline in members]:
        raise WhyrankError(
            f"the baseline {baseline!r} is in the group {inside[0]!r}, which stands for its runs; "
            "compare with the group, or with a run that is in none"
        )
    known = dict.fromkeys(row.run for row in rows)
    if baseline not in known:
        raise WhyrankError(f"the baseline {baseline!r} is not among the runs: {', '.join(known)}")


def _check_groups(groups: Mapping[str, Sequence[str]], runs: Mapping[str, AnyRun]) -> None:
    for name, members in groups.items():
        missing = [member for member in members if member not in runs]
        if not members or missing or len(set(members)) < len(members):
            what = f"lacks the run {missing[0]!r}" if missing else "needs runs, each one once"
            raise WhyrankError(f"group {name!r} {what}; known runs: {', '.join(runs)}")
        if name in runs:
            raise WhyrankError(f"group {name!r} has the name of a run; choose another one")
