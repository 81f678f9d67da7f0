"""Puts every study to every ranker: contrasts, scores, reading."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from whyrank.core import ALPHA, Flags, Floats, Ranker, Study, adjust, timed, working_with
from whyrank.data import Collection, Grades
from whyrank.rankers.fields import DocFields, wants_fields
from whyrank.scoring import Engine, Failure, Scores
from whyrank.studies.catalogue import faults_of
from whyrank.studies.contrasts import Categories, Contrasts, TextIds, distinct_rows, index_texts
from whyrank.studies.delta import Threshold
from whyrank.studies.findings import Finding, or_none
from whyrank.studies.reading import Context, Reading, reading_of
from whyrank.studies.sampling import Budget, Drawn, Forecast, Frame, Rounds, TextStudy, draw_contrasts
from whyrank.tables import TermTable

if TYPE_CHECKING:
    from whyrank.studies.price import Price

FEW_QUERIES = 8  # from here on, 95% intervals were seen to hold the true value in 91% of samples or more


@dataclass(frozen=True)
class Plan:
    """What is asked of whom, and how; each study under the name that it has in the findings.

    `table` is a term table whose weights are compared with the values of bias studies. `correction` is that of their
    values and pairs; findings are corrected by `with_adjusted_p`. `draws` is the number of random draws of each test,
    None for as many as the test takes by itself. With a `budget`, studies are drawn in rounds. `price` is what the
    plan costs, where it is known. `baseline` is the first ranker, where others are compared with it.
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
    budget: Budget | None = None
    price: Price | None = None
    baseline: str = ""

    def threshold(self, study: Study, ranker: Ranker) -> Threshold:
        """The threshold for a study and a ranker; where none is given, the ranker's tie tolerance."""
        return (self.thresholds.get(ranker.name) or Threshold().for_ranker(ranker)).of(study)

    @property
    def grades(self) -> Grades | None:
        """What the grades of judgements mean; None where nothing is judged."""
        return self.collection.grades if self.collection.qrels else None

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
    method `contrasts_for`, whose second argument scores aligned queries and texts. Where there is a budget, all
    studies are drawn in rounds, and no ranker chooses texts.
    """
    controls, families = _Controls(plan), plan.families
    names = sorted(plan.studies, key=lambda name: families[name])
    if plan.budget is not None:
        yield from _drawn_answers(plan, names, controls)
        return
    for name in names:
        study = plan.studies[name]
        choose: Callable[..., Contrasts] | None = getattr(study, "contrasts_for", None)
        for number, ranker in enumerate(plan.rankers):
            start = time.perf_counter()
            if number == 0 or choose is not None:
                score = partial(_score_texts, plan.engine, ranker)
                with working_with(plan.engine.executor), timed("building"), faults_of(name, study):
                    build = partial(choose, score=score) if choose else study.contrasts
                    drawn = draw_contrasts(study, plan.collection, plan.limit, plan.seed, build)
            control = controls.score(study, ranker, drawn.contrasts)
            scored = read_scores(plan, study, ranker, drawn.contrasts)
            yield _answer(plan, name, ranker, drawn, control, scored, start)


def _drawn_answers(plan: Plan, names: Sequence[str], controls: _Controls) -> Iterator[Answer]:
    """The answers to all studies, each drawn as far as the budget allows or the width of its intervals requires."""
    assert plan.budget is not None
    start = time.perf_counter()
    with working_with(plan.engine.executor), timed("building"):
        frames = {name: Frame.of(plan.studies[name], plan.collection, plan.seed) for name in names}
    rounds, found = Rounds(frames, plan.budget), dict[str, tuple[Drawn, list[tuple[Reading, list[Failure]]]]]()
    for looks in rounds:
        for name, look in looks.items():
            study = plan.studies[name]
            with working_with(plan.engine.executor), timed("building"):
                contrasts = frames[name].draw(look.units)
            scored = [read_scores(plan, study, ranker, contrasts) for ranker in plan.rankers]
            found[name] = Drawn(contrasts, look.units, frames[name].available, look.share), scored
            every_other = np.arange(len(contrasts)) % 2 == 0
            widths, whole, half = (
                max(_width(each, rows & each.finite, study.symmetric, alpha) for each, _ in scored)
                for rows, alpha in ((True, ALPHA * look.share), (True, ALPHA), (every_other, ALPHA))
            )
            rounds.saw(name, widths, Forecast.of(look.units, whole, half))
    for name in names:
        drawn, scored = found.pop(name)
        for ranker, each in zip(plan.rankers, scored, strict=True):
            control = controls.score(plan.studies[name], ranker, drawn.contrasts)
            yield _answer(plan, name, ranker, drawn, control, each, start)
            start = time.perf_counter()


def _width(reading: Reading, rows: Flags, symmetric: bool, alpha: float) -> float:
    low, high = reading.interval(rows, symmetric, alpha)
    return high - low


def read_scores(plan: Plan, study: Study, ranker: Ranker, contrasts: Contrasts) -> tuple[Reading, list[Failure]]:
    """The scores of all contrasts as the study reads them, and the pairs that have none."""
    scores = scores_by_ids(ranker, contrasts)
    if scores is None and wants_fields(ranker):
        scores = scores_with_fields(plan.engine, ranker, contrasts, plan.collection)
    elif scores is None:
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
        raw = [[getattr(finding, name) for finding in own] for name in ("p_value", "difference_p")]
        corrected = (adjust(np.array(column, dtype=np.float64), method).tolist() for column in raw)
        found += [
            replace(finding, p_adjusted=or_none(p), difference_adjusted=or_none(other))
            for finding, p, other in zip(own, *corrected, strict=True)
        ]
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
    plan: Plan,
    name: str,
    ranker: Ranker,
    drawn: Drawn,
    control: float | None,
    scored: tuple[Reading, list[Failure]],
    start: float,
) -> Answer:
    study, contrasts, (reading, failures) = plan.studies[name], drawn.contrasts, scored
    threshold = plan.threshold(study, ranker)
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
        plan.grades,
        (threshold.delta or None) if threshold.known else None,
        plan.table,
        plan.correction,
        plan.draws,
        drawn.share,
    )
    with timed("statistics"), faults_of(name, study):
        findings, details = reading_of(study).read(study, contrasts, reading, context)
    seconds = round(time.perf_counter() - start, 3)
    facts: dict[str, Any] = {
        "drawn": drawn.units,
        "available": drawn.available,
        "share": drawn.share,
        "seconds": seconds,
    }
    findings = [replace(finding, **facts) for finding in findings]
    details = None if details is None else replace(details, seconds=seconds)
    return Answer(name, study, ranker.name, contrasts, reading, findings, failures, details)


class _Controls:
    """Scores of the controls that studies name (attribute `control_study`), on the texts of the study.

    Each text of a control is built once, and scored once by each ranker.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._built: dict[str, set[TextIds]] = {}
        self._parts: dict[str, list[Contrasts]] = {}
        self._effects: dict[tuple[str, str], list[Floats]] = {}

    def score(self, study: Study, ranker: Ranker, contrasts: Contrasts) -> float | None:
        """The score of the study's control; None where it has none, or no contrasts."""
        control: Study | None = getattr(study, "control_study", None)
        if control is None or not len(contrasts) or bool(getattr(control, "unavailable", False)):
            return None
        wanted = None if contrasts.ids is None else {TextIds(*ids[:2]) for ids in contrasts.ids}
        parts, effects = (
            self._parts.setdefault(control.id, []),
            self._effects.setdefault((control.id, ranker.name), []),
        )
        self._build(control, wanted, parts)
        for part in parts[len(effects) :]:
            reading, _ = read_scores(self._plan, control, ranker, part)
            effects.append(np.where(reading.finite, reading.effects, np.nan))
        used = [np.empty(0)]
        for part, found in zip(parts, effects, strict=True):
            rows = np.isfinite(found)  # all of them where ids do not tell which texts the study has
            if wanted is not None and part.ids is not None:
                rows &= np.array([ids[:2] in wanted for ids in part.ids], dtype=np.bool_)
            used.append(found[rows])
        usable = np.concatenate(used)
        return float(usable.mean()) if len(usable) else None

    def _build(self, control: Study, wanted: set[TextIds] | None, parts: list[Contrasts]) -> None:
        """Build what is missing of a control: of the wanted texts alone where it has one contrast per text."""
        built = self._built.setdefault(control.id, set())
        with working_with(self._plan.engine.executor), timed("building"):
            if wanted is not None and isinstance(control, TextStudy):
                if new := wanted - built:
                    parts.append(control.contrasts_of(self._plan.collection, new))
                    built |= new
            elif not parts:
                parts.append(control.contrasts(self._plan.collection))


def scores_with_fields(engine: Engine, ranker: Ranker, contrasts: Contrasts, collection: Collection) -> Scores:
    """Scores of all texts by a ranker that reads fields; a text that was made from a document has those of it.

    The id of a made text is that of the document, or begins with it: `d7*2` is `d7` twice, `d7+word` has a word more.
    """
    label = contrasts.labels.get("doc_ids")
    if not isinstance(label, Categories) or label.codes.shape != contrasts.doc.shape:
        return contrasts.scored(partial(engine.score, ranker))
    origins = [
        next((each for each in (d, d.rpartition("*")[0], d.rpartition("+")[0]) if each in collection.docs), "")
        for d in label.names
    ]
    first, doc = distinct_rows([label.codes.ravel(), contrasts.doc.ravel()])
    ids = [origins[code] for code in label.codes.ravel()[first].tolist()]
    docs = [contrasts.docs[code] for code in contrasts.doc.ravel()[first].tolist()]
    query, fields = np.repeat(contrasts.query, contrasts.size), DocFields(ids, collection.fields)
    return engine.score(ranker, contrasts.queries, docs, query, doc.astype(np.int32), fields)


# Scores by ids: for a ranker that knows documents by id (`RunRanker`), where contrasts say which ones they compare.


def scores_by_ids(ranker: Any, contrasts: Contrasts) -> Scores | None:
    """Scores of all texts of all contrasts; None where the ranker knows no ids, or the contrasts have none.

    An edited text may carry the id of the text that it was made from: a text that is not the document of its id has
    no score. Where every id stands for one text, a document cut to its beginning counts as the document.
    """
    query_id, doc_id = (contrasts.labels.get(name) for name in ("query_id", "doc_ids"))
    if not isinstance(query_id, Categories) or not isinstance(doc_id, Categories):
        return None
    if not hasattr(ranker, "score_ids") or query_id.codes.ndim != 1 or doc_id.codes.ndim != 2:
        return None
    start, size = time.perf_counter(), contrasts.size
    columns = [doc_id.codes.ravel(), contrasts.doc.ravel()]
    columns += [np.repeat(codes, size) for codes in (query_id.codes, contrasts.query)]
    first, inverse = distinct_rows(columns)
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
