"""An audit: studies put to rankers, and everything that they answered, in memory or in a result folder.

audit = whyrank.audit("cross:bundled", "sample", "edited/*")
audit["edited/typos"].examples(5)
audit.save("results")
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from whyrank.core import (
    Floats,
    MissingExtra,
    Ranker,
    Study,
    UnknownName,
    WhyrankError,
    adjust,
    check_text,
    track,
    write_text,
)
from whyrank.data import Collection, open_collection
from whyrank.evaluation import OverlapRow, Spread
from whyrank.evaluation.stability import stability
from whyrank.rankers import Setting, open_ranker
from whyrank.rankers.neural import lines_of
from whyrank.report.arrow import plain
from whyrank.report.examples import Example, choose
from whyrank.report.folder import (
    ResultWriter,
    read_bias_results,
    read_findings,
    read_scores,
    read_settings,
    read_texts,
    record_of,
    swap_folder,
)
from whyrank.report.html import render
from whyrank.report.sentences import Verdict, verdicts
from whyrank.scoring import Engine, Failure
from whyrank.studies import (
    DEMO_TOLERANCE,
    Answer,
    Contrasts,
    Finding,
    Plan,
    Reading,
    SweepPoint,
    answers,
    candidates_for_delta,
    chosen_studies,
    few_queries,
    given_thresholds,
    labels_of,
    needs_calibration,
    reading_of,
    sweep,
    thresholds,
    usual_studies,
    with_adjusted_p,
)
from whyrank.studies.bias import BiasResult
from whyrank.tables import TermTable, open_table

OPTIONS = ("tolerance", "margin", "analyzer", "compat", "pairs", "candidates", "respace", "pipeline", "query",
           "entity", "max_tokens", "conclusion")  # fmt: skip


@dataclass(frozen=True)
class StudyView:
    """One study of an audit: its findings, and for each ranker the contrasts with their scores."""

    name: str
    findings: list[Finding]
    _read: Callable[[str, str], tuple[Contrasts, Reading]] = field(repr=False)

    @property
    def rankers(self) -> list[str]:
        """The rankers of its findings."""
        return list(dict.fromkeys(finding.ranker for finding in self.findings))

    def contrasts(self, ranker: str | None = None) -> Contrasts:
        """The contrasts that a ranker scored, by default the first one; rankers share them, unless they filter."""
        return self._read(self.name, ranker or self.rankers[0])[0]

    def reading(self, ranker: str | None = None) -> Reading:
        """The scores, differences and effects of all contrasts."""
        return self._read(self.name, ranker or self.rankers[0])[1]

    def scores(self, ranker: str | None = None) -> Floats:
        """The scores of the texts, a row per contrast."""
        return self.reading(ranker).scores

    def examples(self, n: int = 3, ranker: str | None = None) -> list[Example]:
        """The contrasts with the largest differences for the first text, then those with the largest against it."""
        found = choose(*self._read(self.name, ranker or self.rankers[0]), most=n)
        return [*found.high, *found.low]


@dataclass(repr=False)
class Audit:
    """What rankers answered to studies: findings, details of bias studies, settings, notes, and all scores.

    Two audits are equal where these are; `findings` have fingerprints of the contrasts that were scored. `record` is
    what `settings.json` of a result folder holds: settings, studies, thresholds, failures, notes and versions.
    """

    findings: list[Finding]
    details: list[BiasResult] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sweep: list[SweepPoint] = field(default_factory=list, compare=False)
    spreads: list[Spread] | None = field(default=None, compare=False)
    overlap: Sequence[OverlapRow] = field(default=(), compare=False)
    table: TermTable | None = field(default=None, compare=False)
    failures: list[Failure] = field(default_factory=list, compare=False)
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict, compare=False)
    folder: Path | None = field(default=None, compare=False)
    record: dict[str, Any] = field(default_factory=dict, compare=False)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __repr__(self) -> str:
        rankers = ", ".join(dict.fromkeys(finding.ranker for finding in self.findings))
        collections = ", ".join(dict.fromkeys(finding.collection for finding in self.findings))
        return f"Audit({len(self.studies)} studies of {rankers or 'no ranker'} on {collections or 'nothing'})"

    @property
    def studies(self) -> list[str]:
        """The names of the studies."""
        return list(dict.fromkeys(finding.study for finding in self.findings))

    @property
    def alpha(self) -> float:
        """The level of significance of what people see."""
        return float(self.settings.get("alpha", 0.05))

    @property
    def correction(self) -> str:
        """How p-values were corrected."""
        return str(self.settings.get("correction", ""))

    @property
    def symmetric(self) -> set[str]:
        """The studies whose texts have no order, and whose scores no direction."""
        return {study["name"] for study in self.record.get("studies", ()) if study.get("symmetric")}

    @property
    def verdicts(self) -> list[Verdict]:
        """What the findings of each ranker say, in sentences."""
        return verdicts(self.findings, self.alpha, self.symmetric)

    def __getitem__(self, study: str) -> StudyView:
        if study not in self.studies:
            raise UnknownName("study of this audit", study, self.studies)
        return StudyView(study, [f for f in self.findings if f.study == study], self._read)

    def to_pandas(self) -> Any:
        """The findings as a data frame, one row each."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("to_pandas", "pandas") from None
        return pd.DataFrame([finding.as_dict() for finding in self.findings])

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the report, one HTML file."""
        pairs = dict.fromkeys((finding.study, finding.ranker) for finding in self.findings)
        examples = {pair: choose(*self._read(*pair)) for pair in pairs if self.folder or self.answers}
        write_text(Path(path), render(self, examples))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the result folder, from which `open_audit` reads an equal audit."""
        with swap_folder(folder) as fresh:
            if self.folder is not None:
                shutil.copytree(self.folder, fresh, dirs_exist_ok=True)
                return
            writer = ResultWriter(fresh)
            for answer in self.answers.values():
                writer.add(answer)
            writer.finish(self)

    def _read(self, study: str, ranker: str) -> tuple[Contrasts, Reading]:
        if self.folder is not None:
            return _read_stored(self.folder, study, ranker, self._texts)
        if (study, ranker) not in self.answers:
            raise UnknownName("ranker of this study", ranker, [r for s, r in self.answers if s == study])
        answer = self.answers[study, ranker]
        return answer.contrasts, answer.reading

    @cached_property
    def _texts(self) -> list[str]:
        return read_texts(self.folder) if self.folder is not None else []


def open_audit(folder: str | os.PathLike[str]) -> Audit:
    """The audit of a result folder; scores and texts are read when they are needed."""
    path, record = Path(folder), read_settings(folder)
    found = read_findings(path), read_bias_results(path)
    return Audit(*found, record["settings"], record["notes"], folder=path, record=record)


def _read_stored(folder: Path, study: str, ranker: str, texts: Sequence[str]) -> tuple[Contrasts, Reading]:
    """The contrasts and the scores of one study and one ranker, as a result folder has them."""
    columns: dict[str, Any] = labels_of(read_scores(folder, study, ranker))
    own = {name: columns.pop(name) for name in ("query", "docs", "scores", "diff", "effect", "finite")}
    (queries, query), (docs, doc) = (np.unique(own[name], return_inverse=True) for name in ("query", "docs"))
    contrasts = Contrasts(
        [texts[i] for i in queries.tolist()],
        [texts[i] for i in docs.tolist()],
        query.astype(np.int32),
        doc.astype(np.int32).reshape(own["docs"].shape),
        {name.removeprefix("label_"): column for name, column in columns.items()},
    )
    figures = (own["scores"], own["diff"], own["effect"], own["finite"])
    return contrasts, Reading(*figures, contrasts.clusters, contrasts.shared)


def audit(
    rankers: str | Ranker | Callable[..., Any] | Sequence[str | Ranker | Callable[..., Any]],
    collection: str | Collection = "sample",
    studies: str | Study | Sequence[str | Study] | None = None,
    *,
    delta: str | float | None = None,
    correction: str = "holm",
    seed: int = 0,
    limit: int | None = None,
    by: str | None = None,
    engine: Engine | None = None,
    table: str | TermTable | None = None,
    out: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Audit:
    """Put studies to rankers and give what they answer, p-values corrected over all of it.

    Args:
        rankers: call strings, objects with `name` and `score`, or functions of queries and texts.
        collection: a spec, or a collection.
        studies: names, shell patterns or call strings of probes, axioms and bias studies, or study objects; without
            any, all probes and axioms that the collection allows, and on the sample also a bias study.
        delta: a number, or a percentile of the ranker's own neighbour differences, over the run `candidates` where
            one is named; by default `p50`, and 0 for axioms.
        correction: `holm`, `bonferroni`, `bh` or `none`.
        seed: of all that is random.
        limit: at most so many contrasts per study, of a bias study so many templates, drawn at random.
        by: a label to break findings down by.
        engine: who scores and keeps scores; by default nothing is kept.
        table: a term table, or its file: values of bias studies are compared with its weights.
        out: a result folder to write; scores are then read from it, and not held in memory.
        options: what studies accept, such as `tolerance`, `analyzer` or `compat`. Without `pairs`, axioms pair judged
            documents; where nothing is judged, the first hundred of the run `candidates` or of the collection's.

    Example:
        >>> [finding] = audit("bm25", "sample", "matched/length|relevance", tolerance="10%")  # doctest: +SKIP
    """
    if not isinstance(collection, str | Collection):
        raise WhyrankError(f"collection must be a spec or a Collection, not {collection!r}")
    check_text("by", by)
    for name in options:
        if name not in OPTIONS:
            raise UnknownName("option", name, OPTIONS)
    if studies is None and collection == "sample":
        options = {"tolerance": DEMO_TOLERANCE} | options
    opened = open_collection(collection) if isinstance(collection, str) else collection
    setting, engine = Setting(opened, str(options.get("analyzer", "lucene"))), engine or Engine()
    scorers = [_ranker(each, setting) for each in _as_list(rankers)]
    named = usual_studies(opened.name) if studies is None else _as_list(studies)
    chosen = chosen_studies(named, options | {"seed": seed}, opened, limit)
    adjust([], correction)  # a wrong one is an error before anything is scored
    spec = None if delta is None else str(delta)
    if needs_calibration(spec, chosen.values()):
        used = thresholds(spec, scorers, candidates_for_delta(opened, options.get("candidates")), engine)
    else:
        used = given_thresholds(spec, scorers)
    read = open_table(table, check=True) if isinstance(table, str) else table
    plan = Plan(opened, chosen, scorers, engine, used, seed, limit, by, table=read, correction=correction)
    settings = {
        "collection": opened.name,
        "rankers": {ranker.name: repr(ranker) for ranker in scorers},
        "studies": {name: study.id for name, study in chosen.items()},
        "delta": delta, "correction": correction, "seed": seed, "limit": limit, "by": by, **options,
        **({} if table is None else {"table": table if isinstance(table, str) else "the given term table"}),
    }  # fmt: skip
    return run_plan(plan, settings, out=out)


def run_plan(
    plan: Plan,
    settings: Mapping[str, Any],
    *,
    out: str | os.PathLike[str] | None = None,
    keep: bool = True,
    swept: bool = False,
    groups: Mapping[str, Sequence[str]] | None = None,
    overlap: Callable[[], Sequence[OverlapRow] | None] | None = None,
) -> Audit:
    """Ask what a plan says, and write the result folder `out` where one is named, each answer as it comes.

    Scores are held in memory where there is no folder, unless they are not to be kept. `swept` adds the scores at
    every delta, `groups` how far the rankers of each group differ, `overlap` the split that it gives.
    """
    found, findings = Audit([], settings=plain(settings), table=plan.table), list[Finding]()
    studies, labels, failures = dict[str, Study](), set[str](), dict[tuple[str, str, str], tuple[str, str, Failure]]()
    with swap_folder(out) if out is not None else nullcontext() as fresh:
        writer = ResultWriter(fresh) if fresh is not None else None
        for answer in track(answers(plan), "studies", len(plan.studies) * len(plan.rankers)):
            findings += answer.findings
            studies[answer.name] = answer.study
            for failure in answer.failures:  # each pair counts once, however many studies have it
                pair = (answer.ranker, failure.query, failure.doc)
                failures.setdefault(pair, (answer.name, answer.ranker, failure))
            labels |= set(answer.contrasts.labels) if reading_of(answer.study).has_groups else set()
            found.details += [answer.details] if answer.details is not None else []
            found.sweep += sweep(answer, plan.thresholds[answer.ranker]) if swept else []
            if writer is not None:
                writer.add(answer)
            elif keep:
                found.answers[answer.name, answer.ranker] = answer
        if plan.by is not None and labels and plan.by not in labels:
            raise UnknownName("label to break findings down by", plan.by, labels)
        found.findings = with_adjusted_p(findings, plan.correction, plan.families)
        adjusted = {(finding.study, finding.ranker): finding.p_adjusted for finding in found.findings}
        found.details = [replace(each, p_adjusted=adjusted[each.study, each.ranker]) for each in found.details]
        found.spreads = stability(found.findings, groups) if groups else None
        found.overlap = (overlap() if overlap is not None else None) or ()
        computed = [line for ranker in plan.rankers for line in lines_of(ranker)]
        found.notes = [*plan.collection.notes, *plan.notes, *computed, *few_queries(found.findings)]
        found.failures = [failure for _, _, failure in failures.values()]
        found.record = record_of(found.settings, studies, plan.thresholds, list(failures.values()), found.notes)
        if writer is not None:
            writer.finish(found)
    found.folder = None if out is None else Path(out)
    return found


def _as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


@dataclass(frozen=True)
class _Function:
    """A function of queries and texts as a ranker; what it depends on is not known, so its scores are not stored."""

    function: Callable[..., Any]
    cacheable: bool = False

    @property
    def name(self) -> str:
        return self.function.__name__

    def score(self, queries: Sequence[str], docs: Sequence[str]) -> Any:
        return np.asarray(self.function(queries, docs))


def _ranker(given: Any, setting: Setting) -> Ranker:
    if isinstance(given, str):
        return open_ranker(given, setting)
    if isinstance(given, FunctionType | MethodType):
        return _Function(given)
    if not isinstance(given, Ranker):
        ways = "or give a call string, or a function"
        raise WhyrankError(f"ranker {given!r} needs a name and a method score(queries, docs); {ways}")
    return given
