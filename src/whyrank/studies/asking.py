"""One call from Python: studies put to rankers, findings back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whyrank.core import Ranker, Study, UnknownName, WhyrankError, check_text, check_whole
from whyrank.data import Collection, open_collection
from whyrank.rankers import Setting, open_ranker
from whyrank.scoring import Engine
from whyrank.studies import Finding
from whyrank.studies.auditing import all_answers, most_templates, with_adjusted_kinds
from whyrank.studies.catalogue import every_kind, unjudged_options
from whyrank.studies.runner import Plan, Threshold
from whyrank.studies.thresholds import candidates_for_delta, needs_calibration, thresholds, uncalibrated

OPTIONS = (
    "tolerance",
    "margin",
    "analyzer",
    "compat",
    "pairs",
    "candidates",
    "respace",
    "pipeline",
    "query",
    "entity",
    "max_tokens",
    "conclusion",
)


def ask(
    studies: str | Study | Sequence[str | Study],
    rankers: str | Ranker | Sequence[str | Ranker] = "bm25",
    collection: str | Collection = "sample",
    *,
    delta: str | float | None = None,
    correction: str = "holm",
    engine: Engine | None = None,
    seed: int = 0,
    limit: int | None = None,
    by: str | None = None,
    **options: Any,
) -> list[Finding]:
    """Put studies to rankers and give what they answer, p-values corrected over all of it.

    Args:
        studies: names, shell patterns or call strings of probes, axioms and bias studies, or study objects.
        rankers: call strings, or any objects with `name` and `score`.
        collection: a spec, or a collection.
        delta: a number, or a percentile of the ranker's own neighbour differences, over the run `candidates` where
            one is named; by default `p50`, and 0 for axioms.
        correction: `holm`, `bonferroni`, `bh` or `none`.
        engine: who scores and keeps scores; by default nothing is kept.
        seed: of all that is random.
        limit: at most so many contrasts per study, of a bias study so many templates, drawn at random.
        by: a label to break findings down by.
        options: what studies accept, such as `tolerance`, `analyzer` or `compat`. Without `pairs`, axioms pair judged
            documents; where nothing is judged, the first hundred of the run `candidates` or of the collection's.

    Example:
        >>> [finding] = ask("matched/length|relevance", tolerance="10%")  # doctest: +SKIP
    """
    _check(collection, limit, by, options)
    opened = open_collection(collection) if isinstance(collection, str) else collection
    setting = Setting(opened, str(options.get("analyzer", "lucene")))
    asked = [open_ranker(each, setting) if isinstance(each, str) else _ranker(each) for each in _listed(rankers)]
    engine = engine or Engine()
    chosen = _named(_listed(studies), options | {"seed": seed}, opened, limit)
    plan = Plan(opened, chosen, asked, engine)
    used = _thresholds(None if delta is None else str(delta), plan, options.get("candidates"))
    plan = Plan(opened, chosen, asked, engine, used, seed, limit, by, correction=correction)
    found = list(all_answers(plan))
    labels = {label for answer in found if answer.bias is None for label in answer.contrasts.labels}
    if by is not None and labels and by not in labels:
        raise UnknownName("label to break findings down by", by, labels)
    return with_adjusted_kinds([finding for answer in found for finding in answer.findings], chosen, correction)


def _check(collection: object, limit: int | None, by: object, options: Mapping[str, Any]) -> None:
    if not isinstance(collection, str | Collection):
        raise WhyrankError(f"collection must be a spec or a Collection, not {collection!r}")
    if limit is not None:
        check_whole("limit", limit, 1)
    check_text("by", by)
    for name in options:
        if name not in OPTIONS:
            raise UnknownName("option", name, OPTIONS)


def _ranker(given: Any) -> Ranker:
    if not isinstance(given, Ranker):
        raise WhyrankError(f"ranker {given!r} needs a name and a method score(queries, docs); or give a call string")
    return given


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _study(given: Any) -> Study:
    if not isinstance(given, Study):
        raise WhyrankError(
            f"study {given!r} is neither a name nor an object with id, positive, symmetric and contrasts"
        )
    return given


def _thresholds(delta: str | None, plan: Plan, run: str | None) -> dict[str, Threshold]:
    if not needs_calibration(delta, plan.studies.values()):
        return uncalibrated(delta, plan.rankers)
    return thresholds(delta, plan.rankers, candidates_for_delta(plan.collection, run), plan.engine)


def _named(
    given: Sequence[str | Study], options: dict[str, Any], collection: Collection, limit: int | None
) -> dict[str, Study]:
    """Studies by the name that they have in findings; of what a pattern finds, those that can run."""
    catalogue = every_kind()
    names = {each: catalogue.match(each) for each in given if isinstance(each, str)}
    unjudged = {} if "pairs" in options else unjudged_options(collection, options.get("candidates"))
    by_kind = unjudged | most_templates(limit)
    made = catalogue.make([name for found in names.values() for name in found], options, by_kind)
    found: dict[str, Study] = {}
    for each in given:
        if isinstance(each, str):
            chosen = {name: made[name] for name in names[each]}
            found |= {n: s for n, s in chosen.items() if n == each or not getattr(s, "unavailable", "")}
        else:
            found[_study(each).id] = each
    return found
