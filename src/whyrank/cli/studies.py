"""The options of commands over studies, and the plan that they make: studies, rankers and delta, all checked."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from whyrank.cli.command import Whole
from whyrank.cli.console import say
from whyrank.cli.options import Input, RankerOptions, Scoring, token_limit
from whyrank.core import WhyrankError

if TYPE_CHECKING:
    from whyrank.core import Study
    from whyrank.data import Collection
    from whyrank.studies import Options, Plan, Threshold

PREFIX = "axiom/"
EXPRESSION = f"{PREFIX}expression"
_NAME = re.compile(r"[A-Za-z*?\[][\w./*?\[\]!-]*")


@dataclass(frozen=True, kw_only=True)
class StudyOptions(Scoring, RankerOptions, Input):
    """Which contrasts rankers score, and how large a difference counts.

    Attributes:
        ranker: a ranker's call string, such as bm25(k1=1.2); repeat for several.
        compat: reproduce published behaviour, slips included: abnirml (probes), camara-hauff (axioms) or
            relevance-thesaurus (bias studies).
        pairs: which documents of a query are paired or edited: judged, top:K or all (pair sets are named in call
            strings).
        candidates: a run file, or the name of a run of the collection.
        max_tokens: axioms cut texts to so many tokens, to count and to score; 512, or none.
        tolerance: how far matched values may lie apart: a number, or N%.
        delta: score differences up to this are neutral, a number or a percentile; p50 is the median of the
            calibration. Default: p50, axioms 0.
        delta_from: calibrate on another collection's candidates.
        seed: seed of everything random.
        limit: at most N contrasts per study (of a bias study N templates), drawn at random.
    """

    ranker: tuple[str, ...] = ()
    compat: str | None = None
    pairs: str | None = None
    candidates: str | None = None
    max_tokens: str | None = None
    tolerance: str | None = None
    delta: str | None = None
    delta_from: str | None = None
    seed: int = 0
    limit: Whole | None = None

    def study_options(self) -> dict[str, Any]:
        """What the options say that studies may accept."""
        from_run = (self.pairs or "judged") != "judged"  # else the run is for the calibration of delta only
        given = {"analyzer": self.analyzer, "compat": self.compat, "pairs": self.pairs, "seed": self.seed,
                 "candidates": self.candidates if from_run else None, "tolerance": self.tolerance,
                 "stats": self.stats}  # fmt: skip
        return {name: value for name, value in given.items() if value is not None} | token_limit(self.max_tokens)


def study_pattern(given: str) -> str:
    """The pattern or call string that an argument stands for: `axiom/` may be left out, and an expression is one."""
    from whyrank.core import Call, parse_call
    from whyrank.studies import all_studies

    text = name = given.strip()
    with suppress(WhyrankError):  # an expression with brackets is no call string
        name = parse_call(text).name
    names = all_studies().names()
    families = {each.partition("/")[0] for each in names} - {PREFIX.rstrip("/")}
    if name.partition("/")[0] in families or fnmatch.filter(names, name):
        return text
    if not _NAME.fullmatch(name):
        return str(Call(EXPRESSION, None, {"of": text}))
    return text if name.startswith(PREFIX) else PREFIX + text


def open_studies(
    request: StudyOptions, patterns: Sequence[str], limited: bool = False
) -> tuple[Collection, dict[str, Study], list[str]]:
    """The collection, the studies by name, and notes; a wrong name is an error before a large collection is read.

    Studies that a pattern finds and that cannot run are left out. Where studies are `limited`, the limit is also one
    of the templates of bias studies.
    """
    from whyrank.studies import all_studies, limit_options, unjudged_options

    catalogue, options = all_studies(), request.study_options()
    by_kind = limit_options(request.limit) if limited else {}
    names = [name for pattern in patterns for name in catalogue.match(pattern)]
    made = catalogue.make(names, options, by_kind)
    reasons: dict[str, list[str]] = {}
    for name, study in made.items():
        if name not in patterns and (reason := getattr(study, "unavailable", "")):
            reasons.setdefault(reason, []).append(name)
    notes = [f"left out, because {reason}: {', '.join(some)}" for reason, some in reasons.items()]
    unavailable = {name for some in reasons.values() for name in some}
    if unavailable == made.keys():
        raise WhyrankError("; ".join(notes))
    axioms = [name for name in made if catalogue.home(name).kind == "axioms"]
    if request.compat == "camara-hauff":
        plain = [name for name in axioms if getattr(made[name], "compat", None) != request.compat]
        notes += [f"run as they are, because they have no mode {request.compat}: {', '.join(plain)}"] * bool(plain)
    collection = request.open_collection()
    if axioms and not request.pairs and not collection.qrels:
        unjudged = unjudged_options(collection, request.candidates)
        again = catalogue.make(names, options, {**by_kind, **unjudged})
        if not unjudged or any(study.id != made[name].id for name, study in again.items()):
            notes.append(unjudged_note(collection, unjudged))
            made = again
    return collection, {name: study for name, study in made.items() if name not in unavailable}, notes


def unjudged_note(collection: Collection, options: Mapping[str, Options]) -> str:
    """Which documents axioms pair where nothing is judged; `options` are those of `unjudged_options`."""
    if not options:
        return f"{collection.name} has neither judgements nor a run to pair documents of; give --candidates RUN"
    where = f"{options['axioms']['pairs']} of {options['axioms'].get('candidates', 'the run')}"
    return f"{collection.name} has no judgements, so axioms pair {where} (--pairs, --candidates)"


def make_plan(
    request: StudyOptions,
    patterns: Sequence[str],
    *,
    table: str | None = None,
    by: str | None = None,
    correction: str = "holm",
    sweep: bool = False,
    groups: Sequence[str] = (),
    limited: bool = False,
) -> Plan:
    """Open everything that the options name; whatever is wrong shows before anything is scored."""
    from whyrank.core import adjust
    from whyrank.evaluation import group_rankers
    from whyrank.studies import Plan, reading_of
    from whyrank.tables import open_table

    adjust([], correction)
    opened = None if table is None else open_table(table, check=True)
    collection, studies, notes = open_studies(request, patterns, limited)
    if opened is not None and not any(reading_of(study).has_table for study in studies.values()):
        raise WhyrankError("--table is for bias studies, and none of them is named; name one, such as 'bias/*'")
    rankers = request.open_rankers(request.ranker, collection)
    group_rankers(groups, [ranker.name for ranker in rankers])  # a wrong group is an error at once
    plan = Plan(collection, studies, rankers, request.engine(), seed=request.seed, limit=request.limit, by=by)
    used = _thresholds(request, plan, sweep)
    bare = [ranker for ranker, threshold in used.items() if threshold.calibration is None]
    if sweep and bare:
        ways = "give --candidates RUN or --delta-from COLLECTION"
        raise WhyrankError(f"--sweep needs candidates to calibrate {bare[0]} on; {ways}")
    notes = [*notes, *_tie_notes(studies, used), *_chance_notes(studies, used)]
    return replace(plan, thresholds=used, notes=notes, table=opened, correction=correction)


def _thresholds(request: StudyOptions, plan: Plan, sweep: bool) -> dict[str, Threshold]:
    """Delta for each ranker; a number, or axioms alone, need no calibration, but for a sweep or a named source.

    Studies that can do without a delta take `none` for it, and none where there is nothing to calibrate on.
    """
    from whyrank.studies import (
        Threshold,
        candidates_for_delta,
        given_thresholds,
        needs_calibration,
        reading_of,
        thresholds,
    )

    needed = any(reading_of(study).needs_delta for study in plan.studies.values())
    unknown = {ranker.name: Threshold(known=False).for_ranker(ranker) for ranker in plan.rankers}
    if request.delta == "none" and not needed:
        return unknown
    named = sweep or (request.delta is not None and request.delta_from is not None)
    if not named and not needs_calibration(request.delta, plan.studies.values()):
        if request.candidates:  # no such run is an error, whether pairs come from it or not
            request.open_run(plan.collection, request.candidates)
        return given_thresholds(request.delta, plan.rankers)
    found: dict[str, Threshold] = {}
    try:
        if request.delta_from:
            candidates = candidates_for_delta(request.open_collection(request.delta_from))
        else:
            candidates = candidates_for_delta(plan.collection, request.candidates)
        for ranker in plan.rankers:
            found |= thresholds(request.delta, [ranker], candidates, plan.engine)
    except WhyrankError as error:
        if needed or request.delta or request.delta_from or request.candidates:
            raise
        lacking = ", ".join(name for name in unknown if name not in found)
        say(f"note: effects of {lacking} are in scores alone: {error}")
    return unknown | found


def _tie_notes(studies: Mapping[str, Study], used: Mapping[str, Threshold]) -> list[str]:
    """A note on each ranker whose tie tolerance decides what is equal in any of the studies."""
    return [
        f"{ranker}: scores that differ by no more than {threshold.tolerance:.3g} count as equal"
        for ranker, threshold in used.items()
        if any(threshold.of(study).delta == threshold.tolerance > 0 for study in studies.values())
    ]


def _chance_notes(studies: Mapping[str, Study], used: Mapping[str, Threshold]) -> list[str]:
    """A note on symmetric studies that have no p-value, because nothing says what chance gives."""
    from whyrank.studies import reading_of

    found = [name for name, study in studies.items() if reading_of(study).needs_chance(study)]
    if not found or any(threshold.calibration for threshold in used.values()):
        return []
    why = "delta is given, so it is not calibrated; for p-values give a percentile such as p50, or --delta-from"
    return [f"no p-values for {', '.join(found)}: {why}"]
