"""An audit: studies put to rankers, and everything that they answered, in memory or in a result folder.

audit = whyrank.audit("cross:bundled", "sample", "edited/*")
audit["edited/typos"].examples(5)
audit.save("results")
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from markupsafe import Markup

from whyrank.core import (
    Floats,
    Natural,
    Progress,
    Ranker,
    Study,
    UnknownName,
    WhyrankError,
    check,
    clocked,
    timed,
    write_text,
)
from whyrank.data import Collection, open_collection
from whyrank.evaluation import Effectiveness, OverlapRow, PlanEffectiveness, Spread, effectiveness_of_plan
from whyrank.evaluation.fidelity import PerQuery, compare_runs
from whyrank.evaluation.stability import stability
from whyrank.rankers import Setting, as_ranker, as_rankers
from whyrank.rankers.neural import lines_of
from whyrank.report.arrow import data_frame, plain
from whyrank.report.examples import SHOWN_EXAMPLES, Example, Examples, choose, of_extreme_values
from whyrank.report.folder import (
    OVERLAP,
    STABILITY,
    SWEEP,
    TABLE,
    TABLE_PAGE,
    ResultWriter,
    has_scores,
    read_bias_results,
    read_effectiveness,
    read_findings,
    read_rows,
    read_scores,
    read_settings,
    read_texts,
    record_of,
    swap_folder,
)
from whyrank.report.html import render
from whyrank.report.sentences import Headline, headlines
from whyrank.report.words import short_names
from whyrank.scoring import Engine, Failure, ScoreStore, default_engine, distinct_keys
from whyrank.studies import (
    DEMO_TOLERANCE,
    Answer,
    Budget,
    Contrasts,
    Finding,
    Plan,
    Reading,
    Request,
    SweepPoint,
    answers,
    drawing_notes,
    few_queries,
    labels_of,
    make_plan,
    reading_of,
    sweep,
    usual_studies,
    with_adjusted_p,
    with_differences,
)
from whyrank.studies.bias import BiasResult
from whyrank.tables import TermTable, open_table

if TYPE_CHECKING:
    from whyrank.report.comparison import Comparison

SHOWN_ROWS = 30  # studies that a notebook shows
LISTED = 5  # texts of a query whose scores are compared in fidelity
OPTIONS = ("tolerance", "margin", "analyzer", "compat", "pairs", "candidates", "respace", "pipeline", "query",
           "entity", "max_tokens", "conclusion")  # fmt: skip
_FIGURES = ["scores", "diff", "effect", "finite"]  # what a result folder has of each contrast and ranker


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
        check("n", n, Natural)
        found = choose(*self._read(self.name, ranker or self.rankers[0]), most=n)
        return [*found.high, *found.low]


@dataclass(repr=False)
class Audit:
    """The result of running studies on rankers: findings, details of bias studies, settings, notes, and all scores.

    Two audits are equal where these are; `findings` have fingerprints of the contrasts that were scored. `record` is
    what `settings.json` of a result folder holds: settings, studies, thresholds, failures, notes and versions. Of a
    large `table`, a result folder has the strongest entries.

    Example:
        >>> import whyrank
        >>> found = whyrank.audit("bm25", "sample", ["edited/typos", "edited/shuffle-words"], limit=50)
        >>> found.studies, len(found)
        (['edited/typos', 'edited/shuffle-words'], 2)
        >>> [finding.score for finding in found["edited/shuffle-words"].findings]
        [0.0]
        >>> example = found["edited/typos"].examples(1)[0]
        >>> [text.id for text in example.texts], example.effect
        (['d300', 'd300'], -1)
        >>> chart = found.plot("edited/*")
    """

    findings: list[Finding]
    details: list[BiasResult] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sweep: list[SweepPoint] = field(default_factory=list, compare=False)
    spreads: list[Spread] | None = field(default=None, compare=False)
    overlap: Sequence[OverlapRow] = field(default=(), compare=False)
    effectiveness: list[Effectiveness] = field(default_factory=list, compare=False)
    table: TermTable | None = field(default=None, compare=False)
    failures: list[Failure] = field(default_factory=list, compare=False)
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict, compare=False)
    folder: Path | None = field(default=None, compare=False)
    record: dict[str, Any] = field(default_factory=dict, compare=False)
    _last: tuple[Any, Contrasts] | None = field(default=None, init=False, compare=False)  # rankers share contrasts

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
    def names(self) -> dict[str, str]:
        """What readers call each ranker."""
        return short_names(dict.fromkeys(finding.ranker for finding in self.findings))

    @property
    def headlines(self) -> list[Headline]:
        """The findings that matter most, in sentences."""
        return headlines(self.findings, self.alpha, self.symmetric, self.names)

    @property
    def scores(self) -> dict[str, dict[str, dict[str, float]]]:
        """The scores of each ranker over all studies, by query and text."""
        return self._seen[1]

    @cached_property
    def _seen(self) -> tuple[dict[tuple[str, str], Examples], dict[str, dict[str, dict[str, float]]]]:
        """The examples of the report and the scores, in one reading of what may be long files."""
        examples, found = dict[tuple[str, str], Examples](), dict[str, dict[str, dict[str, float]]]()
        for study, ranker in self._scored:
            contrasts, reading = self._read(study, ranker)
            examples[study, ranker] = choose(contrasts, of_extreme_values(contrasts, reading), SHOWN_EXAMPLES)
            width, run = len(contrasts.docs), found.setdefault(ranker, {})
            cells = (contrasts.query[:, None].astype(np.int64) * width + contrasts.doc).ravel()
            known, at = distinct_keys(cells, len(contrasts.queries) * width)
            values = np.empty(len(known))
            values[at] = reading.scores.ravel()
            columns = (*np.divmod(known, width), values)
            for query, doc, score in zip(*(column.tolist() for column in columns), strict=True):
                run.setdefault(contrasts.queries[query], {})[contrasts.docs[doc]] = score
        return examples, found

    @property
    def target(self) -> str:
        """The ranker that the others may stand in for: the one that the term table is of, else the first."""
        learned = None if self.table is None else self.table.facts.get("target")
        return next((name for name in self.scores if name.partition("(")[0] == learned), next(iter(self.scores), ""))

    @cached_property
    def fidelity(self) -> dict[str, PerQuery]:
        """How well each ranker stands in for the target, by query, over the texts that both have scored.

        Queries with fewer than five texts are left out, since two texts correlate by -1 or 1, whatever their scores;
        and those whose texts a ranker scores all alike, so that the means of all rankers are over the same queries.
        """
        ranked = {  # the queries that a ranker orders
            ranker: {query for query, texts in run.items() if len(texts) >= LISTED and len({*texts.values()}) > 1}
            for ranker, run in self.scores.items()
        }
        ranked = {ranker: queries for ranker, queries in ranked.items() if queries}
        shared = set.intersection(*ranked.values()) if ranked else set[str]()
        runs = {
            ranker: {query: texts for query, texts in self.scores[ranker].items() if query in shared}
            for ranker in ranked
        }
        own = runs.pop(self.target, {})
        return {ranker: compare_runs(own, run, ks=()) for ranker, run in runs.items() if own and run}

    def __str__(self) -> str:
        return "\n".join(map(str, self.headlines)) or "No ranker shows a significant preference."

    def _repr_html_(self) -> str:
        """The headlines and the heat map of the largest scores, for notebooks."""
        from whyrank.report.charts import heat_map, picture

        items = Markup("").join(Markup("<li>{}</li>").format(line) for line in str(self).split("\n"))
        drawn = heat_map(self, SHOWN_ROWS)
        chart = picture(drawn, f"Scores of the studies: {self!r}") if drawn is not None else ""
        return str(Markup("<p>{}</p><ul>{}</ul>{}").format(repr(self), items, chart))

    def __getitem__(self, study: str) -> StudyView:
        if study not in self.studies:
            raise UnknownName("study of this audit", study, self.studies)
        return StudyView(study, [f for f in self.findings if f.study == study], self._read)

    def to_pandas(self) -> Any:
        """The findings as a data frame, one row each."""
        return data_frame("pandas", [finding.as_dict() for finding in self.findings])

    def to_polars(self) -> Any:
        """The findings as a data frame of polars, one row each."""
        return data_frame("polars", [finding.as_dict() for finding in self.findings])

    def compare(self, other: Audit | str | os.PathLike[str], rankers: Sequence[str] = ()) -> Comparison:
        """How the rankers of another audit differ from those of this one; `rankers` as those of `whyrank.compare`."""
        from whyrank.report.comparison import compare

        return compare(self, other, rankers=rankers)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the report, one HTML file."""
        beside = (Path(path).parent / TABLE_PAGE).exists()
        write_text(Path(path), render(self, self._seen[0], TABLE_PAGE if beside else None))

    def plot(self, name: str | None = None) -> Any:
        """An Altair chart: of some studies by pattern (`edited/*`), or one of the report by name (`word-order`).

        Without a name, the heat map of all studies.
        """
        from whyrank.report.charts import charts_of, heat_map, stacked

        if name is None:
            return heat_map(self)
        found = charts_of(self)
        if name in found:
            return found[name]
        names = set(fnmatch.filter(self.studies, name))
        findings = [finding for finding in self.findings if finding.study in names]
        details = [each for each in self.details if each.study in names]
        some = replace(self, findings=findings, details=details, sweep=[], overlap=())
        drawn = {each: chart for each, chart in charts_of(some).items() if each != "fidelity"}
        if names and not drawn:
            raise WhyrankError(f"studies {name!r} have nothing to draw: no contrasts, or ties alone")
        if not drawn:
            raise UnknownName("chart or study of this audit", name, [*found, *self.studies])
        return stacked(list(drawn.values()))

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

    @property
    def _scored(self) -> list[tuple[str, str]]:
        """The studies and rankers whose scores there are."""
        pairs, folder = dict.fromkeys((f.study, f.ranker) for f in self.findings), self.folder
        return [pair for pair in pairs if (has_scores(folder, *pair) if folder else pair in self.answers)]

    def _read(self, study: str, ranker: str) -> tuple[Contrasts, Reading]:
        if self.folder is not None:
            return self._read_stored(self.folder, study, ranker)
        if (study, ranker) not in self.answers:
            raise UnknownName("ranker of this study", ranker, [r for s, r in self.answers if s == study])
        answer = self.answers[study, ranker]
        return answer.contrasts, answer.reading

    def _read_stored(self, folder: Path, study: str, ranker: str) -> tuple[Contrasts, Reading]:
        """The same from a result folder; the contrasts are those of the ranker before where these are the same."""
        stored = read_scores(folder, study, ranker, _FIGURES)
        key = study, stored.schema.metadata[b"fingerprint"]
        if self._last is None or self._last[0] != key:
            columns = labels_of(read_scores(folder, study, ranker))
            query, docs = (np.asarray(columns.pop(name)) for name in ("query", "docs"))
            labels = {name.removeprefix("label_"): columns[name] for name in columns if name not in _FIGURES}
            self._last = key, Contrasts(self._texts, self._texts, query, docs, labels).take(slice(None))
        contrasts, figures = self._last[1], cast(Mapping[str, Any], labels_of(stored))
        scores, diffs, effects, finite = (figures[name] for name in _FIGURES)
        return contrasts, Reading(scores, diffs, effects, finite, contrasts.clusters, contrasts.shared)

    @cached_property
    def _texts(self) -> list[str]:
        return read_texts(self.folder) if self.folder is not None else []


def open_audit(folder: str | os.PathLike[str]) -> Audit:
    """The audit of a result folder; scores and texts are read when they are needed.

    Example:
        >>> import tempfile, whyrank
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     before = whyrank.audit("bm25", "sample", "edited/typos", limit=20, out=f"{folder}/results")
        ...     open_audit(f"{folder}/results") == before
        True
    """
    path, record = Path(folder), read_settings(folder)
    return Audit(
        read_findings(path),
        read_bias_results(path),
        record["settings"],
        record["notes"],
        sweep=read_rows(path, SWEEP, SweepPoint),
        spreads=read_rows(path, STABILITY, Spread) or None,
        overlap=read_rows(path, OVERLAP, OverlapRow),
        effectiveness=read_effectiveness(path),
        table=open_table(path / TABLE) if (path / TABLE).exists() else None,
        folder=path,
        record=record,
    )


def audit(
    rankers: Any,
    collection: str | Collection = "sample",
    studies: str | Study | Sequence[str | Study] | None = None,
    *,
    delta: str | float | None = None,
    correction: str = "holm",
    seed: int = 0,
    limit: int | None = None,
    budget: str | None = None,
    width: float | None = None,
    by: str | None = None,
    engine: Engine | None = None,
    table: str | TermTable | None = None,
    out: str | os.PathLike[str] | None = None,
    baseline: str | Ranker | Callable[..., Any] | None = None,
    effectiveness: bool = False,
    **options: Any,
) -> Audit:
    """Run studies on rankers and return the audit, with p-values corrected over all findings.

    Args:
        rankers: call strings, objects with `name` and `score`, functions of queries and texts, models of
            sentence-transformers, or PyTerrier transformers; one, a list, or a mapping from names.
        collection: a name, a folder or a call string such as `files(docs=products.csv)`, or a `Collection`.
        studies: names, shell patterns or call strings of probes, axioms and bias studies, or study objects. By
            default all probes and axioms that the collection allows, and on the sample also a bias study.
        delta: a number, or a percentile of the ranker's own neighbour differences, over the run `candidates` where
            one is named; by default `p50`, and 0 for axioms.
        correction: `holm`, `bonferroni`, `bh` or `none`.
        seed: of all that is random.
        limit: at most so many contrasts per study, of a bias study so many templates, drawn at random.
        budget: draw contrasts in rounds, so that each ranker scores no more than `20000pairs`, or that all takes no
            longer than a time such as `5m`.
        width: draw no more of a study once its 95% interval is narrower than this.
        by: a label to break findings down by.
        engine: scores, and keeps the scores; by default in the user's cache folder, as the command line does;
            `Engine()` keeps nothing.
        table: a term table, or its file: the report has its rows for words of the queries, and values of bias studies
            are compared with its weights.
        out: a result folder to write; scores are then read from it, and not held in memory.
        baseline: a ranker that all others are compared with, contrast by contrast; it is studied first.
        effectiveness: whether rankers also re-rank the run `candidates`, or the collection's, and are measured.
        options: what studies accept, such as `tolerance`, `analyzer` or `compat`. Without `pairs`, axioms pair judged
            documents; where nothing is judged, the first hundred of the run `candidates` or of the collection's.

    Example:
        >>> def longer(queries, docs):
        ...     return [len(doc) for doc in docs]
        >>> found = audit({"mine": longer, "bm25": "bm25"}, "sample", "matched/length|relevance", delta=0)
        >>> [(finding.ranker, round(finding.score, 2)) for finding in found]
        [('mine', 0.96), ('bm25', -0.05)]
    """
    check("by", by, str | None)
    for name in options:
        if name not in OPTIONS:
            raise UnknownName("option", name, OPTIONS)
    opened = open_collection(collection)
    if isinstance(collection, str) and collection == "sample":
        options = {"tolerance": DEMO_TOLERANCE} | options
    setting, spec = Setting(opened, str(options.get("analyzer", "lucene"))), None if delta is None else str(delta)
    scorers = as_rankers(rankers, setting)
    if baseline is not None:
        base = as_ranker(baseline, setting)
        scorers = [base, *(ranker for ranker in scorers if ranker.name != base.name)]
    request = Request(
        studies=usual_studies(opened.name) if studies is None else _as_list(studies),
        collection=lambda: opened,
        rankers=lambda _: scorers,
        engine=engine or default_engine(),
        options={name: value for name, value in options.items() if name != "candidates"},
        candidates=options.get("candidates"),
        delta=spec,
        seed=seed,
        limit=limit,
        budget=Budget.of(budget, width),
        by=by,
        table=open_table(table, check=True) if isinstance(table, str) else table,
        correction=correction,
    )
    plan = make_plan(request)
    plan = plan if baseline is None else replace(plan, baseline=base.name)
    settings = {
        "collection": opened.name,
        "rankers": {ranker.name: repr(ranker) for ranker in plan.rankers},
        "studies": {name: study.id for name, study in plan.studies.items()},
        "delta": delta, "correction": correction, "seed": seed, "limit": limit, "budget": budget, "width": width,
        "by": by, **options,
        **({} if table is None else {"table": table if isinstance(table, str) else "the given term table"}),
        **({} if baseline is None else {"baseline": base.name}),
    }  # fmt: skip
    measure = partial(effectiveness_of_plan, plan, options.get("candidates"), setting.analyzer)
    return run_plan(plan, settings, out=out, effectiveness=measure if effectiveness else None)


def run_plan(
    plan: Plan,
    settings: Mapping[str, Any],
    *,
    out: str | os.PathLike[str] | None = None,
    keep: bool = True,
    swept: bool = False,
    groups: Mapping[str, Sequence[str]] | None = None,
    effectiveness: Callable[[], PlanEffectiveness | None] | None = None,
) -> Audit:
    """Ask what a plan says, and write the result folder `out` where one is named, each answer as it comes.

    Scores are held in memory where there is no folder, unless they are not to be kept. `swept` adds the scores at
    every delta, `groups` how far the rankers of each group differ, `effectiveness` what it gives.
    """
    found, findings = Audit([], settings=plain(settings), table=plan.table), list[Finding]()
    studies, labels, failures = dict[str, Study](), set[str](), dict[tuple[str, str, str], tuple[str, str, Failure]]()
    drawn, expected = set[tuple[str, str]](), plan.price.new if plan.price and not plan.budget else {}
    with ExitStack() as stack:
        clock, fresh = stack.enter_context(clocked()), None if out is None else stack.enter_context(swap_folder(out))
        room = stack.enter_context(TemporaryDirectory(prefix="whyrank-"))
        total = sum(expected.values()) if expected else plan.budget.pairs if plan.budget else None
        progress = stack.enter_context(Progress("scoring", (total or 0) * len(plan.rankers) or None, unit="pairs"))
        engine = plan.engine.for_run(ScoreStore(Path(room) / "scores.sqlite"), progress)
        plan, before = replace(plan, engine=engine), 0
        writer = ResultWriter(fresh) if fresh is not None else None
        for answer in with_differences(answers(plan), plan):
            if progress.total and expected:  # what was known or could not be made is not left to score
                progress.total = max(1, progress.total + progress.done - before - expected[answer.name])
            before = progress.done
            drawn |= answer.contrasts.text_pairs if plan.budget else set()
            findings += answer.findings
            studies[answer.name] = answer.study
            for failure in answer.failures:  # each pair counts once, however many studies have it
                pair = (answer.ranker, failure.query, failure.doc)
                failures.setdefault(pair, (answer.name, answer.ranker, failure))
            labels |= set(answer.contrasts.labels) if reading_of(answer.study).has_groups else set()
            found.details += [answer.details] if answer.details is not None else []
            found.sweep += sweep(answer, plan.thresholds[answer.ranker]) if swept else []
            if writer is not None:
                with timed("writing"):
                    writer.add(answer)
            elif keep:
                found.answers[answer.name, answer.ranker] = answer
        if plan.by is not None and labels and plan.by not in labels:
            raise UnknownName("label to break findings down by", plan.by, labels)
        found.findings = with_adjusted_p(findings, plan.correction, plan.families)
        adjusted = {(f.study, f.ranker): (f.p_adjusted, f.difference_adjusted) for f in found.findings}
        for i, each in enumerate(found.details):
            p, difference = adjusted[each.study, each.ranker]
            found.details[i] = replace(each, p_adjusted=p, difference_adjusted=difference)
        found.spreads = stability(found.findings, groups) if groups else None
        if effectiveness is not None and (measured := effectiveness()) is not None:
            found.effectiveness, found.overlap = measured
        computed = [line for ranker in plan.rankers for line in lines_of(ranker)]
        found.notes = [*plan.collection.notes, *plan.notes, *computed, *few_queries(found.findings)]
        if plan.budget is not None:
            price = None if plan.price is None else plan.price.pairs
            found.notes += drawing_notes(plan.budget, found.findings, len(drawn), price)
            found.settings["budget_pairs"] = plan.budget.pairs
        found.settings["seconds"] = {phase: round(each, 2) for phase, each in clock.seconds.items()}
        found.failures = [failure for _, _, failure in failures.values()]
        found.record = record_of(found.settings, studies, plan.thresholds, list(failures.values()), found.notes)
        if writer is not None:
            with timed("writing"):
                writer.finish(found)
    found.folder = None if out is None else Path(out)
    return found


def _as_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]
