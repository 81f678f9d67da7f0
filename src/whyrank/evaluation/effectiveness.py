"""Effectiveness: measures of runs by ir-measures, comparisons of two runs on the same queries, and hypotheses.

A hypothesis is a claim 'A > B' about runs; several are tested in pairs over queries and corrected together.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import which
from subprocess import CalledProcessError
from typing import Any, NamedTuple, TypeVar

import numpy as np

from whyrank.core import BadInput, Ranker, UnknownName, WhyrankError, adjust, mean_interval, paired_t_p, sign_flip_p
from whyrank.data import Collection, open_collection, read_mapping
from whyrank.rankers import Setting, as_rankers
from whyrank.scoring import rank
from whyrank.studies import or_none

AnyRun = Mapping[str, Mapping[str, float]]  # a run that is only read
Row = TypeVar("Row", bound=Any)
_GDEVAL = 4  # the highest grade that it takes
_CLAIMS = "write a YAML mapping, a line for each hypothesis: NAME: A > B"


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
    per_query: Mapping[str, float] = field(repr=False)
    baseline: str | None = None
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p_value: float | None = None
    p_t: float | None = None
    p_adjusted: float | None = None
    runs: int = 1
    deviation: float | None = None

    @classmethod
    def of(cls, run: str, measure: str, per_query: Mapping[str, float]) -> Effectiveness:
        """The mean of the values of all queries."""
        ordered = {q: per_query[q] for q in sorted(per_query)}
        mean = float(np.mean(list(ordered.values()))) if ordered else float("nan")
        return cls(run, measure, mean, len(ordered), ordered)


def evaluate(
    runs: Mapping[str, AnyRun] | Sequence[str | Ranker] | str | Ranker, collection: str | Collection,
    measures: Sequence[str] = (), baseline: str | None = None, correction: str = "holm", seed: int = 0,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> list[Effectiveness]:  # fmt: skip
    """Measure every run on all judged queries; a query that a run lacks counts as zero.

    Args:
        runs: runs by name, such as `collection.runs`; or rankers, whose best thousand documents are measured.
        collection: a collection with judgements, or its spec.
        measures: in the notation of ir-measures; by default `default_measures`.
        baseline: the run that all others are compared with.
        correction: of the p-values: `holm`, `bonferroni`, `bh` or `none`.
        seed: of the randomisation tests.
        groups: runs by the name of a group, such as those of one model trained with several seeds. A group replaces
            its runs: for each query the mean over them, before anything is tested.

    Example:
        >>> [bm25, ql] = evaluate(["bm25", "ql"], "sample", ["nDCG@10"], baseline="bm25")
        >>> bm25.mean > 0.5, ql.baseline
        (True, 'bm25')
    """
    collection = open_collection(collection)
    if not collection.qrels:
        raise WhyrankError(f"collection {collection.name} has no relevance judgements to evaluate with")
    if not isinstance(runs, Mapping):
        runs = {ranker.name: rank(ranker, collection) for ranker in as_rankers(runs, Setting(collection))}
    groups = groups or {}
    _check_groups(groups, runs)
    parsed = [measure_of(text) for text in measures or default_measures(collection)]
    rows = [row for name, run in runs.items() for row in _measure(collection, name, run, parsed)]
    if groups:
        rows = _group(rows, groups)
    if baseline is None:
        return rows
    if inside := [name for name, members in groups.items() if baseline in members]:
        what = f"the baseline {baseline!r} is in the group {inside[0]!r}, which stands for its runs"
        raise WhyrankError(f"{what}; compare with the group, or with a run that is in none")
    base = {row.measure: row for row in rows if row.run == baseline}
    if not base:
        known = ", ".join(dict.fromkeys(row.run for row in rows))
        raise WhyrankError(f"the baseline {baseline!r} is not among the runs: {known}")
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


def _measure(collection: Collection, name: str, run: AnyRun, measures: Sequence[Any]) -> list[Effectiveness]:
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
        remedy = "leave out the one that fails"
        raise WhyrankError(f"ir-measures cannot compute {names} here ({why}); {remedy}") from error
    return [Effectiveness.of(name, measure, per_query) for measure, per_query in values.items()]


def _check_gdeval(collection: Collection, run: AnyRun, measures: Sequence[Any]) -> None:
    """Refuse beforehand what gdeval, a program behind ir-measures, would end at with lines of its own."""
    if which("perl") is None:  # then it is not used
        return
    cut = [m for m in measures if "cutoff" in m.params]
    by_it = [m for m in cut if m.NAME == "ERR" or m.params.get("dcg") == "exp-log2"]
    grades = (grade for docs in collection.qrels.values() for grade in docs.values())
    numbered = all(re.fullmatch("[0-9]+", q) for q in (*collection.qrels, *run))
    if by_it and not (numbered and max(grades, default=0) <= _GDEVAL):
        what = f"is computed by gdeval, which takes query ids that are numbers and grades up to {_GDEVAL}"
        raise WhyrankError(f"measure {str(by_it[0])!r} {what}; those of {collection.name} are others: leave it out")


def _group(rows: Sequence[Effectiveness], groups: Mapping[str, Sequence[str]]) -> list[Effectiveness]:
    """The rows of runs that are in no group, and for each group and measure the means over its runs by query."""
    inside = {member for members in groups.values() for member in members}
    found = [row for row in rows if row.run not in inside]
    for name, members in groups.items():
        for measure in dict.fromkeys(row.measure for row in rows):
            some = [row for row in rows if row.run in members and row.measure == measure]
            per_query = {q: float(np.mean([row.per_query[q] for row in some])) for q in some[0].per_query}
            deviation = float(np.std([row.mean for row in some], ddof=1)) if len(some) > 1 else None
            found.append(replace(Effectiveness.of(name, measure, per_query), runs=len(some), deviation=deviation))
    return found


def _check_groups(groups: Mapping[str, Sequence[str]], runs: Mapping[str, AnyRun]) -> None:
    for name, members in groups.items():
        missing = [member for member in members if member not in runs]
        if not members or missing or len(set(members)) < len(members):
            what = f"lacks the run {missing[0]!r}" if missing else "needs runs, each one once"
            raise WhyrankError(f"group {name!r} {what}; known runs: {', '.join(runs)}")
        if name in runs:
            raise WhyrankError(f"group {name!r} has the name of a run; choose another one")


def parse_groups(given: Sequence[str]) -> dict[str, list[str]]:
    """Groups from `NAME=RUN,RUN,...`; a pattern such as `runs/seed*.txt` stands for all files that it matches."""
    groups: dict[str, list[str]] = {}
    for text in given:
        name, _, members = (part.strip() for part in text.partition("="))
        found: list[str] = []
        for member in filter(None, map(str.strip, members.split(","))):
            is_pattern = glob.has_magic(member) and not Path(member).exists()
            found += (sorted(glob.glob(member)) if is_pattern else []) or [member]
        if not name or not found or name in groups:
            raise WhyrankError(f"--mean-of {text!r}: write NAME=RUN,RUN,... with a name of its own for each group")
        groups[name] = found
    return groups


class Hypothesis(NamedTuple):
    """The claim that one run or group is better than another."""

    name: str
    better: str
    worse: str


@dataclass(frozen=True)
class HypothesisTest:
    """A hypothesis for one measure: both means, their difference, and the p-values of two-sided tests."""

    hypothesis: str
    better: str
    worse: str
    measure: str
    mean: float
    other: float
    n_queries: int
    difference: float
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    p_t: float | None
    p_adjusted: float | None = None

    def verdict(self, alpha: float) -> str:
        """`holds` or `reversed` where the difference is significant after correction, else `open`."""
        if self.p_adjusted is None or self.p_adjusted >= alpha:
            return "open"
        return "holds" if self.difference > 0 else "reversed"


def read_hypotheses(path: str) -> list[Hypothesis]:
    """Read a YAML file: names with claims such as `A > B` or `B < A`."""
    content = read_mapping(path, "hypotheses", _CLAIMS, "give each a name of its own")
    found = []
    for name, claim in content.items():
        sides = [side.strip() for side in str(claim).replace("<", ">").split(">")]
        if not isinstance(claim, str) or len(sides) != 2 or not all(sides) or sides[0] == sides[1]:
            raise BadInput(path, f"{name}: {claim!r} is not a claim about two runs", _CLAIMS)
        found.append(Hypothesis(str(name), *(sides if ">" in claim else reversed(sides))))
    return found


def judge(
    rows: Sequence[Effectiveness], hypotheses: Sequence[Hypothesis], correction: str = "holm", seed: int = 0
) -> list[HypothesisTest]:
    """Test each hypothesis for each measure; the correction is over the whole table."""
    known = {(row.run, row.measure): row for row in rows}
    runs = sorted({row.run for row in rows})
    found = []
    for each in hypotheses:
        for name in (each.better, each.worse):
            if name not in runs:
                raise UnknownName("run of a hypothesis", name, runs)
        for measure in dict.fromkeys(row.measure for row in rows):
            row, other = known[each.better, measure], known[each.worse, measure]
            compared = against(row, other, seed)
            figures = (compared.ci_low, compared.ci_high, compared.p_value, compared.p_t)
            difference = float(compared.difference or 0.0)
            found.append(HypothesisTest(*each, measure, row.mean, other.mean, row.n_queries, difference, *figures))
    return with_adjusted_p(found, correction)
